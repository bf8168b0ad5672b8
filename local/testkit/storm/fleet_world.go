package storm

// The users of rollouts in a world, and the schedules of the function rollout.

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// fleet is the part of a world that is about rollouts.
type fleet struct {
	// rollouts are the files, by name; nil for those that users deleted. specs are the newest of each cluster.
	rollouts map[string]*wishedRollout
	specs    map[string]*wish
	// edits counts the edits of releases. freezes are the files that exist.
	edits   int
	freezes map[string]bool
	// uploads are the decisions and freezes that users uploaded, in order.
	uploads []fleetUpload
	// byHand are the clusters whose upgrade operators continue at the end, or whose spec names another release.
	byHand map[string]bool
	*fleetChecks
}

// fleetUpload is a decision or a freeze.
type fleetUpload struct {
	key string
	// turn is when it was uploaded. deleted is when it was deleted; 0 if it was not.
	turn, deleted int
}

func newFleet(p *plot) *fleet {
	f := &fleet{
		rollouts: map[string]*wishedRollout{}, specs: map[string]*wish{}, freezes: map[string]bool{}, byHand: map[string]bool{},
		fleetChecks: newFleetChecks(),
	}
	for _, a := range p.acts {
		if a.spec != nil && f.specs[a.cluster] == nil {
			f.specs[a.cluster] = a.spec
		}
	}
	return f
}

// fleetApps returns one app for each cluster.
func fleetApps(r *rand.Rand, clusters int) map[string][]apiserver.App {
	all := map[string][]apiserver.App{}
	for i := range clusters {
		all[fmt.Sprintf("c%d", i)] = []apiserver.App{{
			Name: "web", Replicas: 1 + r.IntN(2), MaxUnavailable: 1, Start: time.Duration(1+r.IntN(30)) * time.Second, Stop: 5 * time.Second,
			Grace: 30 * time.Second,
		}}
	}
	return all
}

// scheduleRollouts runs the function rollout on its schedules.
func (w *world) scheduleRollouts(stop, done chan struct{}) {
	defer close(done)
	tickAt, planAt := w.began.Add(backoff.SweepPeriod+17*time.Second), w.began.Add(backoff.RolloutPlanPeriod+31*time.Second)
	for {
		select {
		case <-time.After(time.Until(earlier(tickAt, planAt))):
			if w.turns.take("schedule of rollouts"); w.over() {
				return
			}
			in := events.Rollout{}
			if in.PlanAll = planAt.Before(tickAt); in.PlanAll {
				planAt = planAt.Add(backoff.RolloutPlanPeriod)
			} else {
				tickAt = tickAt.Add(backoff.SweepPeriod)
			}
			switch w.engine.Decide(w.now(), faults.Moment{Kind: faults.Delivery, Event: "Scheduled Event", Target: "rollout"}).Kind {
			case faults.Drop:
				continue
			case faults.Duplicate:
				w.out.Acts["fire"]++
				w.rolloutsBeside()
			}
			_, _ = w.Functions.Call("rollout", in) // its schedule continues
		case <-stop:
			return
		}
	}
}

// rolloutsBeside evaluates the active runs concurrently with everything else.
func (w *world) rolloutsBeside() {
	turn := w.turns.ticket("another evaluation of rollouts")
	w.sweeps.Go(func() {
		turn()
		_, _ = w.Functions.Call("rollout", events.Rollout{})
	})
}

func (w *world) uploadRollout(name string) {
	file := w.plot.fleet.rollouts[name]
	if now := w.fleet.rollouts[name]; now != nil {
		file = now
	}
	w.fleet.rollouts[name] = file
	w.Upload(names.Rollout(name), file.yaml())
}

// editRollout uploads a rollout with other stages and the same subject.
func (w *world) editRollout(edited *wishedRollout) {
	now := w.fleet.rollouts[edited.name]
	if now == nil {
		w.record("%s: it has no file", edited.name)
		return
	}
	file := *edited
	file.release, file.selector = now.release, now.selector
	w.fleet.rollouts[file.name] = &file
	w.Upload(names.Rollout(file.name), file.yaml())
}

func (w *world) deleteRollout(name string) {
	if w.fleet.rollouts[name] != nil {
		w.fleet.rollouts[name] = nil
		w.Remove(names.Rollout(name), "")
	}
}

// editRelease uploads other content of the release of a rollout.
func (w *world) editRelease(name string) {
	release := w.plot.fleet.rollouts[name].release
	w.fleet.edits++
	text := strings.Replace(w.releaseText(release), "spec:\n", fmt.Sprintf("# edited %d times\nspec:\n", w.fleet.edits), 1)
	w.released[release] = w.Upload(names.ReleaseSpec(release), text)
}

// releaseText returns the newest content of a release.
func (w *world) releaseText(release string) string {
	specs := s3adapter.NewBucket(s3adapter.NewClient(w.Config()), harness.SpecsBucket)
	object, err := specs.Get(context.Background(), names.ReleaseSpec(release), 1<<20)
	must(err)
	return string(object.Body)
}

func (w *world) freeze(name, labels string, broken bool) {
	text := fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Freeze
metadata: {name: %s}
spec:
  clusters: %s
  from: %q
  until: %q
  reason: the storm
`, name, labels, w.now().Format(time.RFC3339), w.now().Add(5*time.Hour).Format(time.RFC3339))
	if broken {
		text = strings.Replace(text, "reason", "raison", 1)
	}
	w.thaw(name)
	w.fleet.freezes[name] = true
	w.fleet.uploaded(names.Freeze(name), w.turns.count)
	w.Upload(names.Freeze(name), text)
}

func (w *world) thaw(name string) {
	if w.fleet.freezes[name] {
		delete(w.fleet.freezes, name)
		w.fleet.removed(names.Freeze(name), w.turns.count)
		w.Remove(names.Freeze(name), "")
	}
}

// choice is a decision that a user wants to upload. The rest depends on the state of the rollout at that moment.
type choice struct {
	rollout    string
	verb       api.Verb
	old, twice bool
	stage      int
	cluster    string
	freeze     string
}

// decide uploads a decision, as the command line does: it names the newest plan, or that of the active run.
func (w *world) decide(c choice) {
	record, _, err := w.State().RolloutRecord(context.Background(), c.rollout)
	must(err)
	plan := record.Plan
	run := record.Running()
	if run != nil && c.verb != api.VerbStart {
		plan = run.Plan
	}
	if c.old {
		plan = strings.Repeat("e", 64)
		if len(record.Older) > 0 {
			plan = slices.Sorted(maps.Keys(record.Older))[0]
		} else if record.Run != nil {
			plan = record.Run.Plan
		}
	}
	name := fmt.Sprintf("d%d", len(w.fleet.uploads))
	text := fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Decision
metadata: {name: %s}
spec:
  rollout: %s
  verb: %s
`, name, c.rollout, c.verb)
	if plan != "" {
		text += "  plan: " + plan + "\n"
	} else if !c.verb.Brakes() {
		w.record("%s has no plan", c.rollout)
		return
	}
	switch c.verb {
	case api.VerbApprove, api.VerbRollback, api.VerbReject:
		if stage := w.stageToName(run, c.stage); stage != "" {
			text += "  stage: " + stage + "\n"
		} else if c.verb == api.VerbApprove {
			w.record("%s has no stage", c.rollout)
			return
		}
	case api.VerbRetry, api.VerbSkip:
		text += fmt.Sprintf("  clusters: [%s]\n", w.clusterToName(run, c.cluster))
	case api.VerbOverride:
		text += "  freeze: " + c.freeze + "\n"
	}
	w.fleet.uploaded(names.Decision(c.rollout, name), w.turns.count)
	w.Upload(names.Decision(c.rollout, name), text)
	if c.twice {
		w.Upload(names.Decision(c.rollout, name), text)
	}
}

// stageToName returns a stage that waits for an approval, or any other one.
func (w *world) stageToName(run *rollout.Run, any int) string {
	if run == nil {
		return ""
	}
	p := w.fleet.plan(w, run.Plan)
	for i := range p.Stages {
		missing := len(run.Stages[i].Before) < len(p.Stages[i].Before) || len(run.Stages[i].After) < len(p.Stages[i].After)
		if missing && run.Stages[i].Passed.IsZero() {
			return p.Stages[i].Name
		}
	}
	return p.Stages[any%len(p.Stages)].Name
}

// clusterToName returns a failed member, or another cluster.
func (w *world) clusterToName(run *rollout.Run, other string) string {
	if run != nil {
		for i := range run.Members {
			if m := &run.Members[i]; m.State == rollout.Failed || m.State == rollout.Blocked {
				return m.Cluster
			}
		}
	}
	return other
}

const (
	// maxRunTime is how long runs may take after the last fault and the last brake. It exceeds the deadlines of all members.
	maxRunTime = 40 * time.Hour
	// maxUnready is how long users wait for a cluster that is not Ready or Busy, before they skip it.
	maxUnready = 6 * time.Hour
	// decideEvery is the pause between two decisions of users at the end.
	decideEvery = 10 * time.Minute
)

// endRuns lets all runs end: users end brakes, freezes and conditions, and decide what runs wait for.
func (w *world) endRuns() {
	for _, name := range slices.Sorted(maps.Keys(w.fleet.freezes)) {
		w.thaw(name)
	}
	w.setAlarm(fleetAlarm, false)
	for _, cluster := range w.clusters() {
		if w.condition(cluster) != "" {
			w.repair(cluster)
		}
		spec := *w.fleet.specs[cluster]
		if w.desired[cluster] == nil || !spec.paused && spec.gate == (gate{}) {
			continue
		}
		spec.paused, spec.gate = false, gate{}
		w.fleet.specs[cluster] = &spec
		w.do(act{cluster: cluster, what: "open", spec: &spec})
	}
	end := time.Since(w.began) + maxRunTime
	for calm := 0; calm < 4; {
		if w.wait(time.Since(w.began) + decideEvery); w.over() {
			return
		}
		calm++
		for _, name := range slices.Sorted(maps.Keys(w.plot.fleet.rollouts)) {
			record, _, err := w.State().RolloutRecord(context.Background(), name)
			must(err)
			if run := record.Running(); run != nil {
				calm = 0
				w.check(f(22), time.Since(w.began) < end, "the run %d of %s does not end: %+v", run.Number, name, run)
				w.endRun(name, run)
			}
		}
	}
	w.record("all runs have ended")
	for _, cluster := range w.clusters() {
		w.nameDeployed(cluster)
	}
}

// nameDeployed corrects a spec that names an older Kubernetes version than its cluster has: it names the deployed release.
func (w *world) nameDeployed(cluster string) {
	s, want := w.Status(cluster), w.desired[cluster]
	accepted := s.Condition(status.SpecAccepted)
	if want == nil || accepted == nil || accepted.Status != "False" || !strings.Contains(accepted.Message, "Kubernetes is not downgraded") {
		return
	}
	spec := *w.fleet.specs[cluster]
	_, err := fmt.Sscanf(s.Release, "r%d-%d", &spec.minor, &spec.rev)
	must(err)
	w.fleet.specs[cluster] = &spec
	w.do(act{cluster: cluster, what: "name the deployed release", spec: &spec})
}

// endRun decides what a run waits for. A run that is halted with members to blame, or after a rollback, is aborted.
func (w *world) endRun(name string, run *rollout.Run) {
	p := w.fleet.plan(w, run.Plan)
	blamed := slices.ContainsFunc(run.Members, func(m rollout.MemberRun) bool {
		return slices.Contains([]rollout.State{rollout.Failed, rollout.Blocked, rollout.RolledBack, rollout.NotRolledBack}, m.State)
	}) || slices.ContainsFunc(run.Stages, func(s rollout.StageRun) bool { return s.Rollback == rollout.RollbackDone })
	resting := !slices.ContainsFunc(run.Members, func(m rollout.MemberRun) bool { return atRisk(m.State) })
	switch {
	case run.Ending != "":
	case run.PausedBy != "", run.Halt != nil && !blamed && resting && run.State != rollout.RollingBack:
		w.decide(choice{rollout: name, verb: api.VerbResume})
	case run.Halt != nil && blamed && resting && run.State == rollout.Halted:
		w.decide(choice{rollout: name, verb: api.VerbAbort})
	case run.Halt == nil:
		for i := range run.Members {
			m := &run.Members[i]
			waits := m.State == rollout.Waiting
			switch {
			case waits && m.Reason == rollout.ReasonNotReady && w.desired[m.Cluster] != nil && w.stuck(w.Status(m.Cluster)) &&
				!w.fleet.byHand[m.Cluster]:
				w.continueUpgrade(m.Cluster) // its own upgrade had stopped
				return
			case waits && m.Reason == rollout.ReasonIncompatibleVersion,
				waits && (m.Reason == rollout.ReasonNotReady || m.Reason == rollout.ReasonBusy) && time.Since(m.Since) > maxUnready:
				// No run downgrades a cluster, repairs one, or interrupts its drains. If no node joins, a drain waits for two days.
				w.decide(choice{rollout: name, verb: api.VerbSkip, cluster: m.Cluster})
				return
			}
		}
		open := slices.IndexFunc(run.Stages, func(s rollout.StageRun) bool { return s.Passed.IsZero() })
		if open < 0 {
			return
		}
		s, state := &p.Stages[open], &run.Stages[open]
		if len(state.Before) < len(s.Before) || !state.SoakedAt.IsZero() && len(state.After) < len(s.After) {
			w.decide(choice{rollout: name, verb: api.VerbApprove})
		}
	}
}

// continueUpgrade starts the stopped upgrade of a cluster again, as the runbook describes.
func (w *world) continueUpgrade(cluster string) {
	in := events.Upgrade{Cluster: cluster, Release: release(w.desired[cluster].minor, w.desired[cluster].rev)}
	if w.fleet != nil {
		w.fleet.byHand[cluster] = true
		record, _, err := w.State().Upgrade(context.Background(), cluster)
		must(err)
		if record != nil && record.Origin == upgrade.OriginRollback {
			in.Release, in.Rollback = "", true
		} else if record != nil {
			in.Release = record.Target.Release
		}
	}
	w.Upgrade(in)
}

// cell is the key of the only cell.
var cell = names.Cell(harness.ID, harness.Region)
