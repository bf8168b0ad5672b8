package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

func TestClusterOfExecution(t *testing.T) {
	at := time.Now()
	for name, want := range map[string]string{
		names.ConvergeExecution("demo", "v1", ""):               "demo",
		names.ConvergeExecution("demo-2", "v1", ""):             "demo-2",
		names.RetryExecution("demo", "v1", "stopped"):           "demo",
		names.DueExecution("demo", at):                          "demo",
		names.UpgradeExecution("demo", "key", 1, at):            "demo",
		names.UpgradeStepExecution("demo", "leader", 1, 2):      "demo",
		"0b3c6f5e-2f0a-4a6e-9c55-0123456789ab":                  "",
		names.RetryExecution(strings.Repeat("a", 60), "v1", ""): "",
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
		"a manual input": {input: `{"cluster":"demo","node":"ip-1"}`, cluster: "demo", subject: "ip-1"},
		"a hook": {
			input: `{"AutoScalingGroupName":"drover-demo-2-pool-a","EC2InstanceId":"i-1"}`, cluster: "demo-2", subject: "i-1",
		},
		"a spot warning":          {input: `{"instance-id":"i-1"}`, output: `{"cluster":"demo"}`, cluster: "demo", subject: "i-1"},
		"a spot warning, running": {input: `{"instance-id":"i-1"}`, subject: "i-1"},
		"another group's hook":    {input: `{"AutoScalingGroupName":"web","EC2InstanceId":"i-1"}`, subject: "i-1"},
		"no object":               {input: `[]`},
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

// functions lists exactly the functions of drover. A relay is of one cluster.
func TestFunctions(t *testing.T) {
	steps, err := os.ReadDir(filepath.Join(repository, "functions"))
	require.NoError(t, err)
	var deployed []string
	for _, step := range steps {
		if step.Name() != "relay" {
			deployed = append(deployed, step.Name())
		}
	}
	require.ElementsMatch(t, deployed, functions)
}
