package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

func applyCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Check a spec or release and upload it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, file := cmd.Context(), args[0]
			data, err := readFile(file)
			if err != nil {
				return err
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if api.KindOf(data) == api.KindRelease {
				release, errs := api.ReadRelease(file, data, options(file))
				if errs != nil {
					return errs
				}
				if _, err := c.specs.Put(ctx, names.ReleaseSpec(release.Metadata.Name), data); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "uploaded release %s; it changes no cluster that is pinned to an earlier one\n", release.Metadata.Name)
				return nil
			}
			cluster, _, err := readCluster(file)
			if err != nil {
				return err
			}
			name := cluster.Metadata.Name
			before, err := c.state.Status(ctx, name)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if _, err := c.specs.Put(ctx, names.ClusterSpec(name), data); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "uploaded %s to s3://%s/%s\n", file, c.specs.Name(), names.ClusterSpec(name))
			if watch {
				uploaded, err := c.specs.Get(ctx, names.ClusterSpec(name), api.MaxFile)
				if err != nil {
					return err
				}
				return watchStatus(ctx, cmd.OutOrStdout(), c, name, upload{uploaded.Version, before.Status.ObservedVersion})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "follow it: drover status %s --watch\n", name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show what happens until the cluster is at rest")
	return cmd
}
