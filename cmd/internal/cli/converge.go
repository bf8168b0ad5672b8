package cli

// The converge command: start an execution now, and report its result.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
)

func convergeCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "converge CLUSTER",
		Short: "Retry a cluster now: plan it again, and change what differs",
		Long: `Plans a cluster again and changes what differs from its spec, ` +
			`as an upload does. Use it after you fixed the cause of a failure, to retry
before drover does. It also applies what a newer version of drover renders differently, which may replace nodes.
To see the changes first: drover diff clusters/demo.yaml

It prints the result of the plan. It refuses a cluster that is paused, absent or deleted. It starts nothing while another execution
converges the cluster: that execution plans again before it ends.`,
		Example: `  drover converge demo
  drover converge demo --watch`,
		Annotations: ExitCodes("the cluster is converging, or nothing differs; with --watch, it is Ready or Deleted",
			"an error, or the cluster cannot be converged; with --watch, it is Stopped or Failed"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			return Converge(cmd.Context(), cmd.OutOrStdout(), c, args[0], watch)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print what happens until the cluster is Ready, Stopped or Failed; "+
		"fails unless it is Ready or Deleted")
	return cmd
}

// Converge starts an execution that converges a cluster, unless it is paused or deleted, and prints the result of its plan.
func Converge(ctx context.Context, out io.Writer, c *Cell, cluster string, watch bool) error {
	if err := verifyKnown(ctx, c, cluster); err != nil {
		return err
	}
	if err := mayConverge(ctx, c, cluster); err != nil {
		return err
	}
	began := time.Now().Add(-time.Second) // clocks differ by less
	holder, err := c.State.Holder(ctx, cluster, stepfunctions.New(sfn.NewFromConfig(c.cfg), "").Running)
	if err != nil {
		return err
	}
	if holder != "" {
		fmt.Fprintf(out, "cluster %s is already converging: nothing was started; execution %s plans again before it ends\n", cluster, holder)
		return followConverge(ctx, out, c, cluster, holder, began, watch)
	}
	execution, err := c.start(ctx, machineConverge, events.Converge{Cluster: cluster})
	if err != nil {
		return fmt.Errorf("starting to converge %s: %w", cluster, err)
	}
	fmt.Fprintf(out, "started execution %s\n", execution)
	plan, err := planOf(ctx, c, execution)
	if err != nil {
		return err
	}
	if plan != nil {
		done, err := planAnswer(out, cluster, plan)
		if done || err != nil {
			return err
		}
	}
	return followConverge(ctx, out, c, cluster, execution, began, watch)
}

// mayConverge refuses a cluster for which an execution would do nothing.
func mayConverge(ctx context.Context, c *Cell, cluster string) error {
	key := names.ClusterSpec(cluster)
	object, err := specs.Upload(ctx, c.Specs, key)
	var unusable *specs.Unusable
	switch {
	case errors.As(err, &unusable): // the last good spec is in effect
		return nil
	case errors.Is(err, specs.ErrAbsent):
		known, err := c.State.Status(ctx, cluster)
		if err == nil && known.Status.Phase == status.Deleted {
			return fmt.Errorf("cluster %s is deleted: there is nothing to converge; upload its spec to create it again", cluster)
		}
		return err
	case err != nil:
		return err
	}
	spec, errs := api.ReadCluster(key, object.Body, options(key))
	if errs == nil && spec.Spec.Paused {
		return fmt.Errorf("cluster %s is paused: spec.paused is true; upload its spec with paused: false, which converges it, too", cluster)
	}
	return nil
}

// planAnswer prints the result of a plan. done reports whether the execution changes nothing.
func planAnswer(out io.Writer, cluster string, plan *events.PlanResult) (done bool, err error) {
	if plan.Rejected != nil {
		fmt.Fprintf(out, "the newest spec is not used, the last good one is: %s\n", plan.Rejected.Message)
	}
	switch plan.Outcome {
	case events.OutcomeUnchanged:
		fmt.Fprintf(out, "nothing differs: cluster %s matches its spec\n", cluster)
		return true, nil
	case events.OutcomeBusy:
		fmt.Fprintf(out, "cluster %s is already converging: another execution was faster, and plans again before it ends\n", cluster)
	case events.OutcomeChanges:
		fmt.Fprintf(out, "changing %s\n", strings.Join(stagesOf(plan.Stages), ", "))
	case events.OutcomeDeletes:
		fmt.Fprintf(out, "the spec was deleted: the deletion of the cluster continues\n")
	case events.OutcomeGone:
		fmt.Fprintf(out, "cluster %s is deleted\n", cluster)
		return true, nil
	case events.OutcomeStopped, events.OutcomeRefused:
		return true, fmt.Errorf("cluster %s cannot be converged: %s: %s", cluster, plan.Reason, plan.Message)
	}
	return false, nil
}

// stagesOf returns the stacks that a plan changes, in order.
func stagesOf(s events.Stages) (all []string) {
	all = append(all, s.Network...)
	all = append(all, s.ControlPlane...)
	all = append(all, s.Addons...)
	for _, group := range s.Pools {
		all = append(all, group...)
	}
	return append(all, s.NodeAddons...)
}

// followConverge watches an execution of the converge machine or, without watch, prints the command that does.
func followConverge(ctx context.Context, out io.Writer, c *Cell, cluster, execution string, since time.Time, watch bool) error {
	if !watch {
		fmt.Fprintf(out, "follow it: drover events %s --follow\n", cluster)
		return nil
	}
	w := newWatcher(out, c, cluster, since)
	defer w.show.End()
	if _, err := w.execution(ctx, execution); err != nil {
		return err
	}
	return w.verdict(ctx)
}
