// Package clitest runs the drover command in tests. It runs the command as a separate process. The process is the test binary itself: Main
// makes it act as drover. Tests of cmd/internal/cli, cmd/internal/worlds and cmd/drover-local use it.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// AsCommand is the environment variable that makes the test binary run as drover.
const AsCommand = "DROVER_TEST_AS_COMMAND"

// Patience bounds operations that take seconds, or a minute. It suffices on a machine that has a fifth of the time for them.
const Patience = 5 * time.Minute

// Main is called by TestMain. In a process that Run started it calls drover. Otherwise it calls run, which returns
// the exit code of the tests.
func Main(drover func(), run func() int) {
	if os.Getenv(AsCommand) != "" {
		drover()
		return
	}
	os.Exit(run())
}

// Result is the result of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs the command in a folder with the given environment variables. The environment of this machine is hidden: no credentials, no
// configuration, no network except the loopback.
func Run(t *testing.T, folder string, environment map[string]string, arguments ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], arguments...)
	cmd.Env = []string{
		AsCommand + "=1", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
	for key, value := range environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NotContains(t, stderr.String(), "SDK ", "the SDK prints its own log: %s", arguments)
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Write writes a file for a command and returns its path.
func Write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Example reads one of the examples of the repository at root, with replacements.
func Example(t *testing.T, root, path string, replace ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "examples", path))
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(body), replace[i])
	}
	return strings.NewReplacer(replace...).Replace(string(body))
}
