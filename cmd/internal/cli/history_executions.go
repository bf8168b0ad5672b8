package cli

// History of executions: their states and failures.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

var (
	convergeName = regexp.MustCompile(`^(.+)-[0-9a-f]{16}(-again)?$`)
	upgradeStep  = regexp.MustCompile(`^(.+)-upgrade-[0-9a-f]{16}-\d+-\d+$`)
)

// maxNameInExecution is the length to which names of executions truncate a cluster's name.
const maxNameInExecution = 50

// clusterOfExecution returns the cluster in the name of an execution that drover named. A truncated name is not ok.
func clusterOfExecution(machine, name string) (cluster string, ok bool) {
	if machine != machineConverge && machine != machineUpgrade {
		return "", false
	}
	match := upgradeStep.FindStringSubmatch(name)
	if match == nil {
		match = convergeName.FindStringSubmatch(name)
	}
	if match == nil || len(match[1]) >= maxNameInExecution {
		return "", false
	}
	return match[1], true
}

// subjectOf returns the cluster of an execution and the node or instance that it works on.
func subjectOf(input, output string) (cluster, subject string) {
	var in struct {
		events.DrainRequest
	}
	var out struct {
		Cluster string `json:"cluster"`
		Node    string `json:"node"`
	}
	_ = json.Unmarshal([]byte(input), &in) // an input of another form names no cluster
	_ = json.Unmarshal([]byte(output), &out)
	cluster, subject = in.Cluster, in.Node
	if subject == "" {
		subject = in.Instance + in.InstanceID
	}
	if in.Lifecycle != nil && in.AutoScalingGroupName != "" {
		cluster, _, _ = names.SplitStack(in.AutoScalingGroupName)
		subject = in.EC2InstanceID
	}
	if cluster == "" {
		cluster = out.Cluster
	}
	return cluster, subject
}

// readStates returns the new events of an execution that show its progress. It omits the retries of a drain's single state.
func (h *History) readStates(ctx context.Context, x *execution) (found []Entry, err error) {
	past := map[int64]sfntypes.HistoryEvent{}
	pages := sfn.NewGetExecutionHistoryPaginator(h.sfn, &sfn.GetExecutionHistoryInput{ExecutionArn: &x.arn, MaxResults: 1000})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the history of execution %s: %w", x.arn, err)
		}
		for _, e := range page.Events {
			past[e.Id] = e
			kind, text := x.describeEvent(e, past)
			if text == "" || !h.fresh(fmt.Sprint(x.arn, " ", e.Id), aws.ToTime(e.Timestamp)) {
				continue
			}
			subject := x.name
			if x.subject != "" {
				subject = x.subject
			}
			found = append(found, Entry{aws.ToTime(e.Timestamp), kind, subject, text})
		}
	}
	return found, nil
}

// describeEvent returns the kind and the text of an execution's event. An event without text is omitted.
func (x *execution) describeEvent(e sfntypes.HistoryEvent, past map[int64]sfntypes.HistoryEvent) (kind, text string) {
	clusterWide := x.machine == machineConverge || x.machine == machineUpgrade
	switch {
	case e.ExecutionStartedEventDetails != nil:
		return x.machine, "started" + describeInput(aws.ToString(e.ExecutionStartedEventDetails.Input))
	case e.StateEnteredEventDetails != nil && clusterWide && (e.Type == sfntypes.HistoryEventTypeTaskStateEntered ||
		e.Type == sfntypes.HistoryEventTypeWaitStateEntered):
		return x.machine, "state " + aws.ToString(e.StateEnteredEventDetails.Name) + stackIn(aws.ToString(e.StateEnteredEventDetails.Input))
	case e.TaskFailedEventDetails != nil:
		d := e.TaskFailedEventDetails
		return describeFailure(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.TaskTimedOutEventDetails != nil:
		d := e.TaskTimedOutEventDetails
		return describeFailure(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.TaskSubmitFailedEventDetails != nil:
		d := e.TaskSubmitFailedEventDetails
		return describeFailure(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.EvaluationFailedEventDetails != nil:
		d := e.EvaluationFailedEventDetails
		return x.machine, "expression failed in state " + aws.ToString(d.State) + ": " + aws.ToString(d.Cause)
	case e.ExecutionSucceededEventDetails != nil:
		output := aws.ToString(e.ExecutionSucceededEventDetails.Output)
		result := describeOutput(output)
		if x.machine == machineDrain {
			result = cmp.Or(DrainSummary(output), result)
		}
		return x.machine, strings.TrimSuffix("succeeded: "+result, ": ")
	case e.ExecutionFailedEventDetails != nil:
		d := e.ExecutionFailedEventDetails
		return x.machine, endOfExecution("failed", aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.Type == sfntypes.HistoryEventTypeExecutionAborted:
		d := e.ExecutionAbortedEventDetails
		if d == nil {
			d = &sfntypes.ExecutionAbortedEventDetails{}
		}
		return x.machine, endOfExecution("aborted", aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.Type == sfntypes.HistoryEventTypeExecutionTimedOut:
		return x.machine, "timed out"
	}
	return "", ""
}

func endOfExecution(how, name, cause string) string {
	return strings.TrimRight(fmt.Sprintf("%s: %s: %s", how, name, cause), ": ")
}

// describeInput describes the input of an execution. It omits the cluster.
func describeInput(input string) string {
	var in struct {
		Roll []string `json:"roll"`
		events.Upgrade
		Lifecycle string `json:"LifecycleTransition"`
	}
	_ = json.Unmarshal([]byte(input), &in) // an input of another form is not shown
	switch {
	case len(in.Roll) > 0:
		return ": roll " + strings.Join(in.Roll, ", ")
	case in.Rollback:
		return ": rollback"
	case in.CheckOnly:
		return ": early checks for " + in.Release
	case in.Release != "":
		return ": to " + in.Release
	case strings.HasSuffix(in.Lifecycle, "EC2_INSTANCE_TERMINATING"):
		return ": the instance is at its terminate hook"
	case strings.HasSuffix(in.Lifecycle, "EC2_INSTANCE_LAUNCHING"):
		return ": the instance is at its launch hook"
	}
	return ""
}

// stackIn returns the stack in the input of a state.
func stackIn(input string) string {
	var in struct {
		Stack string `json:"stack"`
	}
	if json.Unmarshal([]byte(input), &in) != nil || in.Stack == "" {
		return ""
	}
	return ", stack " + in.Stack
}

// describeOutput describes the output of an execution.
func describeOutput(output string) string {
	var out struct {
		Outcome string `json:"outcome"`
		Node    string `json:"node"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(output), &out) != nil {
		return ""
	}
	var parts []string
	for _, part := range []string{out.Outcome, out.Reason, out.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if out.Node != "" && !strings.Contains(out.Message, out.Node) {
		parts = append(parts, "node "+out.Node)
	}
	return strings.Join(parts, ": ")
}

// describeFailure describes the failure of a task: the function, the state and the cause.
func describeFailure(e sfntypes.HistoryEvent, past map[int64]sfntypes.HistoryEvent, name, cause string) (kind, text string) {
	function, state := "a task", ""
	for before, ok := past[e.PreviousEventId]; ok && state == ""; before, ok = past[before.PreviousEventId] {
		if d := before.TaskScheduledEventDetails; d != nil {
			function = functionIn(aws.ToString(d.Parameters), aws.ToString(d.Resource))
		}
		if d := before.StateEnteredEventDetails; d != nil {
			state = aws.ToString(d.Name) + stackIn(aws.ToString(d.Input))
		}
	}
	return kindFunction, fmt.Sprintf("%s failed in state %s: %s", function, state, strings.TrimSuffix(name+": "+causeOf(cause), ": "))
}

// functionIn returns the function that a task invokes, or the name of its call to another service.
func functionIn(parameters, resource string) string {
	var in struct {
		FunctionName string `json:"FunctionName"`
	}
	if json.Unmarshal([]byte(parameters), &in) != nil || in.FunctionName == "" {
		return resource
	}
	return in.FunctionName[strings.LastIndex(in.FunctionName, ":")+1:]
}

// causeOf returns the message in Lambda's error object, or the cause unchanged.
func causeOf(cause string) string {
	var failure struct {
		ErrorMessage string `json:"errorMessage"`
		Cause        string `json:"cause"`
	}
	if json.Unmarshal([]byte(cause), &failure) == nil {
		switch {
		case failure.ErrorMessage != "":
			return failure.ErrorMessage
		case failure.Cause != "":
			return failure.Cause
		}
	}
	return cause
}

// DrainSummary describes the result of a node's drain from the output of its execution. It is empty if the output names no node.
func DrainSummary(output string) string {
	var r events.DrainResult
	if json.Unmarshal([]byte(output), &r) != nil || r.Node == "" {
		return ""
	}
	return fmt.Sprintf("node %s: %s, %d pods evicted by %d requests; %s", r.Node, r.Outcome, r.Evicted, r.Requests, r.Summary())
}
