package cli

// History of stacks: CloudFormation's events.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

// readStackEvents returns the new events of the cluster's stacks: statuses of stacks, failures of resources, and rolls.
func (h *History) readStackEvents(ctx context.Context) (found []Entry, err error) {
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

// findDeleted lists the stacks of the cluster that were deleted in the period. CloudFormation returns their events by id only.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
func (h *History) findDeleted(ctx context.Context) error {
	var deleted []string
	pages := cloudformation.NewListStacksPaginator(h.cfn, &cloudformation.ListStacksInput{
		StackStatusFilter: []cfntypes.StackStatus{cfntypes.StackStatusDeleteComplete},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing the deleted stacks: %w", err)
		}
		for _, s := range page.StackSummaries {
			if cluster, _, ok := names.SplitStack(aws.ToString(s.StackName)); ok && cluster == h.cluster && !aws.ToTime(s.DeletionTime).
				Before(h.since) {
				deleted = append(deleted, aws.ToString(s.StackId))
			}
		}
	}
	h.deleted, h.stacks = deleted, map[string]string{}
	return nil
}

// stackNames returns the stacks that the cluster may have: those in its status and those of its spec.
func (h *History) stackNames(ctx context.Context) ([]string, error) {
	stacks := map[string]bool{
		names.Network: true, names.ControlPlane: true, names.Addons: true, names.Identities: true, names.Capabilities: true,
		names.NodeAddons: true,
	}
	recorded, err := h.c.State.Status(ctx, h.cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		for _, s := range recorded.Status.Stacks {
			stacks[s.Name] = true
		}
		for _, s := range recorded.Status.Plan {
			stacks[s.Stack] = true
		}
	}
	key := names.ClusterSpec(h.cluster)
	if object, err := h.c.Specs.Get(ctx, key, api.MaxFile); err == nil { // an unreadable spec adds no stack
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

// stackEvents returns the new events of a stack, by name or id. It reads a deleted stack by its id, to include the end of the deletion.
func (h *History) stackEvents(ctx context.Context, stack string) (found []Entry, err error) {
	found, absent, err := h.eventsOf(ctx, stack)
	if id := h.stacks[stack]; err == nil && absent && id != "" {
		found, _, err = h.eventsOf(ctx, id)
	}
	slices.Reverse(found) // CloudFormation returns the newest first
	return found, err
}

func (h *History) eventsOf(ctx context.Context, stack string) (found []Entry, absent bool, err error) {
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
				found = append(found, Entry{at, kindStack, short, text})
			}
		}
		if !fresh {
			return found, false, nil // earlier reads returned this page and those after it
		}
	}
	return found, false, nil
}

// noStack reports whether an error means that the stack does not exist. CloudFormation has no separate code for this error.
func noStack(err error) bool {
	var apiError smithy.APIError
	return errors.As(err, &apiError) && apiError.ErrorCode() == "ValidationError" && strings.Contains(apiError.ErrorMessage(),
		"does not exist")
}

// stackText describes a stack's event. An event without text is omitted.
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
