package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// PrintUpgrade prints an upgrade in the format of drover status.
func PrintUpgrade(w io.Writer, u *status.Upgrade) {
	newDisplay(w, false).upgrades(status.Status{Upgrade: u})
}

// upgrades shows a cluster's last or next upgrade with its steps and the results of its checks, then the earlier upgrades.
func (d *display) upgrades(s status.Status) {
	if s.Upgrade == nil {
		return
	}
	line := func(label string, u status.Upgrade, lines func(string) string) {
		d.head(u.Phase, label+" "+d.words(upgradeLine(u, lines, d.now)))
	}
	fmt.Fprintln(d.out)
	line("upgrade", *s.Upgrade, linesOf(*s.Upgrade))
	steps := &view.Table{Columns: []view.Column{{Title: "  STEP", Min: 20}, {Title: "PROGRESS", Min: 20, Wrap: true}}}
	for _, step := range s.Upgrade.Steps {
		steps.Add(view.Text("  "+step.Name), view.Text(stepTimes(step, s.Upgrade.Ended != nil, d.now)))
	}
	if len(steps.Rows) > 0 {
		steps.Write(d.out, d.width, d.color)
	}
	if u := s.Upgrade; u.Checked != nil && len(u.Checks) > 0 {
		d.say("  found %s (a dry run checks again):", view.Relative(d.now, *u.Checked))
	}
	for _, line := range CheckLines(s.Upgrade.Checks) {
		d.say("  %s", d.words(line))
	}
	for _, pool := range slices.Sorted(maps.Keys(s.Upgrade.Images)) {
		d.say("  pool %s had %s", pool, s.Upgrade.Images[pool])
	}
	if s.NextUpgrade != nil {
		line("then", *s.NextUpgrade, linesOf(*s.NextUpgrade))
	}
	for i, u := range s.Upgrades {
		if i == 0 && u.IsSameEnded(s.Upgrade) {
			continue // shown above
		}
		line("earlier", u, firstLine)
	}
}

// linesOf selects the lines of an upgrade's message to show. The message of a blocked upgrade repeats the checks below its first line.
func linesOf(u status.Upgrade) func(string) string {
	if u.Phase == string(upgrade.Blocked) && len(u.Checks) > 0 {
		return firstLine
	}
	return allLines
}

// upgradeLine describes an upgrade: its phase, releases, times and message. lines selects the lines of the message.
func upgradeLine(u status.Upgrade, lines func(string) string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", u.Phase)
	if u.From != "" {
		fmt.Fprintf(&b, "%s → ", ReleaseLabel(u.From, u.FromVersion))
	}
	b.WriteString(ReleaseLabel(u.To, u.ToVersion))
	if u.Origin != "" {
		fmt.Fprintf(&b, ", requested by %s", u.Origin)
	}
	switch {
	case u.Ended != nil && u.Started != nil:
		fmt.Fprintf(&b, ", ended %s, took %s", view.Relative(now, *u.Ended), u.Ended.Sub(*u.Started).Round(time.Second))
	case u.Started != nil:
		fmt.Fprintf(&b, ", began %s", view.Relative(now, *u.Started))
	case u.At != nil && u.Phase == status.UpgradeScheduled: // the sweep starts it
		fmt.Fprintf(&b, ", %s (%s), within five minutes", view.Relative(now, *u.At), u.At.UTC().Format("2006-01-02 15:04 UTC"))
	case u.At != nil:
		fmt.Fprintf(&b, ", due %s", view.Relative(now, *u.At))
	}
	if u.Message != "" {
		fmt.Fprintf(&b, ": %s", lines(u.Message))
	}
	return b.String()
}

func ReleaseLabel(release, version string) string {
	if version == "" {
		return release
	}
	return fmt.Sprintf("%s (Kubernetes %s)", release, version)
}

// stepTimes describes how long a step took or has been running. It excludes the time between a stop and the retry. If now is zero, it
// omits the time of a running step; this is for lines that are printed when they change.
func stepTimes(s status.UpgradeStep, ended bool, now time.Time) string {
	if s.Started == nil {
		return "pending"
	}
	began, retried := *s.Started, ""
	if s.Opened != nil {
		began, retried = *s.Opened, ", retried"
	}
	switch {
	case s.Ended != nil:
		return "done in " + s.Ended.Sub(began).Round(time.Second).String() + retried
	case ended:
		return "not done" + retried
	case now.IsZero():
		return "running" + retried
	}
	return "running for " + view.Duration(now.Sub(began)) + retried
}

// CheckLines describes the results of checks, each with the action that fixes it.
func CheckLines(checks []status.Check) []string {
	var lines []string
	for _, c := range checks {
		kind := "warning"
		if c.Blocks {
			kind = "blocks"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Name, kind, c.Message))
		if c.Next != "" {
			lines = append(lines, "  → "+c.Next)
		}
	}
	return lines
}
