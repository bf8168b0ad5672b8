package status

// Stack statuses from CloudFormation's events. Events arrive late, repeated and out of order, and their time has no fractions of a second.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/stack"
)

// StackEvent is a change of a stack's status, as CloudFormation reported it.
type StackEvent struct {
	// Stack without the cluster's prefix.
	Stack  string
	Status string
	// Reason is AWS's own.
	Reason string
	// At is when CloudFormation sent the event, in whole seconds.
	At time.Time
	// External reports whether no drover execution started the operation.
	External bool
}

// RecordStack records a stack event. It ignores an event that is older than the status of the stack. It also ignores an event of a stack
// that the cluster does not have, unless the stack is planned and the event is newer than the plan. recorded reports whether the status
// changed.
func (s *Status) RecordStack(e StackEvent) (recorded bool) {
	if s.Phase == Deleted || e.At.IsZero() {
		return false
	}
	i := slices.IndexFunc(s.Stacks, func(o Stack) bool { return o.Name == e.Stack })
	if i < 0 {
		planned := slices.ContainsFunc(s.Plan, func(c Change) bool { return c.Stack == e.Stack })
		if !planned || e.Status == stack.DeleteComplete || s.precedesPlan(e.At) {
			return false
		}
		s.Stacks = append(s.Stacks, Stack{Name: e.Stack})
		i = len(s.Stacks) - 1
	}
	known := &s.Stacks[i]
	if !e.after(*known) {
		return false
	}
	if known.Status != e.Status {
		if known.Status != stack.DeleteFailed || e.Status != stack.DeleteInProgress {
			known.Resource, known.Reason = "", "" // a retried deletion keeps the reason of its failure
		}
		if strings.HasSuffix(e.Status, "_FAILED") {
			known.Reason = e.Reason
		}
	}
	known.Status, known.Since, known.ReportedAt, known.External = e.Status, e.At.UTC(), e.At.UTC(), e.External
	return true
}

// precedesPlan reports whether an event is older than the last plan. A stack that is planned and absent did not exist then, so its older
// events are about a deleted stack of the same name.
func (s *Status) precedesPlan(event time.Time) bool {
	return event.Before(s.PlannedAt.Truncate(time.Second))
}

// ReportedSince reports whether the state of a stack may be newer than a read. Event times have whole seconds. If an event and a read are
// in the same second, the event counts as newer. If the reader had seen a later state, another event would follow.
func (s Stack) ReportedSince(read time.Time) bool {
	event := s.ReportedAt.Nanosecond() == 0
	return s.ReportedAt.After(read) || event && s.ReportedAt.Equal(read.Truncate(time.Second))
}

// after reports whether an event is newer than the state of its stack. Within one second, the end of an operation is newer than its
// progress. A creation is newer than the end of the stack that had the same name: CloudFormation creates no second stack of a name.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
func (e StackEvent) after(known Stack) bool {
	at, before := e.At.Truncate(time.Second), known.ReportedAt.Truncate(time.Second)
	switch {
	case !at.Equal(before):
		return at.After(before)
	case known.Status == e.Status:
		return false
	case e.Status == stack.CreateInProgress:
		return stack.Absent(known.Status)
	case known.Status == stack.CreateInProgress && e.Status == stack.DeleteComplete:
		return false
	case progress(known.Status) > 0:
		return progress(e.Status) == 0 || progress(e.Status) > progress(known.Status)
	}
	return progress(e.Status) == 0 && e.External // drover's own operations are seconds apart
}

// progress orders the statuses within one operation; 0 is the end of one.
func progress(status string) int {
	switch {
	case !strings.HasSuffix(status, "_IN_PROGRESS"):
		return 0
	case strings.HasSuffix(status, "_CLEANUP_IN_PROGRESS"):
		return 3
	case strings.Contains(status, "ROLLBACK"):
		return 2
	}
	return 1
}

// Missing is the finding that a stack no longer exists.
func Missing(stack string) string { return "stack " + stack + MissingSuffix }

// MissingSuffix ends that finding.
const MissingSuffix = " is missing"

// ExternalChange records in the condition InSync that an operation outside drover deleted or changed a stack. The audit replaces the
// finding by its own. Like the audit, it records nothing while drover changes the cluster, nor for a paused cluster.
func (s *Status) ExternalChange(e StackEvent, now time.Time) {
	finding := fmt.Sprintf("stack %s: an operation outside drover ended with %s at %s; drover compares the stack with the spec within minutes",
		e.Stack, e.Status, e.At.UTC().Format(time.RFC3339))
	if e.Status == stack.DeleteComplete {
		finding = Missing(e.Stack)
	}
	converged := s.Condition(Converged)
	switch {
	case !slices.Contains([]Phase{Ready, Stopped, Failed, Upgrading}, s.Phase), converged != nil && converged.Reason == ReasonPaused:
		return
	case s.Phase != Ready && s.Phase != Stopped && e.Status != stack.DeleteComplete:
		return
	}
	findings := []string{finding}
	if c := s.Condition(InSync); c != nil && c.Status == "False" {
		if known := strings.Split(c.Message, "\n"); !slices.Contains(known, finding) {
			findings = append(known, finding)
		} else {
			findings = known
		}
	}
	if !slices.Contains(s.Drift, finding) {
		s.Drift = append(s.Drift, finding)
	}
	s.Set(Condition{Type: InSync, Status: "False", Reason: ReasonDrifted, Message: strings.Join(findings, "\n")}, now)
}
