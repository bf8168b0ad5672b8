package rollout

// What follows from a record.

import (
	"maps"
	"slices"
	"time"
)

// Action is what the caller does after it has stored a record. Assignments and watches also follow from the record alone: see
// Assignments and Watches. So an interrupted caller loses none.
type Action interface{ action() }

// Assign sets the desired state of a cluster, or withdraws it.
type Assign struct{ Assignment }

// Watch makes a cell observe its clusters every four to six minutes (lookEvery of the sweep) until a time.
type Watch struct {
	Cell  string    `json:"cell"`
	Until time.Time `json:"until"`
}

// Notify is a change of the run that users want to know about.
type Notify struct {
	Event Event `json:"event"`
	// Stage and Cluster are names; empty if the change is of the whole run. Reason is the reason of the member or of the halt.
	Stage   string `json:"stage,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Run and Plan are set by the caller that stores the notice. Run is 0 if no run is concerned.
	Run  int64  `json:"run,omitempty"`
	Plan string `json:"plan,omitempty"`
}

func (Assign) action() {}
func (Watch) action()  {}
func (Notify) action() {}

// Event is the kind of a notice.
type Event string

// The events of a rollout and of its runs.
const (
	// EventPlanned: a new plan waits for a Start.
	EventPlanned Event = "Planned"
	// EventStarted: a run has started.
	EventStarted Event = "Started"
	// EventProblem: an uploaded file cannot be used, or has no effect.
	EventProblem          Event = "Problem"
	EventStageBegan       Event = "StageBegan"
	EventStagePassed      Event = "StagePassed"
	EventNeedsApproval    Event = "NeedsApproval"
	EventMemberFailed     Event = "MemberFailed"
	EventMemberBlocked    Event = "MemberBlocked"
	EventLongWait         Event = "LongWait"
	EventFreezeOverridden Event = "FreezeOverridden"
	EventPaused           Event = "Paused"
	EventHalted           Event = "Halted"
	EventRollingBack      Event = "RollingBack"
	EventRunning          Event = "Running"
	EventEnded            Event = "Ended"
)

// Events returns all events.
func Events() []Event {
	return []Event{
		EventPlanned, EventStarted, EventProblem, EventStageBegan, EventStagePassed, EventNeedsApproval, EventMemberFailed, EventMemberBlocked,
		EventLongWait, EventFreezeOverridden, EventPaused, EventHalted, EventRollingBack, EventRunning, EventEnded,
	}
}

// watchFor is for how long a look is requested. Each tick requests it again.
const watchFor = 15 * time.Minute

// Watches returns until when each cell observes its clusters: while members of a stage that has not passed settle or soak.
func Watches(p *Plan, r *Run, now time.Time) (all []Watch) {
	cells := map[string]bool{}
	n := 0
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			m := &r.Members[n]
			n++
			if m.State == Settling || m.State == Good && r.Stages[i].Passed.IsZero() {
				cells[p.Stages[i].Members[j].Cell] = true
			}
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(cells)) {
		all = append(all, Watch{cell, wholeSecond(now).Add(watchFor)})
	}
	return all
}

// actions compares two records of a run.
func actions(p *Plan, before, after *Run, now time.Time) (all []Action) {
	was := map[string]Assignment{}
	for _, a := range Assignments(p, before) {
		was[a.Cluster] = a
	}
	for _, a := range Assignments(p, after) {
		if was[a.Cluster] != a {
			all = append(all, Assign{a})
		}
	}
	if !after.State.Final() {
		for _, w := range Watches(p, after, now) {
			all = append(all, w)
		}
	}
	return append(all, notices(p, before, after)...)
}

// notices returns the changes that users want to know about.
func notices(p *Plan, before, after *Run) (all []Action) {
	add := func(event Event, stage, cluster, reason string) {
		all = append(all, Notify{Event: event, Stage: stage, Cluster: cluster, Reason: reason})
	}
	n := 0
	for i := range p.Stages {
		s, old, now := &p.Stages[i], &before.Stages[i], &after.Stages[i]
		if old.Began.IsZero() && !now.Began.IsZero() {
			add(EventStageBegan, s.Name, "", "")
		}
		needs := old.SoakedAt.IsZero() && !now.SoakedAt.IsZero() && len(now.After) < approvals(s.After)
		for range s.Members {
			m, prior := &after.Members[n], &before.Members[n]
			n++
			changed := m.State != prior.State || m.Reason != prior.Reason
			switch {
			case changed && m.State == Failed:
				add(EventMemberFailed, s.Name, m.Cluster, string(m.Reason))
			case changed && m.State == Blocked:
				add(EventMemberBlocked, s.Name, m.Cluster, m.Check)
			case m.Noticed && !prior.Noticed:
				add(EventLongWait, s.Name, m.Cluster, string(m.Reason))
			case changed && m.State == Waiting && m.Reason == ReasonApproval:
				needs = true
			}
		}
		if needs {
			add(EventNeedsApproval, s.Name, "", "")
		}
		if old.Passed.IsZero() && !now.Passed.IsZero() {
			add(EventStagePassed, s.Name, "", "")
		}
	}
	for _, freeze := range after.Overrides {
		if !slices.Contains(before.Overrides, freeze) {
			add(EventFreezeOverridden, "", "", freeze)
		}
	}
	if after.State == before.State {
		return all
	}
	stage, cause := "", ""
	if after.Halt != nil {
		cause = string(after.Halt.Cause)
		if after.Halt.Stage > 0 {
			stage = p.Stages[after.Halt.Stage-1].Name
		}
	}
	switch after.State {
	case Running:
		add(EventRunning, "", "", "")
	case Paused:
		add(EventPaused, "", "", after.PausedBy)
	case Halted:
		add(EventHalted, stage, "", cause)
	case RollingBack:
		add(EventRollingBack, stage, "", cause)
	default:
		add(EventEnded, "", "", string(after.State))
	}
	return all
}
