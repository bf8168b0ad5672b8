package rollout

// The status of a rollout, for users, the command line and the page.

import (
	"fmt"
	"slices"
	"time"
)

// Status is the status document of a rollout. It follows from the record and the plans alone.
type Status struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   StatusMetadata `json:"metadata"`
	// Revision is that of the record.
	Revision  int64     `json:"revision"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	// State is that of the active run. Without one it is Invalid, Deleted, Paused, Current or Planned: see StatusState.
	State string `json:"state"`
	// Message is why nothing starts now, or what comes next.
	Message string `json:"message,omitempty"`
	// Problems are of the newest files.
	Problems []Problem `json:"problems,omitempty"`
	// Plan is the newest one.
	Plan *PlanStatus `json:"plan,omitempty"`
	// Run is the newest one, ended or not.
	Run *RunStatus `json:"run,omitempty"`
	// PausedBy is the decision that keeps the next run from starting.
	PausedBy string `json:"pausedBy,omitempty"`
	// Answers to decisions by name.
	Answers map[string]Answer `json:"answers,omitempty"`
}

// StatusMetadata names the rollout.
type StatusMetadata struct {
	Name string `json:"name"`
}

// The states of a rollout without an active run.
const (
	// StatusInvalid: no plan is possible.
	StatusInvalid = "Invalid"
	// StatusDeleted: the file was deleted.
	StatusDeleted = "Deleted"
	// StatusPaused: a decision keeps the next run from starting.
	StatusPaused = "Paused"
	// StatusCurrent: the plan changes no cluster.
	StatusCurrent = "Current"
	// StatusPlanned: the plan waits for its start.
	StatusPlanned = "Planned"
)

// PlanStatus is a summary of a plan.
type PlanStatus struct {
	Digest  string    `json:"digest"`
	At      time.Time `json:"at,omitzero"`
	Subject Subject   `json:"subject"`
	Members int       `json:"members"`
	LeftOut int       `json:"leftOut"`
	// Stages are the names of the expanded stages.
	Stages []string `json:"stages,omitempty"`
	// Difference to the plan of the newest run, in sentences.
	Difference []string `json:"difference,omitempty"`
}

// RunStatus is the state of a run.
type RunStatus struct {
	Number    int64         `json:"number"`
	Plan      string        `json:"plan"`
	State     RunState      `json:"state"`
	Started   time.Time     `json:"started"`
	Ended     time.Time     `json:"ended,omitzero"`
	PausedBy  string        `json:"pausedBy,omitempty"`
	Halt      *Halt         `json:"halt,omitempty"`
	Ending    RunState      `json:"ending,omitempty"`
	Overrides []string      `json:"overrides,omitempty"`
	Stages    []StageStatus `json:"stages"`
}

// StageStatus is the state of an expanded stage of a run.
type StageStatus struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// State is Waiting, Open, Soaking, Passed or Halted.
	State string `json:"state"`
	// Counts are numbers of members by state.
	Counts         map[State]int `json:"counts"`
	MaxConcurrency int           `json:"maxConcurrency"`
	MaxFailures    int           `json:"maxFailures"`
	// Failed counts failed and blocked members that share the budget of MaxFailures.
	Failed int       `json:"failed"`
	Began  time.Time `json:"began,omitzero"`
	// SoakUntil is when the soak ends if nothing interrupts it.
	SoakUntil time.Time `json:"soakUntil,omitzero"`
	Passed    time.Time `json:"passed,omitzero"`
	// Needs is Before or After: the approval that is missing now. It is empty if none is.
	Needs string `json:"needs,omitempty"`
	// AlarmSince is since when an alarm of the stage is in ALARM or does not exist.
	AlarmSince time.Time     `json:"alarmSince,omitzero"`
	Rollback   RollbackState `json:"rollback,omitempty"`
	// Members in the order of the plan.
	Members []MemberRun `json:"members"`
}

// The states of a stage.
const (
	StageWaiting = "Waiting"
	StageOpen    = "Open"
	StageSoaking = "Soaking"
	StagePassed  = "Passed"
	StageHalted  = "Halted"
)

// The values of StageStatus.Needs.
const (
	NeedsBefore = "Before"
	NeedsAfter  = "After"
)

// StatusOf returns the status that follows from a record. newest is the newest plan, ran that of the newest run; each is nil if there is
// none.
func StatusOf(r *Record, newest, ran *Plan) Status {
	s := Status{
		APIVersion: "drover.run/v1alpha1", Kind: "RolloutStatus", Metadata: StatusMetadata{r.Rollout}, Revision: r.Revision,
		Problems: r.Problems, PausedBy: r.PausedBy, Answers: r.AllAnswers(),
	}
	if newest != nil {
		s.Plan = &PlanStatus{
			Digest: r.Plan, At: r.Planned, Subject: newest.Subject, Members: newest.Size(), LeftOut: len(newest.LeftOut),
		}
		for i := range newest.Stages {
			s.Plan.Stages = append(s.Plan.Stages, newest.Stages[i].Name)
		}
		if ran != nil {
			s.Plan.Difference = newest.Difference(ran)
		}
	}
	if r.Run != nil && ran != nil {
		s.Run = runStatus(ran, r.Run)
	}
	if run := r.Running(); run != nil && ran != nil {
		s.State, s.Message = string(run.State), ran.explain(run, s.Run)
		return s
	}
	switch {
	case r.Deleted:
		s.State, s.Message = StatusDeleted, "the file was deleted"
	case newest == nil, len(r.Problems) > 0 && r.Plan == "":
		s.State = StatusInvalid
		if len(r.Problems) > 0 {
			s.Message = r.Problems[0].Message
		}
	case newest.Size() == 0:
		s.State, s.Message = StatusCurrent, "no cluster needs a change"
	case r.PausedBy != "":
		s.State, s.Message = StatusPaused, fmt.Sprintf("the decision %s paused the rollout: resume it before a run starts", r.PausedBy)
	default:
		s.State = StatusPlanned
		s.Message = fmt.Sprintf("%d %s would change: start the plan %.12s", newest.Size(), clusters(newest.Size()), r.Plan)
		if len(r.Problems) > 0 {
			s.Message = r.Problems[0].Message
		}
	}
	return s
}

func runStatus(p *Plan, r *Run) *RunStatus {
	out := &RunStatus{
		Number: r.Number, Plan: r.Plan, State: r.State, Started: r.Started, Ended: r.Ended, PausedBy: r.PausedBy, Halt: r.Halt,
		Ending: r.Ending, Overrides: r.Overrides,
	}
	rest, open := r.Members, true
	for i := range p.Stages {
		stage, run := &p.Stages[i], &r.Stages[i]
		s := StageStatus{
			Number: stage.Number, Name: stage.Name, State: StageWaiting, Counts: map[State]int{}, MaxConcurrency: stage.MaxConcurrency,
			MaxFailures: stage.MaxFailures, Began: run.Began, Passed: run.Passed, AlarmSince: run.AlarmSince, Rollback: run.Rollback,
			Members: rest[:len(stage.Members)],
		}
		rest = rest[len(stage.Members):]
		for j := range s.Members {
			s.Counts[s.Members[j].State]++
		}
		s.Failed = failedInBudget(p, r, i)
		switch {
		case r.Halt != nil && r.Halt.Stage == stage.Number:
			s.State = StageHalted
		case !run.Passed.IsZero():
			s.State = StagePassed
		case open && !r.State.Final():
			s.State, open = StageOpen, false
			s.addSoak(stage, run)
		}
		out.Stages = append(out.Stages, s)
	}
	return out
}

// addSoak adds the soak and the missing approval of the open stage.
func (s *StageStatus) addSoak(stage *Stage, run *StageRun) {
	waiting := s.Counts[Waiting]
	if len(run.Before) < approvals(stage.Before) && waiting > 0 {
		s.Needs = NeedsBefore
	}
	if waiting > 0 || slices.ContainsFunc(s.Members, func(m MemberRun) bool { return m.State.atRisk() }) {
		return
	}
	for i := range s.Members {
		if m := &s.Members[i]; m.State == Good {
			s.State = StageSoaking
			s.SoakUntil = later(s.SoakUntil, later(m.GoodSince, run.QuietSince).Add(time.Duration(stage.Soak)))
		}
	}
	if !run.SoakedAt.IsZero() && len(run.After) < approvals(stage.After) {
		s.Needs = NeedsAfter
	}
}

// failedInBudget counts the failed and blocked members that share the budget of a stage.
func failedInBudget(p *Plan, r *Run, stage int) (count int) {
	n := 0
	for i := range p.Stages {
		shares := i == stage || p.Stages[stage].SharedFailures && p.Stages[i].FromStage == p.Stages[stage].FromStage
		for range p.Stages[i].Members {
			switch r.Members[n].State {
			case Failed, Blocked, RolledBack, NotRolledBack:
				if shares {
					count++
				}
			}
			n++
		}
	}
	return count
}

// explain says in one sentence what the run does or waits for.
func (p *Plan) explain(r *Run, s *RunStatus) string {
	switch {
	case r.Ending != "":
		return fmt.Sprintf("the run ends as %s when no member is at risk", r.Ending)
	case r.PausedBy != "":
		return fmt.Sprintf("the decision %s paused the run: resume it", r.PausedBy)
	case r.Halt != nil:
		where := ""
		if r.Halt.Stage > 0 {
			where = " in " + p.Stages[r.Halt.Stage-1].Name
		}
		return fmt.Sprintf("the run is halted%s (%s): retry, skip, resume, roll back or abort", where, r.Halt.Cause)
	}
	for i := range s.Stages {
		stage := &s.Stages[i]
		switch {
		case stage.State != StageOpen && stage.State != StageSoaking:
			continue
		case stage.Needs != "":
			return fmt.Sprintf("%s waits for an approval: drover rollout approve %s %s", stage.Name, r.Rollout, stage.Name)
		case stage.State == StageSoaking:
			return fmt.Sprintf("%s soaks until %s", stage.Name, stage.SoakUntil.Format(time.RFC3339))
		}
		atRisk := 0
		reasons := map[Reason]int{}
		for j := range stage.Members {
			if m := &stage.Members[j]; m.State.atRisk() {
				atRisk++
			} else if m.State == Waiting {
				reasons[m.Reason]++
			}
		}
		text := fmt.Sprintf("%s: %d at risk", stage.Name, atRisk)
		for _, reason := range Reasons(Waiting) {
			if n := reasons[reason]; n > 0 {
				text += fmt.Sprintf(", %d wait for %s", n, reason)
			}
		}
		return text
	}
	return ""
}
