package handler

// Pools whose groups get no instances: CloudFormation waits for an hour and more for signals of those that are not there, and then
// does not say why they were not.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/waiter"
)

// slow is how long a pool's change takes before somebody asks why.
const slow = 5 * time.Minute

// refused tells why a pool that is being changed gets no instances, for as long as it gets none.
func (h *Handler) refused(ctx context.Context, w store.Waiter, is string, since time.Time) error {
	pool, ok := strings.CutPrefix(w.Stack, names.PoolPrefix)
	if !ok || h.Now().Sub(since) < slow {
		return nil
	}
	why, err := h.Groups.Refused(ctx, names.Group(w.Cluster, pool), since, time.Time{})
	if err != nil {
		return err
	}
	if why != "" {
		why = waiter.NoInstances(why)
	}
	return h.State.UpdateStatus(ctx, w.Cluster, func(s *status.Status) {
		told := slices.ContainsFunc(s.Stacks, func(stack status.Stack) bool {
			return stack.Name == w.Stack && stack.Status == is && stack.Reason != ""
		})
		if s.Execution == w.Execution && (why != "" || told) {
			s.SetStack(status.Stack{Name: w.Stack, Status: is, Reason: why}, h.Now())
		}
	})
}

// short tells of pools at rest that have fewer instances than they should, because they get none.
func (r *round) short(ctx context.Context, cluster string) (findings []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.stacks[cluster])) {
		pool, ok := strings.CutPrefix(name, names.PoolPrefix)
		group := r.groups[names.Group(cluster, pool)]
		has := len(group.Instances) - len(group.Leaving())
		if !ok || !stack.Settled(r.stacks[cluster][name].Status) || has >= group.Desired {
			continue
		}
		why, err := r.Groups.Refused(ctx, group.Name, time.Time{}, time.Time{})
		if err != nil {
			return nil, err
		}
		if why != "" {
			findings = append(findings, fmt.Sprintf("pool %s has %d of %d instances: %s", pool, has, group.Desired, waiter.NoInstances(why)))
		}
	}
	return findings, nil
}
