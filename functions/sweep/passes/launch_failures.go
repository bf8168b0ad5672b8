package passes

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// slowChange is the duration of a pool's change from which the sweep checks for launch failures.
const slowChange = 5 * time.Minute

// recordLaunchFailure records why the group of a pool that is being changed gets no instances, and removes the reason when it gets them.
// CloudFormation waits an hour or more for the signals of missing instances, and then does not report why they are missing.
func (p Waiters) recordLaunchFailure(ctx context.Context, w store.Waiter, read status.StackReport, since time.Time) error {
	pool, ok := strings.CutPrefix(w.Stack, names.PoolPrefix)
	if !ok || p.Now().Sub(since) < slowChange {
		return nil
	}
	why, err := p.Groups.LaunchFailureReason(ctx, names.Group(w.Cluster, pool), since, time.Time{})
	if err != nil {
		return err
	}
	if why != "" {
		why = waiter.NoInstances(why)
	}
	return p.State.UpdateStatus(ctx, w.Cluster, func(s *status.Status) {
		recorded := slices.ContainsFunc(s.Stacks, func(stack status.Stack) bool {
			return stack.Name == w.Stack && stack.Status == read.Status && stack.Reason != ""
		})
		if s.Execution == w.Execution && (why != "" || recorded) {
			s.SetStack(status.Stack{Name: w.Stack, Status: read.Status, Reason: why}, read.At)
		}
	})
}
