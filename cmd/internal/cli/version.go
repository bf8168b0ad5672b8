package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this command",
		Example: `  drover version
  drover version -o json`,
		Annotations:       ExitCodes("the version is printed", "an error"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			v := versionOf(info, ok, buildVersion{Commit: commit, Time: commitTime, Modified: modified == "true"})
			if output.forMachines() {
				return output.print(cmd.OutOrStdout(), v)
			}
			v.print(cmd.OutOrStdout())
			return nil
		},
	}
	output = addOutputFlag(cmd)
	return cmd
}

// What make sets with the linker: Go itself records no commit in a git worktree, or where GOFLAGS has -buildvcs=false.
var commit, commitTime, modified string

// buildVersion is the build information that the Go command or make recorded.
type buildVersion struct {
	// Version of the module. It is (devel) if Go recorded no commit.
	Version string `json:"version"`
	// Commit and its Time. Modified reports whether the folder had uncommitted changes.
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionOf prefers the commit that Go recorded to that of make.
func versionOf(info *debug.BuildInfo, ok bool, v buildVersion) buildVersion {
	v.Version, v.Go, v.Platform = "unknown", runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v buildVersion) print(w io.Writer) {
	fmt.Fprintf(w, "drover %s\n", v.Version)
	switch v.Commit {
	case "":
		fmt.Fprintln(w, "commit unknown: the build recorded none; build with make")
	default:
		modified := ""
		if v.Modified {
			modified = ", with changes"
		}
		fmt.Fprintf(w, "commit %s of %s%s\n", v.Commit, v.Time, modified)
	}
	fmt.Fprintf(w, "%s %s\n", v.Go, v.Platform)
}
