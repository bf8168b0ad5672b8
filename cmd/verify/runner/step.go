// Package runner runs the steps of `make verify` in order, and reports what each of them proved. It does not call AWS: a step
// is a function.
package runner

import (
	"context"
	"fmt"
	"time"
)

// Step is one thing to prove.
type Step struct {
	// Name is unique, and Title says what the step proves.
	Name, Title string
	// Needs are earlier steps. The step is skipped unless all of them passed.
	Needs []string
	// Timeout limits the step.
	Timeout time.Duration
	// Cleanup reports whether the step removes something. Such a step also runs after a failure or an interrupt.
	Cleanup bool
	// Run returns nil if the step proved its title. Evidence goes to the log.
	Run func(ctx context.Context, log *Log) error
}

// Outcome of a step.
type Outcome string

// The outcomes. A skipped step proved nothing.
const (
	Passed  Outcome = "PASS"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "SKIP"
)

// Result of a step.
type Result struct {
	Step    Step
	Outcome Outcome
	// Reason says why a step failed or was skipped.
	Reason   string
	Evidence []string
	Took     time.Duration
	// Elapsed and Cost are those of the run at the end of the step.
	Elapsed time.Duration
	Cost    float64
}

// Log collects the evidence of a step.
type Log struct {
	evidence []string
	show     func(line string)
}

// Found records evidence, and shows it.
func (l *Log) Found(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	l.evidence = append(l.evidence, line)
	l.show(line)
}

// Show shows progress, which the report does not contain.
func (l *Log) Show(format string, args ...any) { l.show(fmt.Sprintf(format, args...)) }

// skip ends a step that proves nothing here.
type skip struct{ reason string }

func (s *skip) Error() string { return s.reason }

// Skip ends a step that proves nothing here, with the reason.
func Skip(format string, args ...any) error { return &skip{fmt.Sprintf(format, args...)} }

// Silent returns a log that shows nothing and whose evidence is lost, for commands whose output is no news.
func (l *Log) Silent() *Log { return &Log{show: func(string) {}} }
