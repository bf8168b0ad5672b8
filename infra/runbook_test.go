package main

// Whoever is woken at night finds what woke them in the runbook, and nothing there that cannot happen.

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// runbookTable lists what the first cells of a section's table have in backquotes.
func runbookTable(t *testing.T, section string) []string {
	body, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(body), "\n## "+section+"\n")
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "\n## ")
	var names []string
	for line := range strings.Lines(text) {
		if cell, row := strings.CutPrefix(line, "| "); row {
			cell, _, _ = strings.Cut(cell, " | ")
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				names = append(names, name[1])
			}
		}
	}
	return names
}

func TestTheRunbookHasEveryReason(t *testing.T) {
	want := map[string]bool{notConverged: true}
	for _, reason := range status.Reasons() {
		want[reason] = true
	}
	for _, f := range fault.All() {
		want[fault.Name(f)] = true
	}
	got := map[string]bool{}
	for _, reason := range runbookTable(t, "Reasons") {
		if !strings.HasSuffix(reason, "…") { // families of names that are not drover's
			got[reason] = true
		}
	}
	require.Equal(t, want, got)
}

func TestTheRunbookHasEveryStateOfNodes(t *testing.T) {
	got := runbookTable(t, "Nodes")
	for i, state := range status.NodeStates() {
		require.Equal(t, string(state), got[i])
	}
}

func TestTheRunbookHasEveryReasonWhyPodsAreBlocked(t *testing.T) {
	require.ElementsMatch(t, drain.Reasons(), slices.DeleteFunc(runbookTable(t, "Nodes that are not drained"), func(name string) bool { return !strings.Contains(name, " ") }))
}

func TestTheRunbookHasEveryCheck(t *testing.T) {
	want := preflight.BeforeNames()
	for _, name := range preflight.AfterNames() {
		if !slices.Contains(want, name) {
			want = append(want, name)
		}
	}
	require.Equal(t, want, runbookTable(t, "Checks of upgrades"))
}

func TestTheRunbookHasEveryAlarm(t *testing.T) {
	want := map[string]bool{}
	for _, alarm := range synthesized.ofType("AWS::CloudWatch::Alarm") {
		want[alarm["AlarmName"].(string)] = true
	}
	got := map[string]bool{}
	for _, alarm := range runbookTable(t, "Alarms") {
		if !strings.Contains(alarm, "<step>") {
			got[alarm] = true
			continue
		}
		for _, f := range functionTable {
			got[strings.ReplaceAll(alarm, "<step>", f.step)] = true
		}
	}
	require.Equal(t, want, got)
}

func TestTheRunbookHasEveryCheckOfReleases(t *testing.T) {
	require.ElementsMatch(t, preflight.PublishedNames(), runbookTable(t, "Releases"))
}
