package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
)

func TestWithRelease(t *testing.T) {
	spec := example(t, "clusters/demo.yaml")
	cluster, err := cli.ParseCluster("demo.yaml", []byte(spec))
	require.NoError(t, err)
	read, changed, err := withRelease("demo.yaml", cluster, []byte(spec), "1.35-1")
	require.NoError(t, err)
	require.Equal(t, "1.35-1", read.Spec.Release.Name)
	require.Equal(t, spec, strings.Replace(string(changed), `"1.35-1"`, `"1.36-1"`, 1), "nothing else changes")

	_, _, err = withRelease("demo.yaml", cluster, []byte(spec), "no release")
	require.ErrorContains(t, err, "spec.release.name")
	inline := example(t, "clusters/demo.yaml", "  release:\n    name: \"1.36-1\"\n", "  release: {name: \"1.36-1\"}\n")
	_, _, err = withRelease("demo.yaml", cluster, []byte(inline), "1.35-1")
	require.ErrorContains(t, err, "is not written on a line of its own")
}

func TestUpgradeWithoutDemo(t *testing.T) {
	r := drover(t, "local", "--upgrade", "examples/releases/1.36-1.yaml", "--demo", "examples/clusters/demo.yaml")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "give all three")
}
