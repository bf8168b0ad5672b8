package harness

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudformationapi "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// An update outside drover fails and is not rolled back. drover changes the stack again after an operator rolled it back, as the runbook
// says.
func TestStackInUpdateFailed(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.create("")
		cloud, name := cloudformationapi.NewFromConfig(l.Config()), aws.String(names.Stack("demo", "pool-a"))
		out, err := cloud.DescribeStacks(l.t.Context(), &cloudformationapi.DescribeStacksInput{StackName: name})
		require.NoError(t, err)
		in := &cloudformationapi.UpdateStackInput{
			StackName: name, UsePreviousTemplate: aws.Bool(true), DisableRollback: aws.Bool(true),
			Tags:         append(out.Stacks[0].Tags, types.Tag{Key: aws.String("team"), Value: aws.String("shop")}),
			Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam},
		}
		for _, p := range out.Stacks[0].Parameters {
			in.Parameters = append(in.Parameters, types.Parameter{ParameterKey: p.ParameterKey, UsePreviousValue: aws.Bool(true)})
		}
		l.OnResource(failing("update", "AWS::AutoScaling::AutoScalingGroup", "pool-a", errQuota))
		_, err = cloud.UpdateStack(l.t.Context(), in)
		require.NoError(t, err)
		l.settle()
		l.OnResource(nil)
		require.Equal(t, "UPDATE_FAILED", l.Stacks("demo")["pool-a"])

		l.pool("minSize: 1, maxSize: 4")
		l.scheduled(1)
		l.phase(status.Failed)
		require.Contains(t, l.Status("demo").Message, "non-terminal [UPDATE_FAILED] state")
		require.Equal(t, "UPDATE_FAILED", l.Stacks("demo")["pool-a"])

		_, err = cloud.RollbackStack(l.t.Context(), &cloudformationapi.RollbackStackInput{StackName: name})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
		l.again()
		l.phase(status.Ready)
		require.Equal(t, 4, l.Group("demo", "a").Max)
	})
}
