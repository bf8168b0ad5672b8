package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drover works against AWS alone: the simulator would double its size, and bring code that no user of AWS needs.
func TestDroverLinksNoLocalAccount(t *testing.T) {
	const module = "github.com/drover-run/drover/"
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(linked), module+"cmd/internal/cli\n")
	for name := range strings.Lines(string(linked)) {
		require.False(t, strings.HasPrefix(name, module+"local/"), "cmd/drover links %s", name)
	}
}
