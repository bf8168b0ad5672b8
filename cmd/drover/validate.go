package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check specs and releases, offline; every error with its file, line and field",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			bad := 0
			for _, file := range files {
				data, err := readFile(file)
				if err == nil {
					if api.KindOf(data) == api.KindRelease {
						_, errs := api.ReadRelease(file, data, options(file))
						err = errs.Err()
					} else {
						_, errs := api.ReadCluster(file, data, options(file))
						err = errs.Err()
					}
				}
				if err != nil {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", file)
			}
			if bad > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d files cannot be used\n", bad, len(files))
				return errSaid
			}
			return nil
		},
	}
}
