package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/drover-run/drover/shared/names"
)

// bootstrap prepares the environment for the CDK. It needs no app, so nothing has to be compiled before.
func bootstrap(ctx context.Context, t *target) error {
	return t.cdk.runWithoutApp(ctx, "bootstrap", fmt.Sprintf("aws://%s/%s", t.account, t.region))
}

// deploy deploys both stacks and enables their termination protection. The CDK command would enable the protection before it creates
// a stack, and then could not delete a creation that failed. It also disables the protection during each deployment.
func deploy(ctx context.Context, t *target) error {
	if err := t.cdk.run(ctx, "deploy", "--all", "--require-approval", t.cdk.approval); err != nil {
		return fmt.Errorf("%w: fix the cause and run make deploy again, without cleanup (without a terminal, with APPROVAL=never)", err)
	}
	for _, stack := range []string{names.BaseStack, names.CellStack} {
		if err := t.protect(ctx, stack, true); err != nil {
			return err
		}
	}
	t.say("drover is deployed in account %s, region %s. Termination protection is on.", t.account, t.region)
	return nil
}

// protect enables or disables the termination protection of a stack.
func (t *target) protect(ctx context.Context, stack string, on bool) error {
	_, err := t.stacks.UpdateTerminationProtection(ctx, &cloudformation.UpdateTerminationProtectionInput{
		StackName: &stack, EnableTerminationProtection: aws.Bool(on),
	})
	if err != nil {
		return fmt.Errorf("setting the termination protection of stack %s: %w", stack, err)
	}
	return nil
}
