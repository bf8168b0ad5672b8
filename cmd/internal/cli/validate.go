package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check specs, releases, channels and rollouts, offline; every error with its file, line and field",
		Long: `Checks each file by itself. If rollouts and specs of clusters are among the files, the selectors of the rollouts must match: a
stage that selects no cluster, a cluster that two stages select, and a candidate that no stage selects are errors. Releases and
rollouts that a rollout or a decision names must be among the files if any file of that kind is. A folder means the .yaml files
directly in it.`,
		Example: `  drover validate clusters/demo.yaml
  drover validate clusters releases rollouts`,
		Annotations:       ExitCodes("every file is valid", "a file is invalid, or cannot be read"),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, sources []string) error {
			var valid []manifest
			count := 0
			for _, source := range sources {
				files, err := filesIn(source)
				if err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					count++
				}
				for _, file := range files {
					count++
					m, err := readManifest(file)
					if err != nil {
						fmt.Fprintln(cmd.ErrOrStderr(), err)
						continue
					}
					valid = append(valid, m)
				}
			}
			valid = reportFleet(cmd.ErrOrStderr(), valid)
			for _, m := range valid {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", m.file)
				printWarnings(cmd.ErrOrStderr(), m.file, warnings(m, valid))
			}
			if bad := count - len(valid); bad > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d files cannot be used\n", bad, count)
				return errPrinted
			}
			return nil
		},
	}
}
