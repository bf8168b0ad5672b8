package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/render"
)

// What is remembered is what rendering would give, and that nobody changed it is seen before long.
func TestRenderedClustersAreRendered(t *testing.T) {
	cluster := func(cidr string) render.Cluster {
		spec, errs := api.ReadCluster("",
			[]byte(`{apiVersion: drover.run/v1alpha1, kind: Cluster, metadata: {name: demo}, spec: {release: {name: r1}, network: {cidr: `+cidr+
				`, zones: [eu-central-1a, eu-central-1b]}}}`), api.Options{})
		require.Empty(t, errs)
		release, errs := api.ReadRelease("", []byte(Release()), api.Options{})
		require.Empty(t, errs)
		resolved, errs := api.Resolve(spec, release)
		require.Empty(t, errs)
		return render.Cluster{Cell: render.Cell{Partition: "aws", Region: Region, Account: ID, StateBucket: StateBucket}, Resolved: resolved}
	}
	r := &rendered{}
	for range 3 * renderedAnew {
		for _, cidr := range []string{"10.0.0.0/16", "10.1.0.0/16"} {
			want, err := render.Render(cluster(cidr))
			require.NoError(t, err)
			got, err := r.render(cluster(cidr))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	out, err := r.render(cluster("10.0.0.0/16"))
	require.NoError(t, err)
	out.Stacks[0].Template = nil
	require.Panics(t, func() {
		for range renderedAnew {
			_, _ = r.render(cluster("10.0.0.0/16"))
		}
	})
}
