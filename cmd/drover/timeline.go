package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/local/states/asl"
)

// timeline shows what happens in an account.
type timeline struct {
	*progress

	mu   sync.Mutex
	made int
}

// resources of drover's own stack that were made.
func (t *timeline) resources() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made
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
	itself := e.PhysicalResourceId == e.StackId
	switch {
	case itself && e.ResourceStatus != "REVIEW_IN_PROGRESS":
		t.say("stack       %-32s %s", e.StackName, e.ResourceStatus)
	case strings.HasSuffix(e.ResourceStatus, "_FAILED"):
		t.say("resource    %-32s %s %s: %s", e.StackName, e.LogicalResourceId, e.ResourceStatus, e.ResourceStatusReason)
	case e.ResourceType == "AWS::AutoScaling::AutoScalingGroup" && e.ResourceStatus == "UPDATE_IN_PROGRESS" && e.ResourceStatusReason != "":
		t.say("roll        %-32s %s", e.StackName, e.ResourceStatusReason)
	}
}

// execution shows the steps of executions.
func (t *timeline) execution(x states.Execution, e asl.Event) {
	machine := strings.TrimPrefix(x.MachineName, "drover-")
	switch e.Type {
	case "TaskStateEntered", "FailStateEntered":
		t.say("%-11s %s", machine, e.State)
		if machine == "converge" {
			t.wait(e.State)
		}
	case "ExecutionSucceeded":
		if text := drained(e.Details["output"]); machine == "drain-node" && text != "" {
			t.say("%-11s %s", machine, text)
		} else if message := message(e.Details["output"]); message != "" {
			t.say("%-11s %s", machine, message)
		}
	case "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut":
		t.say("%-11s %s: %s", machine, e.Type, brief(e.Details["cause"]))
	}
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

// drained says how the drain of a node ended, or nothing when there was no node.
func drained(output any) string {
	var r events.DrainResult
	text, _ := output.(string)
	if json.Unmarshal([]byte(text), &r) != nil || r.Node == "" {
		return ""
	}
	return fmt.Sprintf("node %s: %s, %d pods evicted by %d requests; %s", r.Node, r.Outcome, r.Evicted, r.Requests, r.Summary())
}

// brief is the start of what a state said.
func brief(v any) string {
	text, _ := v.(string)
	return fmt.Sprintf("%.600s", text)
}
