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
	// foreign executions work on other clusters.
	foreign bool
	// read reports whether the complete history of a finished execution was read.
	read bool
}

// History reads the events of a cluster since a time. Each read returns only events that earlier reads did not return.
type History struct {
	c       *Cell
	cluster string
	since   time.Time
	sfn     *sfn.Client
	cfn     *cloudformation.Client
	logs    *functionLogs
	// logsFrom is the start of the next read of logs.
	logsFrom time.Time
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

// maxExecution bounds the duration of an execution: one that ended in the period started at most this long before it.
const maxExecution = 24 * time.Hour

// readExecutions returns the new states of the cluster's executions.
func (h *History) readExecutions(ctx context.Context) (found []Entry, err error) {
	for _, machine := range []string{machineConverge, machineUpgrade, machineJoin, machineDrain} {
		if err := h.listExecutions(ctx, machine); err != nil {
			return nil, err
		}
	}
	for _, arn := range slices.Sorted(maps.Keys(h.executions)) {
		x := h.executions[arn]
		if x.foreign || x.read {
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

// listExecutions adds the running executions of a state machine, and those that ended in the period.
func (h *History) listExecutions(ctx context.Context, machine string) error {
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
				older = !running && aws.ToTime(item.StartDate).Before(h.since.Add(-maxExecution))
				if older {
					break
				}
				if item.StopDate != nil && !item.StopDate.IsZero() && item.StopDate.Before(h.since) {
					continue
				}
				if err := h.addExecution(ctx, machine, item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addExecution classifies an execution by its cluster. The cluster is in the name that drover gave it, or else in its input or output.
func (h *History) addExecution(ctx context.Context, machine string, item sfntypes.ExecutionListItem) error {
	arn := aws.ToString(item.ExecutionArn)
	if seen, ok := h.executions[arn]; ok && (seen.foreign || seen.subject != "" || seen.status == item.Status) {
		seen.status = item.Status
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

// readFunctionErrors returns the errors about the cluster from functions that no state machine invokes. Executions report the errors of
// the other functions.
func (h *History) readFunctionErrors(ctx context.Context) (found []Entry, err error) {
	began := time.Now()
	for _, function := range []string{"admit", "stackevent", "sweep"} {
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
	h.logsFrom = laterOf(h.since, began.Add(-ingestionDelay))
	return found, nil
}

// Drains reports whether a drain of one of the cluster's nodes is in flight.
func (h *History) Drains() bool {
	for _, x := range h.executions {
		if x.machine == machineDrain && !x.foreign && x.status == sfntypes.ExecutionStatusRunning {
			return true
		}
	}
	return false
}
