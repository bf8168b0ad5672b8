package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// printUpgrades shows a cluster's last or next upgrade with its steps and what the checks found, and below it those before.
func printUpgrades(w io.Writer, s status.Status) {
	if s.Upgrade == nil {
		return
	}
	fmt.Fprintf(w, "\nupgrade %s\n", upgradeLine(*s.Upgrade, linesOf(*s.Upgrade)))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, step := range s.Upgrade.Steps {
		fmt.Fprintf(table, "  %s\t%s\n", step.Name, stepTimes(step, s.Upgrade.Ended != nil))
	}
	table.Flush()
	if u := s.Upgrade; u.Checked != nil && len(u.Checks) > 0 {
		fmt.Fprintf(w, "  found at %s (a dry run looks anew):\n", u.Checked.Format(time.RFC3339))
	}
	for _, line := range checkLines(s.Upgrade.Checks) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	for _, pool := range slices.Sorted(maps.Keys(s.Upgrade.Images)) {
		fmt.Fprintf(w, "  pool %s had %s\n", pool, s.Upgrade.Images[pool])
	}
	if s.NextUpgrade != nil {
		fmt.Fprintf(w, "then %s\n", upgradeLine(*s.NextUpgrade, linesOf(*s.NextUpgrade)))
	}
	for i, u := range s.Upgrades {
		if i == 0 && u.Is(s.Upgrade) {
			continue // told above
		}
		fmt.Fprintf(w, "earlier %s\n", upgradeLine(u, firstLine))
	}
}

// linesOf is how much of an upgrade's message is shown beside its checks: of one that these block it is what they say.
func linesOf(u status.Upgrade) func(string) string {
	if u.Phase == string(upgrade.Blocked) && len(u.Checks) > 0 {
		return firstLine
	}
	return allLines
}

// upgradeLine is an upgrade in one line: its phase, where it leads, when, and why it waits or stopped, as much of that as lines leaves.
func upgradeLine(u status.Upgrade, lines func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", u.Phase)
	if u.From != "" {
		fmt.Fprintf(&b, "%s → ", releaseName(u.From, u.FromVersion))
	}
	b.WriteString(releaseName(u.To, u.ToVersion))
	if u.Origin != "" {
		fmt.Fprintf(&b, ", asked by %s", u.Origin)
	}
	switch {
	case u.Ended != nil && u.Started != nil:
		fmt.Fprintf(&b, ", %s, took %s", u.Started.Format(time.RFC3339), u.Ended.Sub(*u.Started).Round(time.Second))
	case u.Started != nil:
		fmt.Fprintf(&b, ", since %s", u.Started.Format(time.RFC3339))
	case u.At != nil && u.Phase == status.UpgradeScheduled: // the sweep keeps times
		fmt.Fprintf(&b, ", within five minutes of %s", u.At.Format(time.RFC3339))
	case u.At != nil:
		fmt.Fprintf(&b, ", at %s", u.At.Format(time.RFC3339))
	}
	if u.Message != "" {
		fmt.Fprintf(&b, ": %s", lines(u.Message))
	}
	return b.String()
}

func releaseName(release, version string) string {
	if version == "" {
		return release
	}
	return fmt.Sprintf("%s (Kubernetes %s)", release, version)
}

// stepTimes of a step, of an upgrade that is over or not. How long it stood still before it was gone on with is no time that it took.
func stepTimes(s status.UpgradeStep, over bool) string {
	if s.Started == nil {
		return "to come"
	}
	begun, before := *s.Started, ""
	if s.Opened != nil {
		begun, before = *s.Opened, ", first begun "+s.Started.Format(time.RFC3339)
	}
	switch {
	case s.Ended != nil:
		return fmt.Sprintf("done in %s%s", s.Ended.Sub(begun).Round(time.Second), before)
	case over:
		return "begun " + begun.Format(time.RFC3339) + ", not done"
	}
	return "since " + begun.Format(time.RFC3339) + before
}

// checkLines are what checks found, with what to do.
func checkLines(checks []status.Check) []string {
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
