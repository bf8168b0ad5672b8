package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// NextUpgrade decides which upgrade may start now, given the record of the last one. It only reads. It returns nil for a cluster that
// drover does not plan: its spec is deleted, paused or invalid.
func (p *Planner) NextUpgrade(ctx context.Context, cluster string, record *upgrade.Record) (*upgrade.Decision, error) {
	w, err := p.readAndDecide(ctx, cluster, record)
	if w == nil {
		return nil, err
	}
	return &w.decision, err
}

// QueuedUpgrade is the upgrade that waits for the one in flight.
type QueuedUpgrade struct {
	// RecheckAt is when to plan again; zero if no time is known.
	RecheckAt time.Time
	// Write writes the queued upgrade into the status, or removes one that was withdrawn.
	Write func(*status.Status)
}

// QueuedUpgrade decides which upgrade waits for the one in flight. The execution of that one may have planned
// earlier, and may run for days. It returns nil if no upgrade is in flight. It only reads.
func (p *Planner) QueuedUpgrade(ctx context.Context, cluster string) (*QueuedUpgrade, error) {
	record, _, err := p.State.Upgrade(ctx, cluster)
	if err != nil || record == nil || record.State.Final() {
		return nil, err
	}
	w, err := p.readAndDecide(ctx, cluster, record)
	if err != nil || w == nil || w.record == nil {
		return nil, err
	}
	return &QueuedUpgrade{w.decision.RecheckAt, func(s *status.Status) { w.recordPending(s, p.Now()) }}, nil
}

// readAndDecide reads what a decision depends on, and decides. It returns nil for a cluster that drover does not plan.
func (p *Planner) readAndDecide(ctx context.Context, cluster string, record *upgrade.Record) (*work, error) {
	w := work{cluster: cluster, record: record, releases: map[string]content{}}
	spec, _, err := p.newestSpec(ctx, &w)
	if err == nil {
		w.deployed, err = p.Stacks.ListCluster(ctx, cluster, expectedStacks(spec))
	}
	if err == nil {
		err = p.decide(ctx, &w, spec)
	}
	var stopped *Stop
	if errors.As(err, &stopped) || errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	return &w, err
}

// decide decides with the record of the last upgrade: which release applies, and which upgrade may start.
func (p *Planner) decide(ctx context.Context, w *work, spec *api.Cluster) error {
	var err error
	if w.record != nil && w.record.Stack != w.deployed[names.ControlPlane].ID {
		w.record = nil // of a deleted cluster with this name
	}
	if w.current, err = p.deployedTarget(ctx, w, spec); err != nil {
		return err
	}
	in := upgrade.Situation{Spec: spec, SpecVersion: w.version, Record: w.record, Deployed: w.current, Now: p.Now()}
	if in.Channels, err = p.channels(ctx, spec); err != nil {
		return err
	}
	var failed error // a failed call does not mean that the release is absent
	in.KubernetesVersion = func(name string) (string, error) {
		c, err := p.namedRelease(ctx, w, name)
		var stopped *Stop
		switch {
		case err == nil:
			return c.release.Spec.KubernetesVersion, nil
		case !errors.As(err, &stopped):
			failed = err
		}
		return "", err
	}
	in.PinnedVersion = func(name, sha256 string) (string, error) {
		release, _, err := specs.PinnedRelease(ctx, p.State, name, sha256)
		var unusable *specs.Unusable
		switch {
		case err == nil:
			return release.Spec.KubernetesVersion, nil
		case !errors.As(err, &unusable) && !errors.Is(err, store.ErrNotFound):
			failed = err
		}
		return "", err
	}
	if err := p.readFleet(ctx, w, spec, &in, &failed); err != nil {
		return err
	}
	w.decision, err = upgrade.Decide(in)
	return errors.Join(failed, err)
}

// deployedTarget is the release and version that the cluster has. A control plane whose creation failed has none, unless its creation is
// retried with the same release. If the release tag was removed outside drover, the record of the last upgrade names the release. Before
// the first upgrade, the status does.
func (p *Planner) deployedTarget(ctx context.Context, w *work, spec *api.Cluster) (upgrade.Target, error) {
	t := upgrade.Target{KubernetesVersion: plan.KubernetesVersion(w.deployed)}
	t.Release, t.SHA256 = plan.Pin(w.deployed)
	switch {
	case stack.MustRecreate(w.deployed[names.ControlPlane].Status) && t.Release != spec.Spec.Release.Name:
		return upgrade.Target{}, nil
	case t.Release != "" || t.KubernetesVersion == "":
		return t, nil
	case w.record != nil:
		pin := w.record.Pin()
		t.Release, t.SHA256 = pin.Release, pin.SHA256
		return t, nil
	}
	before, err := p.State.Status(ctx, w.cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return t, err
	}
	if err == nil {
		t.Release = before.Status.Release
	}
	return t, nil
}

// plannedUpgrade is the upgrade that the plan function returns: in flight, pending or refused. The state machine starts it, and report
// records it.
func (p *Planner) plannedUpgrade(w work) *events.PlannedUpgrade {
	d, r := w.decision, w.record
	switch {
	case r != nil && !r.State.Final() && d.Old.Release != "" && len(w.deployed) > 0:
		return &events.PlannedUpgrade{
			State: string(r.State), Spec: r.Origin == upgrade.OriginSpec, Message: fmt.Sprintf("the upgrade to %s is in flight", r.Target),
		}
	case d.Start != nil:
		after := int64(0)
		if r != nil {
			after = r.Number
		}
		return &events.PlannedUpgrade{
			State: status.UpgradeScheduled, Spec: d.Start.Origin == upgrade.OriginSpec,
			Name:    names.UpgradeExecution(w.cluster, d.Start.Key, after, p.Now()),
			Message: fmt.Sprintf("the upgrade to release %s begins", d.Start.Release),
			Start: &events.Upgrade{
				Cluster: w.cluster, Release: d.Start.Release, KubernetesVersion: d.Start.KubernetesVersion, SHA256: d.Start.SHA256,
				Rollback: d.Start.Rollback, Origin: string(d.Start.Origin), Key: d.Start.Key, Due: d.Start.Due,
			},
		}
	case d.SpecTarget != nil && d.Pending != nil:
		state := status.UpgradeScheduled
		if d.Pending.Blocked && !d.Pending.Missed {
			state = string(upgrade.Blocked)
		}
		return &events.PlannedUpgrade{
			State: state, Spec: true, Message: fmt.Sprintf("the upgrade to %s %s", *d.SpecTarget, waits(d.Pending, p.Now())),
		}
	case d.SpecTarget != nil:
		refused := &events.PlannedUpgrade{State: string(upgrade.Stopped), Spec: true, Release: d.SpecTarget.Release, Message: fmt.Sprintf(
			"the upgrade to %s did not finish: fix what stopped it, then run `drover upgrade %s` or upload the spec again",
			*d.SpecTarget, w.cluster)}
		if r != nil && r.State == upgrade.Blocked && !r.StoppedBefore(*d.SpecTarget) {
			refused.State = string(upgrade.Blocked)
		}
		return refused
	case d.OverrideReason != "":
		return &events.PlannedUpgrade{State: string(upgrade.Done), Message: d.OverrideReason}
	}
	return nil
}

// waits says when a pending upgrade starts, or why it does not.
func waits(pending *upgrade.Pending, now time.Time) string {
	switch {
	case pending.Queued:
		return "begins after the upgrade in flight: " + pending.Message
	case pending.Unreadable != "" && !pending.At.After(now):
		return "does not begin yet: " + pending.Message
	case pending.Blocked:
		return "does not begin: " + pending.Message
	}
	return "begins within five minutes of " + pending.At.Format(time.RFC3339) + ": " + pending.Message // a sweep can be late
}

// recordPending writes the pending upgrade into the status, and removes a withdrawn one. The function upgrade records all others: in
// flight, finished, or about to be started by an execution.
func (w *work) recordPending(s *status.Status, now time.Time) {
	if w.record != nil && !w.record.State.Final() {
		w.recordPendingBeside(s, now)
		return
	}
	s.PlanUpgrade(w.pendingUpgrade(s, now), now)
}

// AfterUpgrade returns what to record about the cluster when an upgrade ends. It only reads.
func (p *Planner) AfterUpgrade(ctx context.Context, cluster string) (status.AfterUpgrade, error) {
	a := status.AfterUpgrade{Next: func(*status.Status) {}}
	w, err := p.read(ctx, Request{Cluster: cluster})
	if errors.Is(err, ErrAbsent) {
		return a, nil
	}
	var changes plan.Plan
	result := events.PlanResult{Outcome: events.OutcomeUnchanged}
	if err == nil {
		a.Next = func(s *status.Status) { w.recordPendingBeside(s, p.Now()) }
		result.Accepted, result.Rejected = w.acceptance()
		changes, err = p.compare(ctx, &w)
	}
	var stopped *Stop
	switch {
	case errors.As(err, &stopped):
		stopped.Fill(&result)
	case err != nil || len(changes.Changes) > 0:
		return a, err
	}
	if stopped == nil {
		a.Observe = func(s *status.Status) { w.recordDeployed(s, p.Now()) }
		if result.Upgrade = p.plannedUpgrade(w); result.Upgrade != nil {
			result.Upgrade.Start = nil // only the state machine starts it
		}
	}
	v := status.Judge(&result)
	a.Verdict = &v
	return a, nil
}

// recordPendingBeside records the pending upgrade, next to the one that the status shows.
func (w *work) recordPendingBeside(s *status.Status, now time.Time) {
	s.QueueUpgrade(w.pendingUpgrade(s, now))
}

// pendingUpgrade returns nextUpgrade for the status s. It also writes to s: a missed upgrade is added to the history.
func (w *work) pendingUpgrade(s *status.Status, now time.Time) *status.Upgrade {
	next := w.nextUpgrade(s, now)
	if next != nil && next.Phase == status.UpgradeMissed {
		s.AddHistory(*next)
	}
	return next
}

// nextUpgrade is the pending upgrade, with what the status recorded of it before; nil if none is pending.
func (w *work) nextUpgrade(s *status.Status, now time.Time) *status.Upgrade {
	d, exact := w.decision, now
	now = now.UTC().Truncate(time.Second)
	next := &status.Upgrade{Phase: status.UpgradeScheduled, From: d.Old.Release, FromVersion: plan.KubernetesVersion(w.deployed)}
	if w.record != nil && !w.record.State.Final() {
		next.From, next.FromVersion = w.record.Target.Release, w.record.Target.KubernetesVersion
	}
	switch {
	case d.Start != nil:
		next.To, next.Origin, next.At, next.Message = d.Start.Release, string(d.Start.Origin), &now,
			"it begins as soon as the cluster is converged"
	case d.Pending != nil:
		next.To, next.ToVersion, next.Origin, next.Message = d.Pending.To.Release, d.Pending.To.KubernetesVersion, string(d.Pending.Origin),
			waits(d.Pending, now)
		if !d.Pending.At.IsZero() {
			next.At = &d.Pending.At
		} else if d.Pending.Queued || d.Pending.Unreadable != "" { // its time has come, as far as drover knows
			next.At = &now
		}
		switch {
		case d.Pending.Missed:
			next.Phase = status.UpgradeMissed
		case d.Pending.Blocked:
			next.Phase = string(upgrade.Blocked)
		}
	default:
		return nil
	}
	if r, u := w.record, s.Upgrade; d.Pending != nil && r != nil && r.State == upgrade.Blocked && r.Key == d.Pending.Key && u != nil &&
		u.Execution == r.Execution {
		next.Checks, next.Checked = u.Checks, cmp.Or(u.Checked, u.Ended) // it is retried: the checks that blocked it are known
	}
	before := s.RecordedBefore(next)
	if before == nil {
		return blockUnreadable(next, d.Pending)
	}
	if before.Checked != nil && status.IsPending(next.Phase) { // early checks
		next.Checks, next.Checked = before.Checks, before.Checked
	}
	switch {
	case d.Start != nil && before.At != nil:
		next.At, next.ToVersion = before.At, before.ToVersion // its time had come before
	case d.Pending != nil:
		if (d.Pending.Queued || d.Pending.Unreadable != "") && d.Pending.At.IsZero() && before.At != nil && before.At.Before(now) {
			next.At = before.At
		}
		noteMissedWindow(before, next, exact)
		next.InheritLateness(before, now)
	}
	return blockUnreadable(next, d.Pending)
}

// blockUnreadable adds a failed check to an upgrade whose release cannot be read. The other checks cannot run before
// that. An empty Checked marks this check as temporary.
func blockUnreadable(next *status.Upgrade, pending *upgrade.Pending) *status.Upgrade {
	if pending != nil && pending.Unreadable != "" {
		next.Checked = nil
		next.Checks = []status.Check{
			{Name: preflight.UpgradePossible, Blocks: true, Message: pending.Unreadable, Next: "The upgrade begins when the release can be used."},
		}
	}
	return next
}

// noteMissedWindow adds to the message: an earlier window passed, and the upgrade waits for the next one.
func noteMissedWindow(before, next *status.Upgrade, now time.Time) {
	if before.At == nil || next.At == nil || !next.At.After(*before.At) || before.At.After(now) {
		return
	}
	next.Message = fmt.Sprintf("the window of %s was missed; it %s", before.At.Format(time.RFC3339), next.Message)
}
