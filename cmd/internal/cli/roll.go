package cli

// The command roll. Its preview is that of the drains of its nodes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/names"
)

func rollCommand() *cobra.Command {
	var dryRun, watch bool
	cmd := &cobra.Command{
		Use:   "roll CLUSTER POOL",
		Short: "Replace all nodes of a pool by its update policy",
		Long: `Replaces every node of a pool once, even if nothing else changed, by the pool's update policy. If the cluster is converging,
drover records the roll and makes it afterwards. drover refuses a roll of an unknown, paused or deleted cluster, or of an unknown
pool. Then it starts nothing.

With --dry-run it only shows the nodes of the pool, the pods on them, what blocks their leaving and the least time that it takes. For that
the cluster must let you read it. If it does not, the dry run prints the access entry that its spec needs, and fails with 2.`,
		Example: `  drover roll demo workers --dry-run
  drover roll demo workers --watch`,
		Annotations: ExitCodes("the roll was accepted; with --watch, every node is replaced; with --dry-run, the preview is printed",
			"an error, or the roll was refused; with --watch, not every node is replaced",
			"--dry-run could not check everything: the cluster does not let you read its nodes and pods"),
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeArgs(clusterNames, poolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			if !dryRun {
				return StartRoll(cmd.Context(), cmd.OutOrStdout(), c, args[0], args[1], watch)
			}
			if err := noteRefusal(cmd.Context(), cmd.OutOrStdout(), c, args[0], args[1]); err != nil {
				return err
			}
			return previewDrain(cmd.Context(), cmd.OutOrStdout(), c, args[0], args[1], "")
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would leave, what blocks and how long it takes; change nothing")
	cmd.Flags().BoolVar(&watch, "watch", false, "print what happens until every node is replaced; fails if one is not")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}

// StartRoll starts an execution that rolls a pool, unless drover would refuse it, and prints the result of its plan.
func StartRoll(ctx context.Context, out io.Writer, c *Cell, cluster, pool string, watch bool) error {
	if err := verifyKnown(ctx, c, cluster); err != nil {
		return err
	}
	why, err := c.planner(c.Specs).RollRefusal(ctx, cluster, []string{pool})
	if err != nil {
		return err
	}
	if why != "" {
		return errors.New(why)
	}
	_, found, err := autoscaling.New(awsautoscaling.NewFromConfig(c.cfg)).Describe(ctx, names.Group(cluster, pool))
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("nothing was rolled: pool %s of cluster %s is not created yet; `drover status %[2]s` says why", pool, cluster)
	}
	began := time.Now().Add(-time.Second)
	execution, err := c.start(ctx, machineConverge, events.Converge{Cluster: cluster, Roll: []string{pool}})
	if err != nil {
		return fmt.Errorf("starting the roll of pool %s: %w", pool, err)
	}
	plan, err := planOf(ctx, c, execution)
	if err != nil {
		return err
	}
	if err := rollAnswer(out, cluster, pool, execution, plan); err != nil {
		return err
	}
	if !watch {
		fmt.Fprintf(out, "follow it: drover events %s --follow\n", cluster)
		return nil
	}
	w := newWatcher(out, c, cluster, began)
	defer w.show.End()
	x, err := w.execution(ctx, execution)
	if err != nil {
		return err
	}
	return w.waitForRoll(ctx, pool, aws.ToTime(x.StartDate))
}

// rollAnswer prints the result of a plan that a roll started. The plan is nil if the execution has not planned yet.
func rollAnswer(out io.Writer, cluster, pool, execution string, plan *events.PlanResult) error {
	if plan == nil {
		fmt.Fprintf(out, "requested the roll of pool %s of cluster %s: %s\n", pool, cluster, execution)
		return nil
	}
	switch plan.Outcome {
	case events.OutcomeRefused:
		return errors.New(plan.Message)
	case events.OutcomeStopped:
		return fmt.Errorf("pool %s of cluster %s is not rolled now: %s: %s; drover recorded the roll, and makes it when the cluster converges",
			pool, cluster, plan.Reason, plan.Message)
	case events.OutcomeBusy:
		fmt.Fprintf(out, "cluster %s is converging: drover recorded the roll of pool %s, and starts it within five minutes after that\n",
			cluster, pool)
	default:
		fmt.Fprintf(out, "started the roll of pool %s of cluster %s: %s\n", pool, cluster, execution)
	}
	return nil
}

// noteRefusal prints in a dry run why drover would refuse the roll.
func noteRefusal(ctx context.Context, out io.Writer, c *Cell, cluster, pool string) error {
	if err := verifyKnown(ctx, c, cluster); err != nil {
		return err
	}
	why, err := c.planner(c.Specs).RollRefusal(ctx, cluster, []string{pool})
	if err == nil && why != "" {
		fmt.Fprintf(out, "A roll would be refused now: %s\n", why)
	}
	return err
}
