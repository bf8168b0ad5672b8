package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestCompletion(t *testing.T) {
	fixed := func(_ context.Context, _ *Cell, args []string) ([]string, error) { return args, nil }
	t.Run("offers nothing and no files without an account", func(t *testing.T) {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		t.Setenv("AWS_REGION", "")
		t.Setenv("AWS_DEFAULT_REGION", "")
		t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
		found, directive := completeArgs(fixed)(cmd, nil, "")
		require.Empty(t, found)
		require.Equal(t, cobra.ShellCompDirectiveNoFileComp, directive)
	})
	t.Run("offers nothing beyond the last argument", func(t *testing.T) {
		found, directive := completeArgs(fixed)(&cobra.Command{}, []string{"demo"}, "")
		require.Empty(t, found)
		require.Equal(t, cobra.ShellCompDirectiveNoFileComp, directive)
	})
	t.Run("offers YAML files for a file", func(t *testing.T) {
		r := droverIn(t, nil, "__complete", "apply", "")
		require.Equal(t, 0, r.Code)
		require.Contains(t, r.Stdout, "yaml\n:8\n")
	})
	t.Run("offers the formats for -o", func(t *testing.T) {
		cmd := &cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}}
		addOutputFlag(cmd, "wide")
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"__complete", "-o", ""})
		require.NoError(t, cmd.Execute())
		require.Contains(t, out.String(), "json\nyaml\nwide\n:4\n")
	})
}
