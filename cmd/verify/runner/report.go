package runner

import (
	"fmt"
	"strings"
	"time"
)

// About is the head of a report: names and values.
type About [][2]string

// Report returns the results as Markdown. It contains no secret: see Redactor.
func (r *Run) Report(about About, now time.Time, redact *Redactor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# drover: report of make verify\n\n")
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped.\n\n", r.Count(Passed), r.Count(Failed), r.Count(Skipped))
	for _, row := range about {
		fmt.Fprintf(&b, "- %s: %s\n", row[0], row[1])
	}
	fmt.Fprintf(&b, "- estimated cost: $%.2f (%s)\n", r.Meter.Total(now), strings.Join(r.Meter.Parts(now), ", "))
	fmt.Fprintf(&b, "\n| Step | Result | Time | Total | Cost so far | Proves |\n|---|---|---|---|---|---|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | $%.2f | %s |\n", result.Step.Name, result.Outcome, result.Took.Round(time.Second),
			result.Elapsed.Round(time.Second), result.Cost, cell(result.Step.Title))
	}
	for _, result := range r.Results {
		if result.Reason == "" && len(result.Evidence) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s: %s\n\n", result.Step.Name, result.Outcome)
		if result.Reason != "" {
			fmt.Fprintf(&b, "```\n%s\n```\n", strings.ReplaceAll(result.Reason, "```", "'''"))
		}
		for _, line := range result.Evidence {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(line, "\n", "\n  "))
		}
	}
	return redact.Text(b.String())
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
