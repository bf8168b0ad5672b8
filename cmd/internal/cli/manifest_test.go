package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadManifests(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	demo := put("demo.yaml", example(t, "clusters/demo.yaml"))
	release := put("releases/1.36-1.yaml", example(t, "releases/1.36-1.yaml"))
	channels := put("releases/channels.yaml", example(t, "releases/channels.yaml"))
	put("notes.txt", "no spec")
	keys := func(manifests []manifest) (all []string) {
		for _, m := range manifests {
			all = append(all, m.key)
		}
		return all
	}

	t.Run("returns releases before the clusters that use them", func(t *testing.T) {
		all, err := readManifests([]string{demo, channels, release})
		require.NoError(t, err)
		require.Equal(t, []string{"releases/1.36-1.yaml", "releases/channels.yaml", "clusters/demo.yaml"}, keys(all))
	})
	t.Run("reads the YAML files directly in a folder", func(t *testing.T) {
		all, err := readManifests([]string{dir, filepath.Join(dir, "releases")})
		require.NoError(t, err)
		require.Equal(t, []string{"releases/1.36-1.yaml", "releases/channels.yaml", "clusters/demo.yaml"}, keys(all))
		_, err = readManifests([]string{t.TempDir()})
		require.ErrorContains(t, err, "there is no .yaml file in ")
	})
	t.Run("names every invalid file", func(t *testing.T) {
		one, other := put("bad/one.yaml", "kind: Cluster"), put("bad/other.yaml", "kind: Release")
		all, err := readManifests([]string{one, demo, other, "nothing.yaml"})
		for _, want := range []string{"one.yaml:1", "other.yaml:1", "nothing.yaml: no such file"} {
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, []string{"clusters/demo.yaml"}, keys(all))
	})
	t.Run("rejects two files of one object", func(t *testing.T) {
		_, err := readManifests([]string{demo, put("again/demo.yaml", example(t, "clusters/demo.yaml"))})
		require.ErrorContains(t, err, "are both clusters/demo.yaml: upload one of them")
	})
	t.Run("requires a source", func(t *testing.T) {
		_, err := readManifests(nil)
		require.ErrorContains(t, err, "there is nothing to upload: give a FILE")
	})
	t.Run("takes the name from the object on standard input", func(t *testing.T) {
		file, err := os.Open(demo)
		require.NoError(t, err)
		before := os.Stdin
		os.Stdin = file
		defer func() { os.Stdin = before }()
		m, err := readManifest(standardInput)
		require.NoError(t, err)
		require.Equal(t, "clusters/demo.yaml", m.key)
	})
}
