package cli

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Run("prints what the build recorded", func(t *testing.T) {
		v := versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-26T08:00:00Z"}, {Key: "vcs.modified", Value: "true"},
		}}, true, buildVersion{Commit: "of make"})
		var out strings.Builder
		v.print(&out)
		require.Contains(t, out.String(), "drover v1.2.3\ncommit abc of 2026-11-26T08:00:00Z, with changes\ngo1.")
	})
	t.Run("is unknown without a record", func(t *testing.T) {
		v := versionOf(nil, false, buildVersion{})
		require.Equal(t, "unknown", v.Version)
		var out strings.Builder
		v.print(&out)
		require.Contains(t, out.String(), "drover unknown\ncommit unknown: ")
	})
	t.Run("prints make's commit when Go recorded none", func(t *testing.T) {
		v := versionOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, true, buildVersion{Commit: "abc", Time: "2026-11-26T08:00:00Z"})
		var out strings.Builder
		v.print(&out)
		require.Contains(t, out.String(), "drover (devel)\ncommit abc of 2026-11-26T08:00:00Z\ngo1.")
	})
	t.Run("needs no account", func(t *testing.T) {
		r := droverIn(t, nil, "version", "-o", "yaml")
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, "version: ")
	})
}
