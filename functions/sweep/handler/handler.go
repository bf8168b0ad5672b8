// Package handler finds what events missed: stacks that came to rest while the event about it was lost, specs that nobody was
// told of, and executions that ended without a word. It is the safety net under the events, and costs four listings when
// there is nothing to find.
package handler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Specs lists what people wrote: a subset of store.Bucket.
type Specs interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
}

// State is what drover keeps: a subset of store.State.
type State interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	Held(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Executions tells whether a holder of a lease still runs: a subset of executions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
}

// Stacks is what is deployed: a subset of stacks.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (plan.Deployed, error)
	Began(ctx context.Context, stackName, token string) (bool, error)
}

// Resumer tells a step how its stack ended: resume.Resumer.
type Resumer interface {
	Resume(ctx context.Context, w store.Waiter, stackStatus string) error
}

// Admitter looks at a spec that nobody was told of: admit's handler.
type Admitter interface {
	Admit(ctx context.Context, cluster string) error
}

// Handler sweeps.
type Handler struct {
	Specs  Specs
	State  State
	Stacks Stacks
	Resume Resumer
	Admit  Admitter
	// Executions of the converge machine.
	Executions Executions
	// Patience is how old a spec must be before it counts as missed: until then its event is on its way.
	Patience time.Duration
	Now      func() time.Time
}

// Handle sweeps once. What fails for one cluster holds up no other; the first failure is returned at the end.
func (h *Handler) Handle(ctx context.Context, _ struct{}) (struct{}, error) {
	return struct{}{}, errors.Join(h.waiters(ctx), h.missed(ctx), h.ended(ctx))
}

// waiters resumes the steps whose stacks are at rest.
func (h *Handler) waiters(ctx context.Context) error {
	entries, err := h.State.List(ctx, names.Waiters)
	if err != nil {
		return err
	}
	var failed []error
	for _, entry := range entries {
		stackName := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Waiters), ".json")
		if err := h.waiter(ctx, stackName); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (h *Handler) waiter(ctx context.Context, stackName string) error {
	w, err := h.State.Waiter(ctx, stackName)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if running, err := h.Executions.Running(ctx, w.Execution); err != nil {
		return err
	} else if !running {
		// Its execution died before the operation began, or was aborted.
		return h.State.DeleteWaiter(ctx, w)
	}
	stack, err := h.Stacks.Describe(ctx, stackName)
	if err != nil || plan.InProgress(stack.Status) || stack.Status == "REVIEW_IN_PROGRESS" {
		// In review, the creation that is waited for is about to begin.
		return err
	}
	if w.ClientRequestToken != "" && !plan.Absent(stack.Status) {
		began, err := h.Stacks.Began(ctx, stackName, w.ClientRequestToken)
		// The operation that is waited for may be about to begin: then the stack rests from an earlier one.
		if err != nil || !began {
			return err
		}
	}
	boundary.Log(ctx).Warn("the event of this stack was lost", "stack", stackName, "status", stack.Status)
	return h.Resume.Resume(ctx, w, stack.Status)
}

// missed admits the specs that are newer than their cluster's status, or as old: S3 tells the time in seconds, and admitting twice
// does nothing more.
func (h *Handler) missed(ctx context.Context) error {
	specs, err := h.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	statuses, err := h.State.List(ctx, names.Statuses)
	if err != nil {
		return err
	}
	told := map[string]time.Time{}
	for _, entry := range statuses {
		told[entry.Key] = entry.Modified
	}
	var failed []error
	for _, spec := range specs {
		cluster, ok := names.ClusterOfKey(spec.Key)
		if !ok || h.Now().Sub(spec.Modified) < h.Patience || told[names.Status(cluster)].After(spec.Modified) {
			continue
		}
		boundary.Log(ctx).Warn("the event of this spec was lost", "cluster", cluster)
		if err := h.Admit.Admit(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// ended tells of the executions that hold a lease and are over: they were aborted or ran out of time, and never reported. The
// cluster is not converged again by itself: whoever stopped its execution meant it.
func (h *Handler) ended(ctx context.Context) error {
	clusters, err := h.State.Held(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, cluster := range clusters {
		if err := h.holder(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (h *Handler) holder(ctx context.Context, cluster string) error {
	lease, err := h.State.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return err
	}
	if running, err := h.Executions.Running(ctx, lease.Execution); err != nil || running {
		return err
	}
	boundary.Log(ctx).Warn("an execution ended without a report", "cluster", cluster, "execution", lease.Execution)
	message := fmt.Sprintf("execution %s is over and did not say how it ended: start drover-converge to go on", lease.Execution)
	err = h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		if s.Phase != status.Converging || s.Execution != lease.Execution {
			return
		}
		s.Phase, s.Message = status.Failed, message
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonExecutionEnded, Message: message}, h.Now())
	})
	if err != nil {
		return err
	}
	return h.State.Release(ctx, cluster, lease.Execution)
}
