package upgrade_test

// A control plane whose version changed outside drover: EKS upgrades it at the end of support, or a user does so in the console.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// changeVersionInConsole changes the version of the control plane as in the console, and waits.
func (l *life) changeVersionInConsole(version string) {
	l.T.Helper()
	_, err := l.EKS.UpdateClusterVersion(l.T.Context(), l.Admin(), eks.UpdateClusterVersionInput{
		Name: "drover-demo", Version: version, Force: true,
	})
	require.NoError(l.T, err)
	time.Sleep(eks.UpdateTakes + time.Minute)
}

// inSync returns the findings of the audit; "" without drift.
func (l *life) inSync() string {
	l.T.Helper()
	l.Audit()
	c := l.Status("demo").Condition(status.InSync)
	if c == nil || c.Status == "True" {
		return ""
	}
	return c.Message
}

// The audit reports the external change and its resolution, and that resolution works.
func TestExternalControlPlaneVersion(t *testing.T) {
	t.Run("forwards", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			require.Empty(t, l.inSync())
			l.changeVersionInConsole("1.36")
			require.Equal(t, "EKS runs Kubernetes 1.36, and drover deployed 1.35: EKS upgraded it when support ended, "+
				"or it was upgraded outside drover. Upgrade to a release of Kubernetes 1.36: then stack and control plane match.", l.inSync())
			require.Equal(t, status.Ready, l.Status("demo").Phase)
			began := len(l.Executions("converge"))
			l.Audit()
			require.Len(t, l.Executions("converge"), began, "only a user changes the version")
			mark := l.Calls.Mark()
			l.Audit()
			asked := 0
			for _, call := range l.Calls.Since(mark) {
				if call.Action == "DescribeCluster" && harness.CalledBy(call) == "sweep" {
					asked++
				}
			}
			require.Equal(t, 1, asked, "once for each cluster and audit")

			l.ChangeRelease("r2")
			l.SettleAll()
			l.RequireUpgraded()
			require.Empty(t, l.inSync())
		})
	})
	t.Run("though add-ons would have had to go first", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			const coredns, before = "v1.13.2-eksbuild.1", "v1.11.4-eksbuild.24"
			l.Upload(names.ReleaseSpec("r1"), strings.Replace(harness.ReleaseOf("1.33", "r1"), coredns, before, 1))
			l.Upload(names.ReleaseSpec("r2"), strings.Replace(harness.ReleaseOf("1.35", "r2"), "spec:\n", "spec:\n  upgradeFrom: \"1.33\"\n", 1))
			l.ChangeSpec("")
			l.RequirePhase(status.Ready)
			l.changeVersionInConsole("1.34")
			require.Contains(t, l.inSync(), "EKS runs Kubernetes 1.34, and drover deployed 1.33")
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "name: r1", "name: r2", 1))
			l.SettleAll()
			s := l.Status("demo")
			require.Equal(t, "Done", s.Upgrade.Phase, s.Upgrade.Message)
			require.Equal(t, []string{
				"control plane to 1.34", "control plane to 1.35", "add-ons to the versions of the release", "nodes to the images of the release",
			}, stepNames(s.Upgrade))
			require.Equal(t, []string{"1.35"}, l.kubelets("a"))
			require.Empty(t, l.inSync())
		})
	})
	t.Run("back", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.over(arn)
			l.SettleAll()
			l.RequireUpgraded()
			l.changeVersionInConsole("1.35")
			require.Equal(t, "EKS runs Kubernetes 1.35, and drover deployed 1.36: the control plane was rolled back outside drover, without the "+
				"nodes. Upgrade it to 1.36 again: `aws eks update-cluster-version --name drover-demo --kubernetes-version 1.36`. Then `drover upgrade "+
				"demo --rollback` rolls back the nodes, too.", l.inSync())
			l.changeVersionInConsole("1.36")
			require.Empty(t, l.inSync())
			arn = l.StartUpgrade(events.Upgrade{Rollback: true})
			l.over(arn)
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn), l.Status("demo").Upgrade.Message)
			require.Equal(t, []string{"1.35"}, l.kubelets("a"))
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
			require.Empty(t, l.inSync())
		})
	})
}
