package change_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudformationapi "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// An update outside drover fails and is not rolled back. drover changes the stack again after an operator rolled it back, as the runbook
// says.
func TestStackInUpdateFailed(t *testing.T) {
	lives.RunWithFaults(t, func(l *lives.Life, _ *faults.Engine) {
		l.CreateCluster("")
		cloud, name := cloudformationapi.NewFromConfig(l.Config()), aws.String(names.Stack("demo", "pool-a"))
		out, err := cloud.DescribeStacks(l.T.Context(), &cloudformationapi.DescribeStacksInput{StackName: name})
		require.NoError(t, err)
		in := &cloudformationapi.UpdateStackInput{
			StackName: name, UsePreviousTemplate: aws.Bool(true), DisableRollback: aws.Bool(true),
			Tags:         append(out.Stacks[0].Tags, types.Tag{Key: aws.String("team"), Value: aws.String("shop")}),
			Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam},
		}
		for _, p := range out.Stacks[0].Parameters {
			in.Parameters = append(in.Parameters, types.Parameter{ParameterKey: p.ParameterKey, UsePreviousValue: aws.Bool(true)})
		}
		l.OnResource(lives.FailResource("update", "AWS::AutoScaling::AutoScalingGroup", "pool-a", lives.ErrQuota))
		_, err = cloud.UpdateStack(l.T.Context(), in)
		require.NoError(t, err)
		l.SettleAll()
		l.OnResource(nil)
		require.Equal(t, "UPDATE_FAILED", l.Stacks("demo")["pool-a"])

		l.ChangePool("minSize: 1, maxSize: 4")
		l.RunSchedules(1)
		l.RequirePhase(status.Failed)
		require.Contains(t, l.Status("demo").Message, "non-terminal [UPDATE_FAILED] state")
		require.Equal(t, "UPDATE_FAILED", l.Stacks("demo")["pool-a"])

		_, err = cloud.RollbackStack(l.T.Context(), &cloudformationapi.RollbackStackInput{StackName: name})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
		require.Equal(t, 4, l.Group("demo", "a").Max)
	})
}
