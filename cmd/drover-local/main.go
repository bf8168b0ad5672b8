// Command drover-local runs the local account: an AWS account on this machine, with drover deployed in it. It also runs the
// demo, which creates, rolls and upgrades a cluster there. `drover local` starts it, so its help and its errors name drover.
package main

import (
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli"
)

func main() { cli.Main(command()) }

// command returns the local account's command as a whole program.
func command() *cobra.Command {
	cmd := localCommand()
	cmd.Annotations[cobra.CommandDisplayNameAnnotation] = "drover local"
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.CompletionOptions.DisableDefaultCmd = true // drover completes for both
	cli.ShowExitCodes(cmd)
	return cmd
}
