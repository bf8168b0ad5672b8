package main

// The commands run as separate processes. The test binary runs as drover, and as drover-local for the command local.

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/cmd/internal/cli"
	"github.com/drover-run/drover/cmd/internal/clitest"
)

// repository is the absolute path of the repository, because the account changes the working directory.
var repository string

func TestMain(m *testing.M) {
	clitest.Main(asCommand, func() int {
		var err error
		if repository, err = filepath.Abs("../.."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	})
}

// asCommand runs drover-local if the first argument is local, and drover otherwise.
func asCommand() {
	if len(os.Args) > 1 && os.Args[1] == "local" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
		return
	}
	cli.Main(cli.Root())
}

// drover runs a command with an empty environment.
func drover(t *testing.T, arguments ...string) clitest.Result {
	t.Helper()
	return droverIn(t, nil, arguments...)
}

func droverIn(t *testing.T, environment map[string]string, arguments ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, repository, environment, arguments...)
}

// example reads one of the examples, with replacements.
func example(t *testing.T, path string, replace ...string) string {
	t.Helper()
	return clitest.Example(t, repository, path, replace...)
}
