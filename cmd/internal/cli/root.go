// Package cli holds the commands of drover and their output. Commands that check or render specs work offline; the others
// call AWS with the credentials of the caller. It does not run the local account: `drover local` starts the program
// drover-local, which uses this package for its demo.
//
// A command is in the file of its name; fleet why is in fleet_why.go, and each subcommand of rollout in rollout_SUBCOMMAND.go. Other files
// hold what several commands use:
//   - the account: cell.go opens it; access.go explains a cluster that refuses the caller; polls.go survives failed reads.
//   - files: manifest.go and files.go read specs, releases and channels; fleet_files.go those of fleets; warnings.go.
//   - rollouts: rollout_decide.go has the verbs, such as start and approve; decisions.go uploads what they decide and waits for
//     the answers; apply_fleet.go and diff_fleet.go are apply, delete and diff for rollouts, freezes and decisions;
//     ui_rollouts.go is their part of the page.
//   - releases: release.go makes them from AWS's catalogs, and checks them.
//   - the status: status_view.go shows a cluster or the table of all; status_live.go refreshes it with what package live
//     reads; status_upgrade.go and status_ignored.go show those parts; status_watch.go prints changes until the work ends.
//   - the history: history.go merges uploads, executions (history_executions.go), stacks (history_stacks.go) and errors in
//     logs.go; watch_execution.go prints it until an execution ends. events uses both.
//   - previews: difference.go is the result of diff; upgrade_preview.go and roll_time.go are for dry runs.
//   - the first spec: init.go asks, and init_spec.go writes.
//   - kubectl: kubeconfig.go has kubeconfig and token.
//   - output: display.go for terminals, output.go for machines (-o), exit_codes.go, completion.go.
//
// Package view formats text, and package live reads the present state of AWS and of clusters.
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
		if p := (*printedResult)(nil); !errors.As(err, &p) {
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
		doctorCommand(), initCommand(), validateCommand(), renderCommand(), diffCommand(), applyCommand(), deleteCommand(), statusCommand(),
		fleetCommand(), uiCommand(), versionsCommand(), releaseCommand(),
		upgradeCommand(), drainCommand(), rollCommand(), convergeCommand(), rolloutCommand(), eventsCommand(), logsCommand(),
		kubeconfigCommand(), tokenCommand(), localCommand(),
		versionCommand(),
	)
	return cmd
}
