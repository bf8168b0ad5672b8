package handler

// Before anything is changed: whose turn it is, where the upgrade leads, and whether it can be made.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// An upgrade that waits for its cluster is delayed after the first of these, and missed after the second.
const (
	delayedAfter = 30 * time.Minute
	missedAfter  = 2 * time.Hour
)

// check claims an upgrade, plans its steps, and runs every check.
func (h *Handler) check(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	if in.Ended != "" {
		return events.UpgradeResult{}, stopf("execution %s is over", in.Ended)
	}
	r, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if other, err := h.other(ctx, in, r); err != nil || other.Outcome != "" {
		return other, err
	}
	j, err := h.travel(ctx, in, r)
	if err != nil {
		return events.UpgradeResult{}, h.refused(ctx, in, err)
	}
	if there(r, j) {
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at " + j.to.String()}, nil
	}
	if holder, err := h.holder(ctx, in.Cluster); err != nil || holder != "" {
		if err != nil {
			return events.UpgradeResult{}, err
		}
		return h.wait(ctx, in, j.to, "the cluster is being converged by "+holder)
	}
	mine := record{etag: etag}
	if mine.Record, err = h.claim(ctx, in, r, j); err != nil {
		return events.UpgradeResult{}, h.refused(ctx, in, err)
	}
	if err := h.State.PutOnce(ctx, names.PinnedRelease(j.to.SHA256), j.nextBody); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := h.write(ctx, in.Cluster, &mine); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := h.tell(ctx, in.Cluster, mine.Record, nil, "the checks run"); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.preflight(ctx, in.Cluster, mine, j)
}

// preflight runs every check. How workloads are is kept, to compare the end with: as it was before anything was changed.
func (h *Handler) preflight(ctx context.Context, cluster string, r record, j journey) (events.UpgradeResult, error) {
	plan := j.checked(cluster, r.Record, r.Steps[min(r.Step, len(r.Steps)):])
	facts, err := h.Facts.Before(ctx, plan)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	baseline, err := json.Marshal(facts.Baseline())
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if err := h.State.PutOnce(ctx, names.UpgradeBaseline(cluster, since(r.Record)), baseline); err != nil {
		return events.UpgradeResult{}, err
	}
	checks := preflight.Before(facts, plan)
	if !preflight.Blocks(checks) {
		return events.UpgradeResult{Outcome: events.UpgradeGo, Message: j.from.String() + " to " + j.to.String()}, h.tell(ctx, cluster, r.Record, checks, "every check passed")
	}
	message := "nothing was changed: " + blocking(checks)
	r.State, r.Ended = upgrade.Blocked, h.Now().UTC()
	if changed(r.Record) {
		r.State, message = upgrade.Stopped, "it does not go on: "+blocking(checks)
	}
	if err := h.Alarms.Sound(ctx, r.Alarms); err != nil {
		return events.UpgradeResult{}, err
	}
	r.Alarms = nil
	if err := h.write(ctx, cluster, &r); err != nil {
		return events.UpgradeResult{}, err
	}
	return events.UpgradeResult{Outcome: events.UpgradeBlocked, Message: message}, h.tell(ctx, cluster, r.Record, checks, message)
}

// since is the number of the upgrade that first began what this one goes on with: its baseline counts.
func since(r *upgrade.Record) int64 {
	if r.First > 0 {
		return r.First
	}
	return r.Number
}

// blocking names the checks that do.
func blocking(checks []status.Check) string {
	var all []string
	for _, c := range checks {
		if c.Blocks {
			all = append(all, fmt.Sprintf("%s: %s. %s", c.Name, c.Message, c.Next))
		}
	}
	return strings.Join(all, "\n")
}

// other looks for another execution that is at it.
func (h *Handler) other(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record) (events.UpgradeResult, error) {
	if r == nil || r.State.Over() || r.Execution == in.Execution {
		return events.UpgradeResult{}, nil
	}
	running, err := h.Executions.Running(ctx, r.Execution)
	if err != nil || !running {
		return events.UpgradeResult{}, err
	}
	if same(in, r) {
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: r.Execution + " makes this upgrade already"}, nil
	}
	return h.wait(ctx, in, upgrade.Target{Release: in.Release}, fmt.Sprintf("the upgrade to %s is under way: %s", r.Target, r.Execution))
}

// same says whether what is asked for is what a record is about.
func same(in events.UpgradeRequest, r *upgrade.Record) bool {
	if in.Key != "" && in.Key == r.Key {
		return true
	}
	if in.Rollback != (r.Origin == upgrade.OriginRollback) {
		return false
	}
	return in.Rollback || (in.Release == "" || in.Release == r.Target.Release) &&
		(in.KubernetesVersion == "" || in.KubernetesVersion == r.Target.KubernetesVersion)
}

// there says that nothing is left to do: the cluster is what it was to be, and no upgrade was left on its way.
func there(r *upgrade.Record, j journey) bool { return j.from == j.to && !unfinished(r) }

// holder is the execution that converges the cluster now, "" when there is none.
func (h *Handler) holder(ctx context.Context, cluster string) (string, error) {
	lease, err := h.State.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return "", err
	}
	running, err := h.Executions.Running(ctx, lease.Execution)
	if err != nil || !running {
		return "", err
	}
	return lease.Execution, nil
}

// wait for the cluster, for so long.
func (h *Handler) wait(ctx context.Context, in events.UpgradeRequest, to upgrade.Target, why string) (events.UpgradeResult, error) {
	waited := h.Now().Sub(in.Started)
	switch {
	case waited >= missedAfter:
		message := fmt.Sprintf("the cluster was busy for %s, the upgrade did not begin: %s. Start it again when the cluster is free", missedAfter, why)
		if err := h.waiting(ctx, in, to, status.UpgradeMissed, message); err != nil {
			return events.UpgradeResult{}, err
		}
		return events.UpgradeResult{}, &stop{message}
	case waited >= delayedAfter:
		if err := h.waiting(ctx, in, to, status.UpgradeDelayed, why); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	return busy(why, longestPause), nil
}

// claim an upgrade for this execution: one that was left on its way goes on from the step that is open, any other begins.
func (h *Handler) claim(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record, j journey) (*upgrade.Record, error) {
	last := r
	if r != nil && !r.State.Over() { // its execution is over, or it is this one
		left := *r
		left.State = upgrade.Blocked
		if changed(r) {
			left.State = upgrade.Stopped
		}
		last = &left
	}
	if unfinished(last) && !fits(last, j) {
		left := *last
		left.Steps = nil
		last = &left
	}
	mine := upgrade.Begin(last, started(in), j.spec, j.from, j.to, in.Execution, h.Now())
	if last != nil && len(mine.Alarms) == 0 {
		mine.Alarms = last.Alarms // still off
	}
	if len(mine.Steps) > 0 {
		return mine, nil
	}
	var err error
	mine.Steps, err = h.steps(ctx, j, in.Rollback)
	return mine, err
}

// started is who asked, and what for. Whoever starts the machine by hand says neither.
func started(in events.UpgradeRequest) upgrade.Start {
	s := upgrade.Start{Origin: upgrade.Origin(in.Origin), Key: in.Key, Release: in.Release, KubernetesVersion: in.KubernetesVersion}
	switch {
	case in.Rollback:
		s.Origin = upgrade.OriginRollback
	case s.Origin == "":
		s.Origin = upgrade.OriginHand
	}
	if s.Key == "" {
		s.Key = strings.ToLower(string(s.Origin)) + " " + in.Execution
	}
	return s
}

// fits says whether an upgrade can go on where it was left: what is deployed is what was before the open step, or what it makes.
func fits(r *upgrade.Record, j journey) bool {
	if r.Target != j.to {
		return false
	}
	open := min(r.Step, len(r.Steps)-1)
	before := r.From.KubernetesVersion
	if open > 0 {
		before = r.Steps[open-1].KubernetesVersion
	}
	return slices.Contains([]string{before, r.Steps[open].KubernetesVersion}, j.from.KubernetesVersion)
}
