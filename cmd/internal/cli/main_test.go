package cli

// The commands run as separate processes, with their exit codes. The test binary runs as drover if asCommand is set.

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

	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/kubernetes"
)

// asCommand is the environment variable that makes the test binary run as drover.
const asCommand = "DROVER_TEST_AS_COMMAND"

// repository is the absolute path of the repository, because the account changes the working directory.
var repository string

// cloud is the account that tests share. needAccount starts it.
var cloud *account.Account

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main(Root())
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if repository, err = filepath.Abs("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "drover-command-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer func() {
		if cloud != nil {
			cloud.Close()
		}
	}()
	accountDir = dir
	return m.Run()
}

var accountDir string

// needAccount starts the account with drover once, because the S3 gateway can start only once in a process.
func needAccount(t *testing.T) {
	t.Helper()
	if cloud != nil {
		return
	}
	bin, assembly := kubernetes.BinDir(repository), filepath.Join(repository, "build", "cdk.out")
	require.Empty(t, kubernetes.Missing(bin), "%s lacks programs: run make local first", bin)
	require.FileExists(t, filepath.Join(assembly, account.Stack+".template.json"),
		"drover is not synthesized for this machine: run make local first")
	a, err := account.Start(account.Options{Dir: accountDir, KubernetesBin: bin, Speed: 300})
	require.NoError(t, err)
	cloud = a
	require.NoError(t, a.Deploy(t.Context(), assembly))
}

// patience is the timeout for operations of at most a minute. It allows for a machine that is five times slower.
const patience = 5 * time.Minute

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// drover runs a command with the environment of the shared account, or with an empty environment before the account starts.
func drover(t *testing.T, arguments ...string) result {
	t.Helper()
	environment := map[string]string{}
	if cloud != nil {
		environment = cloud.Environment()
	}
	return droverIn(t, environment, arguments...)
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

// ok runs a command that succeeds, and returns its output.
func ok(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 0, r.code, "%s\n%s", r.stdout, r.stderr)
	return r.stdout
}

// finds runs a command that reports findings, such as diff of a changed spec, and returns its output.
func finds(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, exitFindings, r.code, "%s\n%s", r.stdout, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// fails runs a command that fails, and returns its error.
func fails(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 1, r.code, r.stdout)
	require.True(t, strings.HasPrefix(r.stderr, "drover: "), r.stderr)
	return r.stderr
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
