package handler

// Before anything is changed: whose turn it is, where the upgrade leads, and whether it can be made.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// check claims an upgrade, plans its steps, and runs every check.
func (h *Handler) check(ctx context.Context, in events.UpgradeRequest) (events.UpgradeResult, error) {
	if in.Ended != "" {
		how, err := h.Executions.Ended(ctx, in.Ended)
		if err != nil {
			return events.UpgradeResult{}, err
		}
		return events.UpgradeResult{}, stopf("execution %s is over: it is %s", in.Ended, cmp.Or(how, "forgotten"))
	}
	r, etag, err := h.State.Upgrade(ctx, in.Cluster)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if other, err := h.other(ctx, in, r); err != nil || other.Outcome != "" {
		return other, err
	}
	if taken, err := h.takenBack(ctx, in, r); err != nil || taken.Outcome != "" {
		return taken, err
	}
	j, err := h.travel(ctx, in, r)
	if j.moving != "" {
		return h.wait(ctx, in, upgrade.Target{Release: in.Release}, "the stack of the control plane "+j.moving)
	}
	if err != nil {
		return h.refused(ctx, in, r, err)
	}
	if claimed(in, r) {
		if why := r.Superseded(j.spec); why != "" {
			return events.UpgradeResult{}, &stop{why}
		}
	}
	if there(j) {
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: "the cluster is at " + j.to.String()}, nil
	}
	if holder, err := h.State.Holder(ctx, in.Cluster, h.Executions.Running); err != nil || holder != "" {
		if err != nil {
			return events.UpgradeResult{}, err
		}
		return h.wait(ctx, in, j.to, "the cluster is being converged by "+holder)
	}
	mine := record{etag: etag}
	if mine.Record, err = h.claim(ctx, in, r, j); err != nil {
		return h.refused(ctx, in, r, err)
	}
	plan := j.checked(in.Cluster, mine.Origin == upgrade.OriginRollback, mine.Steps[min(mine.Step, len(mine.Steps)):])
	if err := h.refresh(ctx, mine.Record, plan); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := h.State.PutOnce(ctx, names.PinnedRelease(j.to.SHA256), j.nextBody); err != nil {
		return events.UpgradeResult{}, err
	}
	if err := h.write(ctx, in.Cluster, &mine); err != nil {
		return events.UpgradeResult{}, err
	}
	looks, err := h.looks(ctx, mine.Record, plan)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case looks.Outcome != "":
		return looks, h.tell(ctx, in.Cluster, mine.Record, nil, looks.Message)
	}
	if err := h.tell(ctx, in.Cluster, mine.Record, nil, "the checks run"); err != nil {
		return events.UpgradeResult{}, err
	}
	return h.preflight(ctx, in.Cluster, mine, j, plan)
}

// preflight runs every check. How workloads are is kept, to compare the end with: as it was before anything was changed.
func (h *Handler) preflight(ctx context.Context, cluster string, r record, j journey, plan *preflight.Plan) (events.UpgradeResult, error) {
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
		return events.UpgradeResult{
			Outcome: events.UpgradeGo, Message: j.from.String() + " to " + j.to.String(),
		}, h.tell(ctx, cluster, r.Record, checks, "every check passed")
	}
	message := "nothing was changed: " + blocking(checks)
	if err := h.ends(ctx, cluster, r, over(r.Record)); err != nil {
		return events.UpgradeResult{}, err
	}
	if r.State == upgrade.Stopped {
		message = "it does not go on: " + blocking(checks)
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
	of, err := h.of(ctx, in.Cluster, r)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	if of && same(in, r) {
		return events.UpgradeResult{Outcome: events.UpgradeNothing, Message: r.Execution + " makes this upgrade already"}, nil
	}
	return h.wait(ctx, in, upgrade.Target{Release: in.Release}, fmt.Sprintf("the upgrade to %s is under way: %s", r.Target, r.Execution))
}

// takenBack asks again whether what began by itself is still asked for, and may begin: the execution may have waited for its cluster for
// hours, while people changed the spec or the window shut. A spec for which nothing is planned is refused elsewhere, with a reason.
func (h *Handler) takenBack(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record) (events.UpgradeResult, error) {
	if in.Origin == "" || r != nil && r.Execution == in.Execution {
		return events.UpgradeResult{}, nil
	}
	d, err := h.Planner.NextUpgrade(ctx, in.Cluster, ended(r))
	if err != nil || d == nil || d.Start != nil && d.Start.Key == in.Key {
		return events.UpgradeResult{}, err
	}
	message := "it is not asked for any more"
	if d.Wait != nil && d.Wait.Key == in.Key {
		if d.Wait.Missed {
			return events.UpgradeResult{}, h.missed(ctx, in, d.Wait.To, d.Wait.Message)
		}
		message = "it does not begin now: " + d.Wait.Message
	}
	return events.UpgradeResult{
			Outcome: events.UpgradeNothing, Message: message,
		}, h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
			if s.Upgrade != nil && s.Upgrade.Execution == in.Execution && status.ToCome(s.Upgrade.Phase) {
				s.TakeBack()
			}
		})
}

// ended is a record whose execution is over, or is the one that asks: nothing is under way by it.
func ended(r *upgrade.Record) *upgrade.Record {
	if r == nil || r.State.Over() {
		return r
	}
	left := *r
	left.State = over(r)
	return &left
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

// claimed says that an execution claimed the upgrade before, and checks once more.
func claimed(in events.UpgradeRequest, r *upgrade.Record) bool {
	return r != nil && !r.State.Over() && r.Execution == in.Execution
}

// there says that nothing is left to do: the cluster is what it was to be, and no upgrade was left on its way.
func there(j journey) bool { return j.from == j.to && !unfinished(j.last) }

// wait for the cluster, for so long since the upgrade was to begin.
func (h *Handler) wait(ctx context.Context, in events.UpgradeRequest, to upgrade.Target, why string) (events.UpgradeResult, error) {
	late := h.Now().Sub(due(in))
	switch {
	case late >= upgrade.Late:
		spec, err := h.read(ctx, in.Cluster)
		var unusable *stop
		if err != nil && !errors.As(err, &unusable) {
			return events.UpgradeResult{}, err
		}
		return events.UpgradeResult{}, h.missed(ctx, in, to, fmt.Sprintf("the cluster was busy for %s, the upgrade did not begin: %s. %s",
			upgrade.Late, why, upgrade.Again(spec, started(in).Origin, h.Now())))
	case late >= upgrade.Delayed:
		return busy(why, longestPause), h.waiting(ctx, in, to, status.UpgradeDelayed, why)
	}
	return busy(why, longestPause), h.waiting(ctx, in, to, status.UpgradeScheduled, why)
}

// due is when an upgrade was to begin.
func due(in events.UpgradeRequest) time.Time {
	if in.Due.IsZero() || in.Due.After(in.Started) {
		return in.Started
	}
	return in.Due
}

// missed ends an upgrade that did not begin in time.
func (h *Handler) missed(ctx context.Context, in events.UpgradeRequest, to upgrade.Target, message string) error {
	if err := h.waiting(ctx, in, to, status.UpgradeMissed, message); err != nil {
		return err
	}
	return &stop{message}
}

// claim an upgrade for this execution: one that was left on its way goes on from the step that is open, any other begins. r is the record
// that it takes the place of.
func (h *Handler) claim(ctx context.Context, in events.UpgradeRequest, r *upgrade.Record, j journey) (*upgrade.Record, error) {
	last := ended(j.last)
	mine := upgrade.Begin(last, started(in), j.spec, j.from, j.to, in.Execution, h.Now())
	if claimed(in, r) {
		mine.Number, mine.Started, mine.Insights = r.Number, r.Started, r.Insights
	}
	mine.Stack = j.stack
	if in.Rollback {
		mine.BackUntil = j.backUntil
	}
	if last == nil && r != nil {
		mine.Alarms = r.Alarms // that are off still
	}
	if len(mine.Steps) == 0 {
		mine.Images = j.images
	}
	var err error
	mine.Steps, mine.Step, err = h.way(ctx, in, j, mine.Steps, mine.Step)
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
