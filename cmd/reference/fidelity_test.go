package main

import (
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const local = "../../local"

func TestFidelityIsUpToDate(t *testing.T) {
	want, err := fidelity(local)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(local, "FIDELITY.md"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "local/FIDELITY.md is stale: go run ./cmd/reference")
}

func TestFidelityHasEveryPackage(t *testing.T) {
	page, err := fidelity(local)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(local, func(path string, folder fs.DirEntry, err error) error {
		if err != nil || !folder.IsDir() {
			return err
		}
		if folder.Name() == "testdata" || path == filepath.Join(local, "kubernetes", "build") {
			return fs.SkipDir // programs, and a module of its own
		}
		built, err := build.ImportDir(path, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) || err == nil && (len(built.GoFiles) == 0 || built.IsCommand()) {
			return nil
		}
		require.NoError(t, err)
		name, err := filepath.Rel(local, path)
		require.NoError(t, err)
		require.Contains(t, string(page), "\n## "+filepath.ToSlash(name)+"\n\nPackage ", "%s has no package comment", path)
		return nil
	}))
}

func TestFidelityReadsPackageComments(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"b/b.go":        "// Package b is the second.\n//\n// There:\n//   - one, of many\n//   - two\npackage b\n",
		"b/other.go":    "package b\n\n// A comment within.\n",
		"b/b_test.go":   "// Package b of tests is left out.\npackage b\n",
		"a/inner/in.go": "// Package in has <angles>.\npackage in\n",
		"tool/main.go":  "// Command tool is left out.\npackage main\n",
		"c/readme.txt":  "no Go",
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	page, err := fidelity(dir)
	require.NoError(t, err)
	require.Equal(t, "\n## a/inner\n\nPackage in has \\<angles>.\n\n## b\n\nPackage b is the second.\n\nThere:\n\n  - one, of many\n  - two\n",
		strings.TrimPrefix(string(page), fidelityTitle))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "b", "b.go"), []byte("not Go"), 0o644))
	_, err = fidelity(dir)
	require.ErrorContains(t, err, "b.go")
}
