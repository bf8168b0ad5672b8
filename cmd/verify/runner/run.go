package runner

// A run of the steps in order, and its results.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Run is one run of the steps.
type Run struct {
	// Clock is time.Now outside tests.
	Clock func() time.Time
	Meter *Meter
	// Show prints one line.
	Show func(line string)
	// Results are those of the steps that ended, in order.
	Results []Result
}

// Do runs the steps in order. After a failure it runs every step that does not need what failed. After the end of ctx it runs only steps
// that clean up, under the context cleanup. The end of cleanup ends those too.
func (r *Run) Do(ctx, cleanup context.Context, steps []Step) error {
	if err := Check(steps); err != nil {
		return err
	}
	started := r.Clock()
	for i, step := range steps {
		r.Show(fmt.Sprintf("\n[%d/%d] %s: %s", i+1, len(steps), step.Name, step.Title))
		result := r.runStep(ctx, cleanup, step)
		now := r.Clock()
		result.Elapsed, result.Cost = now.Sub(started), r.Meter.Total(now)
		r.Results = append(r.Results, result)
		r.Show(Line(result))
	}
	return nil
}

// runStep runs one step, or skips it.
func (r *Run) runStep(ctx, cleanup context.Context, step Step) (result Result) {
	result = Result{Step: step}
	if step.Cleanup {
		ctx = cleanup
	}
	if ctx.Err() != nil {
		result.Outcome, result.Reason = Skipped, "the run was interrupted"
		return result
	}
	if missing := r.missing(step); len(missing) > 0 {
		result.Outcome, result.Reason = Skipped, "it needs what did not pass: "+strings.Join(missing, ", ")
		return result
	}
	ctx, cancel := context.WithTimeout(ctx, step.Timeout)
	defer cancel()
	log := &Log{show: func(line string) { r.Show("    " + line) }}
	began := r.Clock()
	err := step.Run(ctx, log)
	result.Took, result.Evidence = r.Clock().Sub(began), log.evidence
	var skipped *skip
	switch {
	case err == nil:
		result.Outcome = Passed
	case errors.As(err, &skipped):
		result.Outcome, result.Reason = Skipped, skipped.reason
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		result.Outcome, result.Reason = Failed, fmt.Sprintf("it did not end within %s: %v", step.Timeout, err)
	case ctx.Err() != nil:
		result.Outcome, result.Reason = Failed, fmt.Sprintf("the run was interrupted: %v", err)
	default:
		result.Outcome, result.Reason = Failed, err.Error()
	}
	return result
}

// missing returns the steps that a step needs and that did not pass.
func (r *Run) missing(step Step) (missing []string) {
	for _, need := range step.Needs {
		if !slices.ContainsFunc(r.Results, func(done Result) bool { return done.Step.Name == need && done.Outcome == Passed }) {
			missing = append(missing, need)
		}
	}
	return missing
}

// Failed reports whether a step failed.
func (r *Run) Failed() bool { return r.Count(Failed) > 0 }

// Count returns the number of steps with an outcome.
func (r *Run) Count(outcome Outcome) (n int) {
	for _, result := range r.Results {
		if result.Outcome == outcome {
			n++
		}
	}
	return n
}

// Check fails if the steps cannot be run in order: a name occurs twice, a step needs one that does not precede it, or a timeout is missing.
func Check(steps []Step) error {
	var seen []string
	for _, step := range steps {
		switch {
		case step.Name == "" || step.Title == "" || step.Run == nil:
			return fmt.Errorf("step %q is incomplete: it needs a name, a title and a function", step.Name)
		case slices.Contains(seen, step.Name):
			return fmt.Errorf("step %s occurs twice", step.Name)
		case step.Timeout <= 0:
			return fmt.Errorf("step %s has no timeout", step.Name)
		}
		for _, need := range step.Needs {
			if !slices.Contains(seen, need) {
				return fmt.Errorf("step %s needs %s, which does not precede it", step.Name, need)
			}
		}
		seen = append(seen, step.Name)
	}
	return nil
}

// Line is a result in one line.
func Line(r Result) string {
	line := fmt.Sprintf("%s  %-14s %8s  total %8s  about $%.2f", r.Outcome, r.Step.Name, r.Took.Round(time.Second),
		r.Elapsed.Round(time.Second), r.Cost)
	if r.Reason != "" {
		line += "  " + r.Reason
	}
	return line
}
