package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

// showHistory tests events and logs of the demo cluster after its creation, a drain, a refused roll and a roll.
func showHistory(t *testing.T) {
	out := ok(t, "events", "demo")
	last := -1
	for _, line := range []string{
		`upload      clusters/demo\.yaml: uploaded version \S+, \d+ bytes`,
		`converge    demo-[0-9a-f]{16}: started\n`,
		`converge    demo-[0-9a-f]{16}: state Plan\n`,
		`converge    demo-[0-9a-f]{16}: state Change network stack, stack network\n`,
		`stack       network: CREATE_IN_PROGRESS`,
		`stack       network: CREATE_COMPLETE`,
		`join-node   i-[0-9a-f]+: started: the instance is at its launch hook\n`,
		`join-node   i-[0-9a-f]+: succeeded: Ready: node ip-\S+ is Ready`,
		`converge    \S+: started: roll workers\n`,
		`drain-node  i-[0-9a-f]+: started: the instance is at its terminate hook\n`,
		`drain-node  i-[0-9a-f]+: succeeded: node ip-\S+: Done, \d+ pods evicted by \d+ requests; `,
	} {
		at := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ` + line).FindStringIndex(out[max(last, 0):])
		require.NotNil(t, at, "%s\nis not in, or not in its place in\n%s", line, out)
		last = max(last, 0) + at[0]
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := 1; i < len(lines); i++ {
		require.LessOrEqual(t, lines[i-1][:20], lines[i][:20], "the oldest first")
	}
	require.NotContains(t, out, "function ", "nothing failed")
	var entries []entry
	require.NoError(t, json.Unmarshal([]byte(ok(t, "events", "demo", "-o", "json")), &entries))
	require.Greater(t, len(entries), 30)
	require.JSONEq(t, "[]", ok(t, "events", "demo", "--since", "0s", "-o", "json"))
	for _, command := range []string{"events", "logs"} {
		require.Contains(t, fails(t, command, "nobody"), "no cluster nobody is known in this account")
		require.Contains(t, fails(t, command, "demo", "--since", "yesterday"), "--since yesterday: is neither a duration nor a time")
	}
	require.Contains(t, fails(t, "events", "demo", "--follow", "-o", "json"), "--follow prints lines")

	out = ok(t, "logs", "demo")
	require.Regexp(t, `(?m)^\S+Z  admit       INFO `, out)
	require.NotContains(t, out, "platform.", "Lambda's own lines are left out where nothing failed")
	require.NotContains(t, out, `cluster=`)
	require.Contains(t, fails(t, "logs", "demo", "--function", "planner"), "drover has no such function: choose one of admit, ")
	for line := range strings.Lines(ok(t, "logs", "demo", "--function", "drover-drain")) {
		require.Regexp(t, `^\S+Z  drain       `, line)
	}
}

func TestClusterOfExecution(t *testing.T) {
	at := time.Now()
	for name, want := range map[string]string{
		names.ConvergeExecution("demo", "v1", ""):               "demo",
		names.ConvergeExecution("demo-2", "v1", ""):             "demo-2",
		names.AgainExecution("demo", "v1", "stopped"):           "demo",
		names.DueExecution("demo", at):                          "demo",
		names.UpgradeStart("demo", "key", 1, at):                "demo",
		names.UpgradeExecution("demo", "leader", 1, 2):          "demo",
		"0b3c6f5e-2f0a-4a6e-9c55-0123456789ab":                  "",
		names.AgainExecution(strings.Repeat("a", 60), "v1", ""): "",
	} {
		t.Run(name, func(t *testing.T) {
			cluster, ok := clusterOfExecution(machineConverge, name)
			require.Equal(t, want != "", ok)
			require.Equal(t, want, cluster)
			_, ok = clusterOfExecution(machineDrain, name)
			require.False(t, ok, "executions of this machine have no name from drover")
		})
	}
}

func TestSubjectOf(t *testing.T) {
	tests := map[string]struct{ input, output, cluster, subject string }{
		"a manual input":          {`{"cluster":"demo","node":"ip-1"}`, "", "demo", "ip-1"},
		"a hook":                  {`{"AutoScalingGroupName":"drover-demo-2-pool-a","EC2InstanceId":"i-1"}`, "", "demo-2", "i-1"},
		"a spot warning":          {`{"instance-id":"i-1"}`, `{"cluster":"demo"}`, "demo", "i-1"},
		"a spot warning, running": {`{"instance-id":"i-1"}`, "", "", "i-1"},
		"another group's hook":    {`{"AutoScalingGroupName":"web","EC2InstanceId":"i-1"}`, "", "", "i-1"},
		"no object":               {`[]`, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster, subject := subjectOf(test.input, test.output)
			require.Equal(t, [2]string{test.cluster, test.subject}, [2]string{cluster, subject})
		})
	}
}

// The text of a failed task has its function, state and stack, and the message from Lambda's error object.
func TestFailedTask(t *testing.T) {
	past := map[int64]sfntypes.HistoryEvent{
		1: {Id: 1, StateEnteredEventDetails: &sfntypes.StateEnteredEventDetails{
			Name: aws.String("Change pool stack"), Input: aws.String(`{"stack":"pool-a"}`),
		}},
		2: {Id: 2, PreviousEventId: 1, TaskScheduledEventDetails: &sfntypes.TaskScheduledEventDetails{
			Parameters: aws.String(`{"FunctionName":"arn:aws:lambda:us-east-1:1:function:drover-change"}`), Resource: aws.String("invoke"),
		}},
	}
	kind, text := (&execution{machine: machineConverge}).describeEvent(sfntypes.HistoryEvent{
		Id: 3, PreviousEventId: 2, Type: sfntypes.HistoryEventTypeTaskFailed,
		TaskFailedEventDetails: &sfntypes.TaskFailedEventDetails{
			Error: aws.String("Internal"), Cause: aws.String(`{"errorMessage":"panic: nil","errorType":"Internal"}`),
		},
	}, past)
	require.Equal(t, kindFunction, kind)
	require.Equal(t, "drover-change failed in state Change pool stack, stack pool-a: Internal: panic: nil", text)
}

func TestSinceTime(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"90m": now.Add(-90 * time.Minute), "3d": now.Add(-72 * time.Hour), "0s": now, "1.5d": now.Add(-36 * time.Hour),
		"2026-11-26T08:00:00Z": now.Add(-time.Hour),
	} {
		got, err := sinceTime(text, now)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "3", "-1h", "-1d", "3days", "26.11.2026"} {
		_, err := sinceTime(text, now)
		require.ErrorContains(t, err, "write 90m, 24h, 3d or", text)
	}
}

func TestLogLinesOfACluster(t *testing.T) {
	raw := []string{
		`{"type":"platform.start","record":{"requestId":"1"}}`,
		`{"level":"INFO","msg":"stopped","step":"plan","requestId":"1","cluster":"demo","reason":"Paused"}`,
		`{"ClusterPhase":1,"_aws":{},"phase":"Ready","cluster":"demo"}`,
		`panic: runtime error`, // of the same invocation
		`{"type":"platform.report","record":{"requestId":"1","status":"error"}}`,
		`{"type":"platform.start","record":{"requestId":"2"}}`,
		`{"level":"INFO","msg":"stopped","requestId":"2","cluster":"demo-2"}`,
		`{"level":"ERROR","msg":"failed","requestId":"2","error":"stack drover-demo-2-network is busy"}`,
		`{"level":"ERROR","msg":"failed","requestId":"3","error":"stack drover-demo-pool-a is busy"}`,
		`{"level":"INFO","msg":"swept","requestId":"4","cluster":"demo"}`,
		`{"level":"INFO","msg":"swept","requestId":"4","cluster":"other"}`,
		`{"level":"INFO","msg":"sweep finished","requestId":"4"}`,
		`{"type":"platform.report","record":{"requestId":"3","status":"success"}}`,
		"END RequestId: 5",
	}
	var all []logLine
	request := ""
	for _, text := range raw {
		l := parseLine(text)
		if l.request == "" {
			l.request = request
		}
		request = l.request
		all = append(all, l)
	}
	var got []string
	for _, l := range (&functionLogs{cluster: "demo", mention: mentions("demo")}).filterLines(all) {
		got = append(got, l.text())
	}
	require.Equal(t, []string{
		"INFO stopped reason=Paused", "panic: runtime error",
		`ERROR platform.report record={"requestId":"1","status":"error"} type=platform.report`,
		`ERROR failed error="stack drover-demo-pool-a is busy"`, "INFO swept",
	}, got)
}

// functions lists exactly the deployed functions.
func TestFunctions(t *testing.T) {
	steps, err := os.ReadDir(filepath.Join(repository, "functions"))
	require.NoError(t, err)
	var deployed []string
	for _, step := range steps {
		deployed = append(deployed, step.Name())
	}
	require.ElementsMatch(t, deployed, functions)
}
