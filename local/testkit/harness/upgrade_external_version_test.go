package harness

// A control plane whose version changed outside drover: EKS upgrades it at the end of support, or a user does so in the console.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// elsewhere changes the version of the control plane as in the console, and waits.
func (l *life) elsewhere(version string) {
	l.t.Helper()
	_, err := l.EKS.UpdateClusterVersion(l.t.Context(), l.Admin(), eks.UpdateClusterVersionInput{
		Name: "drover-demo", Version: version, Force: true,
	})
	require.NoError(l.t, err)
	time.Sleep(eks.UpdateTakes + time.Minute)
}

// inSync returns the findings of the audit; "" without drift.
func (l *life) inSync() string {
	l.t.Helper()
	l.audited()
	c := l.Status("demo").Condition(status.InSync)
	if c == nil || c.Status == "True" {
		return ""
	}
	return c.Message
}

// The audit reports the external change and its resolution, and that resolution works.
func TestExternalControlPlaneVersion(t *testing.T) {
	t.Run("forwards", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			require.Empty(t, l.inSync())
			l.elsewhere("1.36")
			require.Equal(t, "EKS runs Kubernetes 1.36, and drover deployed 1.35: EKS upgraded it when support ended, "+
				"or it was upgraded outside drover. Upgrade to a release of Kubernetes 1.36: then stack and control plane match.", l.inSync())
			require.Equal(t, status.Ready, l.Status("demo").Phase)
			began := len(l.executions("converge"))
			l.audited()
			require.Len(t, l.executions("converge"), began, "only a user changes the version")
			mark := l.Calls.Mark()
			l.audited()
			asked := 0
			for _, call := range l.Calls.Since(mark) {
				if call.Action == "DescribeCluster" && CalledBy(call) == "sweep" {
					asked++
				}
			}
			require.Equal(t, 1, asked, "once for each cluster and audit")

			l.names("r2")
			l.settle()
			l.upgraded()
			require.Empty(t, l.inSync())
		})
	})
	t.Run("though add-ons would have had to go first", func(t *testing.T) {
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			const coredns, before = "v1.13.2-eksbuild.1", "v1.11.4-eksbuild.24"
			l.Upload(names.ReleaseSpec("r1"), strings.Replace(ReleaseOf("1.33", "r1"), coredns, before, 1))
			l.Upload(names.ReleaseSpec("r2"), strings.Replace(ReleaseOf("1.35", "r2"), "spec:\n", "spec:\n  upgradeFrom: \"1.33\"\n", 1))
			l.change("")
			l.phase(status.Ready)
			l.elsewhere("1.34")
			require.Contains(t, l.inSync(), "EKS runs Kubernetes 1.34, and drover deployed 1.33")
			l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", ""), "name: r1", "name: r2", 1))
			l.settle()
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
		upgradeLife(t, func(l *life, _ *faults.Engine) {
			l.old(alarmed)
			arn := l.upgrade(events.Upgrade{Release: "r2"})
			l.over(arn)
			l.settle()
			l.upgraded()
			l.elsewhere("1.35")
			require.Equal(t, "EKS runs Kubernetes 1.35, and drover deployed 1.36: the control plane was rolled back outside drover, without the "+
				"nodes. Upgrade it to 1.36 again: `aws eks update-cluster-version --name drover-demo --kubernetes-version 1.36`. Then `drover upgrade "+
				"demo --rollback` rolls back the nodes, too.", l.inSync())
			l.elsewhere("1.36")
			require.Empty(t, l.inSync())
			arn = l.upgrade(events.Upgrade{Rollback: true})
			l.over(arn)
			l.settle()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn), l.Status("demo").Upgrade.Message)
			require.Equal(t, []string{"1.35"}, l.kubelets("a"))
			require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
			require.Empty(t, l.inSync())
		})
	})
}
