// Package handler implements the stackevent function. It records the stack statuses that CloudFormation reports. When an operation ends, it
// resumes the task that waits for the stack.
package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// State holds waiters and statuses: a subset of store.State.
type State interface {
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
	AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	RequestInspection(ctx context.Context, cluster, why string) error
}

// Resumer resumes a task with the status of its stack: waiter.Resumer.
type Resumer interface {
	Resume(ctx context.Context, w store.Waiter, report status.StackReport) error
}

// Handler handles stack events.
type Handler struct {
	State  State
	Resume Resumer
	Now    func() time.Time
}

// Handle handles one event. The end of an operation resumes the task that waits for it, which records the status. The status of any other
// event is recorded here.
func (h *Handler) Handle(ctx context.Context, in events.Event[events.StackStatus]) (struct{}, error) {
	var done struct{}
	stackStatus, stackName := in.Detail.StatusDetails.Status, names.StackOfARN(in.Detail.StackID)
	log := logging.From(ctx).With("stack", stackName, "status", stackStatus, "event", in.ID)
	cluster, name, ok := names.SplitStack(stackName)
	if !ok {
		log.Info("ignored: not a cluster's stack")
		return done, nil
	}
	if !stack.InProgress(stackStatus) {
		w, err := h.State.Waiter(ctx, stackName)
		switch {
		case err == nil && (w.ClientRequestToken == "" || w.ClientRequestToken == in.Detail.ClientRequestToken):
			log.Info("resuming the waiting task", "cluster", w.Cluster)
			return done, h.Resume.Resume(ctx, w, status.StackReport{Status: stackStatus, At: in.Time, Event: true})
		case err == nil:
			log.Info("task waits for another operation", "token", in.Detail.ClientRequestToken, "awaited", w.ClientRequestToken)
		case !errors.Is(err, store.ErrNotFound):
			return done, err
		}
	}
	return done, h.record(ctx, cluster, status.StackEvent{
		Stack: name, Status: stackStatus, Reason: in.Detail.StatusDetails.StatusReason, At: in.Time,
		External: !plan.IsToken(in.Detail.ClientRequestToken),
	})
}

// record records a stack's status. When an operation outside drover has ended, the condition InSync says so at once, and the next sweep
// audits the cluster. The audit decides what follows from the change.
func (h *Handler) record(ctx context.Context, cluster string, e status.StackEvent) error {
	log := logging.From(ctx).With("cluster", cluster, "stack", e.Stack, "status", e.Status)
	inspect := false
	err := h.State.AmendStatus(ctx, cluster, func(s *status.Status) {
		recorded := s.RecordStack(e)
		if inspect = recorded && e.External && !stack.InProgress(e.Status); inspect {
			s.ExternalChange(e, h.Now())
		}
	})
	if errors.Is(err, store.ErrNotFound) {
		log.Info("ignored: the cluster has no status")
		return nil
	}
	if err != nil || !inspect {
		return err
	}
	log.Warn("stack changed outside drover")
	return h.State.RequestInspection(ctx, cluster, fmt.Sprintf("stack %s: %s at %s", e.Stack, e.Status, e.At.UTC().Format(time.RFC3339)))
}
