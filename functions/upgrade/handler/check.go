package handler

// The check: it decides whether the upgrade may begin now, claims it, computes its steps, and runs every check. It changes only the
// record and the status.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// check decides whether the upgrade may begin, claims it and runs the checks. An early check claims nothing. Neither does the
// request that ends an aborted execution.
func check(ctx context.Context, c *call) (events.UpgradeResult, error) {
	in := c.in
	if in.CheckOnly {
		return earlyCheck(ctx, c)
	}
	if in.Ended != "" {
		return events.UpgradeResult{}, c.describeEnd(ctx, in.Ended)
	}
	last, etag, err := c.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if in.Continues != "" {
		if result, err := c.takeOver(ctx, last, etag); err != nil || result.Outcome != "" {
			return result, err
		}
		last, etag = c.record, c.etag
	}
	if result, err := c.waitForOther(ctx, last); err != nil || result.Outcome != "" {
		return result, err
	}
	if result, err := c.checkWanted(ctx, last); err != nil || result.Outcome != "" {
		return result, err
	}
	way, err := c.Checker.ResolveRoute(ctx, in.Upgrade, last)
	if way.Busy != "" {
		return c.wait(ctx, upgrade.Target{Release: in.Release}, "the stack of the control plane "+way.Busy)
	}
	if err != nil {
		return c.refuse(ctx, last, err)
	}
	if c.hasClaimed(last) {
		if why := last.SupersededReason(way.Spec); why != "" {
			return events.UpgradeResult{}, route.Stopf("%s", why)
		}
	}
	if way.Finished() {
		return c.nothing("the cluster is at " + way.To.String())
	}
	if holder, err := c.State.Holder(ctx, in.Cluster, c.Executions.Running); err != nil || holder != "" {
		if err != nil {
			return events.UpgradeResult{}, err
		}
		return c.wait(ctx, way.To, "the cluster is being converged by "+holder)
	}
	if c.record, err = c.claim(ctx, last, &way); err != nil {
		return c.refuse(ctx, last, err)
	}
	if result, err := c.beginAssigned(ctx); err != nil || result.Outcome != "" {
		return result, err
	}
	c.etag = etag
	plan := way.Checked(in.Cluster, c.record.Origin == upgrade.OriginRollback, c.record.Steps[min(c.record.Step, len(c.record.Steps)):])
	if err := c.refreshInsights(ctx, plan); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := c.State.PutOnce(ctx, names.PinnedRelease(way.To.SHA256), way.NewBody); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := c.write(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	refreshing, err := c.waitForInsights(ctx, plan)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case refreshing.Outcome != "":
		return refreshing, c.recordProgress(ctx, nil, refreshing.Message)
	}
	if err := c.recordProgress(ctx, nil, "the checks are running"); err != nil {
		return events.UpgradeResult{}, err
	}
	return c.runChecks(ctx, &way, plan)
}

// runChecks runs every check. It stores the state of workloads as the baseline that the final checks compare with.
func (c *call) runChecks(ctx context.Context, way *route.Route, plan *preflight.Plan) (events.UpgradeResult, error) {
	facts, err := c.Facts.Before(ctx, plan)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	baseline, err := json.Marshal(facts.Baseline())
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if err := c.State.PutOnce(ctx, names.UpgradeBaseline(c.in.Cluster, firstNumber(c.record)), baseline); err != nil {
		return events.UpgradeResult{}, err
	}
	checks := preflight.Before(facts, plan)
	if !preflight.Blocks(checks) {
		return events.UpgradeResult{
			Outcome: events.UpgradeGo, Message: way.From.String() + " to " + way.To.String(),
		}, c.recordProgress(ctx, checks, "every check passed")
	}
	message := "nothing was changed: " + describeBlocking(checks)
	if err := c.closeRecord(ctx, route.EndState(c.record)); err != nil {
		return events.UpgradeResult{}, err
	}
	if c.record.State == upgrade.Stopped {
		message = "the upgrade does not continue: " + describeBlocking(checks)
	}
	return events.UpgradeResult{Outcome: events.UpgradeBlocked, Message: message}, c.recordProgress(ctx, checks, message)
}

// firstNumber is the number of the upgrade that this one continues, or its own. The baseline has that number.
func firstNumber(r *upgrade.Record) int64 {
	if r.First > 0 {
		return r.First
	}
	return r.Number
}

// describeBlocking describes the checks that block.
func describeBlocking(checks []status.Check) string {
	var all []string
	for _, c := range checks {
		if c.Blocks {
			all = append(all, fmt.Sprintf("%s: %s. %s", c.Name, c.Message, c.Next))
		}
	}
	return strings.Join(all, "\n")
}

// waitForOther waits for another execution that upgrades this cluster. If that one makes the same upgrade, there is nothing to do.
func (c *call) waitForOther(ctx context.Context, last *upgrade.Record) (events.UpgradeResult, error) {
	if last == nil || last.State.Final() || last.Execution == c.in.Execution {
		return events.UpgradeResult{}, nil
	}
	running, err := c.Executions.Running(ctx, last.Execution)
	if err != nil || !running {
		return events.UpgradeResult{}, err
	}
	current, err := c.Checker.IsCurrent(ctx, c.in.Cluster, last)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if current && route.Same(c.in.Upgrade, last) {
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: last.Execution + " already makes this upgrade"}, nil
	}
	return c.wait(ctx, upgrade.Target{Release: c.in.Release},
		fmt.Sprintf("the upgrade to %s is in flight: %s", last.Target, last.Execution))
}

// checkWanted decides again whether an upgrade that drover started is wanted and may begin. The execution may have waited for hours. Since
// then the spec may have changed, or the window may have closed. If no decision is possible, another step refuses the spec, with a reason.
func (c *call) checkWanted(ctx context.Context, last *upgrade.Record) (events.UpgradeResult, error) {
	in := c.in
	if in.Origin == "" || last != nil && last.Execution == in.Execution {
		return events.UpgradeResult{}, nil
	}
	d, err := c.Planner.NextUpgrade(ctx, in.Cluster, route.Ended(last))
	if err != nil || d == nil && !upgrade.IsRolloutKey(in.Key) || d != nil && d.Start != nil && d.Start.Key == in.Key {
		return events.UpgradeResult{}, err
	}
	message := "nothing requests this upgrade any longer"
	if d != nil && d.Pending != nil && d.Pending.Key == in.Key {
		if d.Pending.Missed {
			return events.UpgradeResult{}, c.miss(ctx, d.Pending.To, d.Pending.Message)
		}
		message = "it does not begin now: " + d.Pending.Message
	}
	return events.UpgradeResult{
			Outcome: events.UpgradeNothing, Message: message,
		}, c.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
			if s.Upgrade != nil && s.Upgrade.Execution == in.Execution && status.IsPending(s.Upgrade.Phase) {
				s.DropScheduled()
			}
		})
}

// nothing ends a check that has nothing to do. An upgrade that this execution took over has a record, which stop closes.
func (c *call) nothing(message string) (events.UpgradeResult, error) {
	if c.in.Continues != "" {
		return events.UpgradeResult{}, route.Stopf("%s", message)
	}
	return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: message}, nil
}

// hasClaimed reports whether this execution claimed the upgrade in an earlier call.
func (c *call) hasClaimed(last *upgrade.Record) bool {
	return last != nil && !last.State.Final() && last.Execution == c.in.Execution
}

// wait waits for the cluster. An upgrade that waits longer than upgrade.MissedAfter is missed. An upgrade that this execution took over has
// begun, so it is never missed.
func (c *call) wait(ctx context.Context, to upgrade.Target, why string) (events.UpgradeResult, error) {
	if c.in.Continues != "" {
		return busy(why, backoff.MaxUpgradePause), c.recordProgress(ctx, nil, "it was interrupted, and continues when the cluster is idle: "+why)
	}
	late := c.Now().Sub(dueAt(c.in))
	switch {
	case late >= upgrade.MissedAfter:
		spec, err := c.newestSpec(ctx)
		if err != nil {
			return events.UpgradeResult{}, err
		}
		return events.UpgradeResult{}, c.miss(ctx, to, fmt.Sprintf("the upgrade did not begin, because the cluster was busy for %s: %s. %s",
			upgrade.MissedAfter, why, upgrade.RetryHint(spec, startOf(c.in).Origin, c.Now())))
	case late >= upgrade.DelayedAfter:
		return busy(why, backoff.MaxUpgradePause), c.recordWaiting(ctx, to, status.UpgradeDelayed, why)
	}
	return busy(why, backoff.MaxUpgradePause), c.recordWaiting(ctx, to, status.UpgradeScheduled, why)
}

// dueAt is when an upgrade was due to begin.
func dueAt(in events.UpgradeRequest) time.Time {
	if in.Due.IsZero() || in.Due.After(in.Started) {
		return in.Started
	}
	return in.Due
}

// miss ends an upgrade that did not begin in time.
func (c *call) miss(ctx context.Context, to upgrade.Target, message string) error {
	if err := c.recordWaiting(ctx, to, status.UpgradeMissed, message); err != nil {
		return err
	}
	return route.Stopf("%s", message)
}

// claim returns the record of this execution's upgrade. It continues the last upgrade of this cluster from its open step, if that one
// stopped on the way to the same target. last is the record that it replaces.
func (c *call) claim(ctx context.Context, last *upgrade.Record, way *route.Route) (*upgrade.Record, error) {
	previous := route.Ended(way.Last)
	record := upgrade.Begin(previous, startOf(c.in), way.Spec, way.From, way.To, c.in.Execution, c.Now())
	if c.hasClaimed(last) && last.State == upgrade.Checking {
		record.Number, record.Started, record.Insights = last.Number, last.Started, last.Insights
	}
	record.Stack = way.Stack
	if c.in.Rollback {
		record.RollbackUntil = way.RollbackUntil
	}
	if previous == nil && last != nil {
		record.Alarms = last.Alarms // still disabled
	}
	if len(record.Steps) == 0 {
		record.Images = way.Images
	}
	var err error
	record.Steps, record.Step, err = c.Checker.RemainingSteps(ctx, c.in.Upgrade, way, record.Steps, record.Step)
	return record, err
}

// startOf returns the origin, key and target of a request. A request by an operator has no origin and no key.
func startOf(in events.UpgradeRequest) upgrade.Start {
	s := upgrade.Start{Origin: upgrade.Origin(in.Origin), Key: in.Key, Release: in.Release, KubernetesVersion: in.KubernetesVersion}
	switch {
	case in.Rollback:
		s.Origin = upgrade.OriginRollback
	case s.Origin == "":
		s.Origin = upgrade.OriginCommand
	}
	if s.Key == "" {
		s.Key = strings.ToLower(string(s.Origin)) + " " + in.Execution
	}
	return s
}
