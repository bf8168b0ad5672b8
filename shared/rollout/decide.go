package rollout

// Decisions of users.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// decide applies the decisions that the record has not applied, in the order of their uploads. Each one gets an answer, with which it never
// applies again.
func (t *ticking) decide() {
	var fresh []UploadedDecision
	for _, d := range t.in.Decisions {
		if _, applied := t.r.Answers[d.Name]; !applied && d.Spec.Rollout == t.r.Rollout {
			fresh = append(fresh, d)
		}
	}
	slices.SortFunc(fresh, CompareDecisions)
	for _, d := range fresh {
		if _, applied := t.r.Answers[d.Name]; applied {
			continue // another version of the same object
		}
		applied, message := t.applyToRun(d)
		t.r.Answers[d.Name] = Answer{Version: d.Version, Applied: applied, Message: message}
	}
}

// CompareDecisions orders decisions: by their uploads, then the brakes last, then by name.
func CompareDecisions(a, b UploadedDecision) int {
	return cmp.Or(a.At.Compare(b.At), rankOf(a)-rankOf(b), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
}

// rankOf orders decisions of the same second, which is the precision of S3: brakes apply last, so that they prevail.
func rankOf(d UploadedDecision) int {
	if d.Spec.Verb.Brakes() {
		return 1
	}
	return 0
}

// applyToRun applies a decision to the active run. It reports whether the decision had its effect, and what that is, or why there is none.
func (t *ticking) applyToRun(d UploadedDecision) (applied bool, message string) {
	if !d.Spec.Verb.Brakes() && d.Spec.Plan != t.r.Plan {
		return false, fmt.Sprintf("it names the plan %.12s: the run has the plan %.12s", d.Spec.Plan, t.r.Plan)
	}
	switch d.Spec.Verb {
	case api.VerbPause:
		t.r.PausedBy = d.Name
		return true, "nothing starts until a decision resumes the run"
	case api.VerbAbort:
		t.end(Aborted)
		return true, "nothing starts; the run ends when no member is at risk"
	case api.VerbReject:
		if t.r.Halt == nil {
			t.r.Halt = &Halt{Stage: t.stageNumber(d.Spec.Stage), Cause: HaltRejected, At: t.now}
		}
		return true, "the run is halted"
	case api.VerbStart:
		return false, "the run has begun"
	}
	if t.r.Ending != "" {
		return false, "the run ends: start a new one"
	}
	switch d.Spec.Verb {
	case api.VerbResume:
		return t.resume()
	case api.VerbApprove:
		return t.approve(d)
	case api.VerbRetry, api.VerbSkip:
		return t.retryOrSkip(d)
	case api.VerbRollback:
		return t.requestRollback(d)
	case api.VerbOverride:
		if !slices.Contains(t.r.Overrides, d.Spec.Freeze) {
			t.r.Overrides = append(t.r.Overrides, d.Spec.Freeze)
		}
		return true, fmt.Sprintf("the run ignores the freeze %s", d.Spec.Freeze)
	}
	return false, fmt.Sprintf("the verb %q is unknown", d.Spec.Verb)
}

// stageNumber returns the number of a stage by its name; 0 if there is none.
func (t *ticking) stageNumber(name string) int {
	for i := range t.p.Stages {
		if t.p.Stages[i].Name == name {
			return i + 1
		}
	}
	return 0
}

// resume ends a pause and a halt. Failed members that are well now are Settling again.
func (t *ticking) resume() (applied bool, message string) {
	if t.r.PausedBy == "" && t.r.Halt == nil {
		return false, "the run is neither paused nor halted"
	}
	if t.rolledBack() {
		t.r.PausedBy = ""
		return true, "the pause has ended; the stage was rolled back, so the run stays halted: start a new one"
	}
	t.r.PausedBy, t.r.Halt = "", nil
	for i := range t.r.Stages {
		t.r.Stages[i].AlarmSince = time.Time{} // ten minutes more
	}
	return true, fmt.Sprintf("the run continues; failed members that are well and settle again: %d", t.rejudge())
}

// rolledBack reports whether a rollback has begun in the run.
func (t *ticking) rolledBack() bool {
	return slices.ContainsFunc(t.r.Stages, func(s StageRun) bool { return s.Rollback != "" })
}

// approve counts an approval of a stage.
func (t *ticking) approve(d UploadedDecision) (applied bool, message string) {
	i := t.stageNumber(d.Spec.Stage) - 1
	if i < 0 {
		return false, fmt.Sprintf("the plan has no stage %s", d.Spec.Stage)
	}
	s, run := &t.p.Stages[i], &t.r.Stages[i]
	at := wholeSecond(d.At)
	switch {
	case len(run.Before) < approvals(s.Before):
		if !early(s.Before) && (t.openStage() < i || i > 0 && at.Before(t.r.Stages[i-1].Passed)) {
			return false, "it was made before the previous stage passed: approve again"
		}
		run.Before = append(run.Before, d.Name)
		return true, "the stage may begin"
	case len(run.After) < approvals(s.After):
		if !early(s.After) && (run.SoakedAt.IsZero() || at.Before(run.SoakedAt)) {
			return false, "it was made before the soak of the stage was over: approve again"
		}
		run.After = append(run.After, d.Name)
		return true, "the stage may pass"
	}
	return false, "the stage needs no approval"
}

// retryOrSkip gives members another attempt, or takes them out of the run.
func (t *ticking) retryOrSkip(d UploadedDecision) (applied bool, message string) {
	if t.rolledBack() {
		return false, "the stage is rolled back: start a new run"
	}
	retry, count := d.Spec.Verb == api.VerbRetry, 0
	var refused []string
	for _, name := range d.Spec.Clusters {
		done := false
		t.each(func(i int, m *MemberRun, _ *Member) {
			failed := m.State == Failed || m.State == Blocked
			switch {
			case m.Cluster != name:
			case retry && failed:
				// The stage may have passed. It passes again after the new attempt.
				t.r.Stages[i].Passed, t.r.Stages[i].SoakedAt = time.Time{}, time.Time{}
				t.wait(m)
				done = true
			case !retry && (failed || m.State == Waiting):
				t.set(m, Skipped, ReasonDecision)
				done = true
			}
		})
		if done {
			count++
		} else {
			refused = append(refused, name)
		}
	}
	if count > 0 && t.r.Halt != nil && t.r.Halt.Cause == HaltFailures {
		t.r.Halt = nil // haltFailed counts again
	}
	verb := map[bool]string{true: "with another attempt", false: "skipped"}[retry]
	message = fmt.Sprintf("%d of %d members %s", count, len(d.Spec.Clusters), verb)
	if len(refused) > 0 {
		message += fmt.Sprintf("; not possible for %s in their state", strings.Join(refused, ", "))
	}
	return count > 0, message
}

// requestRollback halts the run and rolls a stage back.
func (t *ticking) requestRollback(d UploadedDecision) (applied bool, message string) {
	number := t.stageNumber(d.Spec.Stage)
	switch {
	case d.Spec.Stage != "" && number == 0:
		return false, fmt.Sprintf("the plan has no stage %s", d.Spec.Stage)
	case t.rolledBack():
		return false, "a stage is rolled back already"
	case d.Spec.Stage == "" && t.r.Halt != nil && t.r.Halt.Stage > 0:
		number = t.r.Halt.Stage
	case d.Spec.Stage == "": // also after a Reject that named no stage
		number = min(t.openStage()+1, len(t.stages))
	}
	t.r.Halt = &Halt{Stage: number, Cause: HaltRollback, At: t.now}
	return true, fmt.Sprintf("the members of %s that the run changed return to their previous release", t.p.Stages[number-1].Name)
}
