package steps

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/engine/questions"
)

// open starts a local account and returns a run in it.
func open(t *testing.T) (*account.Account, *Target) {
	t.Helper()
	return openWith(t, nil)
}

func openWith(t *testing.T, readings questions.Readings) (*account.Account, *Target) {
	t.Helper()
	a, err := account.Start(account.Options{Dir: filepath.Join(t.TempDir(), "account"), Speed: 1000, Readings: readings})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	for key, value := range a.Environment() {
		t.Setenv(key, value)
	}
	target, err := Open(t.Context(), Options{Dir: t.TempDir()}, &runner.Meter{})
	require.NoError(t, err)
	require.True(t, target.Simulated)
	return a, target
}

// step runs one function as a step. A step that shows a second time what is still there is interrupted: it waits for that.
func step(t *testing.T, run func(context.Context, *runner.Log) error) runner.Result {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	waits := 0
	r := &runner.Run{Clock: time.Now, Meter: &runner.Meter{}, Show: func(line string) {
		t.Log(line)
		if strings.Contains(line, "still there: ") {
			waits++
		}
		if waits == 2 {
			interrupt()
		}
	}}
	require.NoError(t, r.Do(ctx, t.Context(), []runner.Step{{Name: "step", Title: "title", Timeout: time.Minute, Run: run}}))
	return r.Results[0]
}

// Each kind of resource that remains makes the proof fail by its name.
func TestNothingLeft(t *testing.T) {
	a, target := open(t)
	require.Equal(t, runner.Skipped, step(t, target.nothingLeft).Outcome, "a run that made nothing proves nothing")
	require.NoError(t, target.mark(t.Context()))
	target.removed = true
	require.Equal(t, runner.Passed, step(t, target.nothingLeft).Outcome)

	network := ec2.NewFromConfig(a.Config())
	vpc, err := network.CreateVpc(t.Context(), &ec2.CreateVpcInput{
		CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeVpc, Tags: []types.Tag{{Key: aws.String(tagKey), Value: &target.Suffix}},
		}},
	})
	require.NoError(t, err)
	result := step(t, target.nothingLeft)
	require.Equal(t, runner.Failed, result.Outcome)
	require.Contains(t, result.Reason, *vpc.Vpc.VpcId)
	_, err = network.DeleteVpc(t.Context(), &ec2.DeleteVpcInput{VpcId: vpc.Vpc.VpcId})
	require.NoError(t, err)

	stacks := cloudformation.NewFromConfig(a.Config())
	left := func(resource, properties string) {
		t.Helper()
		name := target.prefix() + "-extra"
		_, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{
			StackName:    &name,
			TemplateBody: aws.String("Resources: {It: {Type: '" + resource + "', DeletionPolicy: Retain, Properties: " + properties + "}}"),
		})
		require.NoError(t, err)
		wait := cloudformation.NewStackCreateCompleteWaiter(stacks, quick)
		require.NoError(t, wait.Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: &name}, time.Minute))
		require.Contains(t, step(t, target.nothingLeft).Reason, name, "the stack itself")
		_, err = stacks.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &name})
		require.NoError(t, err)
		require.NoError(t, target.until(t.Context(), 10*time.Millisecond, "the end of the stack", func() (bool, error) {
			found, err := target.clusterStacks(t.Context())
			return len(found) == 0, err
		}))
	}
	left("AWS::Logs::LogGroup", "{LogGroupName: /aws/eks/"+target.prefix()+"/cluster}")
	require.Contains(t, step(t, target.nothingLeft).Reason, "log group /aws/eks/"+target.prefix())
	left("AWS::SQS::Queue", "{QueueName: extra, Tags: [{Key: "+tagKey+", Value: "+target.Suffix+"}]}")
	require.Contains(t, step(t, target.nothingLeft).Reason, "arn:aws:sqs:us-east-1:"+account.ID+":extra", "only the tagging API knows it")
}

// quick makes the waiter of the SDK poll often.
func quick(o *cloudformation.StackCreateCompleteWaiterOptions) {
	o.MinDelay, o.MaxDelay = 10*time.Millisecond, 20*time.Millisecond
}

// A run refuses an account that has drover, or that an earlier run left. It then marks nothing, so its cleanup removes nothing.
func TestCheckAccount(t *testing.T) {
	a, target := open(t)
	_, err := cloudformation.NewFromConfig(a.Config()).CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String("DroverBase"), TemplateBody: aws.String("Resources: {Queue: {Type: 'AWS::SQS::Queue'}}"),
	})
	require.NoError(t, err)
	require.Contains(t, step(t, target.checkAccount).Reason, "drover is deployed in this account and region")
	require.Equal(t, runner.Skipped, step(t, target.destroyAll).Outcome)
	require.Equal(t, runner.Skipped, step(t, target.remove).Outcome)

	other, err := Open(t.Context(), Options{Dir: t.TempDir()}, &runner.Meter{})
	require.NoError(t, err)
	require.NoError(t, other.mark(t.Context()))
	require.Contains(t, step(t, target.checkAccount).Reason, other.Suffix)
	require.NoError(t, other.unmark(t.Context()))
	require.NotContains(t, step(t, target.checkAccount).Reason, other.Suffix)
}
