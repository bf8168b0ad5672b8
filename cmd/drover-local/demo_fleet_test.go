package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/rollout"
)

func TestReadFleetDemo(t *testing.T) {
	o := localOptions{
		demo:    filepath.Join(repository, "examples", "clusters", "demo.yaml"),
		release: filepath.Join(repository, "examples", "releases", "1.35-1.yaml"),
		upgrade: filepath.Join(repository, "examples", "releases", "1.36-1.yaml"),
		fleet:   filepath.Join(repository, "examples", "fleet"),
	}
	d, err := readDemo(o)
	require.NoError(t, err)
	t.Run("reads the example", func(t *testing.T) {
		f, err := readFleetDemo(o, d)
		require.NoError(t, err)
		var clusters []string
		for _, c := range f.clusters {
			clusters = append(clusters, c.name)
		}
		require.Equal(t, []string{"shop-eu", "shop-lab", "shop-us"}, clusters)
		require.Equal(t, []string{"1.36-1", "1.36-2", "new-images"}, []string{f.base.name, f.release.name, f.rollout.name})
		require.True(t, f.has("shop-lab"))
		require.False(t, f.has("demo"))
	})
	for name, tt := range map[string]struct{ file, body, fails string }{
		"a folder without a rollout": {fails: "needs clusters, a release and a rollout"},
		"another kind": {
			"weekends.yaml", example(t, "rollouts/weekends.yaml"), "has no place in the folder of --fleet",
		},
		"an invalid cluster": {"demo.yaml", example(t, "clusters/demo.yaml", "name: demo", "name: other"), "metadata.name"},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			o := o
			o.fleet = t.TempDir()
			if tt.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(o.fleet, tt.file), []byte(tt.body), 0o600))
			}
			_, err := readFleetDemo(o, d)
			require.ErrorContains(t, err, tt.fails)
		})
	}
}

func TestFleetNeedsUpgrade(t *testing.T) {
	r := drover(t, "local", "--demo", "examples/clusters/demo.yaml", "--fleet", "examples/fleet")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "--fleet creates its clusters at the release of --upgrade")
}

func TestLead(t *testing.T) {
	passed := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	run := &rollout.RunStatus{Stages: []rollout.StageStatus{{Passed: passed}, {Began: passed.Add(1500 * time.Millisecond)}}}
	require.InDelta(t, 1.5, lead(run), 0.001)
}
