package worlds

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// The release of a channel is due when planning would start its upgrade. It is no target after a rollback superseded it.
func TestVersionsOfAChannel(t *testing.T) {
	synctest.Test(t, testChannelVersions)
}

func testChannelVersions(t *testing.T) {
	a := harness.StartWith(t, harness.Options{Bubble: true})
	uploadSpec := func(more string) {
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "  upgrade: {channel: Stable}\n"+more))
		a.Settle()
	}
	setStable := func(release string) {
		a.Upload("releases/channels.yaml", "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: "+
			release+"}\n")
	}
	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.35", "r1"))
	a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
	setStable("r1")
	uploadSpec("")
	requireTarget := func(release, due string) {
		t.Helper()
		fleet, err := cli.ReadFleet(t.Context(), cli.NewCell(a.Config(), "aws", "111122223333"))
		require.NoError(t, err)
		require.Len(t, fleet, 1)
		require.Equal(t, []string{"r1", release}, []string{fleet[0].Release.Current, fleet[0].Release.Target})
		require.Equal(t, due, fleet[0].Due)
		if release == "" {
			require.JSONEq(t, `{"current":"1.35"}`, document(t, fleet[0].ControlPlane))
		}
	}
	requireTarget("", "")
	a.Upload("releases/channels.yaml", "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {rapid: r2}\n")
	requireTarget("", "never: no release is in its channel Stable")
	a.Remove("releases/channels.yaml", "")
	requireTarget("", "never: no release is in its channel Stable")
	setStable("r2") // the sweep did not run yet
	requireTarget("r2", "within five minutes (Channel)")
	uploadSpec("  paused: true\n")
	requireTarget("r2", "paused")
	setStable("r3")
	requireTarget("r3", "paused")

	rolledBack := &upgrade.Record{
		Number: 2, Stack: a.Stack("demo", names.ControlPlane).ID, Origin: upgrade.OriginRollback, Key: "rollback", Overridden: "r1",
		State: upgrade.Done,
		Target: upgrade.Target{
			Release: "r1", KubernetesVersion: "1.35",
		}, Answered: map[upgrade.Origin]string{upgrade.OriginChannel: "channel Stable r2"},
	}
	_, err := a.State().PutUpgrade(t.Context(), "demo", rolledBack, "")
	require.NoError(t, err)
	setStable("r2")
	requireTarget("", "")
	setStable("r3")
	requireTarget("r3", "paused")
	setStable("r1")
	requireTarget("", "")
	require.NotContains(t, strings.Join(a.Notices(), "\n"), "upgrade")
}
