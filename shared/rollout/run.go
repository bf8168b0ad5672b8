package rollout

import (
	"slices"
	"time"
)

// Run is the record of one execution of a plan. It is a value: Tick returns a changed copy. Who stores it does so before it acts on it.
type Run struct {
	// Rollout and Number identify the run. Plan is the digest of its plan.
	Rollout string `json:"rollout"`
	Number  int64  `json:"number"`
	Plan    string `json:"plan"`
	// Sequence grows by one with each change of the run.
	Sequence int64    `json:"sequence"`
	State    RunState `json:"state"`
	// Started and Ended are when the run began, and when its state became final.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// PausedBy is the decision that paused the run; empty if it is not paused.
	PausedBy string `json:"pausedBy,omitempty"`
	// Halt is why the run allows no starts; nil if it does.
	Halt *Halt `json:"halt,omitempty"`
	// Ending is the final state that a run approaches while members are in flight.
	Ending RunState `json:"ending,omitempty"`
	// Overrides are freezes that the run ignores.
	Overrides []string `json:"overrides,omitempty"`
	// Stages and Members are in the order of the plan.
	Stages  []StageRun  `json:"stages"`
	Members []MemberRun `json:"members"`
	// Answers are those of decisions that were applied, by name. A decision applies once.
	Answers map[string]Answer `json:"answers"`
}

// RunState is the state of a run in one word.
type RunState string

// The states of a run.
const (
	// Running: members start as budgets and gates allow.
	Running RunState = "Running"
	// Paused: a decision paused the run. Members in flight finish.
	Paused RunState = "Paused"
	// Halted: a stage failed, or a decision halted the run. Members in flight finish.
	Halted RunState = "Halted"
	// RollingBack: members of the halted stage return to their previous release.
	RollingBack RunState = "RollingBack"
	// Done: all stages passed.
	Done RunState = "Done"
	// Aborted: a decision ended the run.
	Aborted RunState = "Aborted"
	// Superseded: a newer plan ended the run.
	Superseded RunState = "Superseded"
)

// Final reports whether a state is final.
func (s RunState) Final() bool { return s == Done || s == Aborted || s == Superseded }

// Halt is why a run allows no starts.
type Halt struct {
	// Stage is the number of the stage that halted the run; 0 if it was a decision without a stage.
	Stage int       `json:"stage,omitempty"`
	Cause HaltCause `json:"cause"`
	At    time.Time `json:"at"`
}

// HaltCause is what halted a run.
type HaltCause string

// The causes of a halt.
const (
	// HaltFailures: more members of the stage failed or were blocked than it allows.
	HaltFailures HaltCause = "Failures"
	// HaltAlarm: an alarm of the stage was in ALARM for ten minutes.
	HaltAlarm HaltCause = "Alarm"
	// HaltRejected: a decision rejected the run.
	HaltRejected HaltCause = "Rejected"
	// HaltRollback: a decision requested a rollback.
	HaltRollback HaltCause = "Rollback"
)

// StageRun is the state of an expanded stage.
type StageRun struct {
	// Began is when its first member started. Passed is when it passed; zero if it has not.
	Began  time.Time `json:"began,omitzero"`
	Passed time.Time `json:"passed,omitzero"`
	// SoakedAt is when the soak was over. Since then only approvals are missing.
	SoakedAt time.Time `json:"soakedAt,omitzero"`
	// AlarmSince is since when an alarm of the stage is in ALARM or absent; zero if none is. QuietSince is since when none is, if one was.
	AlarmSince time.Time `json:"alarmSince,omitzero"`
	QuietSince time.Time `json:"quietSince,omitzero"`
	// Before and After are the decisions that approved the stage.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	// Rollback is how far the rollback of the stage is; empty if there is none.
	Rollback RollbackState `json:"rollback,omitempty"`
}

// RollbackState is how far the rollback of a stage is.
type RollbackState string

// The states of a rollback.
const (
	RollbackActive RollbackState = "Active"
	RollbackDone   RollbackState = "Done"
)

// MemberRun is the state of a member.
type MemberRun struct {
	Cluster string `json:"cluster"`
	State   State  `json:"state"`
	Reason  Reason `json:"reason,omitempty"`
	// Check is the name of the check of a blocked member.
	Check string `json:"check,omitempty"`
	// Until is when the reason is expected to end; zero if that is not known. Since is when the member entered its state.
	Until time.Time `json:"until,omitzero"`
	Since time.Time `json:"since"`
	// Attempt counts starts. Started is when the last one was recorded.
	Attempt int       `json:"attempt,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Begun reports whether the last attempt has begun, Changed whether any attempt has.
	Begun   bool `json:"begun,omitempty"`
	Changed bool `json:"changed,omitempty"`
	// Look is the time of the newest fact that counted. WellSince and UnwellSince are since when all looks found the cluster well, or
	// not well.
	Look        time.Time `json:"look,omitzero"`
	WellSince   time.Time `json:"wellSince,omitzero"`
	UnwellSince time.Time `json:"unwellSince,omitzero"`
	// GoodSince is since when the member is Good. RegressedAt is when it was no longer.
	GoodSince   time.Time `json:"goodSince,omitzero"`
	RegressedAt time.Time `json:"regressedAt,omitzero"`
	// Rollback reports whether the last attempt is a rollback. PriorState and PriorReason are the state before it, and its reason.
	Rollback    bool   `json:"rollback,omitempty"`
	PriorState  State  `json:"priorState,omitempty"`
	PriorReason Reason `json:"priorReason,omitempty"`
	// Noticed reports whether a notice of a long wait was sent.
	Noticed bool `json:"noticed,omitempty"`
}

// Answer is the result of a decision.
type Answer struct {
	// Version of the object that was applied. Later versions have no effect.
	Version string `json:"version"`
	// Applied reports whether the decision had its effect. Message says what it did, or why it did nothing.
	Applied bool   `json:"applied"`
	Message string `json:"message"`
}

// Begin returns the record of a new run. answers are those of earlier runs of the rollout: their decisions do not apply again.
func Begin(p *Plan, number int64, answers map[string]Answer, now time.Time) Run {
	now = wholeSecond(now)
	r := Run{Rollout: p.Rollout, Number: number, Plan: p.Digest(), Sequence: 1, State: Running, Started: now, Answers: map[string]Answer{}}
	for name, answer := range answers {
		r.Answers[name] = answer
	}
	r.Stages = make([]StageRun, len(p.Stages))
	for i := range p.Stages {
		for _, m := range p.Stages[i].Members {
			r.Members = append(r.Members, MemberRun{Cluster: m.Cluster, State: Waiting, Reason: ReasonStage, Since: now})
		}
	}
	return r
}

// Fits reports whether a record has the stages and members of a plan. Only then Tick accepts both.
func (r *Run) Fits(p *Plan) bool {
	if r.Rollout != p.Rollout || r.Plan != p.Digest() || len(r.Stages) != len(p.Stages) || len(r.Members) != p.Size() {
		return false
	}
	n := 0
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			if r.Members[n].Cluster != p.Stages[i].Members[j].Cluster {
				return false
			}
			n++
		}
	}
	return r.Halt == nil || r.Halt.Stage >= 0 && r.Halt.Stage <= len(p.Stages)
}

// wholeSecond returns a time as records have it.
func wholeSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// clone copies what a tick may change.
func (r *Run) clone() Run {
	out := *r
	if r.Halt != nil {
		halt := *r.Halt
		out.Halt = &halt
	}
	out.Overrides = slices.Clone(r.Overrides)
	out.Stages, out.Members = slices.Clone(r.Stages), slices.Clone(r.Members)
	for i := range out.Stages {
		out.Stages[i].Before = slices.Clone(r.Stages[i].Before)
		out.Stages[i].After = slices.Clone(r.Stages[i].After)
	}
	out.Answers = make(map[string]Answer, len(r.Answers))
	for name, answer := range r.Answers {
		out.Answers[name] = answer
	}
	return out
}

// Assignment is the desired state that a run sets for one cluster.
type Assignment struct {
	Cluster string `json:"cluster"`
	Cell    string `json:"cell"`
	// Rollout, Run and Attempt identify the assignment. Facts about its attempt have them.
	Rollout string `json:"rollout"`
	Run     int64  `json:"run"`
	Attempt int    `json:"attempt"`
	// Plan is the digest of the plan.
	Plan string `json:"plan"`
	// To is the release of the cluster.
	To ReleaseRef `json:"to"`
	// Rollback reports whether the cluster returns to its previous release.
	Rollback bool `json:"rollback,omitempty"`
	// Withdrawn means that the cell must not begin the attempt. The cell reports whether it had begun.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// ReleaseRef is a release by name and content.
type ReleaseRef struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Assignments returns the assignments that follow from a record, in the order of the plan. They depend on nothing else. So a writer that
// was interrupted derives the same ones again. Members that never started have none.
func Assignments(p *Plan, r *Run) (all []Assignment) {
	n := 0
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			m, member := &r.Members[n], &p.Stages[i].Members[j]
			n++
			if m.Attempt == 0 || m.State == Waiting || m.State == Blocked || m.State == Skipped {
				continue
			}
			a := Assignment{
				Cluster: m.Cluster, Cell: member.Cell, Rollout: r.Rollout, Run: r.Number, Attempt: m.Attempt, Plan: r.Plan,
				To: ReleaseRef{member.To.Release, member.To.SHA256}, Rollback: m.Rollback,
				Withdrawn: m.State == Withdrawing || m.State == Failed && !m.Begun,
			}
			if m.Rollback {
				a.To = ReleaseRef{member.From.Release, member.From.SHA256}
			}
			all = append(all, a)
		}
	}
	return all
}
