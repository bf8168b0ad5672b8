package api_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// BenchmarkRead measures admitting a spec, BenchmarkResolve what planning adds.
func BenchmarkRead(b *testing.B) {
	spec, err := os.ReadFile("../../examples/clusters/everything.yaml")
	require.NoError(b, err)
	for b.Loop() {
		_, errs := api.ReadCluster("everything.yaml", spec, api.Options{Name: "everything"})
		require.Nil(b, errs)
	}
}

func BenchmarkResolve(b *testing.B) {
	spec, err := os.ReadFile("../../examples/clusters/everything.yaml")
	require.NoError(b, err)
	cluster, errs := api.ReadCluster("everything.yaml", spec, api.Options{})
	require.Nil(b, errs)
	text, err := os.ReadFile("../../examples/releases/1.36-1.yaml")
	require.NoError(b, err)
	release, errs := api.ReadRelease("1.36-1.yaml", text, api.Options{})
	require.Nil(b, errs)
	for b.Loop() {
		resolved, errs := api.Resolve(cluster, release)
		require.Nil(b, errs)
		require.Nil(b, api.Validate(resolved, api.Options{}))
	}
}
