package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// No subnet and no security group in which EC2 would launch no node reaches a stack.
func TestWrongNetworksOfPoolsAreRefused(t *testing.T) {
	lives.Run(t, func(l *lives.Life) {
		with := func(fields string) string {
			return strings.Replace(harness.Spec("demo", ""), "maxSize: 3", "maxSize: 3, "+fields, 1)
		}
		requireRefused := func(spec, says string) {
			t.Helper()
			mark := l.Calls.Mark()
			l.Upload(names.ClusterSpec("demo"), spec)
			l.SettleAll()
			require.Contains(t, l.Status("demo").Message, "no stack was changed, because its pools cannot have these:\n"+says)
			require.Equal(t, "ChangeRefused", l.Status("demo").Condition(status.Converged).Reason)
			for _, call := range l.Calls.Since(mark) {
				require.NotContains(t, call.Action, "ChangeSet", says)
			}
		}
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("shop"), harness.Spec("shop", ""))
		l.SettleAll()
		theirs := l.Stack("shop", names.Network).Outputs["VpcId"]
		group := l.CreateSecurityGroup("group", theirs)
		requireRefused(with("securityGroups: ["+group+"]"), fmt.Sprintf("pool a: securityGroups: %s belongs to %s, and the VPC of the cluster "+
			"does not exist yet: create the cluster without it first", group, theirs))
		require.Empty(t, l.Stacks("demo"))

		l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ""))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		own := l.Stack("demo", names.Network).Outputs["VpcId"]
		requireRefused(with("securityGroups: ["+group+"]"), fmt.Sprintf("pool a: securityGroups: %s belongs to %s, and the cluster is in %s",
			group, theirs, own))
		requireRefused(with("securityGroups: [sg-0123456789abcdef0]"), "pool a: securityGroups: sg-0123456789abcdef0 does not exist\n")
		eks := l.Stack("shop", names.ControlPlane).Outputs["ClusterSecurityGroupId"]
		requireRefused(with("securityGroups: ["+eks+"]"), "pool a: securityGroups: "+eks+" is the group that EKS created for drover-shop: ")

		grouped := with("securityGroups: [" + l.CreateSecurityGroup("own", own) + "]")
		l.Upload(names.ClusterSpec("demo"), grouped)
		l.SettleAll()
		l.RequirePhase(status.Ready)
		mark := l.Calls.Mark()
		l.Upload(names.ClusterSpec("demo"), strings.Replace(grouped, "maxSize: 3", "maxSize: 4", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		for _, call := range l.Calls.Since(mark) {
			require.NotEqual(t, "DescribeSecurityGroups", call.Action, "a pool that keeps its groups costs no call")
		}
	})
}
