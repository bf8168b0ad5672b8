package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestOutputFlag(t *testing.T) {
	value := struct {
		Name  string `json:"name"`
		Pools []int  `json:"pools,omitempty"`
	}{"demo", []int{1}}
	for name, test := range map[string]struct {
		args     []string
		machines bool
		want     string
	}{
		"json":           {[]string{"-o", "json"}, true, "{\n  \"name\": \"demo\",\n  \"pools\": [\n    1\n  ]\n}\n"},
		"yaml":           {[]string{"--output=yaml"}, true, "name: demo\npools:\n- 1\n"},
		"text":           {nil, false, ""},
		"the own format": {[]string{"-o", "wide"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{Use: "x"}
			o := addOutputFlag(cmd, "wide")
			require.NoError(t, cmd.ParseFlags(test.args))
			require.Equal(t, test.machines, o.forMachines())
			if test.machines {
				var out strings.Builder
				require.NoError(t, o.print(&out, value))
				require.Equal(t, test.want, out.String())
			}
		})
	}
	t.Run("rejects another format and lists its formats", func(t *testing.T) {
		cmd := &cobra.Command{Use: "x"}
		addOutputFlag(cmd, "wide")
		require.ErrorContains(t, cmd.ParseFlags([]string{"-o", "xml"}), "must be json, yaml or wide")
	})
}
