package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/cmd/internal/clitest"
)

// repository is its root.
var repository string

func TestMain(m *testing.M) {
	clitest.Main(func() { Main(Root()) }, func() int {
		var err error
		if repository, err = filepath.Abs("../../.."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	})
}

// droverIn runs the command with the given environment variables.
func droverIn(t *testing.T, environment map[string]string, arguments ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, repository, environment, arguments...)
}

// example reads one of the examples, with replacements.
func example(t *testing.T, path string, replace ...string) string {
	t.Helper()
	return clitest.Example(t, repository, path, replace...)
}
