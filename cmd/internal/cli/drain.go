package cli

// The command drain, and the previews of drains and rolls.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

func drainCommand() *cobra.Command {
	var dryRun, watch bool
	cmd := &cobra.Command{
		Use:   "drain CLUSTER NODE",
		Short: "Evict the pods of a node, as their disruption budgets allow",
		Long: `Starts a drain of a node of one of drover's pools, by its name or its instance's id. Its pods leave as their disruption budgets and
the pool's drain policy allow. The node stays, cordoned and out of load balancers.

With --dry-run it only shows the pods of the node and what blocks them. For that the cluster must let you read it. If it does not, the
dry run prints the access entry that its spec needs, and fails with 2.`,
		Example: `  drover drain demo ip-10-0-1-2.ec2.internal --dry-run
  drover drain demo i-0123456789abcdef0 --watch`,
		Annotations: ExitCodes("the drain was started; with --watch, the node has been drained; with --dry-run, the preview is printed",
			"an error; with --watch, the node is not drained",
			"--dry-run could not check everything: the cluster does not let you read its nodes and pods"),
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeArgs(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			cluster, node := args[0], args[1]
			if !dryRun || names.IsInstance(node) { // a dry run by name reads the node from the cluster
				if node, err = nodeOf(cmd.Context(), c, cluster, node); err != nil {
					return err
				}
			}
			if dryRun {
				return previewDrain(cmd.Context(), cmd.OutOrStdout(), c, cluster, "", node)
			}
			return startDrain(cmd.Context(), cmd.OutOrStdout(), c, cluster, node, watch)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would leave, what blocks and how long it takes; change nothing")
	cmd.Flags().BoolVar(&watch, "watch", false, "print what happens until the drain is over; fails unless the node has been drained")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}

// nodeOf returns the name of a node of the cluster's pools, found by its name or its instance's id.
func nodeOf(ctx context.Context, c *Cell, cluster, named string) (node string, err error) {
	found, err := ec2.New(c.cfg).NodeNames(ctx, named)
	if err != nil {
		return "", err
	}
	pools := autoscaling.New(awsautoscaling.NewFromConfig(c.cfg))
	for instance, node := range found {
		pool, err := pools.PoolOfInstance(ctx, instance)
		if err != nil {
			return "", err
		}
		if pool.Cluster == cluster {
			return node, nil
		}
	}
	return "", fmt.Errorf("no pool of cluster %s has a node %s: `kubectl get nodes` names them", cluster, named)
}

// startDrain starts an execution that drains a node.
func startDrain(ctx context.Context, out io.Writer, c *Cell, cluster, node string, watch bool) error {
	began := time.Now().Add(-time.Second)
	execution, err := c.start(ctx, machineDrain, map[string]string{"cluster": cluster, "node": node})
	if err != nil {
		return fmt.Errorf("starting the drain of %s: %w", node, err)
	}
	fmt.Fprintf(out, "started the drain of node %s of cluster %s: %s\n", node, cluster, execution)
	if watch {
		if err := watchDrain(ctx, out, c, cluster, node, execution, began); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, `
Follow it:

  drover events %s --follow
  kubectl get node %s -o jsonpath='{.metadata.annotations.drover\.run/drain-waits-for}'
`, cluster, node)
	}
	fmt.Fprintf(out, `
The node stays, cordoned and out of load balancers. To use it again afterwards:

  kubectl uncordon %s
  kubectl label node %s node.kubernetes.io/exclude-from-external-load-balancers-
`, node, node)
	return nil
}

// watchDrain prints events until a drain ends, and returns an error unless the node has been drained.
func watchDrain(ctx context.Context, out io.Writer, c *Cell, cluster, node, execution string, since time.Time) error {
	w := newWatcher(out, c, cluster, since)
	defer w.show.End()
	x, err := w.execution(ctx, execution)
	if err != nil {
		return err
	}
	if x.Status != sfntypes.ExecutionStatusSucceeded {
		return fmt.Errorf("node %s is not drained: %s", node, endOfExecution(string(x.Status), aws.ToString(x.Error), aws.ToString(x.Cause)))
	}
	var result events.DrainResult
	if err := json.Unmarshal([]byte(aws.ToString(x.Output)), &result); err != nil {
		return fmt.Errorf("reading the output of execution %s: %w", execution, err)
	}
	switch result.Outcome {
	case events.DrainDone, events.DrainGone:
		w.show.Say("node %s has been drained: %d pods were evicted", node, result.Evicted)
		return nil
	}
	return fmt.Errorf("node %s is not drained: %s: %s", node, result.Outcome, cmp.Or(result.Message, result.Summary()))
}

// previewDrain shows the pods and the least time of a drain of a node, or of all nodes of a pool.
func previewDrain(ctx context.Context, out io.Writer, c *Cell, cluster, poolName, node string) error {
	opened, err := kube.NewClusters(c.cfg, kube.WithRelay(relay.To(lambda.New(c.cfg)))).Open(ctx, cluster)
	if errors.Is(err, pool.ErrNoCluster) {
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	if err != nil {
		return err
	}
	return PreviewDrain(ctx, out, opened, c, cluster, poolName, node)
}

// PreviewDrain is previewDrain with an open connection to the cluster. It only reads.
func PreviewDrain(ctx context.Context, out io.Writer, opened *kube.Cluster, c *Cell, cluster, pool, node string) error {
	found, err := drainer.New(opened).Preview(ctx, pool, node)
	if kube.IsDenied(err) {
		denied, err := explainDenied(ctx, c, cluster, err)
		if err != nil {
			return err
		}
		return denied
	}
	if err != nil {
		return err
	}
	switch {
	case len(found) == 0 && node != "":
		return fmt.Errorf("cluster %s has no node %s", cluster, node)
	case len(found) == 0:
		return fmt.Errorf("cluster %s has no node of a pool %s", cluster, pool)
	}
	var update api.Update
	if pool != "" {
		if update, err = updateOf(ctx, c, cluster, pool); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "A dry run: nothing is changed.")
	pools, drains, estimated := autoscaling.New(awsautoscaling.NewFromConfig(c.cfg)), []time.Duration(nil), true
	for _, p := range found {
		if p.Pool == "" {
			return fmt.Errorf("node %s belongs to no pool of drover", p.Node)
		}
		policy, err := policyOf(ctx, pools, cluster, p.Pool)
		if err != nil {
			return err
		}
		estimate := printPreview(out, p, policy)
		drains = append(drains, max(0, estimate))
		estimated = estimated && estimate >= 0
	}
	if pool == "" {
		return nil
	}
	unavailable, surge := bounds(update, len(found))
	fmt.Fprintf(out, "\nA roll of pool %s replaces %d nodes, %d at a time: "+
		"its update policy allows %d unavailable nodes, and %d additional ones. ",
		pool, len(found), min(len(found), max(1, unavailable+surge)), unavailable, surge)
	if !estimated {
		fmt.Fprintln(out, "It would wait for what blocks.")
		return nil
	}
	paused := ""
	if update.PauseTime != "" {
		paused = ", and the pool pauses for " + update.PauseTime + " after each batch"
	}
	fmt.Fprintf(out, "Least time: %s, when a node takes %s until it is Ready, pods take their whole grace periods%s.\n",
		rollTime(drains, update).Round(time.Second), leastBoot, paused)
	if tooLong(drains, update) {
		fmt.Fprintf(out, "CloudFormation waits for %s for a batch, and would roll the update back: choose update.strategy InstanceRefresh "+
			"for the pool.\n", batchLimit)
	}
	return nil
}

// updateOf returns the update policy of a pool in the newest spec.
func updateOf(ctx context.Context, c *Cell, cluster, pool string) (api.Update, error) {
	key := names.ClusterSpec(cluster)
	object, err := c.Specs.Get(ctx, key, api.MaxFile)
	if err != nil {
		return api.Update{}, fmt.Errorf("reading the spec of cluster %s: %w", cluster, err)
	}
	spec, errs := api.ReadCluster(key, object.Body, options(key))
	if len(errs) > 0 {
		return api.Update{}, fmt.Errorf("the spec of cluster %s cannot be used, so its pools cannot be rolled: %w", cluster, errs)
	}
	resolved, _ := api.Resolve(spec, &api.Release{}) // adds drover's own defaults; defaults of the release are missing
	for _, p := range resolved.Spec.Pools {
		if p.Name == pool {
			return p.Update, nil
		}
	}
	return api.Update{}, fmt.Errorf("the spec of cluster %s has no pool %s", cluster, pool)
}

// policyOf returns the deployed drain policy of a pool.
func policyOf(ctx context.Context, pools *autoscaling.Groups, cluster, pool string) (drain.Policy, error) {
	deployed, err := pools.PoolOfGroup(ctx, names.Stack(cluster, names.PoolStack(pool)))
	if err != nil || deployed.Drain == nil {
		return drain.PolicyWithoutPool, err
	}
	return *deployed.Drain, nil
}

// printPreview prints the preview of one node's drain and returns its least time. It is negative if the time cannot be
// estimated, because a pod is blocked.
func printPreview(out io.Writer, p drainer.Preview, policy drain.Policy) time.Duration {
	now := time.Now()
	p.View.Excluded = now.Add(-policy.LoadBalancerWait.Duration()) // as if the wait for load balancers were over
	task := drain.Task{Policy: policy, Started: now}
	decision := drain.Decide(now, task, p.View, math.MaxInt)
	what := map[string]string{}
	for _, pod := range decision.Left {
		what[pod.ID()] = "leaves at once"
		if !pod.Managed {
			what[pod.ID()] += ", and nothing starts it again"
		}
		if pod.Tolerant {
			what[pod.ID()] += "; it tolerates the cordon, and one that comes back ends with the node"
		}
	}
	for _, pod := range decision.Terminating {
		what[pod.ID()] = "is already terminating"
	}
	for _, pod := range decision.Stuck {
		what[pod.ID()] = "does not delay the drain: it should have ended long ago"
	}
	for _, pod := range decision.Returned {
		what[pod.ID()] = "stays: it tolerates the cordon, came back, and ends with the node"
	}
	blocked := 0
	for _, b := range decision.Blocked {
		if len(b.Budgets) == 1 && p.View.Budgets[drain.Key(b.Budgets[0])].Allowed > 0 {
			what[b.Pod] = "leaves in its turn, under the disruption budget " + b.Budgets[0]
			continue
		}
		blocked++
		what[b.Pod] = strings.TrimSuffix(fmt.Sprintf("BLOCKED: %s (%s)", b.Why, strings.Join(b.Budgets, ", ")), " ()")
	}
	pods := make([]*drain.Pod, 0, len(p.View.Pods))
	for _, pod := range p.View.Pods {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b *drain.Pod) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	cordoned := ""
	if p.Cordoned {
		cordoned = ", cordoned already"
	}
	fmt.Fprintf(out, "\nnode %s of pool %s, instance %s%s: %d of %d pods leave, %d are blocked\n\n",
		p.Node, p.Pool, p.Instance, cordoned, len(decision.Left), len(pods), blocked)
	table := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  POD\tGRACE\tWHAT HAPPENS")
	for _, pod := range pods {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", pod.ID(), pod.Grace, cmp.Or(what[pod.ID()], staying[pod.Class]))
	}
	table.Flush()
	if decision.Estimate < 0 {
		fmt.Fprintf(out, "\nThe drain would wait for what blocks: by the pool's policy %s.\n", waiting(policy))
		return decision.Estimate
	}
	estimate := leastDrain(now, task, p.View, decision)
	fmt.Fprintf(out, "\nLeast time: %s, if pods take their whole grace periods and others replace them at once.\n",
		estimate.Round(time.Second))
	return estimate
}

// leastDrain returns the least time of a drain that starts now. decision is the one after the wait for load balancers.
//   - Pods that are terminating already do not wait for load balancers. A node without other pods does not either.
//   - A policy with a timeout limits the time, except OnTimeout: Wait.
func leastDrain(now time.Time, task drain.Task, view drain.View, decision drain.Decision) (least time.Duration) {
	policy := task.Policy
	var grace time.Duration
	for _, pod := range decision.Left {
		grace = max(grace, pod.Grace)
	}
	if limit := policy.PodGracePeriod.Duration(); limit > 0 {
		grace = min(grace, limit)
	}
	view.Pods = maps.Clone(view.Pods)
	for _, pod := range decision.Terminating {
		least = max(least, pod.Deleted.Sub(now))
		delete(view.Pods, pod.UID)
	}
	if len(decision.Terminating) < len(decision.Left) {
		least = max(least, drain.Decide(now, task, view, math.MaxInt).Estimate+policy.LoadBalancerWait.Duration())
	}
	switch {
	case policy.Timeout == 0:
	case policy.OnTimeout == drain.Continue:
		least = min(least, policy.Timeout.Duration())
	case policy.OnTimeout == drain.Force:
		least = min(least, policy.Timeout.Duration()+grace)
	}
	return least
}

// staying explains why pods of a class stay.
var staying = map[drain.Class]string{
	drain.Mirror:   "stays: the kubelet's own",
	drain.Daemon:   "stays: a DaemonSet's, it ends with the node",
	drain.Finished: "stays: it has finished",
}

// waiting describes how long a drain waits for blocked pods, and what it does then.
func waiting(policy drain.Policy) string {
	after := policy.Timeout.Duration().String()
	switch {
	case policy.Timeout == 0 || policy.OnTimeout == drain.Wait:
		return "as long as that takes"
	case policy.OnTimeout == drain.Force:
		return "for " + after + ", and then delete the pods against their budgets"
	default:
		return "for " + after + ", and then remove the node with them"
	}
}
