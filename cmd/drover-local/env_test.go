package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
)

func TestLocalDir(t *testing.T) {
	t.Run("is refused if it is not empty", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "s3"), 0o700))
		r := droverIn(t, nil, "local", "--dir", dir)
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Stderr, "drover: --dir "+dir+" is not empty: a local account lives as long as its process")
		require.Contains(t, r.Stderr, "remove the folder, or give another")
		require.Empty(t, r.Stdout, "nothing was begun")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
	t.Run("is refused if it is a file", func(t *testing.T) {
		r := droverIn(t, nil, "local", "--dir", clitest.Write(t, "file", "x"))
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Stderr, "--dir cannot be read")
	})
	t.Run("--help describes the lifetime of an account", func(t *testing.T) {
		require.Contains(t, droverIn(t, nil, "local", "--help").Stdout, "An account lives as long as this process")
	})
}

func TestLocalKeys(t *testing.T) {
	r := droverIn(t, nil, "local", "--dir", t.TempDir(), "--access-key-id", "AKIALOCALACCOUNT0001")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "secret-access-key")
	r = droverIn(t, nil, "local", "--dir", t.TempDir(), "--access-key-id", "short", "--secret-access-key", "local-secret")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, `access key id "short" is invalid`)
}

func TestLocalPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	r := droverIn(t, nil, "local", "--dir", t.TempDir(), "--port", port)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, "drover: port "+port+" is in use")
}

func TestSelectAccount(t *testing.T) {
	a := runningAccount{Dir: t.TempDir(), Environment: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}}
	b := runningAccount{Dir: t.TempDir(), Environment: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:2"}}
	_, err := selectAccount(nil, "")
	require.ErrorContains(t, err, "no local account runs")
	got, err := selectAccount([]runningAccount{a}, "")
	require.NoError(t, err)
	require.Equal(t, a, got)
	_, err = selectAccount([]runningAccount{a, b}, "")
	require.ErrorContains(t, err, "2 local accounts run")
	require.ErrorContains(t, err, "drover local env --dir "+b.Dir)
	got, err = selectAccount([]runningAccount{a, b}, b.Dir+"/.")
	require.NoError(t, err)
	require.Equal(t, b, got)
	_, err = selectAccount([]runningAccount{a}, t.TempDir())
	require.ErrorContains(t, err, "no local account runs in")
}

func TestLocalEnv(t *testing.T) {
	t.Run("fails and removes the file of a killed account", func(t *testing.T) {
		home := t.TempDir()
		file := filepath.Join(home, ".cache", "drover", "local", "1.json")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(`{"dir":"/x","environment":{"AWS_ENDPOINT_URL":"http://`+closedAddress(t)+
			`","AWS_REGION":"us-east-1","AWS_ACCESS_KEY_ID":"AKIALOCALACCOUNT0001","AWS_SECRET_ACCESS_KEY":"x"}}`), 0o600))
		r := droverIn(t, map[string]string{"HOME": home}, "local", "env")
		require.Equal(t, 1, r.Code)
		require.Empty(t, r.Stdout)
		require.Contains(t, r.Stderr, "no local account runs on this machine for your user: start one with `make up`")
		require.NoFileExists(t, file)
	})
	t.Run("quotes special characters of a shell", func(t *testing.T) {
		var out strings.Builder
		printEnvironment(&out, "", map[string]string{"B": `it's $HOME`, "A": "http://127.0.0.1:4566"})
		require.Equal(t, "export A=http://127.0.0.1:4566\nexport B='it'\\''s $HOME'\nunset AWS_SESSION_TOKEN AWS_PROFILE\n", out.String())
		shell := exec.CommandContext(t.Context(), "sh", "-c", out.String()+`printf %s "$B"`)
		got, err := shell.Output()
		require.NoError(t, err)
		require.Equal(t, `it's $HOME`, string(got))
	})
}

// closedAddress returns an address of this machine without a listener.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
