package status

// Stack statuses as functions read them, and as a waiting task learns the end of an operation. A report never replaces a newer one.

import (
	"slices"
	"time"

	"github.com/drover-run/drover/shared/stack"
)

// StackReport is the status of a stack, and when it was true.
type StackReport struct {
	Status string
	// At is when CloudFormation sent the event, or the time just before drover read the stack.
	At time.Time
	// Event reports whether this is an event.
	Event bool
}

// after reports whether a report is newer than the recorded state of its stack. Within one second, the end that a task waits for is newer
// than another end, because the task started its operation when the stack was idle.
func (r StackReport) after(known Stack) bool {
	if r.Event {
		e := StackEvent{Status: r.Status, At: r.At}
		another := known.Status != r.Status && progress(known.Status) == 0 && progress(r.Status) == 0
		return e.after(known) || another && e.At.Equal(known.ReportedAt.Truncate(time.Second))
	}
	return !known.ReportedSince(r.At)
}

// SetStack records a state of a stack that was read at a time, unless the recorded state may be newer. Since changes only with the status.
func (s *Status) SetStack(read Stack, at time.Time) {
	s.mergeStack(read, StackReport{Status: read.Status, At: at}, false)
}

// EndStack records the end of an operation of a stack, unless the recorded state may be newer. Since also changes if the status is the same
// as before. A read while nothing converges is late: the end is already recorded.
func (s *Status) EndStack(end Stack, r StackReport) {
	end.Status = r.Status
	s.mergeStack(end, r, r.Event || s.Converges())
}

// mergeStack records a state of a stack. A report that is not newer changes only the reason, if the status is the same. ended reports
// whether the same status is the result of another operation.
func (s *Status) mergeStack(reported Stack, r StackReport, ended bool) {
	if r.At.IsZero() {
		return
	}
	reported.Since, reported.ReportedAt = r.At.UTC(), r.At.UTC()
	i := slices.IndexFunc(s.Stacks, func(o Stack) bool { return o.Name == reported.Name })
	if i < 0 {
		if !r.Event || !s.precedesPlan(r.At) {
			s.Stacks = append(s.Stacks, reported)
		}
		return
	}
	known, newer := s.Stacks[i], r.after(s.Stacks[i])
	if known.Status != reported.Status && !newer {
		return
	}
	if known.Status == reported.Status {
		reported.External = known.External
		if !newer || !ended {
			reported.Since, reported.ReportedAt = known.Since, known.ReportedAt
		}
	}
	s.Stacks[i] = reported
}

// Observe replaces the list of stacks by what was read at a time. It keeps the state of stacks whose status is the same, and what was
// reported after that time. It removes what the stacks wait for, because another execution follows.
func (s *Status) Observe(stacks []Stack, read, now time.Time) {
	old := s.Stacks
	s.Stacks = nil
	for _, observed := range stacks {
		i := slices.IndexFunc(old, func(o Stack) bool { return o.Name == observed.Name })
		if i >= 0 && (old[i].Status == observed.Status || old[i].ReportedSince(read)) {
			observed = old[i]
		} else {
			observed.Since, observed.ReportedAt = now, read
		}
		s.Stacks = append(s.Stacks, observed)
	}
	for _, known := range old {
		listed := slices.ContainsFunc(stacks, func(o Stack) bool { return o.Name == known.Name })
		if !listed && !stack.Absent(known.Status) && known.ReportedSince(read) { // created after the read
			s.Stacks = append(s.Stacks, known)
		}
	}
	for i := range s.Stacks {
		s.Stacks[i].Delay = nil
	}
}
