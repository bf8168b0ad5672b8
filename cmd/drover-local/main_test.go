package main

// The commands run as separate processes. The test binary runs as drover if asCommand is set, and as drover-local for the command local.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
)

// asCommand is the environment variable that makes the test binary run as drover.
const asCommand = "DROVER_TEST_AS_COMMAND"

// repository is the absolute path of the repository, because the account changes the working directory.
var repository string

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		if len(os.Args) > 1 && os.Args[1] == "local" {
			os.Args = append(os.Args[:1], os.Args[2:]...)
			main()
			return
		}
		cli.Main(cli.Root())
		return
	}
	var err error
	if repository, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// patience is the timeout for operations of at most a minute. It allows for a machine that is five times slower.
const patience = 5 * time.Minute

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// drover runs a command with an empty environment.
func drover(t *testing.T, arguments ...string) result {
	t.Helper()
	return droverIn(t, nil, arguments...)
}

func droverIn(t *testing.T, environment map[string]string, arguments ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], arguments...)
	// The command does not inherit this machine's environment. It has no credentials, no configuration, and only the loopback network.
	cmd.Env = []string{
		asCommand + "=1", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
	for key, value := range environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = repository, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NotContains(t, stderr.String(), "SDK ", "the SDK prints nothing: %s", arguments)
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// write writes a file for a command, and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// example reads one of the examples, with replacements.
func example(t *testing.T, path string, replace ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(repository, "examples", path))
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(body), replace[i])
	}
	return strings.NewReplacer(replace...).Replace(string(body))
}
