package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

func applyCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Check a spec, a release or the channels, and upload it",
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
			if kind := api.KindOf(data); kind == api.KindRelease || kind == api.KindChannels {
				return applyRelease(ctx, cmd.OutOrStdout(), c, file, data)
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
			u := upload{before: before.Status.ObservedVersion}
			if watch { // who only uploads needs no permission to read
				uploaded, err := c.specs.Get(ctx, names.ClusterSpec(name), api.MaxFile)
				if err != nil {
					return err
				}
				u.version = uploaded.Version
			}
			return follow(ctx, cmd.OutOrStdout(), c, name, watch, u)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show what happens until the cluster is at rest")
	return cmd
}

// applyRelease uploads a release, or the channels.
func applyRelease(ctx context.Context, out io.Writer, c *cell, file string, data []byte) error {
	if errs := validate(file, data); errs != nil {
		return errs
	}
	name := options(file).Name // which validation has found in it
	if _, err := c.specs.Put(ctx, names.ReleaseSpec(name), data); err != nil {
		return err
	}
	if name == api.ChannelsName {
		fmt.Fprintln(out, "uploaded the channels; clusters that follow one are upgraded as their windows allow: drover versions")
		return nil
	}
	fmt.Fprintf(out, "uploaded release %s; it changes no cluster that is pinned to an earlier one\n", name)
	return nil
}
