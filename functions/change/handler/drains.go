package handler

// The gate before the first batch of a roll. shared/roll decides; this file reads what it needs, records the wait, and schedules the next
// call.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/roll"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// What waits for drains and joins. The status shows these words.
const (
	rollMessage     = "nodes are replaced"
	shrinkMessage   = "the pool shrinks"
	rollbackMessage = "the rollback continues"
)

// waitForDrains reports whether the change of a group has to wait. If so, the task runs again after a pause and decides again: a newer spec
// may have arrived, or another execution may hold the lease. After the wait the change proceeds, whatever still blocks it. addsFirst
// reports whether the change adds a node before it takes one: it may pass drains that wait for that node. See ADR 20.
func (c *call) waitForDrains(ctx context.Context, what string, group pool.Group, stackStatus string, addsFirst bool) (bool, error) {
	if c.in.WaitedSeconds == nil {
		return false, nil
	}
	waited := seconds(*c.in.WaitedSeconds)
	blocker, err := c.blocker(ctx, group, waited)
	if err != nil {
		return false, err
	}
	instances, left := strings.Join(blocker.Instances, ", "), blocker.Left(waited, c.Now())
	if addsFirst && left > 0 && blocker.MayPassDrains(group) {
		why, err := c.starvedReason(ctx, blocker.Instances)
		if err != nil {
			return false, err
		}
		if why != "" {
			logging.From(ctx).Info("drains passed", "stack", c.change.StackName, "instances", blocker.Instances, "reason", why)
			return false, c.recordWait(ctx, &status.Delay{
				Message: what + " during the drains of " + instances + ": their pods need a node that this change adds",
			})
		}
	}
	switch {
	case instances == "" && waited == 0:
		return false, nil
	case instances == "":
		return false, c.recordWait(ctx, nil)
	case left <= 0:
		message := fmt.Sprintf("%s although %s: the wait took %s", what, blocker.Present(),
			c.Now().Sub(blocker.Began).Truncate(time.Second))
		logging.From(ctx).Warn("drain wait exceeded", "stack", c.change.StackName, "reason", message)
		return false, c.recordWait(ctx, &status.Delay{Message: message})
	}
	message := what + " when " + blocker.Awaited()
	logging.From(ctx).Info("waiting for drains", "stack", c.change.StackName, "reason", message, "waitedSeconds", *c.in.WaitedSeconds)
	if err := c.recordWait(ctx, &status.Delay{Message: message, Until: c.Now().Add(left).UTC()}); err != nil {
		return true, err
	}
	pause := min(backoff.FirstBatch.Pause(waited), left)
	return true, c.Resume.ResumeAfter(ctx, c.waiter("", true), stackStatus, int64(pause/time.Second))
}

// blocker returns what blocks the first batch, with its times.
func (c *call) blocker(ctx context.Context, group pool.Group, waited time.Duration) (roll.Blocker, error) {
	blocker := roll.FirstBatch(group, seconds(c.change.Pace.DrainSeconds))
	if len(blocker.Instances) == 0 {
		return blocker, nil
	}
	began, err := c.Groups.ActivityStarts(ctx, c.change.Pace.Group, blocker.Instances)
	if err == nil {
		blocker.SetTimes(began, waited, c.Now())
	}
	return blocker, err
}

// isUpdate reports whether the change gives its nodes something new. A roll without another change would not help a drain.
func (c *call) isUpdate() bool {
	return slices.ContainsFunc(c.change.Reasons, func(r status.Reason) bool { return !strings.HasSuffix(r.Field, ".rollAt") })
}

// starvedReason returns why pods of drained instances need one more node, by the status; or "".
func (c *call) starvedReason(ctx context.Context, instances []string) (string, error) {
	cluster, err := c.State.Status(ctx, c.in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return roll.PendingReason(cluster.Status.Nodes, instances), nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// recordWait records what the stack waits for. It fails if another execution holds the lease: that one records its own waits.
func (c *call) recordWait(ctx context.Context, waits *status.Delay) error {
	if err := c.State.CheckLease(ctx, c.in.Cluster, c.in.Execution, c.in.Fence); err != nil {
		return err
	}
	return c.State.UpdateStatus(ctx, c.in.Cluster, func(st *status.Status) { st.SetDelay(c.change.Stack, waits) })
}
