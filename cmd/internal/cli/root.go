// Package cli holds the commands of drover and their output. Commands that check or render specs work offline; the others
// call AWS with the credentials of the caller. It does not run the local account: `drover local` starts the program
// drover-local, which uses this package for its demo.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs a command as the whole process: it ends with the exit code of the command. SIGINT and SIGTERM end its context.
func Main(cmd *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		if p := (*printed)(nil); !errors.As(err, &p) {
			fmt.Fprintln(os.Stderr, "drover:", err)
		}
		os.Exit(exitCode(err))
	}
}

// Root returns the command drover with all its subcommands.
func Root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drover",
		Short: "Kubernetes clusters on AWS from specs uploaded to S3",
		Example: `  drover validate clusters/demo.yaml
  drover diff clusters/demo.yaml
  drover apply clusters/demo.yaml --watch
  drover status demo`,
		Annotations: ExitCodes("done", "an error, which is printed to standard error",
			"a result that needs attention: see the --help of each command"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	ShowExitCodes(cmd)
	cmd.AddCommand(
		doctorCommand(), validateCommand(), renderCommand(), diffCommand(), applyCommand(), deleteCommand(), statusCommand(),
		fleetCommand(), uiCommand(), versionsCommand(),
		upgradeCommand(), drainCommand(), rollCommand(), convergeCommand(), rolloutCommand(), eventsCommand(), logsCommand(), localCommand(),
		versionCommand(),
	)
	return cmd
}
