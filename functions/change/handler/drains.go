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

// waitForDrains reports whether the change of a group has to wait. If so, the step runs again after a pause and decides again: a newer spec
// may have arrived, or another execution may hold the lease. After the wait the change proceeds, whatever still blocks it. addsFirst
// is true if the change adds a node before it takes one: it may pass drains that wait for that node. See ADR 20.
func (s *step) waitForDrains(ctx context.Context, what string, group pool.Group, stackStatus string, addsFirst bool) (bool, error) {
	if s.in.WaitedSeconds == nil {
		return false, nil
	}
	waited := seconds(*s.in.WaitedSeconds)
	blocker, err := s.blocker(ctx, group, waited)
	if err != nil {
		return false, err
	}
	instances, left := strings.Join(blocker.Instances, ", "), blocker.Left(waited, s.Now())
	if addsFirst && left > 0 && blocker.MayPassDrains(group) {
		why, err := s.starved(ctx, blocker.Instances)
		if err != nil {
			return false, err
		}
		if why != "" {
			logging.From(ctx).Info("drains passed", "stack", s.change.StackName, "instances", blocker.Instances, "reason", why)
			return false, s.recordWait(ctx, &status.Waits{
				Message: what + " during the drains of " + instances + ": their pods need a node that this change adds",
			})
		}
	}
	switch {
	case instances == "" && waited == 0:
		return false, nil
	case instances == "":
		return false, s.recordWait(ctx, nil)
	case left <= 0:
		message := fmt.Sprintf("%s although %s %s: the wait took %s", what, instances, blocker.Reason,
			s.Now().Sub(blocker.Began).Truncate(time.Second))
		logging.From(ctx).Warn("drain wait exceeded", "stack", s.change.StackName, "reason", message)
		return false, s.recordWait(ctx, &status.Waits{Message: message})
	}
	message := fmt.Sprintf("%s when %s %s", what, instances, blocker.Until)
	logging.From(ctx).Info("waiting for drains", "stack", s.change.StackName, "reason", message, "waitedSeconds", *s.in.WaitedSeconds)
	if err := s.recordWait(ctx, &status.Waits{Message: message, Until: s.Now().Add(left).UTC()}); err != nil {
		return true, err
	}
	pause := min(backoff.FirstBatch.Pause(waited), left)
	return true, s.Resume.Later(ctx, s.waiter("", true), stackStatus, int64(pause/time.Second))
}

// blocker returns what blocks the first batch, with its times.
func (s *step) blocker(ctx context.Context, group pool.Group, waited time.Duration) (roll.Blocker, error) {
	blocker := roll.FirstBatch(group, seconds(s.change.Pace.DrainSeconds))
	if len(blocker.Instances) == 0 {
		return blocker, nil
	}
	began, err := s.Groups.Began(ctx, s.change.Pace.Group, blocker.Instances)
	if err == nil {
		blocker.Since(began, waited, s.Now())
	}
	return blocker, err
}

// isUpdate reports whether the change gives its nodes something new. A roll without another change would not help a drain.
func (s *step) isUpdate() bool {
	return slices.ContainsFunc(s.change.Reasons, func(r status.Reason) bool { return !strings.HasSuffix(r.Field, ".rollAt") })
}

// starved returns why pods of drained instances need one more node, by the status; or "".
func (s *step) starved(ctx context.Context, instances []string) (string, error) {
	cluster, err := s.State.Status(ctx, s.in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return roll.Starved(cluster.Status.Nodes, instances), nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// recordWait records what the stack waits for. It fails if another execution holds the lease: that one records its own waits.
func (s *step) recordWait(ctx context.Context, waits *status.Waits) error {
	if err := s.State.CheckLease(ctx, s.in.Cluster, s.in.Execution, s.in.Fence); err != nil {
		return err
	}
	return s.State.UpdateStatus(ctx, s.in.Cluster, func(st *status.Status) { st.Wait(s.change.Stack, waits) })
}
