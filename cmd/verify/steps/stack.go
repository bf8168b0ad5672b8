package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
)

// ownPrefix begins the names of the stacks that the run makes itself, without drover.
func (t *Target) ownPrefix() string { return t.cluster() + "-" }

// stackPoll is the pause between two reads of a stack.
const stackPoll = 3 * time.Second

// beginStack starts the creation of a stack of the run. role is the role with which CloudFormation acts, or empty for the caller's.
func (t *Target) beginStack(ctx context.Context, name, template, role string) error {
	in := &cloudformation.CreateStackInput{
		StackName: aws.String(t.ownPrefix() + name), TemplateBody: &template, Capabilities: []types.Capability{types.CapabilityCapabilityIam},
		Tags: []types.Tag{{Key: aws.String(tagKey), Value: &t.Suffix}},
	}
	if role != "" {
		in.RoleARN = &role
	}
	if _, err := cloudformation.NewFromConfig(t.cfg).CreateStack(ctx, in); err != nil {
		return fmt.Errorf("creating stack %s: %w", *in.StackName, err)
	}
	return nil
}

// stackResult waits until no operation of a stack runs. It returns the stack, or nil if it does not exist.
func (t *Target) stackResult(ctx context.Context, name string) (stack *types.Stack, err error) {
	err = t.until(ctx, stackPoll, "stack "+name, func() (bool, error) {
		stack, err = t.stack(ctx, name)
		return stack == nil || !strings.HasSuffix(string(stack.StackStatus), "_IN_PROGRESS"), err
	})
	return stack, err
}

// stack reads a stack. It returns nil if the stack does not exist.
func (t *Target) stack(ctx context.Context, name string) (*types.Stack, error) {
	out, err := cloudformation.NewFromConfig(t.cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	var failure smithy.APIError
	if errors.As(err, &failure) && failure.ErrorCode() == "ValidationError" && strings.Contains(failure.ErrorMessage(), "does not exist") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading stack %s: %w", name, err)
	}
	if out.Stacks[0].StackStatus == types.StackStatusDeleteComplete {
		return nil, nil
	}
	return &out.Stacks[0], nil
}

// createStack creates a stack of the run with the caller's permissions, and returns its outputs.
func (t *Target) createStack(ctx context.Context, name, template string) (map[string]string, error) {
	if err := t.beginStack(ctx, name, template, ""); err != nil {
		return nil, err
	}
	stack, err := t.stackResult(ctx, t.ownPrefix()+name)
	if err != nil {
		return nil, err
	}
	if stack == nil || stack.StackStatus != types.StackStatusCreateComplete {
		reason, err := t.firstFailure(ctx, t.ownPrefix()+name)
		return nil, errors.Join(fmt.Errorf("creating stack %s failed: %s", t.ownPrefix()+name, reason), err)
	}
	outputs := map[string]string{}
	for _, output := range stack.Outputs {
		outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	return outputs, nil
}

// firstFailure returns the reason of the first resource that failed in a stack, or an empty string. Later failures result from the first.
func (t *Target) firstFailure(ctx context.Context, name string) (reason string, err error) {
	pages := cloudformation.NewDescribeStackEventsPaginator(cloudformation.NewFromConfig(t.cfg), &cloudformation.DescribeStackEventsInput{
		StackName: &name,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the events of stack %s: %w", name, err)
		}
		for _, event := range page.StackEvents { // the newest first
			if strings.HasSuffix(string(event.ResourceStatus), "_FAILED") {
				reason = aws.ToString(event.LogicalResourceId) + ": " + aws.ToString(event.ResourceStatusReason)
			}
		}
	}
	return reason, nil
}

// reasonsSince returns the reasons of the resources that failed in a stack since a time, the oldest first.
func (t *Target) reasonsSince(ctx context.Context, name string, since time.Time) (reasons []string, err error) {
	pages := cloudformation.NewDescribeStackEventsPaginator(cloudformation.NewFromConfig(t.cfg), &cloudformation.DescribeStackEventsInput{
		StackName: &name,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the events of stack %s: %w", name, err)
		}
		for _, event := range page.StackEvents {
			if strings.HasSuffix(string(event.ResourceStatus), "_FAILED") && !aws.ToTime(event.Timestamp).Before(since.Add(-time.Minute)) {
				reasons = append(reasons, aws.ToString(event.LogicalResourceId)+": "+aws.ToString(event.ResourceStatusReason))
			}
		}
	}
	slices.Reverse(reasons)
	return reasons, nil
}

// failureSince returns the first of these reasons, or an empty string.
func (t *Target) failureSince(ctx context.Context, name string, since time.Time) (string, error) {
	reasons, err := t.reasonsSince(ctx, name, since)
	if err != nil || len(reasons) == 0 {
		return "", err
	}
	return reasons[0], nil
}

// ownStacks lists the stacks that the run made itself.
func (t *Target) ownStacks(ctx context.Context) (own []string, err error) {
	all, err := t.stacks(ctx)
	for _, name := range all {
		if strings.HasPrefix(name, t.ownPrefix()) {
			own = append(own, name)
		}
	}
	return own, err
}

// removeStack deletes a stack and waits for its end.
func (t *Target) removeStack(ctx context.Context, name string) error {
	if _, err := cloudformation.NewFromConfig(t.cfg).DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &name}); err != nil {
		return fmt.Errorf("deleting stack %s: %w", name, err)
	}
	stack, err := t.stackResult(ctx, name)
	if err != nil {
		return err
	}
	if stack != nil {
		return fmt.Errorf("stack %s is %s: %s", name, stack.StackStatus, aws.ToString(stack.StackStatusReason))
	}
	return nil
}
