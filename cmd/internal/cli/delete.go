package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

func deleteCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "delete CLUSTER | TYPE/NAME",
		Short: "Delete a cluster and its spec, or the file of a rollout, freeze or decision",
		Long: `Deletes the spec of a cluster. drover then deletes its nodes, its control plane, ` +
			`what Kubernetes created in the account, and its network.

The cluster must have converged with deletionProtection: false in its spec. Volumes whose PersistentVolume has the reclaim policy
Retain are kept. If you upload the spec again during the deletion, drover keeps what still exists and recreates the rest.

rollout/NAME deletes the file of a rollout, which aborts its active run. freeze/NAME ends a freeze. decision/ROLLOUT/NAME deletes the file
of a decision; an answered one keeps its effect.`,
		Example: `  drover delete demo
  drover delete demo --watch
  drover delete freeze/black-friday`,
		Annotations: ExitCodes("the spec was deleted; with --watch, the cluster is Deleted",
			"an error; with --watch, the cluster was not deleted"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(deletable),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			if file, of, ok, err := parseFleetFile(name); err != nil {
				return err
			} else if ok {
				return deleteFleetFile(ctx, cmd.OutOrStdout(), c.Specs, c.State, file, of)
			}
			name = strings.TrimPrefix(name, "cluster/")
			key := names.ClusterSpec(name)
			before, err := readStatus(ctx, c, name)
			if err != nil {
				return err
			}
			object, err := c.Specs.Get(ctx, key, api.MaxFile)
			switch {
			case errors.Is(err, store.ErrNotFound):
				return fmt.Errorf("%s was deleted before: the cluster is %s: %s", key, before.Status.Phase, before.Status.Message)
			case err != nil:
				return err
			}
			spec, errs := api.ReadCluster(key, object.Body, options(key))
			if errs == nil && (spec.Spec.DeletionProtection == nil || *spec.Spec.DeletionProtection) {
				return fmt.Errorf("%s is protected: set spec.deletionProtection to false, upload that and wait until it is Ready, then delete it", name)
			}
			if err := c.Specs.DeleteIf(ctx, key, object.ETag); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "deleted s3://%s/%s\n", c.Specs.Name(), key)
			return follow(ctx, cmd.OutOrStdout(), c, name, watch, Upload{Before: cmp.Or(before.Status.ObservedVersion, "none")})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show what happens until the cluster is deleted")
	return cmd
}
