package upgrade_test

// Upgrades that stop: EKS fails, nodes cannot be drained, are not deleted, or have another version.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/account/injection"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestEKSFailsAnUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		end := lives.AddFault(t, bad, "update-fails action=VersionUpdate")
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: StackFailed: stack drover-demo-control-plane")
		require.Contains(t, l.verdict(arn), "fix the cause\nNo step is complete yet. Next: control plane to 1.36. To continue: "+
			"`drover upgrade demo`")
		require.NotContains(t, l.verdict(arn), "drover-converge", "it does not continue the upgrade")
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion, "the deployed version, not the target")
		require.Empty(t, l.Status("demo").Plan, "drover does not move it to 1.36 without a new request")
		require.True(t, l.AlarmEnabled())
		l.ConvergeAgain()
		l.RequirePhase(status.Ready) // as before
		require.Equal(t, status.AsSpecified, l.Status("demo").Message, "nothing else changed")
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion)
		end()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
		require.Len(t, l.Status("demo").Upgrades, 2)
	})
}

func TestUpgradeWithBlockedDrains(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.RunBlockedPods(3) // its budget allows no eviction
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "UpgradeBlocked: nothing was changed: BudgetsAllow")
	})
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		l.RunBlockedPods(3) // after the checks
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: nodes are still being drained: i-")
		require.Contains(t, l.verdict(arn), "Completed and kept: control plane to 1.36, add-ons to the versions of the release. "+
			"Next: nodes to the images of the release")
		require.True(t, l.AlarmEnabled())
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		again := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.over(again)
		require.Contains(t, l.verdict(again), "UpgradeBlocked: the upgrade does not continue: ", "the checks passed before, and fail now")
		l.API("drover-demo").Run(apiserver.App{Name: "shop", Replicas: 0, Start: time.Second, Stop: time.Second, Grace: time.Minute})
		time.Sleep(time.Hour)
		l.SettleAll()
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
	})
}

// lingering keeps the Node objects of terminated instances for a while, as EKS's controllers do.
type lingering struct {
	ec2.Nodes
	after time.Duration
}

// DeregisterNode deletes the Node object after that time.
func (n lingering) DeregisterNode(_ context.Context, cluster, name string) error {
	time.AfterFunc(n.after, func() { _ = n.Nodes.DeregisterNode(context.Background(), cluster, name) })
	return nil
}

func TestUpgradeWithRemainingNodeObjects(t *testing.T) {
	t.Run("for minutes: the upgrade waits, and so does the rollback", func(t *testing.T) {
		runWithFaults(t, func(l *life, bad *faults.Engine) {
			l.EC2.SetNodes(lingering{injection.Injector{Engine: bad, Now: time.Now}.Boot(l.EKS), 4 * time.Minute})
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.over(arn)
			l.RequireUpgraded()
			arn = l.StartUpgrade(events.Upgrade{Rollback: true})
			l.over(arn)
			require.Equal(t, "SUCCEEDED :", l.verdict(arn), "while newer kubelets exist, EKS does not roll the control plane back")
		})
	})
	t.Run("for ever: the upgrade stops, and names the nodes", func(t *testing.T) {
		runWithFaults(t, func(l *life, bad *faults.Engine) {
			l.EC2.SetNodes(lingering{injection.Injector{Engine: bad, Now: time.Now}.Boot(l.EKS), 1000 * time.Hour})
			l.CreateOldCluster(lives.Alarmed)
			node := l.API("drover-demo").Nodes()[0].Name
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.over(arn)
			require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the cluster still lists nodes whose instances are terminated: "+
				node+" (i-")
			require.True(t, l.AlarmEnabled())
			require.NoError(t, l.EKS.DeregisterNode(t.Context(), "drover-demo", node))
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.SettleAll()
			l.RequireUpgraded()
		})
	})
	t.Run("because a user detached them from their group: they are checked, not waited for", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			one, err := l.EC2.Instance(l.Instance())
			require.NoError(t, err)
			template, err := l.EC2.LaunchTemplate(one.Tags["aws:ec2launchtemplate:id"], "", one.Tags["aws:ec2launchtemplate:version"])
			require.NoError(t, err)
			detached, err := l.EC2.Launch(ec2.LaunchRequest{Template: template, InstanceType: one.Type, SubnetID: one.SubnetID})
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
			require.Len(t, l.API("drover-demo").Nodes(), 2)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.over(arn)
			require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the final checks failed: NodesReplaced: nodes that do not match "+
				"Kubernetes 1.36: "+detached.PrivateDNSName)
		})
	})
}

// The last step finishes, but its verification fails until the operator replaces the nodes again.
func TestUpgradeWithNodesOfAnotherVersion(t *testing.T) {
	for name, between := range map[string]func(l *life, stops func()){
		"the nodes are replaced at once": func(*life, func()) {},
		// The remaining steps are verified, and the status lists no step that was not made.
		"a rollback is blocked, and the upgrade is tried again": func(l *life, stops func()) {
			l.BlockPods(true)
			back := l.StartUpgrade(events.Upgrade{Rollback: true})
			l.over(back)
			require.Contains(l.T, l.verdict(back), "FAILED UpgradeBlocked: nothing was changed: BudgetsAllow")
			l.BlockPods(false)
			stops()
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				end := lives.AddFault(t, bad, "kubelet-version=v1.35.9-eks-0e3cf2b")
				stops := func() {
					arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
					l.over(arn)
					require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the final checks failed: NodesReplaced")
					require.Contains(t, l.verdict(arn), "v1.35.9")
					require.True(t, l.AlarmEnabled())
				}
				stops()
				between(l, stops)
				end()
				l.Converge("demo", "a")
				l.SettleAll()
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// A user downgrades an add-on while nodes are replaced. The verification at the end fails and names the add-on.
func TestUpgradeWithAnAddonOfAnotherVersion(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForUpdate("pool-a")
		coredns := func(version string) {
			_, err := l.EKS.UpdateAddon(t.Context(), l.Admin(), eks.UpdateAddonInput{
				AddonInput: eks.AddonInput{ClusterName: "drover-demo", AddonName: "coredns"}, AddonVersion: version,
			})
			require.NoError(t, err)
		}
		coredns("v1.12.4-eksbuild.1")
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the final checks failed: VersionsReached: add-on coredns is at "+
			"v1.12.4-eksbuild.1, not v1.13.2-eksbuild.1")
		require.True(t, l.AlarmEnabled())
		coredns("v1.13.2-eksbuild.1")
		time.Sleep(10 * time.Minute)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
	})
}
