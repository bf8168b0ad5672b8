package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/shared/names"
)

// timeline prints the events of an account.
type timeline struct {
	*view.Progress

	mu      sync.Mutex
	created int
	// ended: the account ends. It stops functions and executions, which is no failure.
	ended atomic.Bool
}

// resources returns the number of created resources in drover's stack.
func (t *timeline) resources() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.created
}

// line prints an event of a kind, such as stack, about a cluster. It prints a dash if the cluster is empty.
func (t *timeline) line(kind, cluster, format string, args ...any) {
	if t.ended.Load() {
		return
	}
	t.Say("%-11s %-12s %s", kind, cmp.Or(cluster, "-"), fmt.Sprintf(format, args...))
}

// stack shows the statuses of stacks, the failures of resources, and rolls.
func (t *timeline) stack(e cloudformation.StackEvent) {
	if slices.Contains(account.Stacks, e.StackName) {
		if e.ResourceStatus == "CREATE_COMPLETE" {
			t.mu.Lock()
			t.created++
			t.mu.Unlock()
		}
		return
	}
	cluster, stack, ok := names.SplitStack(e.StackName)
	if !ok {
		stack = e.StackName
	}
	itself := e.PhysicalResourceId == e.StackId
	switch {
	case itself && e.ResourceStatus != "REVIEW_IN_PROGRESS":
		t.line("stack", cluster, "%-18s %s", stack, e.ResourceStatus)
	case strings.HasSuffix(e.ResourceStatus, "_FAILED"):
		t.line("resource", cluster, "%-18s %s %s: %s", stack, e.LogicalResourceId, e.ResourceStatus, e.ResourceStatusReason)
	case e.ResourceType == "AWS::AutoScaling::AutoScalingGroup" && e.ResourceStatus == "UPDATE_IN_PROGRESS" && e.ResourceStatusReason != "":
		t.line("roll", cluster, "%-18s %s", stack, e.ResourceStatusReason)
	}
}

// execution shows the states and the results of executions.
func (t *timeline) execution(x stepfunctions.Execution, e asl.Event) {
	machine, cluster := strings.TrimPrefix(x.MachineName, names.Prefix), clusterOf([]byte(x.Input))
	switch e.Type {
	case "TaskStateEntered", "FailStateEntered":
		t.line(machine, cluster, "%s", e.State)
		if machine == "converge" {
			t.Wait(strings.TrimSpace(cluster + " " + e.State))
		}
	case "ExecutionSucceeded":
		if text := drainSummary(e.Details["output"]); machine == "drain-node" && text != "" {
			t.line(machine, cluster, "%s", text)
		} else if message := message(e.Details["output"]); message != "" {
			t.line(machine, cluster, "%s", message)
		}
	case "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut":
		t.line(machine, cluster, "%s: %s", e.Type, truncate(e.Details["cause"]))
	}
}

// function shows failed invocations.
func (t *timeline) function(r lambda.Report) {
	if !r.Failed {
		return
	}
	var failure struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(r.Answer, &failure) // other output has no type and no message
	reason, _, _ := strings.Cut(failure.Message, "\n")
	t.line("function", clusterOf(r.Payload), "%s failed: %s", strings.TrimPrefix(r.Function, names.Prefix),
		truncate(strings.TrimPrefix(failure.Type+": "+reason, ": ")))
}

// clusterOf returns the cluster of an event or of an execution's input, or "". The cluster is in a field, in the name of an Auto Scaling
// group or a stack, or in the key of a spec.
func clusterOf(input []byte) string {
	var in struct {
		Cluster string
		Group   string `json:"AutoScalingGroupName"`
		StackID string `json:"stack-id"`
		Object  struct{ Key string }
		Detail  json.RawMessage
	}
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	if in.Cluster != "" {
		return in.Cluster
	}
	for _, stack := range []string{in.Group, names.StackOfARN(in.StackID)} {
		if cluster, _, ok := names.SplitStack(stack); ok {
			return cluster
		}
	}
	if cluster, ok := names.ClusterOfKey(in.Object.Key); ok {
		return cluster
	}
	if len(in.Detail) == 0 {
		return ""
	}
	return clusterOf(in.Detail)
}

// message returns the message in a function's output, or "".
func message(output any) string {
	text, _ := output.(string)
	var result struct{ Message string }
	if json.Unmarshal([]byte(text), &result) != nil {
		return ""
	}
	return truncate(result.Message)
}

// drainSummary describes the result of a node's drain. It is empty if the output names no node.
func drainSummary(output any) string {
	text, _ := output.(string)
	return cli.DrainSummary(text)
}

// truncate returns the first 600 characters of a text.
func truncate(v any) string {
	text, _ := v.(string)
	return fmt.Sprintf("%.600s", text)
}
