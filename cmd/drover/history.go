package main

// The history of a cluster: what happened to it, from every service that records a part of it.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// Kinds of entries, beside the names of drover's machines.
const (
	kindUpload   = "upload"
	kindStack    = "stack"
	kindFunction = "function"
)

// The machines of drover, without their prefix.
const (
	machineConverge = "converge"
	machineUpgrade  = "upgrade"
	machineJoin     = "join-node"
	machineDrain    = "drain-node"
)

// entry is one line of a cluster's history.
type entry struct {
	Time time.Time `json:"time"`
	// Kind is upload, stack, function, or the machine whose execution Subject is.
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

func (e entry) String() string { return fmt.Sprintf("%-10s  %s: %s", e.Kind, e.Subject, e.Text) }

// execution of one of drover's machines.
type execution struct {
	arn, machine, name string
	status             sfntypes.ExecutionStatus
	// subject is what it works on, where that is not the whole cluster: an instance or a node.
	subject string
	// foreign executions work on other clusters.
	foreign bool
	// read is true once the whole history of a finished execution was read.
	read bool
}

// history reads what happened to a cluster since a time. Each read returns what the reads before it did not.
type history struct {
	c       *cell
	cluster string
	since   time.Time
	sfn     *sfn.Client
	cfn     *cloudformation.Client
	logs    *functionLogs
	// logsFrom is where the next read of logs begins.
	logsFrom time.Time
	// executions by ARN; stacks are the ids that events are read by, by name; seen has what was returned before.
	executions map[string]*execution
	stacks     map[string]string
	deleted    []string
	seen       map[string]bool
	// pending are entries of sources that were read before another source failed; marked is what the source that is
	// read now added to seen.
	pending []entry
	marked  []string
}

func newHistory(c *cell, cluster string, since time.Time) *history {
	return &history{
		c: c, cluster: cluster, since: since, sfn: sfn.NewFromConfig(c.cfg), cfn: cloudformation.NewFromConfig(c.cfg),
		logs: newFunctionLogs(c, cluster), logsFrom: since, executions: map[string]*execution{}, seen: map[string]bool{},
	}
}

// read returns the new entries, the oldest first. After an error, the next read returns what this one did not.
func (h *history) read(ctx context.Context) ([]entry, error) {
	return h.readFrom(ctx, h.uploads, h.executed, h.changed, h.functionErrors)
}

func (h *history) readFrom(ctx context.Context, sources ...func(context.Context) ([]entry, error)) ([]entry, error) {
	for _, source := range sources {
		h.marked = nil
		found, err := source(ctx)
		if err != nil {
			for _, id := range h.marked {
				delete(h.seen, id)
			}
			return nil, err
		}
		h.pending = append(h.pending, found...)
	}
	all := h.pending
	h.pending = nil
	slices.SortStableFunc(all, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// fresh reports whether an event is in the period and was not returned before.
func (h *history) fresh(id string, at time.Time) bool {
	if at.Before(h.since) || h.seen[id] {
		return false
	}
	h.seen[id] = true
	h.marked = append(h.marked, id)
	return true
}

// uploads are the versions of the spec, and its deletions.
func (h *history) uploads(ctx context.Context) (found []entry, err error) {
	key := names.ClusterSpec(h.cluster)
	pages := s3.NewListObjectVersionsPaginator(lambdaruntime.S3(h.c.cfg), &s3.ListObjectVersionsInput{
		Bucket: aws.String(h.c.specs.Name()), Prefix: &key,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the versions of s3://%s/%s: %w", h.c.specs.Name(), key, err)
		}
		for _, v := range page.Versions {
			id, at := aws.ToString(v.VersionId), aws.ToTime(v.LastModified)
			if aws.ToString(v.Key) == key && h.fresh("upload "+id, at) {
				found = append(found, entry{at, kindUpload, key, fmt.Sprintf("uploaded version %s, %d bytes", id, aws.ToInt64(v.Size))})
			}
		}
		for _, v := range page.DeleteMarkers {
			id, at := aws.ToString(v.VersionId), aws.ToTime(v.LastModified)
			if aws.ToString(v.Key) == key && h.fresh("upload "+id, at) {
				found = append(found, entry{at, kindUpload, key, "deleted, by delete marker " + id})
			}
		}
	}
	return found, nil
}

// longest is how long before the period an execution is looked for that ended in it.
const longest = 24 * time.Hour

// executed are the executions of drover's machines for the cluster, and their states.
func (h *history) executed(ctx context.Context) (found []entry, err error) {
	for _, machine := range []string{machineConverge, machineUpgrade, machineJoin, machineDrain} {
		if err := h.list(ctx, machine); err != nil {
			return nil, err
		}
	}
	for _, arn := range slices.Sorted(maps.Keys(h.executions)) {
		x := h.executions[arn]
		if x.foreign || x.read {
			continue
		}
		entries, err := h.states(ctx, x)
		if err != nil {
			return nil, err
		}
		found = append(found, entries...)
	}
	for _, x := range h.executions {
		x.read = x.status != sfntypes.ExecutionStatusRunning
	}
	return found, nil
}

// list finds the executions of a machine: those that run, and those of the period.
func (h *history) list(ctx context.Context, machine string) error {
	arn := h.c.machineARN(machine)
	for _, running := range []bool{true, false} {
		in := &sfn.ListExecutionsInput{StateMachineArn: &arn, MaxResults: 1000}
		if running {
			in.StatusFilter = sfntypes.ExecutionStatusRunning
		}
		pages := sfn.NewListExecutionsPaginator(h.sfn, in)
		for older := false; pages.HasMorePages() && !older; {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("listing the executions of %s: %w", names.Prefix+machine, err)
			}
			for _, item := range page.Executions { // the newest first
				older = !running && aws.ToTime(item.StartDate).Before(h.since.Add(-longest))
				if older {
					break
				}
				if item.StopDate != nil && !item.StopDate.IsZero() && item.StopDate.Before(h.since) {
					continue
				}
				if err := h.add(ctx, machine, item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add classifies an execution. A name of drover's own says which cluster it is for; that of any other is in its input or output.
func (h *history) add(ctx context.Context, machine string, item sfntypes.ExecutionListItem) error {
	arn := aws.ToString(item.ExecutionArn)
	if known, ok := h.executions[arn]; ok && (known.foreign || known.subject != "" || known.status == item.Status) {
		known.status = item.Status
		return nil
	}
	x := &execution{arn: arn, machine: machine, name: aws.ToString(item.Name), status: item.Status}
	if owner, ok := clusterOfExecution(machine, x.name); ok {
		x.foreign = owner != h.cluster
		h.executions[arn] = x
		return nil
	}
	described, err := h.sfn.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		return fmt.Errorf("reading execution %s: %w", arn, err)
	}
	var owner string
	owner, x.subject = subjectOf(aws.ToString(described.Input), aws.ToString(described.Output))
	x.foreign = owner != h.cluster
	if owner == "" && x.status == sfntypes.ExecutionStatusRunning {
		delete(h.executions, arn) // its output will name the cluster
		return nil
	}
	h.executions[arn] = x
	return nil
}

var (
	convergeName = regexp.MustCompile(`^(.+)-[0-9a-f]{16}(-again)?$`)
	upgradeStep  = regexp.MustCompile(`^(.+)-upgrade-[0-9a-f]{16}-\d+-\d+$`)
)

// longestName is where the names of executions cut a cluster's name off.
const longestName = 50

// clusterOfExecution is the cluster in the name of an execution that drover named itself.
func clusterOfExecution(machine, name string) (cluster string, ok bool) {
	if machine != machineConverge && machine != machineUpgrade {
		return "", false
	}
	match := upgradeStep.FindStringSubmatch(name)
	if match == nil {
		match = convergeName.FindStringSubmatch(name)
	}
	if match == nil || len(match[1]) >= longestName {
		return "", false
	}
	return match[1], true
}

// subjectOf an execution is its cluster, and the node or instance that it works on.
func subjectOf(input, output string) (cluster, subject string) {
	var in struct {
		events.DrainRequest
	}
	var out struct {
		Cluster string `json:"cluster"`
		Node    string `json:"node"`
	}
	_ = json.Unmarshal([]byte(input), &in) // an input of another form names nothing
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

// states are the events in an execution that say what it does. The retries of a drain's single state are left out.
func (h *history) states(ctx context.Context, x *execution) (found []entry, err error) {
	past := map[int64]sfntypes.HistoryEvent{}
	pages := sfn.NewGetExecutionHistoryPaginator(h.sfn, &sfn.GetExecutionHistoryInput{ExecutionArn: &x.arn, MaxResults: 1000})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the history of execution %s: %w", x.arn, err)
		}
		for _, e := range page.Events {
			past[e.Id] = e
			kind, text := x.describe(e, past)
			if text == "" || !h.fresh(fmt.Sprint(x.arn, " ", e.Id), aws.ToTime(e.Timestamp)) {
				continue
			}
			subject := x.name
			if x.subject != "" {
				subject = x.subject
			}
			found = append(found, entry{aws.ToTime(e.Timestamp), kind, subject, text})
		}
	}
	return found, nil
}

// describe is the kind and the text of an event of an execution. Without a text it is left out.
func (x *execution) describe(e sfntypes.HistoryEvent, past map[int64]sfntypes.HistoryEvent) (kind, text string) {
	whole := x.machine == machineConverge || x.machine == machineUpgrade
	switch {
	case e.ExecutionStartedEventDetails != nil:
		return x.machine, "started" + requested(aws.ToString(e.ExecutionStartedEventDetails.Input))
	case e.StateEnteredEventDetails != nil && whole && (e.Type == sfntypes.HistoryEventTypeTaskStateEntered || e.Type == sfntypes.HistoryEventTypeWaitStateEntered):
		return x.machine, "state " + aws.ToString(e.StateEnteredEventDetails.Name) + stackIn(aws.ToString(e.StateEnteredEventDetails.Input))
	case e.TaskFailedEventDetails != nil:
		d := e.TaskFailedEventDetails
		return failed(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.TaskTimedOutEventDetails != nil:
		d := e.TaskTimedOutEventDetails
		return failed(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.TaskSubmitFailedEventDetails != nil:
		d := e.TaskSubmitFailedEventDetails
		return failed(e, past, aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.EvaluationFailedEventDetails != nil:
		d := e.EvaluationFailedEventDetails
		return x.machine, "expression failed in state " + aws.ToString(d.State) + ": " + aws.ToString(d.Cause)
	case e.ExecutionSucceededEventDetails != nil:
		output := aws.ToString(e.ExecutionSucceededEventDetails.Output)
		said := answer(output)
		if x.machine == machineDrain {
			said = cmp.Or(drained(output), said)
		}
		return x.machine, strings.TrimSuffix("succeeded: "+said, ": ")
	case e.ExecutionFailedEventDetails != nil:
		return x.machine, ended("failed", aws.ToString(e.ExecutionFailedEventDetails.Error), aws.ToString(e.ExecutionFailedEventDetails.Cause))
	case e.Type == sfntypes.HistoryEventTypeExecutionAborted:
		d := e.ExecutionAbortedEventDetails
		if d == nil {
			d = &sfntypes.ExecutionAbortedEventDetails{}
		}
		return x.machine, ended("aborted", aws.ToString(d.Error), aws.ToString(d.Cause))
	case e.Type == sfntypes.HistoryEventTypeExecutionTimedOut:
		return x.machine, "timed out"
	}
	return "", ""
}

func ended(how, name, cause string) string {
	return strings.TrimRight(fmt.Sprintf("%s: %s: %s", how, name, cause), ": ")
}

// requested is what the input of an execution asks for beside its cluster.
func requested(input string) string {
	var in struct {
		Roll []string `json:"roll"`
		events.Upgrade
		Lifecycle string `json:"LifecycleTransition"`
	}
	_ = json.Unmarshal([]byte(input), &in) // an input of another form asks for nothing that is shown
	switch {
	case len(in.Roll) > 0:
		return ": roll " + strings.Join(in.Roll, ", ")
	case in.Rollback:
		return ": rollback"
	case in.Look:
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

// stackIn is the stack that a state works on.
func stackIn(input string) string {
	var in struct {
		Stack string `json:"stack"`
	}
	if json.Unmarshal([]byte(input), &in) != nil || in.Stack == "" {
		return ""
	}
	return ", stack " + in.Stack
}

// answer is what the output of an execution says.
func answer(output string) string {
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

// failed is the failure of a task: which function failed, in which state, and why.
func failed(e sfntypes.HistoryEvent, past map[int64]sfntypes.HistoryEvent, name, cause string) (kind, text string) {
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

// functionIn is the function that a task invokes, or the call that it makes.
func functionIn(parameters, resource string) string {
	var in struct {
		FunctionName string `json:"FunctionName"`
	}
	if json.Unmarshal([]byte(parameters), &in) != nil || in.FunctionName == "" {
		return resource
	}
	return in.FunctionName[strings.LastIndex(in.FunctionName, ":")+1:]
}

// causeOf is the message in Lambda's error object, or the cause itself.
func causeOf(cause string) string {
	var said struct {
		ErrorMessage string `json:"errorMessage"`
		Cause        string `json:"cause"`
	}
	if json.Unmarshal([]byte(cause), &said) == nil {
		switch {
		case said.ErrorMessage != "":
			return said.ErrorMessage
		case said.Cause != "":
			return said.Cause
		}
	}
	return cause
}

// changed are the events of the cluster's stacks: of the stacks themselves, of resources that failed, and of rolls.
func (h *history) changed(ctx context.Context) (found []entry, err error) {
	if h.stacks == nil {
		if err := h.findDeleted(ctx); err != nil {
			return nil, err
		}
	}
	current, err := h.stackNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range append(slices.Clone(h.deleted), current...) {
		entries, err := h.stackEvents(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, entries...)
	}
	return found, nil
}

// findDeleted lists the stacks of the cluster that were deleted in the period. Their events are read by id only.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (h *history) findDeleted(ctx context.Context) error {
	var deleted []string
	pages := cloudformation.NewListStacksPaginator(h.cfn, &cloudformation.ListStacksInput{StackStatusFilter: []cfntypes.StackStatus{cfntypes.StackStatusDeleteComplete}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing the deleted stacks: %w", err)
		}
		for _, s := range page.StackSummaries {
			if cluster, _, ok := names.SplitStack(aws.ToString(s.StackName)); ok && cluster == h.cluster && !aws.ToTime(s.DeletionTime).Before(h.since) {
				deleted = append(deleted, aws.ToString(s.StackId))
			}
		}
	}
	h.deleted, h.stacks = deleted, map[string]string{}
	return nil
}

// stackNames are the stacks that the cluster may have: those of its status, and those of its spec.
func (h *history) stackNames(ctx context.Context) ([]string, error) {
	stacks := map[string]bool{names.Network: true, names.ControlPlane: true, names.Addons: true, names.NodeAddons: true}
	known, err := h.c.state.Status(ctx, h.cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		for _, s := range known.Status.Stacks {
			stacks[s.Name] = true
		}
		for _, s := range known.Status.Plan {
			stacks[s.Stack] = true
		}
	}
	key := names.ClusterSpec(h.cluster)
	if object, err := h.c.specs.Get(ctx, key, api.MaxFile); err == nil { // an unreadable spec adds no stack
		if spec, errs := api.ReadCluster(key, object.Body, options(key)); errs == nil {
			for _, pool := range spec.Spec.Pools {
				stacks[names.PoolStack(pool.Name)] = true
			}
		}
	}
	var all []string
	for stack := range stacks {
		all = append(all, names.Stack(h.cluster, stack))
	}
	slices.Sort(all)
	return all, nil
}

// stackEvents are the new events of a stack, by name or id. A stack that is gone is read by its id, so that the end of its deletion is
// not missed.
func (h *history) stackEvents(ctx context.Context, stack string) (found []entry, err error) {
	found, absent, err := h.eventsOf(ctx, stack)
	if id := h.stacks[stack]; err == nil && absent && id != "" {
		found, _, err = h.eventsOf(ctx, id)
	}
	slices.Reverse(found) // the newest came first
	return found, err
}

func (h *history) eventsOf(ctx context.Context, stack string) (found []entry, absent bool, err error) {
	pages := cloudformation.NewDescribeStackEventsPaginator(h.cfn, &cloudformation.DescribeStackEventsInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if noStack(err) {
			return found, true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("reading the events of stack %s: %w", stack, err)
		}
		fresh := false
		for _, e := range page.StackEvents { // the newest first
			name, at := aws.ToString(e.StackName), aws.ToTime(e.Timestamp)
			if stack == name {
				h.stacks[name] = aws.ToString(e.StackId)
			}
			if at.Before(h.since) {
				return found, false, nil
			}
			if !h.fresh("stack "+aws.ToString(e.StackId)+aws.ToString(e.EventId), at) {
				continue
			}
			fresh = true
			if text := stackText(e); text != "" {
				_, short, _ := names.SplitStack(name)
				found = append(found, entry{at, kindStack, short, text})
			}
		}
		if !fresh {
			return found, false, nil // earlier reads returned this page and those after it
		}
	}
	return found, false, nil
}

// noStack reports whether an error is that there is no such stack. CloudFormation has no code of its own for it.
func noStack(err error) bool {
	var apiError smithy.APIError
	return errors.As(err, &apiError) && apiError.ErrorCode() == "ValidationError" && strings.Contains(apiError.ErrorMessage(), "does not exist")
}

// stackText is the text of a stack's event. Without a text it is left out.
func stackText(e cfntypes.StackEvent) string {
	status, reason := string(e.ResourceStatus), aws.ToString(e.ResourceStatusReason)
	switch {
	case aws.ToString(e.PhysicalResourceId) == aws.ToString(e.StackId):
		if status == "REVIEW_IN_PROGRESS" {
			return ""
		}
		return strings.TrimSuffix(status+": "+reason, ": ")
	case strings.HasSuffix(status, "_FAILED"):
		return fmt.Sprintf("%s %s: %s", aws.ToString(e.LogicalResourceId), status, reason)
	case aws.ToString(e.ResourceType) == "AWS::AutoScaling::AutoScalingGroup" && status == "UPDATE_IN_PROGRESS" && reason != "":
		return fmt.Sprintf("%s: %s", aws.ToString(e.LogicalResourceId), reason)
	}
	return ""
}

// functionErrors are the errors about the cluster of the functions that no machine invokes: those of the others are in executions.
func (h *history) functionErrors(ctx context.Context) (found []entry, err error) {
	began := time.Now()
	for _, function := range []string{"admit", "stackevent", "sweep"} {
		lines, err := h.logs.read(ctx, function, h.logsFrom)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if l.Level == "ERROR" && h.fresh("log "+l.id, l.Time) {
				found = append(found, entry{l.Time, kindFunction, names.Function(function), l.text()})
			}
		}
	}
	h.logsFrom = laterOf(h.since, began.Add(-ingestion))
	return found, nil
}

// drains reports whether a node of the cluster is drained now.
func (h *history) drains() bool {
	for _, x := range h.executions {
		if x.machine == machineDrain && !x.foreign && x.status == sfntypes.ExecutionStatusRunning {
			return true
		}
	}
	return false
}
