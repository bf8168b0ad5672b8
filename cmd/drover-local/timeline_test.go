package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
)

func TestClusterOf(t *testing.T) {
	tests := map[string]struct{ input, want string }{
		"converge's input":        {`{"cluster":"demo"}`, "demo"},
		"a lifecycle action":      {`{"AutoScalingGroupName":"drover-demo-pool-workers","EC2InstanceId":"i-1"}`, "demo"},
		"a stack event":           {`{"detail":{"stack-id":"arn:aws:cloudformation:us-east-1:000000000000:stack/drover-a-b-network/1"}}`, "a-b"},
		"an upload":               {`{"detail":{"object":{"key":"clusters/demo.yaml"}}}`, "demo"},
		"a release":               {`{"detail":{"object":{"key":"releases/1.36-1.yaml"}}}`, ""},
		"a spot warning":          {`{"instance-id":"i-1","instance-action":"terminate"}`, ""},
		"another group":           {`{"AutoScalingGroupName":"web"}`, ""},
		"no object":               {`[1]`, ""},
		"the sweep's empty event": {`{}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, clusterOf([]byte(tt.input))) })
	}
}

func TestTimeline(t *testing.T) {
	var out strings.Builder
	show := &timeline{Progress: view.NewProgress(&out)}
	stack := func(name, status string) cloudformation.StackEvent {
		return cloudformation.StackEvent{StackName: name, StackId: "x", PhysicalResourceId: "x", ResourceStatus: status}
	}
	show.stack(stack("drover-demo-pool-workers", "CREATE_COMPLETE"))
	show.stack(stack("drover-demo-network", "REVIEW_IN_PROGRESS"))
	failed := stack("drover-demo-network", "CREATE_FAILED")
	failed.PhysicalResourceId, failed.LogicalResourceId, failed.ResourceStatusReason = "y", "NatAddressA", "no more addresses"
	show.stack(failed)
	converge := stepfunctions.Execution{MachineName: "drover-converge", Input: `{"cluster":"demo"}`}
	show.execution(converge, asl.Event{Type: "TaskStateEntered", State: "Plan"})
	show.execution(converge, asl.Event{Type: "ExecutionFailed", Details: map[string]any{"cause": "stopped"}})
	join := stepfunctions.Execution{MachineName: "drover-join-node", Input: `{"AutoScalingGroupName":"drover-other-pool-spot"}`}
	show.execution(join, asl.Event{Type: "TaskStateEntered", State: "Wait for the node"})
	spot := stepfunctions.Execution{MachineName: "drover-drain-node", Input: `{"instance-id":"i-1"}`}
	show.execution(spot, asl.Event{Type: "TaskStateEntered", State: "Drain"})
	show.function(lambda.Report{Function: "drover-plan", Payload: []byte(`{"cluster":"demo"}`)})
	show.function(lambda.Report{
		Function: "drover-plan", Payload: []byte(`{"cluster":"demo"}`), Failed: true,
		Answer: []byte(`{"errorType":"Throttled","errorMessage":"rate exceeded\nmore"}`),
	})
	show.ended.Store(true)
	show.function(lambda.Report{Function: "drover-report", Failed: true, Answer: []byte(`{"errorMessage":"signal: killed"}`)})
	got := regexp.MustCompile(`(?m)^ +\d+\.\ds  `).ReplaceAllString(out.String(), "")
	require.Equal(t, `stack       demo         pool-workers       CREATE_COMPLETE
resource    demo         network            NatAddressA CREATE_FAILED: no more addresses
converge    demo         Plan
converge    demo         ExecutionFailed: stopped
join-node   other        Wait for the node
drain-node  -            Drain
function    demo         plan failed: Throttled: rate exceeded
`, got)
}
