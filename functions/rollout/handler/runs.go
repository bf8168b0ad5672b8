package handler

// Plans, starts and ticks.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

const (
	// planLifetime is how long a Start may name a plan after another one became the newest.
	planLifetime = 24 * time.Hour
	// claimLifetime is after how long an entry of rollouts/active.json without a run is removed. A call ends much earlier, so none still has
	// the entry in mind.
	claimLifetime = 10 * time.Minute
)

// plan computes the newest plan. While a run is active, only an edited file or subject gives a new one.
func (e *evaluation) plan(ctx context.Context) error {
	r := e.record
	stored := r.Plan != ""
	if stored {
		_, err := e.planOf(ctx, r.Plan)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		stored = err == nil
	}
	r.Deleted = !e.uploaded
	for digest, until := range r.Older {
		if e.now.Sub(until) > planLifetime {
			delete(r.Older, digest)
		}
	}
	if e.file != nil && (r.Running() == nil || e.isEdited(e.plans[r.Plan])) {
		if err := e.compute(ctx, stored); err != nil {
			return err
		}
	}
	if e.file == nil && r.Running() == nil {
		e.retire("")
	}
	known := r.Problems
	r.Problems = e.problems
	for _, p := range r.Problems {
		if !slices.Contains(known, p) {
			e.notify(rollout.EventProblem, p.File+": "+p.Message)
		}
	}
	return nil
}

// isEdited reports whether the file or its releases differ from those of a plan.
func (e *evaluation) isEdited(p *rollout.Plan) bool {
	return p == nil || p.Spec != rollout.SpecDigest(e.file) || !slices.Equal(p.Subject.Releases, e.subject.Releases)
}

// compute computes the newest plan, and stores it and its releases before the record names it. stored reports whether the plan that the
// record names is stored.
func (e *evaluation) compute(ctx context.Context, stored bool) error {
	if e.report == nil {
		e.problem(names.Rollout(e.record.Rollout), "the clusters are not known yet: the function fleet has not reported")
		e.retire("")
		return nil
	}
	p, errs := rollout.Compute(e.file, e.subject, e.facts())
	if errs != nil {
		e.problem(names.Rollout(e.record.Rollout), "%s", errs.Error())
		e.retire("")
		return nil
	}
	digest := p.Digest()
	e.plans[digest] = p
	if digest == e.record.Plan && stored {
		return nil
	}
	for _, release := range p.Subject.Releases {
		if err := e.State.PutOnce(ctx, names.PinnedRelease(release.SHA256), e.contents[release.SHA256]); err != nil {
			return err
		}
	}
	if _, err := e.State.PutRolloutPlan(ctx, p); err != nil {
		return err
	}
	known := digest == e.record.Plan
	e.retire(digest)
	if !known && p.Size() > 0 && p.Start == api.StartManual {
		e.notify(rollout.EventPlanned, "")
	}
	return nil
}

// retire makes another plan the newest. An empty digest is none.
func (e *evaluation) retire(digest string) {
	r := e.record
	if r.Plan == digest {
		return
	}
	if r.Plan != "" {
		if r.Older == nil {
			r.Older = map[string]time.Time{}
		}
		r.Older[r.Plan] = e.now
	}
	delete(r.Older, digest)
	r.Plan, r.Planned = digest, e.now.Truncate(time.Second)
	if digest == "" {
		r.Planned = time.Time{}
	}
}

// notify adds a notice to the record.
func (e *evaluation) notify(event rollout.Event, reason string) {
	e.record.Notices = append(e.record.Notices, rollout.Notify{Event: event, Reason: reason, Plan: e.record.Plan})
}

// begin applies decisions while no run is active, and starts a run if one requests it or the rollout starts by itself.
func (e *evaluation) begin(ctx context.Context) error {
	for _, d := range e.decisions {
		if e.record.Running() != nil {
			return nil // the others are the run's
		}
		applied, message, err := e.applyWithoutRun(ctx, d)
		if err != nil {
			return err
		}
		answer := rollout.Answer{Version: d.Version, Applied: applied, Message: message}
		if run := e.record.Running(); run != nil {
			run.Answers[d.Name] = answer
			return nil
		}
		if e.record.Answers == nil {
			e.record.Answers = map[string]rollout.Answer{}
		}
		e.record.Answers[d.Name] = answer
		if d.Spec.Verb == api.VerbStart {
			e.notify(rollout.EventProblem, fmt.Sprintf("the decision %s did not start a run: %s", d.Name, message))
		}
	}
	if !e.startsItself(ctx) {
		return nil
	}
	refused, err := e.start(ctx, e.record.Plan)
	if err != nil || refused == "" {
		return err
	}
	p := rollout.Problem{File: names.Rollout(e.record.Rollout), Message: refused}
	if !slices.Contains(e.before.Problems, p) {
		e.notify(rollout.EventProblem, p.Message)
	}
	e.record.Problems = append(e.record.Problems, p)
	return nil
}

// applyWithoutRun applies a decision while no run is active. A Start begins one. See applyToRun of package rollout for an active run.
func (e *evaluation) applyWithoutRun(ctx context.Context, d rollout.UploadedDecision) (applied bool, message string, err error) {
	r := e.record
	switch d.Spec.Verb {
	case api.VerbStart:
		if refused, err := e.mayStart(ctx, d.Spec.Plan); err != nil || refused != "" {
			return false, refused, err
		}
		refused, err := e.start(ctx, d.Spec.Plan)
		if err != nil || refused != "" {
			return false, refused, err
		}
		return true, fmt.Sprintf("run %d has started", r.Number), nil
	case api.VerbPause:
		r.PausedBy = d.Name
		return true, "no run starts until a decision resumes the rollout", nil
	case api.VerbResume:
		if r.PausedBy == "" {
			return false, "the rollout is not paused", nil
		}
		if refused, err := e.outdated(ctx, d.Spec.Plan); err != nil || refused != "" {
			return false, refused, err
		}
		r.PausedBy = ""
		return true, "runs may start", nil
	}
	return false, "no run is active", nil
}

// mayStart returns why a Start cannot start a plan; empty if it can.
func (e *evaluation) mayStart(ctx context.Context, digest string) (refused string, err error) {
	r := e.record
	switch {
	case r.Deleted:
		return "the file of the rollout was deleted", nil
	case r.PausedBy != "":
		return fmt.Sprintf("the decision %s paused the rollout: resume it first", r.PausedBy), nil
	case r.Plan == "" && len(r.Problems) > 0:
		return "there is no plan: " + r.Problems[0].Message, nil
	case r.Plan == "":
		return "there is no plan", nil
	}
	if e.plans[r.Plan].Size() == 0 {
		return "the plan changes no cluster", nil
	}
	return e.outdated(ctx, digest)
}

// outdated returns why a decision that names a plan does not apply to the newest one; empty if it does. Then both are of the same file
// and releases. Without a newest plan, nothing can start.
func (e *evaluation) outdated(ctx context.Context, digest string) (refused string, err error) {
	r := e.record
	newest := e.plans[r.Plan]
	if newest == nil || digest == r.Plan {
		return "", nil
	}
	if _, recent := r.Older[digest]; !recent {
		return fmt.Sprintf("it names the plan %s, which is not of this rollout, or older than a day: the newest plan is %s",
			short(digest), short(r.Plan)), nil
	}
	p, err := e.planOf(ctx, digest)
	if err != nil {
		return "", err
	}
	if differs(newest, p) {
		return fmt.Sprintf("it names the plan %s: the newest plan is %s, and %s", short(digest), short(r.Plan),
			strings.Join(newest.Difference(p), ", ")), nil
	}
	return "", nil // only the state of clusters differs
}

// startsItself reports whether the newest plan starts without a decision: if the file or the subject are new since the last run, or if
// that run is Done and clusters joined since. So a run that failed or was aborted does not repeat itself.
func (e *evaluation) startsItself(ctx context.Context) bool {
	r := e.record
	p := e.plans[r.Plan]
	if p == nil || p.Start != api.StartAuto || p.Size() == 0 || r.PausedBy != "" || r.Deleted {
		return false
	}
	if r.Run == nil {
		return true
	}
	last, err := e.planOf(ctx, r.Run.Plan)
	if err != nil || differs(p, last) {
		return err == nil
	}
	members := map[string]bool{}
	for i := range r.Run.Members {
		members[r.Run.Members[i].Cluster] = true
	}
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			if r.Run.State == rollout.Done && !members[p.Stages[i].Members[j].Cluster] {
				return true
			}
		}
	}
	return false
}

// start claims the members of a plan in rollouts/active.json, and begins a run in the record. The claim is first: of two rollouts with the
// same cluster, the second sees the claim of the first. refused says which other rollout has claimed a member.
func (e *evaluation) start(ctx context.Context, digest string) (refused string, err error) {
	p, err := e.planOf(ctx, digest)
	if err != nil {
		return "", err
	}
	r := e.record
	active, etag, err := e.State.ActiveRuns(ctx)
	if err != nil {
		return "", err
	}
	for i := range active.Runs {
		other := &active.Runs[i]
		if other.Rollout == r.Rollout {
			continue
		}
		claimed, err := e.planOf(ctx, other.Plan)
		if err != nil {
			return "", err
		}
		if conflicts := p.Conflicts([]*rollout.Plan{claimed}); len(conflicts) > 0 {
			return fmt.Sprintf("%s is in the active run %d of %s: wait until that run ends, or abort it",
				some(conflicts), other.Number, other.Rollout), nil
		}
	}
	if r.Run != nil {
		if err := e.State.PutEndedRun(ctx, r.Run); err != nil {
			return "", err
		}
	}
	entry := rollout.ActiveRun{
		Rollout: r.Rollout, Number: r.Number + 1, Plan: digest, Subject: p.Subject, Since: e.now.Truncate(time.Second),
	}
	own := active.Of(r.Rollout)
	// An interrupted call may have claimed them.
	if own == nil || own.Number != entry.Number || own.Plan != entry.Plan || e.now.Sub(own.Since) > claimLifetime/2 {
		if own == nil {
			active.Runs = append(active.Runs, entry)
		} else {
			*own = entry
		}
		if err := e.State.PutActiveRuns(ctx, active, etag); err != nil {
			return "", err
		}
	}
	run := rollout.Begin(p, entry.Number, r.AllAnswers(), e.now)
	r.Number, r.Run, r.Answers = entry.Number, &run, nil
	r.Notices = append(r.Notices, rollout.Notify{Event: rollout.EventStarted, Run: run.Number, Plan: digest})
	return "", nil
}

// tick evaluates the active run.
func (e *evaluation) tick(ctx context.Context) error {
	run := e.record.Running()
	p, err := e.planOf(ctx, run.Plan)
	if err != nil {
		return err
	}
	if !run.Fits(p) {
		return fmt.Errorf("run %d does not have the members of its plan: %s was edited", run.Number, names.RolloutRecord(run.Rollout))
	}
	in, err := e.inputs(ctx, p, run)
	if err != nil {
		return err
	}
	after, actions, _ := rollout.Tick(p, *run, in, e.now)
	for _, action := range actions {
		if notice, ok := action.(rollout.Notify); ok {
			notice.Run, notice.Plan = after.Number, after.Plan
			e.record.Notices = append(e.record.Notices, notice)
		}
	}
	e.record.Run = &after
	return nil
}

// write stores the record if it changed, on the condition that it is still the one that was read.
func (e *evaluation) write(ctx context.Context) error {
	if same(e.before, e.record) {
		return nil
	}
	e.record.Revision++
	etag, err := e.State.PutRolloutRecord(ctx, e.record, e.etag)
	if err != nil {
		return err
	}
	e.etag, e.before = etag, clone(e.record)
	return nil
}

// some names the first clusters of conflicts.
func some(conflicts []rollout.Conflict) string {
	const shown = 5
	var clusters []string
	for i := range conflicts[:min(shown, len(conflicts))] {
		clusters = append(clusters, conflicts[i].Cluster)
	}
	return strings.Join(clusters, ", ")
}

// short is the part of a digest that messages show.
func short(digest string) string { return digest[:min(12, len(digest))] }
