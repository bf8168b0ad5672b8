package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/local/states/asl"
)

// timeline prints what happens in an account, a line each, with the seconds since it started.
type timeline struct {
	out     io.Writer
	started time.Time

	mu   sync.Mutex
	made int
	// states counts the state transitions by machine.
	states map[string]int
}

func newTimeline(out io.Writer, started time.Time) *timeline {
	return &timeline{out: out, started: started, states: map[string]int{}}
}

func (t *timeline) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(format, args...)
}

func (t *timeline) print(format string, args ...any) {
	fmt.Fprintf(t.out, "%6.1fs  %s\n", time.Since(t.started).Seconds(), fmt.Sprintf(format, args...))
}

// resources of drover's own stack that were made.
func (t *timeline) resources() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made
}

// stack shows the statuses of stacks, and the resources that failed.
func (t *timeline) stack(e cloudformation.StackEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.StackName == account.Stack {
		if e.ResourceStatus == "CREATE_COMPLETE" {
			t.made++
		}
		return
	}
	itself := e.PhysicalResourceId == e.StackId
	switch {
	case itself && e.ResourceStatus != "REVIEW_IN_PROGRESS":
		t.print("stack       %-32s %s", e.StackName, e.ResourceStatus)
	case strings.HasSuffix(e.ResourceStatus, "_FAILED"):
		t.print("resource    %-32s %s %s: %s", e.StackName, e.LogicalResourceId, e.ResourceStatus, e.ResourceStatusReason)
	}
}

// execution shows the steps of executions.
func (t *timeline) execution(x states.Execution, e asl.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	machine := strings.TrimPrefix(x.MachineName, "drover-")
	switch e.Type {
	case "TaskStateEntered", "FailStateEntered":
		t.print("%-11s %s", machine, e.State)
	case "ExecutionSucceeded":
		if machine == "join-node" {
			t.print("%-11s %s", machine, brief(e.Details["output"]))
		}
	case "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut":
		t.print("%-11s %s: %s", machine, e.Type, brief(e.Details["cause"]))
	}
}

// brief is the start of what a state said.
func brief(v any) string {
	text, _ := v.(string)
	return fmt.Sprintf("%.600s", text)
}
