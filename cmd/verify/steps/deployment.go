package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// bootstrap prepares the account for the CDK, which may be done already.
func (t *Target) bootstrap(ctx context.Context, log *runner.Log) error {
	before, err := t.stacks(ctx)
	if err != nil {
		return err
	}
	if err := t.runDeploy(ctx, log, "bootstrap"); err != nil {
		return err
	}
	if slices.Contains(before, toolkitStack) {
		log.Found("stack %s existed before", toolkitStack)
	} else {
		log.Found("stack %s is new; it stays, because other applications may use it", toolkitStack)
	}
	return nil
}

// toolkitStack is the stack of cdk bootstrap.
const toolkitStack = "CDKToolkit"

// deploy deploys drover.
func (t *Target) deploy(ctx context.Context, log *runner.Log) error {
	if err := t.runDeploy(ctx, log, "deploy", "--approval", "never"); err != nil {
		return err
	}
	return t.requireStacks(ctx, log, names.BaseStack, names.CellStack)
}

// requireStacks fails unless exactly these stacks of drover's exist.
func (t *Target) requireStacks(ctx context.Context, log *runner.Log, want ...string) error {
	stacks, err := t.stacks(ctx)
	if err != nil {
		return err
	}
	for _, stack := range []string{names.BaseStack, names.CellStack} {
		switch exists := slices.Contains(stacks, stack); {
		case exists && !slices.Contains(want, stack):
			return fmt.Errorf("stack %s still exists", stack)
		case !exists && slices.Contains(want, stack):
			return fmt.Errorf("stack %s does not exist", stack)
		}
	}
	if len(want) == 0 {
		log.Found("none of drover's stacks exists")
	} else {
		log.Found("of drover's stacks these exist: %s", strings.Join(want, ", "))
	}
	return nil
}

// destroy removes drover, and keeps its buckets.
func (t *Target) destroy(ctx context.Context, log *runner.Log) error {
	if err := t.runDeploy(ctx, log, "destroy"); err != nil {
		return err
	}
	return t.requireStacks(ctx, log, names.BaseStack)
}

// destroyAll removes drover with its buckets, and ends the run.
func (t *Target) destroyAll(ctx context.Context, log *runner.Log) error {
	marked, err := t.isMarked(ctx)
	if err != nil {
		return err
	}
	if !marked {
		return runner.Skip("this run deployed nothing")
	}
	if err := t.runDeploy(ctx, log, "destroy-all"); err != nil {
		return err
	}
	if err := t.requireStacks(ctx, log); err != nil {
		return err
	}
	left, err := t.remainsOfDrover(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("drover left something: %s: remove it by hand", strings.Join(left, ", "))
	}
	log.Found("no bucket, function, role, machine or log group of drover's exists")
	return t.unmark(ctx)
}

// stacks lists the stacks that exist.
func (t *Target) stacks(ctx context.Context) ([]string, error) {
	var found []string
	pages := cloudformation.NewDescribeStacksPaginator(cloudformation.NewFromConfig(t.cfg), &cloudformation.DescribeStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing stacks: %w", err)
		}
		for _, stack := range page.Stacks {
			if stack.StackStatus != types.StackStatusDeleteComplete {
				found = append(found, aws.ToString(stack.StackName))
			}
		}
	}
	return found, nil
}
