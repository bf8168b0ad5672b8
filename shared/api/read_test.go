package api

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Changes to a returned object do not affect the cache.
func TestReadReturnsCopies(t *testing.T) {
	body, err := os.ReadFile("../../examples/clusters/demo.yaml")
	require.NoError(t, err)
	o := Options{Name: "demo"}
	first, errs := ReadCluster("clusters/demo.yaml", body, o)
	require.Empty(t, errs)
	want := copyOf(first)
	for range 3 {
		got, errs := ReadCluster("clusters/demo.yaml", body, o)
		require.Empty(t, errs)
		require.Equal(t, want, got)
		got.Metadata.Name, got.Spec.Pools[0].Name, got.Spec.Pools = "another", "another", nil
	}
	first.Spec.Pools[0].Name = "another"
	got, _ := ReadCluster("clusters/demo.yaml", body, o)
	require.Equal(t, want, got)
	_, errs = ReadCluster("clusters/demo.yaml", body, Options{Name: "shop"})
	require.NotEmpty(t, errs, "it is judged by what it must be called")
	body = bytes.Replace(body, []byte("\nspec:\n"), []byte("\nspec:\n  templateVersion: v9\n"), 1)
	for versions, wrong := range map[string]bool{"": false, "v9": false, "v1": true} {
		_, errs = ReadCluster("clusters/demo.yaml", body, Options{Name: "demo", TemplateVersions: strings.Fields(versions)})
		require.Equal(t, wrong, len(errs) > 0, "it is checked against the existing templates: %v", errs)
	}
}

// A window may have ended since the file was cached.
func TestReadDoesNotCacheTimedChecks(t *testing.T) {
	known := len(clustersRead.kept)
	body, err := os.ReadFile("../../examples/clusters/demo.yaml")
	require.NoError(t, err)
	_, errs := ReadCluster("clusters/now.yaml", body, Options{Name: "demo", Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	require.Empty(t, errs)
	require.Equal(t, known, len(clustersRead.kept))
}

func TestReadBoundsItsCache(t *testing.T) {
	var k filesRead[Cluster]
	large := make([]byte, maxRead/4)
	for i := range 100 {
		k.put(fileRead{data: string(append(large, byte(i)))}, &Cluster{})
		require.LessOrEqual(t, len(k.kept), 4)
	}
}
