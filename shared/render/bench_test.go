package render

// How many clusters one core renders a second. The floor is text/template alone on the same templates: with encoders that encode nothing,
// and without parameters, checksums, tags and limits.

import (
	"fmt"
	"io"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/templates"
)

func BenchmarkRender(b *testing.B) {
	in := resolve(b, threePools())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "clusters/s")
}

// ThreePools, its release and its cell are for the benchmark of planning, whose package imports this one.
func ThreePools() (*api.Cluster, *api.Release, Cell) { return threePools(), testRelease(), testCell() }

// BenchmarkPlainTemplates is the floor.
func BenchmarkPlainTemplates(b *testing.B) {
	plain := template.FuncMap{}
	for name := range encoders {
		plain[name] = func(v any) any { return v }
	}
	set, err := template.New("plain").Funcs(plain).ParseFS(templates.FS(), "v1/*.tmpl")
	require.NoError(b, err)
	files := executions(b, resolve(b, threePools()))
	b.ReportAllocs()
	for b.Loop() {
		for _, f := range files {
			if err := set.ExecuteTemplate(io.Discard, f.name, f.params); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "clusters/s")
}

// execution is one template with its parameters.
type execution struct {
	name   string
	params any
}

// executions returns the templates that rendering a cluster executes.
func executions(b *testing.B, in Cluster) []execution {
	versions, err := load()
	require.NoError(b, err)
	r := &renderer{Cluster: in, set: versions["v1"], out: &Output{UserData: map[string][]byte{}}}
	network, err := newNetworkParams(in.Cell, in.Resolved)
	require.NoError(b, err)
	controlPlane, err := newControlPlaneParams(in)
	require.NoError(b, err)
	files := []execution{{"network.yaml.tmpl", network}, {"control-plane.yaml.tmpl", controlPlane}}
	for _, needed := range []bool{true, false} {
		addons, err := newAddonsParams(in.Cell, in.Resolved, "", func(name string) bool { return api.NodesNeed(name) == needed })
		require.NoError(b, err)
		files = append(files, execution{"addons.yaml.tmpl", addons})
	}
	for i := range in.Resolved.Spec.Pools {
		pool := &in.Resolved.Spec.Pools[i]
		flags, err := kubeletFlags(pool)
		require.NoError(b, err)
		params := &userDataParams{ClusterName: eksName(in.Resolved), ServiceCIDR: "172.20.0.0/16", Flags: flags}
		if len(pool.Files) > 0 {
			files = append(files, execution{"configuration.sh.tmpl", &configurationParams{Files: pool.Files}})
			params.Configuration = "s3://bucket/userdata/" + fmt.Sprintf("%064d", i)
		}
		parts, err := r.userData(pool)
		require.NoError(b, err)
		poolParams, err := newPoolParams(in.Resolved, pool, parts, time.Time{})
		require.NoError(b, err)
		files = append(files, execution{"user-data.mime.tmpl", params}, execution{"pool.yaml.tmpl", poolParams})
	}
	return files
}
