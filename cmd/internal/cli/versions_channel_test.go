package cli

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// What a channel asks for is due when planning would begin it, and is no target when it was answered.
func TestVersionsOfAClusterThatFollowsAChannel(t *testing.T) {
	synctest.Test(t, versionsOfAClusterThatFollowsAChannel)
}

func versionsOfAClusterThatFollowsAChannel(t *testing.T) {
	a := harness.StartWith(t, harness.Options{Bubble: true})
	follows := func(more string) {
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "  upgrade: {channel: Stable}\n"+more))
		a.Settle()
	}
	stable := func(release string) {
		a.Upload("releases/channels.yaml", "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: "+
			release+"}\n")
	}
	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.35", "r1"))
	a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
	stable("r1")
	follows("")
	is := func(release, due string) {
		t.Helper()
		fleet, err := ReadFleet(t.Context(), NewCell(a.Config(), "aws", "111122223333"))
		require.NoError(t, err)
		require.Len(t, fleet, 1)
		require.Equal(t, moves{"r1", release}, fleet[0].Release)
		require.Equal(t, due, fleet[0].Due)
		if release == "" {
			require.Equal(t, planeMove{moves: moves{Current: "1.35"}}, fleet[0].ControlPlane)
		}
	}
	is("", "")
	a.Upload("releases/channels.yaml", "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {rapid: r2}\n")
	is("", "never: no release is in its channel Stable")
	a.Remove("releases/channels.yaml", "")
	is("", "never: no release is in its channel Stable")
	stable("r2") // nobody has swept yet
	is("r2", "within five minutes (Channel)")
	follows("  paused: true\n")
	is("r2", "paused")
	stable("r3")
	is("r3", "paused")

	rolledBack := &upgrade.Record{
		Number: 2, Stack: a.Stack("demo", names.ControlPlane).ID, Origin: upgrade.OriginRollback, Key: "rollback", Over: "r1",
		State: upgrade.Done,
		Target: upgrade.Target{
			Release: "r1", KubernetesVersion: "1.35",
		}, Answered: map[upgrade.Origin]string{upgrade.OriginChannel: "channel Stable r2"},
	}
	_, err := a.State().PutUpgrade(t.Context(), "demo", rolledBack, "")
	require.NoError(t, err)
	stable("r2")
	is("", "")
	stable("r3")
	is("r3", "paused")
	stable("r1")
	is("", "")
	require.NotContains(t, strings.Join(a.Notices(), "\n"), "upgrade")
}
