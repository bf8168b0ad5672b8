package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check specs, releases and channels, offline; every error with its file, line and field",
		Example: `  drover validate clusters/demo.yaml
  drover validate clusters/*.yaml releases/*.yaml`,
		Annotations:       exitCodes("every file is valid", "a file is invalid, or cannot be read"),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			bad := 0
			for _, file := range files {
				data, err := readFile(file)
				if err == nil {
					err = validate(file, data).Err()
				}
				if err != nil {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", file)
				printWarnings(cmd.ErrOrStderr(), file, warnings(file, data, files))
			}
			if bad > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d files cannot be used\n", bad, len(files))
				return errPrinted
			}
			return nil
		},
	}
}

// validate a file by what it says of its kind; one that says nothing is taken for a cluster's spec.
func validate(file string, data []byte) (errs api.Errors) {
	switch api.KindOf(data) {
	case api.KindRelease:
		_, errs = api.ReadRelease(file, data, options(file))
	case api.KindChannels:
		_, errs = api.ReadChannels(file, data, options(file))
	default:
		_, errs = api.ReadCluster(file, data, options(file))
	}
	return errs
}
