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
)

// printUpgrades shows a cluster's last or next upgrade with its steps and what the checks found, and below it those before.
func printUpgrades(w io.Writer, s status.Status) {
	if s.Upgrade == nil {
		return
	}
	fmt.Fprintf(w, "\nupgrade %s\n", upgradeLine(*s.Upgrade))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, step := range s.Upgrade.Steps {
		fmt.Fprintf(table, "  %s\t%s\n", step.Name, stepTimes(step))
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
		fmt.Fprintf(w, "then %s\n", upgradeLine(*s.NextUpgrade))
	}
	for i, u := range s.Upgrades {
		if i == 0 && u.Is(s.Upgrade) {
			continue // told above
		}
		fmt.Fprintf(w, "earlier %s\n", upgradeLine(u))
	}
}

// upgradeLine is an upgrade in one line: its phase, where it leads, when, and why it waits or stopped.
func upgradeLine(u status.Upgrade) string {
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
		fmt.Fprintf(&b, ": %s", firstLine(u.Message))
	}
	return b.String()
}

func releaseName(release, version string) string {
	if version == "" {
		return release
	}
	return fmt.Sprintf("%s (Kubernetes %s)", release, version)
}

func stepTimes(s status.UpgradeStep) string {
	switch {
	case s.Started == nil:
		return "to come"
	case s.Ended == nil:
		return "since " + s.Started.Format(time.RFC3339)
	}
	return fmt.Sprintf("done in %s", s.Ended.Sub(*s.Started).Round(time.Second))
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
