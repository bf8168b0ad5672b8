package handler

// The verdict in the status.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// record writes a verdict into the status, which sends the notifications. It returns false if a later holder of the lease wrote the status:
// that holder records the verdict. If the verdict is outdated, it records at most that no change is left.
func (h *Handler) record(ctx context.Context, in events.ReportRequest, v *verdict, outdated bool) (recorded bool, err error) {
	update, err := h.statusWriter(ctx, in)
	if err != nil {
		return false, err
	}
	original := *v
	err = update(ctx, in.Cluster, func(s *status.Status) {
		*v = original // a conflict repeats this function; the first call may have added instances to the message
		switch recorded = !isSuperseded(in, s); {
		case recorded && outdated && in.Plan.Outcome == events.OutcomeUnchanged:
			s.RecordConverged(h.Now())
		case recorded && !outdated:
			v.nameInstances(in, s)
			v.execution, v.try = in.Execution, in.Try
			v.write(s, h.Now())
		}
	})
	if errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Warn("unknown cluster", "cluster", in.Cluster)
		return false, nil
	}
	return recorded, err
}

// statusWriter returns how to write the status. An execution that could not plan creates no status for a name without a spec, because users
// can start executions for names that are no clusters.
func (h *Handler) statusWriter(ctx context.Context, in events.ReportRequest) (func(context.Context, string, func(*status.Status)) error,
	error) {
	if in.Plan != nil {
		return h.State.UpdateStatus, nil
	}
	version, err := h.version(ctx, in.Cluster)
	if err != nil || version != "" {
		return h.State.UpdateStatus, err
	}
	return h.State.AmendStatus, nil
}

// isSuperseded reports whether a later holder of the lease wrote the status. An execution that could not plan has no fence: it does not
// overwrite the status of a cluster that another execution changes.
func isSuperseded(in events.ReportRequest, s *status.Status) bool {
	if in.Plan == nil {
		return (s.Phase == status.Converging || s.Phase == status.Upgrading || s.Phase == status.Deleting) && s.Execution != in.Execution
	}
	return s.Fence > in.Plan.Seen
}

// nameInstances adds the instances that made the change of a pool fail. The reason of AWS mentions only missing signals.
func (v *verdict) nameInstances(in events.ReportRequest, s *status.Status) {
	const maxNamed = 3
	var lines []string
	for _, result := range in.Results {
		pool, ok := strings.CutPrefix(result.Stack, names.PoolPrefix)
		if !ok || result.Error == "" {
			continue
		}
		nodes := s.NotJoined(pool, in.Execution)
		for _, n := range nodes[:min(len(nodes), maxNamed)] {
			lines = append(lines, fmt.Sprintf("pool %s: instance %s did not join: %s", pool, n.Instance, n.Message))
		}
	}
	for _, line := range lines {
		v.Message += "\n" + line
		v.Condition.Message += "\n" + line
	}
}

// write applies the verdict to a status. It clears the fields of a deleted cluster.
func (v *verdict) write(s *status.Status, now time.Time) {
	switch v.Phase {
	case status.Failed:
		v.scheduleRetry(s, now)
		s.Execution = v.execution
	case status.Deleted:
		if s.Deletion != nil {
			v.Message = deletionMessage(s.Deletion)
		}
		v.Condition.Message = v.Message
		s.Plan, s.Stacks, s.Nodes = nil, nil, nil
		s.Upgrade, s.NextUpgrade, s.Upgrades, s.Replaced = nil, nil, nil, nil
		s.Unset(status.InSync, status.AddonsDeployed, status.AccessGranted, status.AddonsSchedulable, status.NetworkUsable,
			status.NetworkTags, status.PodsIsolated, status.KubeletFieldsKnown, status.RequestAccepted)
		s.Drift, s.DriftedAt = nil, nil
	}
	v.Apply(s, now)
}

// deletionMessage is the message of a deleted cluster, with the resources of Kubernetes that were removed or retained.
func deletionMessage(d *status.Deletion) string {
	message := fmt.Sprintf("the cluster is deleted, with the %d resources that Kubernetes created in the account", len(d.Removed))
	switch len(d.Removed) {
	case 0:
		message = "the cluster is deleted; Kubernetes had created nothing in the account"
	case 1:
		message = "the cluster is deleted, with the one resource that Kubernetes created in the account"
	}
	if len(d.Retained) > 0 {
		message += "; retained: " + strings.Join(d.Retained, ", ")
	}
	return message
}
