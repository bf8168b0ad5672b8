package worlds

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// The table shows the fleet and the add-ons of every cluster, also if one object is unusable.
func TestVersionsOfUnusableObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := harness.StartWith(t, harness.Options{Bubble: true})
		a.Cluster("demo", "")
		read := func() cli.ClusterVersions {
			t.Helper()
			fleet, err := cli.ReadFleet(t.Context(), cli.NewCell(a.Config(), "aws", "111122223333"))
			require.NoError(t, err)
			require.NotEmpty(t, fleet)
			return fleet[0]
		}
		before := read()
		require.NotEmpty(t, before.Addons)
		large := strings.Repeat("#", api.MaxFile+1)
		for _, upload := range []struct {
			name string
			do   func()
		}{
			{"an invalid spec", func() { a.Upload(names.ClusterSpec("demo"), "kind: Cluster") }},
			{"a spec over the limit", func() { a.Upload(names.ClusterSpec("demo"), large) }},
			{"channels over the limit", func() { a.Upload(names.ReleaseSpec(api.ChannelsName), large) }},
			{"a release over the limit", func() { a.Upload(names.ReleaseSpec("r9"), large) }},
			{"a deleted spec of a protected cluster", func() { a.Remove(names.ClusterSpec("demo"), "") }},
		} {
			upload.do()
			a.Settle()
			require.Equal(t, before.Addons, read().Addons, upload.name)
		}
		_, err := a.State().Put(t.Context(), names.Status("other"), []byte("no JSON"))
		require.NoError(t, err)
		clusters, err := cli.ReadStatuses(t.Context(), cli.NewCell(a.Config(), "aws", "111122223333"))
		require.NoError(t, err)
		require.Len(t, clusters, 2)
		require.Equal(t, status.Phase("Unknown"), clusters[1].Status.Phase)
		require.Contains(t, clusters[1].Status.Message, "its status cannot be read")
		require.Len(t, read().Addons, len(before.Addons))
	})
}
