package main

// The runbook has an entry for each reason, state, check and alarm, and none for what does not exist.

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

// runbookEntries lists what the headings of a section's entries have in backquotes.
func runbookEntries(t *testing.T, section string) []string {
	body, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(body), "\n## "+section+"\n")
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "\n## ")
	var names []string
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(heading, -1) {
				names = append(names, name[1])
			}
		}
	}
	return names
}

func TestRunbookHasEveryReason(t *testing.T) {
	want := []string{notConverged}
	for _, reason := range status.Reasons() {
		want = append(want, reason)
	}
	for _, f := range fault.All() {
		want = append(want, fault.Name(f))
	}
	got := slices.DeleteFunc(runbookEntries(t, "Reasons"), func(reason string) bool {
		return strings.HasSuffix(reason, "…") // families of names that are not drover's
	})
	slices.Sort(want)
	require.ElementsMatch(t, slices.Compact(want), got)
}

func TestRunbookHasEveryStateOfNodes(t *testing.T) {
	var want []string
	for _, state := range status.NodeStates() {
		want = append(want, string(state))
	}
	require.Equal(t, want, runbookEntries(t, "Nodes"))
}

func TestRunbookHasEveryReasonOfBlockedPods(t *testing.T) {
	var want []string
	for _, code := range drain.Lasting() {
		want = append(want, code.String())
	}
	require.ElementsMatch(t, want, runbookEntries(t, "Nodes that are not drained"))
}

func TestRunbookHasEveryCheck(t *testing.T) {
	want := preflight.BeforeNames()
	for _, name := range preflight.AfterNames() {
		if !slices.Contains(want, name) {
			want = append(want, name)
		}
	}
	require.Equal(t, append(want, preflight.UpgradePossible), runbookEntries(t, "Checks of upgrades"))
}

func TestRunbookHasEveryAlarm(t *testing.T) {
	want := map[string]bool{}
	for _, alarm := range synthesizedStacks.ofType("AWS::CloudWatch::Alarm") {
		want[alarm["AlarmName"].(string)] = true
	}
	got := map[string]bool{}
	for _, alarm := range runbookEntries(t, "Alarms") {
		if !strings.Contains(alarm, "<function>") {
			got[alarm] = true
			continue
		}
		for _, f := range functionTable {
			if f.deadLettersAlarm {
				continue
			}
			got[strings.ReplaceAll(alarm, "<function>", f.name)] = true
		}
	}
	require.Equal(t, want, got)
	page, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	// Every alarm that the page names exists, below any heading. Other names of this form are names of other resources.
	others := map[string]bool{}
	for kind, property := range map[string]string{
		"AWS::StepFunctions::StateMachine": "StateMachineName", "AWS::Lambda::Function": "FunctionName", "AWS::SNS::Topic": "TopicName",
		"AWS::Events::EventBus": "Name", "AWS::SQS::Queue": "QueueName",
	} {
		for _, resource := range synthesizedStacks.ofType(kind) {
			if name, isText := resource[property].(string); isText {
				others[name] = true
			}
		}
	}
	for _, name := range regexp.MustCompile("`(drover-[a-z-]*[a-z])`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, want[name[1]] || others[name[1]], "docs/runbook.md names %s, which is neither an alarm nor another resource", name[1])
	}
	for alarm := range want { // a search for the name in the mail finds the entry
		require.Contains(t, string(page), "`"+alarm+"`", "docs/runbook.md does not have the full name of the alarm")
	}
}

func TestRunbookHasEveryCheckOfReleases(t *testing.T) {
	require.ElementsMatch(t, preflight.ReleaseCheckNames(), runbookEntries(t, "Releases"))
}
