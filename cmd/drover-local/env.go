package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli"
)

func localEnvCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print shell commands that point drover and aws to the running local account",
		Long: `Prints export lines for a POSIX shell: the endpoint, the region and the access key of the local account that runs on this
machine. A running account writes a file to your cache folder (drover/local), which only you can read, and removes it when it
ends. With several accounts, --dir selects one.`,
		Example: `  eval "$(drover local env)"
  drover local env --dir /tmp/account`,
		Annotations:       cli.ExitCodes("the lines are printed", "no local account runs, or several run and --dir does not select one"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLocalEnv(cmd.Context(), cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder of the account, its --dir (default: the only account that runs)")
	return cmd
}

func runLocalEnv(ctx context.Context, out io.Writer, dir string) error {
	running, err := runningAccounts(ctx)
	if err != nil {
		return err
	}
	a, err := selectAccount(running, dir)
	if err != nil {
		return err
	}
	printEnvironment(out, "", a.Environment)
	return nil
}

// printEnvironment prints the variables for a shell. It unsets a session token and a profile, because they would override the access key or
// be combined with it.
func printEnvironment(out io.Writer, indent string, environment map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(out, "%sexport %s=%s\n", indent, name, quoteShell(environment[name]))
	}
	fmt.Fprintf(out, "%sunset AWS_SESSION_TOKEN AWS_PROFILE\n", indent)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoteShell quotes a word for a POSIX shell if necessary.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
