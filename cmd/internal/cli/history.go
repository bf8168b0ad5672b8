package cli

// The history of a cluster, from all services that record a part of it.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
)

// Kinds of entries. The name of a state machine is a kind, too.
const (
	kindUpload   = "upload"
	kindStack    = "stack"
	kindFunction = "function"
)

// The state machines of drover, without their prefix.
const (
	machineConverge = "converge"
	machineUpgrade  = "upgrade"
	machineJoin     = "join-node"
	machineDrain    = "drain-node"
)

// Entry is one line of a cluster's history.
type Entry struct {
	Time time.Time `json:"time"`
	// Kind is upload, stack, function, or a state machine. In the last case, Subject names its execution.
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

func (e Entry) String() string { return fmt.Sprintf("%-10s  %s: %s", e.Kind, e.Subject, e.Text) }

// execution is an execution of one of drover's state machines.
type execution struct {
	arn, machine, name string
	status             sfntypes.ExecutionStatus
	// subject is the instance or node that it works on. It is empty for an execution that works on the cluster.
	subject string
	// foreign executions work on other clusters. The cluster of an unowned execution is not known yet: it is a running one whose input
	// names only an instance.
	foreign, unowned bool
	// read reports whether the complete history of a finished execution was read.
	read bool
}

// executionsAPI is what History reads from Step Functions.
type executionsAPI interface {
	sfn.ListExecutionsAPIClient
	sfn.GetExecutionHistoryAPIClient
	DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error)
}

// History reads the events of a cluster since a time. Each read returns only events that earlier reads did not return.
type History struct {
	c       *Cell
	cluster string
	since   time.Time
	sfn     executionsAPI
	cfn     *cloudformation.Client
	logs    *functionLogs
	// logsFrom is the start of the next read of logs. listFrom is that of executions; it is zero before the first read.
	logsFrom, listFrom time.Time
	// executions by ARN. stacks has the ids of stacks by name. seen has the ids of events that were returned.
	executions map[string]*execution
	stacks     map[string]string
	deleted    []string
	seen       map[string]bool
	// pending has the entries that sources returned before another source failed. marked has the ids that the current
	// source added to seen.
	pending []Entry
	marked  []string
}

// NewHistory returns the history of a cluster since a time.
func NewHistory(c *Cell, cluster string, since time.Time) *History {
	return &History{
		c: c, cluster: cluster, since: since, sfn: sfn.NewFromConfig(c.cfg), cfn: cloudformation.NewFromConfig(c.cfg),
		logs: newFunctionLogs(c, cluster), logsFrom: since, executions: map[string]*execution{}, seen: map[string]bool{},
	}
}

// Read returns the new entries, the oldest first. After an error, the next read returns the entries that this read found.
func (h *History) Read(ctx context.Context) ([]Entry, error) {
	return h.readFrom(ctx, h.readUploads, h.readExecutions, h.readStackEvents, h.readFunctionErrors)
}

func (h *History) readFrom(ctx context.Context, sources ...func(context.Context) ([]Entry, error)) ([]Entry, error) {
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
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// fresh reports whether an event is in the period and new. It marks the event as seen.
func (h *History) fresh(id string, at time.Time) bool {
	if at.Before(h.since) || h.seen[id] {
		return false
	}
	h.seen[id] = true
	h.marked = append(h.marked, id)
	return true
}

// readUploads returns the new versions and deletions of the spec.
func (h *History) readUploads(ctx context.Context) (found []Entry, err error) {
	key := names.ClusterSpec(h.cluster)
	pages := s3.NewListObjectVersionsPaginator(s3adapter.NewClient(h.c.cfg), &s3.ListObjectVersionsInput{
		Bucket: aws.String(h.c.Specs.Name()), Prefix: &key,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the versions of s3://%s/%s: %w", h.c.Specs.Name(), key, err)
		}
		for _, v := range page.Versions {
			id, at := aws.ToString(v.VersionId), aws.ToTime(v.LastModified)
			if aws.ToString(v.Key) == key && h.fresh("upload "+id, at) {
				found = append(found, Entry{at, kindUpload, key, fmt.Sprintf("uploaded version %s, %d bytes", id, aws.ToInt64(v.Size))})
			}
		}
		for _, v := range page.DeleteMarkers {
			id, at := aws.ToString(v.VersionId), aws.ToTime(v.LastModified)
			if aws.ToString(v.Key) == key && h.fresh("upload "+id, at) {
				found = append(found, Entry{at, kindUpload, key, "deleted, by delete marker " + id})
			}
		}
	}
	return found, nil
}

// timeouts of the state machines. An execution that ended in the period began at most this long before it. A test compares them with the
// deployed machines.
var timeouts = map[string]time.Duration{
	machineConverge: 5 * 24 * time.Hour, machineUpgrade: 14 * 24 * time.Hour, machineJoin: 49 * time.Hour, machineDrain: 49 * time.Hour,
}

// listingDelay bounds the time until an execution is in the list of its machine, which is eventually consistent. Each read of the list
// starts this long before the previous read.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_ListExecutions.html
const listingDelay = 2 * time.Minute

// readExecutions returns the new states of the cluster's executions.
func (h *History) readExecutions(ctx context.Context) (found []Entry, err error) {
	began := time.Now()
	for _, machine := range slices.Sorted(maps.Keys(timeouts)) {
		if err := h.listExecutions(ctx, machine); err != nil {
			return nil, err
		}
	}
	h.listFrom = began.Add(-listingDelay)
	for _, arn := range slices.Sorted(maps.Keys(h.executions)) {
		x := h.executions[arn]
		if x.foreign || x.unowned || x.read {
			continue
		}
		entries, err := h.readStates(ctx, x)
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

// listExecutions adds the running executions of a state machine, and those that ended in the period. The first read lists all executions
// that may have ended in the period. Later reads list those that began since the previous read, and describe those that were running
// then and are not any longer: the list has the newest first, so finding an old execution in it takes many pages.
func (h *History) listExecutions(ctx context.Context, machine string) error {
	arn := h.c.machineARN(machine)
	from := h.since.Add(-timeouts[machine])
	if h.listFrom.After(from) {
		from = h.listFrom
	}
	listed := map[string]bool{}
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
				older = !running && aws.ToTime(item.StartDate).Before(from)
				if older {
					break
				}
				if item.StopDate != nil && !item.StopDate.IsZero() && item.StopDate.Before(h.since) {
					continue
				}
				listed[aws.ToString(item.ExecutionArn)] = true
				if err := h.addExecution(ctx, machine, item); err != nil {
					return err
				}
			}
		}
	}
	for _, known := range slices.Sorted(maps.Keys(h.executions)) {
		x := h.executions[known]
		if x.machine != machine || x.foreign || x.status != sfntypes.ExecutionStatusRunning || listed[known] {
			continue
		}
		described, err := h.describe(ctx, known)
		if err != nil {
			return err
		}
		x.status = described.Status
		if x.unowned {
			x.setOwner(h.cluster, described)
		}
	}
	return nil
}

// addExecution classifies an execution by its cluster. The cluster is in the name that drover gave it, or else in its input or output.
func (h *History) addExecution(ctx context.Context, machine string, item sfntypes.ExecutionListItem) error {
	arn := aws.ToString(item.ExecutionArn)
	if seen, ok := h.executions[arn]; ok && (!seen.unowned || seen.status == item.Status) {
		seen.status = item.Status
		return nil
	}
	x := &execution{arn: arn, machine: machine, name: aws.ToString(item.Name), status: item.Status}
	if owner, ok := clusterOfExecution(machine, x.name); ok {
		x.foreign = owner != h.cluster
		h.executions[arn] = x
		return nil
	}
	described, err := h.describe(ctx, arn)
	if err != nil {
		return err
	}
	x.setOwner(h.cluster, described)
	h.executions[arn] = x
	return nil
}

func (h *History) describe(ctx context.Context, arn string) (*sfn.DescribeExecutionOutput, error) {
	described, err := h.sfn.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		return nil, fmt.Errorf("reading execution %s: %w", arn, err)
	}
	return described, nil
}

// setOwner sets whether the execution works on a cluster, and its subject. If nothing names a cluster yet, its output will.
func (x *execution) setOwner(cluster string, described *sfn.DescribeExecutionOutput) {
	var owner string
	owner, x.subject = subjectOf(aws.ToString(described.Input), aws.ToString(described.Output))
	x.unowned = owner == "" && x.status == sfntypes.ExecutionStatusRunning
	x.foreign = owner != cluster && !x.unowned
}

// eventFunctions are the functions that no state machine invokes. A test compares them with the deployed machines.
var eventFunctions = []string{"admit", "fleet", "publish", "rollout", "stackevent", "sweep"}

// readFunctionErrors returns the errors about the cluster from functions that no state machine invokes. Executions report the errors of
// the other functions.
func (h *History) readFunctionErrors(ctx context.Context) (found []Entry, err error) {
	began := time.Now()
	for _, function := range eventFunctions {
		lines, err := h.logs.read(ctx, function, h.logsFrom)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if l.Level == "ERROR" && h.fresh("log "+l.id, l.Time) {
				found = append(found, Entry{l.Time, kindFunction, names.Function(function), l.text()})
			}
		}
	}
	h.logsFrom = slices.MaxFunc([]time.Time{h.since, began.Add(-ingestionDelay)}, time.Time.Compare)
	return found, nil
}

// Drains reports whether a drain of one of the cluster's nodes is in flight.
func (h *History) Drains() bool {
	for _, x := range h.executions {
		if x.machine == machineDrain && !x.foreign && !x.unowned && x.status == sfntypes.ExecutionStatusRunning {
			return true
		}
	}
	return false
}
