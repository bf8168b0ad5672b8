package handler

// One cluster: its assignment, its plan and its fact.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// observedCluster is what a call reads of one cluster.
type observedCluster struct {
	cluster string
	at      time.Time
	// spec is nil if the newest upload cannot be used.
	spec     *api.Cluster
	stack    stack.Deployed
	deployed upgrade.Target
	record   *upgrade.Record
	status   status.Status
	// assignment is nil if there is none, or if it is that of an earlier cluster of this name.
	assignment *rollout.CellAssignment
}

// update carries out the assignment of a cluster and observes it. A notice is sent before its status is written. So an event may find a
// waiting cluster as busy as before, and then update reads it again. If that is too early, the sweep's call observes the cluster.
func (c *call) update(ctx context.Context, cluster string) error {
	for read := 0; ; read++ {
		fact, err := c.observe(ctx, cluster)
		if err != nil {
			return err
		}
		if c.event == "" || read == rereads || !c.mayBeEarly(cluster, fact) {
			c.setFact(cluster, fact)
			return nil
		}
		if err := c.Pause(ctx, maxAttempts); err != nil {
			return err
		}
	}
}

// mayBeEarly reports whether a fact may be from before the status that its event announces: no attempt is in flight, and the fact keeps the
// cluster from its start, as the reported one does.
func (c *call) mayBeEarly(cluster string, fact *rollout.Fact) bool {
	if fact == nil || !c.blocks(fact) || fact.Attempt != nil && !fact.Attempt.State.Ended() {
		return false
	}
	return slices.ContainsFunc(c.report.Facts, func(f rollout.Fact) bool { return f.Cluster == cluster && c.blocks(&f) })
}

// observe carries out the assignment of a cluster and returns its fact; nil if it has no spec.
func (c *call) observe(ctx context.Context, cluster string) (*rollout.Fact, error) {
	o := &observedCluster{cluster: cluster, at: c.Now().UTC().Round(0)}
	var err error
	o.spec, _, err = specs.Cluster(ctx, c.Specs, cluster)
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return nil, nil
	case err != nil && !specs.Missing(err):
		return nil, err
	}
	if err := c.read(ctx, o); err != nil {
		return nil, err
	}
	if err := c.assign(ctx, o); err != nil {
		return nil, err
	}
	return c.fact(ctx, o)
}

func (c *call) setFact(cluster string, f *rollout.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[cluster] = f
}

// read reads the stack, the status and the record of the last upgrade.
func (c *call) read(ctx context.Context, o *observedCluster) (err error) {
	name, listed := names.Stack(o.cluster, names.ControlPlane), false
	if o.stack, listed = c.stacks[name]; !listed && c.stacks == nil {
		if o.stack, err = c.Stacks.Describe(ctx, name); err != nil {
			return err
		}
	}
	document, err := c.State.Status(ctx, o.cluster)
	switch {
	case err == nil:
		o.status = document.Status
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if o.record, _, err = c.State.Upgrade(ctx, o.cluster); err != nil {
		return err
	}
	if o.record != nil && o.record.Stack != o.stack.ID {
		o.record = nil // of an earlier cluster
	}
	o.deployed = deployedTarget(o.stack, o.record)
	return nil
}

// deployedTarget returns the release and version of a cluster; zero if it has no control plane yet.
func deployedTarget(controlPlane stack.Deployed, record *upgrade.Record) (t upgrade.Target) {
	all := map[string]stack.Deployed{names.ControlPlane: controlPlane}
	if t.KubernetesVersion = plan.KubernetesVersion(all); t.KubernetesVersion == "" || stack.MustRecreate(controlPlane.Status) {
		return upgrade.Target{}
	}
	if t.Release, t.SHA256 = plan.Pin(all); t.Release == "" && record != nil {
		pin := record.Pin()
		t.Release, t.SHA256 = pin.Release, pin.SHA256
	}
	return t
}

// assign copies the assignment of the cluster, withdraws it, or has the cluster planned because of it. drover-upgrade writes the same
// object when it begins. A conflict means that it did, or that another call of this function was first.
func (c *call) assign(ctx context.Context, o *observedCluster) error {
	const attempts = 4
	for range attempts {
		a, etag, err := c.State.Assignment(ctx, o.cluster)
		if err != nil {
			return err
		}
		next := c.nextAssignment(o, a)
		if next != nil {
			if _, err = c.State.PutAssignment(ctx, next, etag); errors.Is(err, store.ErrConflict) {
				continue
			}
			if err != nil {
				return err
			}
			logging.From(ctx).Info("assignment written", "cluster", o.cluster, "rollout", next.Rollout, "run", next.Run, "attempt", next.Attempt,
				"withdrawn", next.Withdrawn)
			continue // for its ETag
		}
		if a == nil || a.Stack != o.stack.ID {
			return nil
		}
		o.assignment = a
		return c.request(ctx, o, etag)
	}
	return store.ErrConflict
}

// nextAssignment returns the copy to write; nil if the copy is up to date.
func (c *call) nextAssignment(o *observedCluster, a *rollout.CellAssignment) *rollout.CellAssignment {
	w, isWanted := c.wanted[o.cluster]
	current := a != nil && a.Stack == o.stack.ID
	open := current && a.Progress(o.record, o.spec, o.deployed) == rollout.AttemptOpen
	withdraw := func() *rollout.CellAssignment {
		next := *a
		next.Withdrawn = true
		return &next
	}
	switch {
	case isWanted && a != nil && a.Key() == w.Key() && current:
		if w.Withdrawn && !a.Withdrawn && !a.Begun {
			return withdraw()
		}
	case isWanted && (!current || a.Progress(o.record, o.spec, o.deployed).Ended()) && (a == nil || w.follows(a)):
		return &rollout.CellAssignment{
			Assignment: w.Assignment, Taken: o.at.Truncate(time.Second), Stack: o.stack.ID, Overrides: w.overrides,
		}
	case open && !isWanted && c.wasReported(a), open && isWanted && a.Key() != w.Key():
		return withdraw()
	}
	return nil
}

// follows reports whether an assignment is newer than the cell's copy. Runs of different rollouts have no order: their claims exclude each
// other.
func (w *wantedState) follows(a *rollout.CellAssignment) bool {
	return w.Rollout != a.Rollout || w.Run > a.Run || w.Run == a.Run && w.Attempt > a.Attempt
}

// wasReported reports whether the report, which is older than the assignments, has the attempt. Then the attempt was assigned earlier, and
// if it is not assigned now, it was withdrawn.
func (c *call) wasReported(a *rollout.CellAssignment) bool {
	w := wantedState{Assignment: a.Assignment}
	return slices.ContainsFunc(c.report.Facts, func(f rollout.Fact) bool {
		return f.Cluster == a.Cluster && f.Attempt != nil && w.isOf(f.Attempt)
	})
}

// request has an idle cluster planned because of its assignment, as the sweep would, and again every half hour until the upgrade begins.
// The sweep plans a busy cluster later.
func (c *call) request(ctx context.Context, o *observedCluster, etag string) error {
	a := o.assignment
	if a.Progress(o.record, o.spec, o.deployed) != rollout.AttemptOpen {
		return nil
	}
	at := a.Taken.Add(max(0, o.at.Sub(a.Taken)).Truncate(repeatEvery))
	if !a.Requested.Before(at) {
		return nil
	}
	if err := c.State.AddDue(ctx, o.cluster, at); err != nil {
		return err
	}
	holder, err := c.State.Holder(ctx, o.cluster, c.Executions.Running)
	if err != nil {
		return err
	}
	if holder == "" {
		if err := c.Executions.ConvergeDue(ctx, o.cluster, at); err != nil {
			return err
		}
	}
	next := *a
	next.Requested = at
	if _, err := c.State.PutAssignment(ctx, &next, etag); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}

// fact is what the cell reports about the cluster.
func (c *call) fact(ctx context.Context, o *observedCluster) (*rollout.Fact, error) {
	f := c.factOfSpec(o)
	f.Cluster, f.Region, f.Account = o.cluster, c.Region, c.Account
	f.Stack, f.Deployed, f.Observed = o.stack.ID, o.deployed, o.at
	switch o.status.Phase {
	case status.Ready:
	case status.Pending, status.Converging, status.Upgrading, status.Deleting:
		f.Busy = true
	default:
		f.Unready = true
	}
	if o.record != nil && !o.record.State.Final() {
		f.Busy = true
	}
	f.RollbackUntil = rollbackUntil(o, o.at)
	a := o.assignment
	if a == nil {
		return f, nil
	}
	f.Attempt = &rollout.Attempt{Rollout: a.Rollout, Run: a.Run, Number: a.Attempt, State: a.Progress(o.record, o.spec, o.deployed)}
	switch {
	case f.Attempt.State == rollout.AttemptBlocked:
		f.Attempt.Check = blockedBy(o)
	case f.Attempt.State == rollout.AttemptDone && !a.Rollback && c.inRun(a):
		return f, c.observeDone(ctx, o, f)
	}
	return f, nil
}

// inRun reports whether the run of an assignment has not ended.
func (c *call) inRun(a *rollout.CellAssignment) bool {
	w, found := c.wanted[a.Cluster]
	return found && w.Rollout == a.Rollout && w.Run == a.Run
}

// observeDone adds the last look to the fact of a cluster whose upgrade is done. A run measures time by looks: before the first look after
// the upgrade, the attempt counts as in flight.
func (c *call) observeDone(ctx context.Context, o *observedCluster, f *rollout.Fact) error {
	look := c.looks.Clusters[o.cluster]
	if r := o.record.Of(o.assignment.Key()); r == nil || look.At.Before(r.Ended) {
		f.Attempt.State = rollout.AttemptBegun
		if r != nil && o.at.Sub(r.Ended) < time.Minute { // the sweep looks later
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended = append(c.ended, o.cluster)
		}
		return nil
	}
	f.Observed, f.Nodes, f.NotReady = look.At, look.Nodes, look.NotReady
	if o.spec == nil || len(o.spec.Spec.Upgrade.Alarms) == 0 {
		return nil
	}
	alarms, err := c.Alarms.States(ctx, o.spec.Spec.Upgrade.Alarms)
	if err != nil {
		return err
	}
	for _, name := range o.spec.Spec.Upgrade.Alarms { // an absent alarm counts as one in ALARM
		if !slices.ContainsFunc(alarms, func(a preflight.Alarm) bool { return a.Name == name && a.State == "OK" }) {
			f.Alarms = append(f.Alarms, name)
		}
	}
	return nil
}

// factOfSpec is the part of the fact that the spec states. If the newest upload cannot be used, the last report applies.
func (c *call) factOfSpec(o *observedCluster) *rollout.Fact {
	if o.spec != nil {
		f := rollout.FactOfSpec(o.spec, rollout.Content{})
		f.Opening = opening(&o.spec.Spec.Upgrade, o.at)
		return &f
	}
	for _, f := range c.report.Facts {
		if f.Cluster == o.cluster {
			return &rollout.Fact{Labels: f.Labels, Paused: f.Paused, Pinned: f.Pinned, Opening: f.Opening}
		}
	}
	f := &rollout.Fact{}
	if o.status.Accepted != nil {
		f.Labels = o.status.Accepted.Labels
	}
	return f
}

// opening is the window of a cluster; nil if it is always open.
func opening(u *api.Upgrade, now time.Time) *rollout.Opening {
	if u.Window == nil && u.NotBefore == "" && len(u.Exclusions) == 0 {
		return nil
	}
	open, next := u.Open(now)
	switch {
	case open:
		return &rollout.Opening{Closes: closing(u, now)}
	case next.IsZero():
		return &rollout.Opening{Never: true}
	}
	return &rollout.Opening{Opens: next.UTC(), Closes: closing(u, next)}
}

// closing is when an open window closes: at its end, or when an exclusion begins. It is zero if it stays open.
func closing(u *api.Upgrade, now time.Time) (at time.Time) {
	if u.Window != nil {
		_, at = u.Window.Opening(now)
	}
	for _, e := range u.Exclusions {
		if from, err := time.Parse(time.RFC3339, e.From); err == nil && from.After(now) && (at.IsZero() || from.Before(at)) {
			at = from
		}
	}
	if at.IsZero() {
		return at
	}
	return at.UTC()
}

// rollbackUntil is when the last upgrade can no longer be rolled back; zero if it cannot. EKS limits only the rollback of a control plane.
func rollbackUntil(o *observedCluster, now time.Time) time.Time {
	const year = 365 * 24 * time.Hour
	last := o.record.LastChange()
	if last == nil {
		return time.Time{}
	}
	r := route.Route{From: o.deployed, Last: o.record}
	if r.SetRollbackTarget(events.Upgrade{}, now) != nil {
		return time.Time{}
	}
	if r.RollbackUntil.IsZero() {
		return last.Started.Add(year)
	}
	return r.RollbackUntil
}

// blockedBy is the check that refused the attempt.
func blockedBy(o *observedCluster) string {
	if o.assignment.Check != "" {
		return o.assignment.Check
	}
	if u := o.status.Upgrade; u != nil && u.Execution == o.record.Execution {
		for _, check := range u.Checks {
			if check.Blocks {
				return check.Name
			}
		}
	}
	return status.ReasonUpgradeBlocked
}

// usable returns the SHA-256 of the releases of active runs that this cell can use, sorted. The content must be valid for this version of
// drover, and its verdict must not be negative.
func (c *call) usable(ctx context.Context) (usable []string, err error) {
	if c.event != "" {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.desired.Sections)) {
		for _, release := range c.desired.Sections[name].Releases {
			if slices.Contains(usable, release.SHA256) {
				continue
			}
			if _, _, err := specs.PinnedRelease(ctx, c.State, release.Name, release.SHA256); err != nil {
				var unusable *specs.Unusable
				if errors.As(err, &unusable) || errors.Is(err, store.ErrNotFound) {
					continue
				}
				return nil, err
			}
			refused, err := c.isReleaseRefused(ctx, release)
			if err != nil {
				return nil, err
			}
			if !refused {
				usable = append(usable, release.SHA256)
			}
		}
	}
	slices.Sort(usable)
	return usable, nil
}

// isReleaseRefused reports whether the newest verdict on a release is negative and about this content.
func (c *call) isReleaseRefused(ctx context.Context, release rollout.ReleaseRef) (bool, error) {
	verdict, err := c.State.ReleaseStatus(ctx, release.Name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && !verdict.Status.Usable && verdict.Status.SHA256 == release.SHA256, err
}
