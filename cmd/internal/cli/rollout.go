package cli

// The command rollout. Its verbs are in rollout_decide.go.

import "github.com/spf13/cobra"

func rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Move many clusters to a release, in stages",
		Example: `  drover rollout plan rollouts/kubernetes-1.37.yaml
  drover apply rollouts/kubernetes-1.37.yaml
  drover rollout start kubernetes-1.37 --watch
  drover rollout status kubernetes-1.37`,
		Annotations: ExitCodes("done", "an error"),
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(rolloutPlanCommand(), rolloutStatusCommand(), rolloutHistoryCommand(), rolloutDiffCommand())
	for _, v := range verbs() {
		cmd.AddCommand(v.command())
	}
	return cmd
}
