package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/states"
	"github.com/drover-run/drover/local/aws/states/asl"
	"github.com/drover-run/drover/shared/names"
)

// timeline shows what happens in an account.
type timeline struct {
	*view.Progress

	mu   sync.Mutex
	made int
}

// resources of drover's own stack that were made.
func (t *timeline) resources() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made
}

// line prints a line of a kind, such as stack, about a cluster. One that concerns no cluster, or none that is known, has a dash instead.
func (t *timeline) line(kind, cluster, format string, args ...any) {
	t.Say("%-11s %-12s %s", kind, cmp.Or(cluster, "-"), fmt.Sprintf(format, args...))
}

// stack shows the statuses of stacks, and the resources that failed.
func (t *timeline) stack(e cloudformation.StackEvent) {
	if e.StackName == account.Stack {
		if e.ResourceStatus == "CREATE_COMPLETE" {
			t.mu.Lock()
			t.made++
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

// execution shows the steps of executions.
func (t *timeline) execution(x states.Execution, e asl.Event) {
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
		t.line(machine, cluster, "%s: %s", e.Type, brief(e.Details["cause"]))
	}
}

// function shows the invocations that failed.
func (t *timeline) function(r lambda.Report) {
	if !r.Failed {
		return
	}
	var failure struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(r.Answer, &failure) // what is no JSON has no type and message
	reason, _, _ := strings.Cut(failure.Message, "\n")
	t.line("function", clusterOf(r.Payload), "%s failed: %s", strings.TrimPrefix(r.Function, names.Prefix),
		brief(strings.TrimPrefix(failure.Type+": "+reason, ": ")))
}

// clusterOf finds the cluster that an event or an execution's input concerns, or "". It may be named by a field, by
// an Auto Scaling group, by a stack, or by the key of a spec.
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

// message is what a function said about its outcome, or nothing.
func message(output any) string {
	text, _ := output.(string)
	var result struct{ Message string }
	if json.Unmarshal([]byte(text), &result) != nil {
		return ""
	}
	return brief(result.Message)
}

// drainSummary says how the drain of a node ended, or nothing when there was no node.
func drainSummary(output any) string {
	text, _ := output.(string)
	return cli.DrainSummary(text)
}

// brief is the start of what a state said.
func brief(v any) string {
	text, _ := v.(string)
	return fmt.Sprintf("%.600s", text)
}
