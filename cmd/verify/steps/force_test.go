package steps

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// Stacks of clusters that drover did not delete are deleted in order: another stack may import from the network.
func TestForce(t *testing.T) {
	a, target := open(t)
	require.Equal(t, runner.Skipped, step(t, target.force).Outcome)
	stacks := cloudformation.NewFromConfig(a.Config())
	for _, stack := range []struct{ name, template string }{
		{"-network", "Resources: {Queue: {Type: 'AWS::SQS::Queue'}}\nOutputs: {Queue: {Value: !Ref Queue, Export: {Name: queue}}}"},
		{"-control-plane", "Resources: {Queue: {Type: 'AWS::SQS::Queue', Properties: {Tags: [{Key: x, Value: !ImportValue queue}]}}}"},
		{"-pool-workers", "Resources: {Queue: {Type: 'AWS::SQS::Queue'}}"},
	} {
		_, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{
			StackName: aws.String(target.prefix() + stack.name), TemplateBody: &stack.template, EnableTerminationProtection: aws.Bool(true),
		})
		require.NoError(t, err)
		_, err = target.stackResult(t.Context(), target.prefix()+stack.name)
		require.NoError(t, err)
	}
	result := step(t, target.force)
	require.Equal(t, runner.Passed, result.Outcome, result.Reason)
	require.Equal(t, []string{
		"deleted stack " + target.prefix() + "-pool-workers", "deleted stack " + target.prefix() + "-control-plane",
		"deleted stack " + target.prefix() + "-network",
	}, result.Evidence)
	require.Equal(t, runner.Skipped, step(t, target.force).Outcome)
}
