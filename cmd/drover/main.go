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

// errSaid ends the command with a failure that has been printed already.
var errSaid = errors.New("")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(os.Stderr, "drover:", err)
		}
		os.Exit(exitCode(err))
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "drover",
		Short:         "Kubernetes clusters on AWS from specs uploaded to S3",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(validateCommand(), renderCommand(), diffCommand(), applyCommand(), deleteCommand(), statusCommand(), versionsCommand(), upgradeCommand(), drainCommand(), rollCommand(), localCommand())
	return cmd
}
