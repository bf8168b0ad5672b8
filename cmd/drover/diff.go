package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/store"
)

func diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "diff FILE",
		Short:             "Show what uploading a spec would change, and why; changes nothing",
		Example:           `  drover diff clusters/demo.yaml`,
		Annotations:       exitCodes("the differences are printed, if there are any", "an error"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			cluster, data, err := readCluster(args[0])
			if err != nil {
				return err
			}
			c, err := openCell(ctx)
			if err != nil {
				return err
			}
			name := cluster.Metadata.Name
			p, reason, message, err := c.planner(overlay{c.specs, names.ClusterSpec(name), data}).Preview(ctx, name)
			if err != nil {
				return err
			}
			if reason != "" {
				return fmt.Errorf("nothing would be changed: %s: %s", reason, message)
			}
			printPlan(cmd.OutOrStdout(), p)
			printWarnings(cmd.ErrOrStderr(), args[0], p.Warnings)
			return nil
		},
	}
}

// overlay is the specs bucket with one spec in it that is not uploaded yet.
type overlay struct {
	*store.Bucket
	key  string
	body []byte
}

func (o overlay) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if key == o.key {
		return store.Object{Body: o.body, Version: "not-uploaded"}, nil
	}
	return o.Bucket.Get(ctx, key, limit)
}

func printPlan(w io.Writer, p plan.Plan) {
	if p.AddonsWait {
		defer fmt.Fprintf(w, "\n%s waits for the first node: no pool has one, and none has a minSize above 0\n", names.Stack(p.Cluster, names.NodeAddons))
	}
	if len(p.Changes) == 0 {
		fmt.Fprintf(w, "%s: no changes\n", p.Cluster)
		return
	}
	if len(p.Changes) == 1 {
		fmt.Fprintf(w, "%s: 1 stack would change:\n", p.Cluster)
	} else {
		fmt.Fprintf(w, "%s: %d stacks would change, in this order:\n", p.Cluster, len(p.Changes))
	}
	for _, change := range p.Changes {
		fmt.Fprintf(w, "\n%s %s%s\n", change.Operation, change.StackName, change.Effect().Words())
		for _, reason := range change.Reasons {
			fmt.Fprintf(w, "  %s: %s → %s\n", reason.Field, quote(reason.Old), quote(reason.New))
		}
	}
}

func quote(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}
