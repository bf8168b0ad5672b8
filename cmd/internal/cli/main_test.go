package cli

// The command is run as a process of its own, with its exit code: the test binary, told to be drover.

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

// beDrover is the variable that has the test binary be drover.
const beDrover = "DROVER_TEST_AS_COMMAND"

// repository is its root, absolute: the account changes the working directory.
var repository string

// cloud is the account that tests share; see needAccount.
var cloud *account.Account

func TestMain(m *testing.M) {
	if os.Getenv(beDrover) != "" {
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

// needAccount starts the account with drover in it, once: the S3 gateway can run once in a process.
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

// patience bounds what takes seconds, or a minute: on a machine that has a fifth of the time for it, it is still not what fails.
const patience = 5 * time.Minute

// result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// drover runs the command with the shared account's environment, or with none when there is no account.
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
	// The environment of this machine is hidden: no credentials, no configuration, no network except the loopback.
	cmd.Env = []string{
		beDrover + "=1", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true",
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
	require.NotContains(t, stderr.String(), "SDK ", "the SDK talks to nobody: %s", arguments)
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ok is what a command that does well prints.
func ok(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 0, r.code, "%s\n%s", r.stdout, r.stderr)
	return r.stdout
}

// finds is what a command prints that has findings, as diff of a spec that changes something.
func finds(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, exitFindings, r.code, "%s\n%s", r.stdout, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// fails is what a command says that does not.
func fails(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 1, r.code, r.stdout)
	require.True(t, strings.HasPrefix(r.stderr, "drover: "), r.stderr)
	return r.stderr
}

// write writes a file that tests give to the command, and returns its path.
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
