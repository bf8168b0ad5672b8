package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/shared/names"
)

// destroy removes the cell stack. The base stack stays, and with it the specs, the statuses and the roles that clusters know.
func destroy(ctx context.Context, t *target) error {
	clusters, err := t.clusters(ctx)
	if err != nil {
		return err
	}
	stay := "no cluster exists"
	if len(clusters) > 0 {
		stay = "these clusters stay and run without drover: " + strings.Join(clusters, ", ")
	}
	work, err := t.inFlight(ctx)
	if err != nil {
		return err
	}
	if len(work) > 0 {
		t.say("This stops work in flight, which the next deployment continues: %s. Until then AWS alone replaces nodes: see "+
			"docs/runbook.md#removal-of-drover.", strings.Join(work, ", "))
	}
	err = t.confirm("This removes drover from account %s, region %s. Specs and statuses stay; %s.", t.account, t.region, stay)
	if err != nil {
		return err
	}
	return t.removeCell(ctx)
}

// removeCell deletes the cell stack, if it exists.
func (t *target) removeCell(ctx context.Context) error {
	exists, err := t.exists(ctx, names.CellStack)
	if err != nil || !exists {
		return err
	}
	if err := t.protect(ctx, names.CellStack, false); err != nil {
		return err
	}
	// Step Functions deletes a state machine only after its executions have ended, and drover's may wait for days. Rules and schedules
	// can start new ones until they are deleted, so the executions are stopped for as long as the deletion takes.
	// https://docs.aws.amazon.com/step-functions/latest/apireference/API_DeleteStateMachine.html
	stopping, cancel := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- t.stopExecutions(stopping) }()
	err = t.cdk.run(ctx, "destroy", names.CellStack, "--exclusively", "--force")
	cancel()
	if err := errors.Join(err, <-stopped); err != nil {
		return fmt.Errorf("%w: fix the cause and run the command again", err)
	}
	t.say("drover is removed. Its buckets and the roles that clusters know are in stack %s.", names.BaseStack)
	return nil
}

// inFlight counts the running executions of drover's machines.
func (t *target) inFlight(ctx context.Context) ([]string, error) {
	var work []string
	for _, machine := range names.Machines() {
		executions, err := t.executions(ctx, machine)
		if err != nil {
			return nil, err
		}
		if len(executions) > 0 {
			work = append(work, fmt.Sprintf("%d of %s", len(executions), machine))
		}
	}
	return work, nil
}

// executions lists the running executions of a machine. It lists none if the machine does not exist.
func (t *target) executions(ctx context.Context, machine string) ([]sfntypes.ExecutionListItem, error) {
	machineARN := fmt.Sprintf("arn:%s:states:%s:%s:stateMachine:%s", t.partition, t.region, t.account, machine)
	pages := sfn.NewListExecutionsPaginator(t.machines, &sfn.ListExecutionsInput{
		StateMachineArn: &machineARN, StatusFilter: sfntypes.ExecutionStatusRunning,
	})
	var found []sfntypes.ExecutionListItem
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if notFound := (*sfntypes.StateMachineDoesNotExist)(nil); errors.As(err, &notFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the executions of %s: %w", machine, err)
		}
		found = append(found, page.Executions...)
	}
	return found, nil
}

// stopExecutions stops the executions of drover's machines until the context ends.
func (t *target) stopExecutions(ctx context.Context) error {
	reported := map[string]bool{}
	for {
		for _, machine := range names.Machines() {
			executions, err := t.executions(ctx, machine)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			for _, execution := range executions {
				_, err := t.machines.StopExecution(ctx, &sfn.StopExecutionInput{
					ExecutionArn: execution.ExecutionArn, Error: aws.String(names.Removed),
					Cause: aws.String("drover is being removed from the account"),
				})
				if ctx.Err() != nil {
					return nil
				}
				if absent := (*sfntypes.ExecutionDoesNotExist)(nil); err != nil && !errors.As(err, &absent) {
					return fmt.Errorf("stopping %s: %w", aws.ToString(execution.ExecutionArn), err)
				}
				if name := aws.ToString(execution.Name); !reported[name] {
					reported[name] = true
					t.say("stopped execution %s of %s", name, machine)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(stopInterval):
		}
	}
}

// stopInterval is the pause between two searches for executions that started during the removal.
const stopInterval = 3 * time.Second

// clusters lists the clusters that have a stack, sorted.
func (t *target) clusters(ctx context.Context) ([]string, error) {
	var clusters []string
	pages := cloudformation.NewDescribeStacksPaginator(t.stacks, &cloudformation.DescribeStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the stacks of clusters: %w", err)
		}
		for _, stack := range page.Stacks {
			cluster, _, ok := names.SplitStack(aws.ToString(stack.StackName))
			if ok && !slices.Contains(clusters, cluster) {
				clusters = append(clusters, cluster)
			}
		}
	}
	slices.Sort(clusters)
	return clusters, nil
}

// exists reports whether the stack exists.
func (t *target) exists(ctx context.Context, stack string) (bool, error) {
	out, err := t.stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	var failure smithy.APIError
	if errors.As(err, &failure) && failure.ErrorCode() == "ValidationError" && strings.Contains(failure.ErrorMessage(), "does not exist") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading stack %s: %w", stack, err)
	}
	return len(out.Stacks) > 0 && out.Stacks[0].StackStatus != types.StackStatusDeleteComplete, nil
}

var errNoTerminal = errors.New("no terminal for the confirmation: set YES=1 to continue without a question")

// confirm asks the user to continue. Without a terminal it fails unless YES=1.
func (t *target) confirm(format string, args ...any) error {
	t.say(format, args...)
	if t.yes {
		return nil
	}
	if file, ok := t.in.(*os.File); ok {
		if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return errNoTerminal
		}
	}
	fmt.Fprint(t.out, "Continue? Type yes: ")
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if errors.Is(err, io.EOF) && answer == "" {
		return errNoTerminal
	}
	if err != nil && answer == "" {
		return fmt.Errorf("reading your answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// partitionOf returns the partition of an ARN.
func partitionOf(identity string) string {
	parsed, err := arn.Parse(identity)
	if err != nil {
		return "aws"
	}
	return parsed.Partition
}
