package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command needs only AWS: the simulator would double its size, and bring code that no user of AWS needs.
func TestDroverLinksNoLocalAccount(t *testing.T) {
	const module = "github.com/drover-run/drover/"
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(linked), module+"cmd/internal/cli\n")
	for name := range strings.Lines(string(linked)) {
		require.False(t, strings.HasPrefix(name, module+"local/"), "cmd/drover links %s", name)
	}
}

// A build by make prints its commit, also in a git worktree.
func TestBuildPrintsItsCommit(t *testing.T) {
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skip("this is no clone")
	}
	program := filepath.Join(t.TempDir(), "drover")
	output, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "build/drover", "OUT="+program).CombinedOutput()
	require.NoError(t, err, string(output))
	printed, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	require.NoError(t, err, string(printed))
	require.Contains(t, string(printed), "\ncommit "+strings.TrimSpace(string(commit))+" of 20")
	require.Contains(t, string(printed), "\n"+runtime.Version()+" ")
}
