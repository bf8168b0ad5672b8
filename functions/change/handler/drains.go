package handler

// Nodes are replaced batch by batch, and each batch waits for the nodes that join and the drains of the one before: join holds it back by its
// signals. Nothing holds the first one back but this: neither CloudFormation nor an instance refresh looks whether instances that an earlier roll, or
// a scale-in, had end are still being drained, or whether those that an autoscaler added serve.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/status"
)

const (
	// beyond its pool's own time a drain gets this much more: its pods their grace periods, their volumes ten minutes.
	beyond = 15 * time.Minute
	// joins is how long instances that come are waited for. Those of an image with which none joins come again and again, and only the roll
	// brings another.
	joins = 15 * time.Minute
)

// Pauses between two looks, in seconds: a quarter of what has passed, so that a few dozen looks are enough for drains of hours.
const (
	leastPause = 10
	mostPause  = 300
)

// What waits for drains and joins, as the status names it.
const (
	aRoll     = "nodes are replaced"
	lessRoom  = "the pool is made smaller"
	goingBack = "the rollback goes on"
)

// held says whether what a change does to a group must not happen yet. Then the step looks again after a while, as it does after somebody else's
// update: whatever came meanwhile counts, a newer spec, another holder of the lease. It does not wait for longer than a drain may take, or
// a pool that always has a node on its way out would never be rolled.
func (s *step) held(ctx context.Context, what string, group groups.Group, stackStatus string) (bool, error) {
	if s.in.WaitedSeconds == nil {
		return false, nil
	}
	waited := *s.in.WaitedSeconds
	first := s.before(group)
	if first.over == "" || waited >= first.most {
		if waited == 0 {
			return false, nil
		}
		if first.over == "" {
			return false, s.tell(ctx, nil)
		}
		message := fmt.Sprintf("%s though %s: it has waited for %s", what, first.still, seconds(waited))
		boundary.Log(ctx).Warn(message, "stack", s.change.StackName)
		return false, s.tell(ctx, &status.Waits{Message: message})
	}
	pause := min(max(leastPause, min(mostPause, waited/4)), first.most-waited)
	message := what + " when " + first.over
	boundary.Log(ctx).Info(message, "stack", s.change.StackName, "waitedSeconds", waited)
	until := s.Resume.Now().Add(seconds(first.most - waited)).UTC()
	if err := s.tell(ctx, &status.Waits{Message: message, Until: until}); err != nil {
		return true, err
	}
	return true, s.Resume.Later(ctx, s.waiter("", true), stackStatus, pause)
}

// first is what must be over before nodes of a group are replaced, what is while it is not, and for how many seconds that is waited for at
// most. It is empty when nothing has to be.
type first struct {
	over, still string
	most        int64
}

// before the nodes of a group are replaced. Where nothing serves, nothing is lost by replacing what comes.
func (s *step) before(group groups.Group) first {
	going, coming := strings.Join(group.Going(), ", "), strings.Join(group.Coming(), ", ")
	switch serving := group.Serving(); {
	case going != "":
		return first{going + " are drained", going + " are still drained", s.change.Pace.DrainSeconds + int64(beyond/time.Second)}
	case coming != "" && serving > 0 && serving < group.Desired:
		return first{coming + " have joined", coming + " have not joined", int64(joins / time.Second)}
	}
	return first{}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// tell the status what the stack waits for. If the lease went to another holder, it is for that one to tell.
func (s *step) tell(ctx context.Context, waits *status.Waits) error {
	if err := s.State.CheckLease(ctx, s.in.Cluster, s.in.Execution, s.in.Fence); err != nil {
		return err
	}
	return s.State.UpdateStatus(ctx, s.in.Cluster, func(st *status.Status) { st.Wait(s.change.Stack, waits) })
}
