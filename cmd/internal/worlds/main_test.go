// Package worlds tests the drover command in two ways: as a process against a local account with control planes and deployed functions, and
// by calling package cli against an account in the test process.
package worlds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/local/account"
	"github.com/drover-run/drover/local/kubernetes"
	"github.com/drover-run/drover/shared/names"
)

// exitFindings is the exit code of a diff that found changes, and of a dry run that could not check everything.
const exitFindings = 2

// repository is its root, absolute: the account changes the working directory.
var repository string

// cloud is the account that tests share; see needAccount.
var cloud *account.Account

var accountDir string

func TestMain(m *testing.M) {
	clitest.Main(func() { cli.Main(cli.Root()) }, func() int { return runTests(m) })
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

// isDeployed reports whether drover is in the account.
var isDeployed bool

// needEmptyAccount starts the account, once: the S3 gateway can run once in a process.
func needEmptyAccount(t *testing.T) {
	t.Helper()
	if cloud != nil {
		return
	}
	bin := kubernetes.BinDir(repository)
	require.Empty(t, kubernetes.Missing(bin), "%s lacks programs: run make local first", bin)
	a, err := account.Start(account.Options{Dir: accountDir, KubernetesBin: bin, Speed: 300})
	require.NoError(t, err)
	cloud = a
}

// needAccount starts the account with drover in it.
func needAccount(t *testing.T) {
	t.Helper()
	needEmptyAccount(t)
	if isDeployed {
		return
	}
	assembly := filepath.Join(repository, "build", "cdk.out")
	require.FileExists(t, filepath.Join(assembly, names.CellStack+".template.json"),
		"drover is not synthesized for this machine: run make local first")
	require.NoError(t, cloud.Deploy(t.Context(), assembly))
	isDeployed = true
}

// drover runs the command with the shared account's environment.
func drover(t *testing.T, arguments ...string) clitest.Result {
	t.Helper()
	return runWith(t, cloud.Environment(), arguments...)
}

// runWith runs the command with environment variables.
func runWith(t *testing.T, environment map[string]string, arguments ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, repository, environment, arguments...)
}

// ok returns what a command prints that succeeds.
func ok(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 0, r.Code, "%s\n%s", r.Stdout, r.Stderr)
	return r.Stdout
}

// finds returns what a command prints that has findings, such as the diff of a spec that changes something.
func finds(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, exitFindings, r.Code, "%s\n%s", r.Stdout, r.Stderr)
	require.Empty(t, r.Stderr)
	return r.Stdout
}

// fails returns the error that a command prints.
func fails(t *testing.T, arguments ...string) string {
	t.Helper()
	r := drover(t, arguments...)
	require.Equal(t, 1, r.Code, r.Stdout)
	require.True(t, strings.HasPrefix(r.Stderr, "drover: "), r.Stderr)
	return r.Stderr
}

// example reads one of the examples, with replacements.
func example(t *testing.T, path string, replace ...string) string {
	t.Helper()
	return clitest.Example(t, repository, path, replace...)
}
