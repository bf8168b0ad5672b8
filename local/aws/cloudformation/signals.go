package cloudformation

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Signals: SignalResource forwards them to the provider of a waiting resource.

// maxSignals bounds the queue of unread signals. Resources without a policy do not read signals and receive few.
const (
	maxSignals       = 1000
	maxSignalsUnread = 10
)

func (r *stackResource) openSignals() {
	most := maxSignalsUnread
	if r.definition.CreationPolicy != nil || r.definition.UpdatePolicy != nil {
		most = maxSignals
	}
	r.signals = make(chan resource.Signal, most)
	r.signaled = map[string]bool{}
}

// SignalResourceInput of SignalResource.
type SignalResourceInput struct {
	StackName, LogicalResourceId, UniqueId, Status string
}

// SignalResource sends a signal to a resource that is being created or updated.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_SignalResource.html
func (s *Service) SignalResource(_ context.Context, caller iam.Caller, in *SignalResourceInput) (*struct{}, error) {
	if err := s.authorize(caller, "SignalResource", in.StackName, nil); err != nil {
		return nil, err
	}
	if in.Status != "SUCCESS" && in.Status != "FAILURE" {
		return nil, invalid("1 validation error detected: Value '%s' at 'status' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [SUCCESS, FAILURE]", in.Status)
	}
	if in.UniqueId == "" || len(in.UniqueId) > 64 {
		return nil, invalid("1 validation error detected: Value '%s' at 'uniqueId' failed to satisfy constraint: "+
			"Member must have length between 1 and 64", in.UniqueId)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	switch st.status {
	case createInProgress, updateInProgress, updateRollbackInProgress:
	default:
		return nil, invalid("Stack %s is in %s state and cannot be signaled", st.id, st.status)
	}
	r := st.resources[in.LogicalResourceId]
	if r == nil {
		return nil, invalid("Resource %s does not exist for stack %s", in.LogicalResourceId, st.name)
	}
	if r.signals == nil {
		return nil, invalid("Resource %s is in %s state and cannot be signaled", r.logicalID, r.status)
	}
	// A repeated signal counts once.
	if r.signaled[in.UniqueId] {
		return nil, nil
	}
	select {
	case r.signals <- resource.Signal{UniqueID: in.UniqueId, Success: in.Status == "SUCCESS"}:
	default:
		return nil, wire.Errorf("Throttling", "Rate exceeded")
	}
	r.signaled[in.UniqueId] = true
	s.setResource(st, r, r.status, "Received "+in.Status+" signal with UniqueId "+in.UniqueId, st.running.token)
	return nil, nil
}
