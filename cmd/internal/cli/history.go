package cli

// The history of a cluster: what happened to it, from every service that records a part of it.

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
	c       *Cell
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

func newHistory(c *Cell, cluster string, since time.Time) *history {
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
