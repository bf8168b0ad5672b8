// Command drover is the command line: it checks and renders specs offline, uploads them, shows what would change and what
// is, and runs a local account to try all of it in.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		if p := (*printed)(nil); !errors.As(err, &p) {
			fmt.Fprintln(os.Stderr, "drover:", err)
		}
		os.Exit(exitCode(err))
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drover",
		Short: "Kubernetes clusters on AWS from specs uploaded to S3",
		Example: `  drover validate clusters/demo.yaml
  drover diff clusters/demo.yaml
  drover apply clusters/demo.yaml --watch
  drover status demo`,
		Annotations: exitCodes("done", "an error, which is printed to standard error",
			"a result that needs attention: see the --help of each command"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	showExitCodes(cmd)
	cmd.AddCommand(
		validateCommand(), renderCommand(), diffCommand(), applyCommand(), deleteCommand(), statusCommand(), versionsCommand(),
		upgradeCommand(), drainCommand(), rollCommand(), convergeCommand(), eventsCommand(), logsCommand(), localCommand(),
		versionCommand(),
	)
	return cmd
}
