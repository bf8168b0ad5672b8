package private_test

// The whole life of a cluster whose endpoint is private, without NAT gateways.

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestPrivateClusterLife(t *testing.T) {
	run(t, func(l *life) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"),
			strings.Replace(harness.Spec("demo", lives.PrivateEndpoint+lives.Unprotected), "natGateways: Single", "natGateways: None", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready) // prepare and join reached the API
		require.Len(t, l.Lambda.Tagged(t.Context()), 1)
		require.Contains(t, l.Lambda.Tagged(t.Context())[0].ARN, names.Relay("demo"))
		l.Audit()
		require.Nil(t, l.Status("demo").Condition(status.InSync), "the audit reads the nodes")
		l.TerminateInstance()
		l.SettleAll()
		l.RequirePhase(status.Ready)

		require.NotEmpty(t, l.interfaces())
		begin := time.Now()
		l.Remove(names.ClusterSpec("demo"), "")
		l.SettleAll()
		require.Greater(t, time.Since(begin), 20*time.Minute, "Lambda deletes the network interfaces that long after the relay")
		l.RequirePhase(status.Deleted)
		require.Empty(t, l.Lambda.Tagged(t.Context()))
		require.Empty(t, l.EC2.Tagged(t.Context()))
		require.Empty(t, l.interfaces())
		require.Less(t, time.Since(begin), 2*time.Hour)
	})
}

// The network interfaces of a deleted relay outlive it by twenty minutes. They block the security group and the subnets, and Lambda deletes
// them with the relay's role.
func TestDeletionWithoutTheRelay(t *testing.T) {
	for name, before := range map[string]time.Duration{"just deleted": 0, "deleted long ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			run(t, func(l *life) {
				l.private(lives.Unprotected)
				l.DeleteRelay()
				require.NotEmpty(t, l.interfaces(), "the interfaces remain")
				time.Sleep(before)
				l.Remove(names.ClusterSpec("demo"), "")
				l.RunSchedules(3)
				l.RequirePhase(status.Deleted)
				require.Empty(t, l.Stacks("demo"))
				require.Empty(t, l.interfaces())
				require.Empty(t, l.EC2.Tagged(t.Context()))
			})
		})
	}
}

// CloudFormation does not wait for the network interfaces of a function that was deleted outside drover. So it could not delete the
// security group of the relay, and an update forgets what it could not delete.
func TestEndpointThatBecomesOpen(t *testing.T) {
	for name, deleteRelay := range map[string]func(l *life){
		"the relay exists":             func(*life) {},
		"the relay was deleted":        func(l *life) { l.DeleteRelay() },
		"the relay is deleted by then": func(l *life) { go func() { time.Sleep(time.Minute); l.DeleteRelay() }() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(l *life) {
				before := l.AllResources()
				l.private(lives.Unprotected)
				outputs := func() map[string]string { return l.Stack("demo", names.ControlPlane).Outputs }
				open := func(more string) map[string]string {
					t.Helper()
					l.ChangeSpec(lives.Unprotected + more)
					l.RequirePhase(status.Ready)
					require.Zero(t, l.relays())
					require.NotEmpty(t, outputs()[stack.OutputRelayGroup])
					require.Empty(t, outputs()[stack.OutputRelay])
					return outputs()
				}
				deleteRelay(l)
				require.Equal(t, open(""), open("  tags: {team: a}\n"))
				l.ChangeSpec(lives.PrivateEndpoint + lives.Unprotected)
				l.requireRelay()
				require.Empty(t, outputs()[stack.OutputRelayGroup])
				open("")
				l.Audit()
				require.Nil(t, l.Status("demo").Condition(status.InSync))
				l.Remove(names.ClusterSpec("demo"), "")
				l.RunSchedules(3)
				l.RequireDeleted("demo", before)
				require.Empty(t, l.interfaces())
			})
		})
	}
}

// interfaces lists the network interfaces of functions.
func (l *life) interfaces() []ec2types.NetworkInterface {
	l.T.Helper()
	out, err := ec2.NewFromConfig(l.Config()).DescribeNetworkInterfaces(l.T.Context(), &ec2.DescribeNetworkInterfacesInput{
		Filters: []ec2types.Filter{{Name: aws.String("interface-type"), Values: []string{"lambda"}}},
	})
	require.NoError(l.T, err)
	return out.NetworkInterfaces
}
