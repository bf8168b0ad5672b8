package upgrade_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// After an upgrade a user returns one pool to its previous image, which the status reports. Everything else is unchanged.
func TestRollbackOfOnePool(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const two = "    - {name: b, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"
		before, after := ec2.ImageID("1.35", "amd64"), ec2.ImageID("1.36", "amd64")
		l.CreateOldCluster(two)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.over(arn)
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		kept := l.Status("demo").Upgrade.Images
		require.Equal(t, map[string]string{"a": before, "b": before}, kept)

		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", two), "{name: b,", "{name: b, imageID: "+kept["b"]+",", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		image := func(stack string) string { return l.Stack("demo", stack).Outputs["ImageId"] }
		require.Equal(t, after, image(names.PoolStack("a")))
		require.Equal(t, before, image(names.PoolStack("b")))
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
	})
}

// After two minor versions the control plane cannot be rolled back. The nodes can, by their old images: they join a control plane that is
// two minor versions newer. The next upgrade keeps them while the spec names the image.
func TestRollbackOfNodesAfterTwoMinors(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(harness.ReleaseOf("1.33", "r1"), "v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1", 1))
		l.Upload(names.ReleaseSpec("r2"), strings.Replace(harness.ReleaseOf("1.35", "r2"), "spec:\n", "spec:\n  upgradeFrom: \"1.33\"\n", 1))
		l.ChangeSpec("")
		l.RequirePhase(status.Ready)
		spec := func(release, more string) string {
			return strings.NewReplacer("name: r1", "name: "+release, "{name: a,", "{name: a, "+more).Replace(harness.Spec("demo", ""))
		}
		l.Upload(names.ClusterSpec("demo"), spec("r2", ""))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, []string{"1.35"}, l.kubelets("a"))
		arn := l.StartUpgrade(events.Upgrade{Rollback: true})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "no rollback from Kubernetes 1.35 to 1.33: EKS rolls a control plane back by one minor version only")

		old := l.Status("demo").Upgrades[0].Images["a"]
		require.Equal(t, ec2.ImageID("1.33", "amd64"), old)
		l.Upload(names.ClusterSpec("demo"), spec("r2", "imageID: "+old+", "))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, []string{"1.33"}, l.kubelets("a"))
		require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
		require.Equal(t, "1.35", l.Status("demo").KubernetesVersion)

		// The next upgrade keeps the image, and warns.
		l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
		l.Upload(names.ClusterSpec("demo"), spec("r3", "imageID: "+old+", "))
		l.SettleAll()
		require.Equal(t, "Done r3", l.Status("demo").Upgrade.Phase+" "+l.Status("demo").Upgrade.To, l.Status("demo").Upgrade.Message)
		require.Equal(t, []string{"1.33"}, l.kubelets("a"))
		require.True(t, slices.ContainsFunc(l.Status("demo").Upgrade.Checks, func(c status.Check) bool {
			return c.Name == "NodesReplaced" && !c.Blocks
		}), "%v", l.Status("demo").Upgrade.Checks)

		l.Upload(names.ClusterSpec("demo"), spec("r3", ""))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, []string{"1.36"}, l.kubelets("a"))
	})
}

// A pool of a kind that the deployed release has no image of comes after the upgrade to a release that has one. The refusal describes it.
func TestPoolOfAnotherKind(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster("")
		withImage := func(version, name string) string {
			return strings.Replace(harness.ReleaseOf(version, name), "images: {", "images: {bottlerocket-amd64-fips: "+
				ec2.ImageID(version, "bottlerocket-amd64-fips")+", ", 1)
		}
		l.Upload(names.ReleaseSpec("r1"), withImage("1.35", "r1"))
		l.Upload(names.ReleaseSpec("r2"), withImage("1.36", "r2"))
		const pool = "    - {name: b, image: {family: Bottlerocket, variant: FIPS}, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}\n"
		spec := func(release, pools string) {
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", pools), "name: r1", "name: "+release, 1))
			l.SettleAll()
		}
		const first = "First upload the spec with %s and without this pool or its new image, and upload that after the upgrade; or state imageID"
		for release, message := range map[string]string{
			"r1": "An edited release changes no cluster. " + fmt.Sprintf(first, "another release that has this image"),
			"r2": "The release r2 has one, but its upgrade comes first. " + fmt.Sprintf(first, "the release r2"),
		} {
			spec(release, pool)
			accepted := l.Status("demo").Condition(status.SpecAccepted)
			require.Equal(t, status.ReasonSpecInvalid, accepted.Reason)
			require.Contains(t, accepted.Message, "spec.pools[1].imageID: Required value: the release r1 is deployed, and has no image "+
				"bottlerocket-amd64-fips. "+message)
			require.NotContains(t, l.Stacks("demo"), names.PoolStack("b"))
		}
		spec("r2", "")
		require.Equal(t, "Done r2", l.Status("demo").Upgrade.Phase+" "+l.Status("demo").Upgrade.To, l.Status("demo").Upgrade.Message)
		spec("r2", pool)
		l.RequirePhase(status.Ready)
		require.Equal(t, ec2.ImageID("1.36", "bottlerocket-amd64-fips"), l.Stack("demo", names.PoolStack("b")).Outputs["ImageId"])
	})
}
