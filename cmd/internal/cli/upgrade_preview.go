package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	awsservicequotas "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// PreviewUpgrade prints the checks and the steps of an upgrade. It only reads. It fails if a check blocks, or if the cluster
// refuses the caller.
func PreviewUpgrade(ctx context.Context, out io.Writer, c *Cell, clusters *kube.Clusters, in events.Upgrade) error {
	offered := eks.New(awseks.NewFromConfig(c.cfg))
	plan, err := UpgradeChecker(c).Preview(ctx, in)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "A dry run: nothing is changed.")
	if len(plan.Steps) == 0 {
		fmt.Fprintf(out, "\n%s is at %s already: there is nothing to upgrade\n", in.Cluster, plan.To)
		return nil
	}
	fmt.Fprintf(out, "\n%s: %s → %s\n", in.Cluster, plan.From, plan.To)
	if err := PrintBusy(ctx, out, c, in.Cluster); err != nil {
		return err
	}
	pools := autoscaling.New(awsautoscaling.NewFromConfig(c.cfg))
	caller := &callerSurvey{clusters: clusters}
	g := &collect.Gatherer{
		Kubernetes: caller, EKS: offered, Groups: pools, Alarms: cloudwatch.New(awscloudwatch.NewFromConfig(c.cfg)), Capacity: ec2.New(c.cfg),
		Quotas: servicequotas.New(awsservicequotas.NewFromConfig(c.cfg)), Now: time.Now,
	}
	facts, err := g.Before(ctx, plan)
	if err != nil {
		return err
	}
	checks := preflight.Before(facts, plan)
	passed, missed := preflight.Passed(facts, checks), preflight.NotRun(facts)
	all := len(preflight.BeforeNames())
	made := fmt.Sprintf("%d checks", all)
	if len(missed) > 0 {
		made = fmt.Sprintf("%d of %s ran", all-len(missed), made)
	}
	fmt.Fprintf(out, "\n%s, %d found something:\n\n", made, all-len(passed)-len(missed))
	for _, line := range CheckLines(checks) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	fmt.Fprintf(out, "  passed: %s\n", strings.Join(passed, ", "))
	switch {
	case facts.Forbidden:
		fmt.Fprintf(out, "  skipped, because the cluster does not let you read it: %s; "+
			"ControlPlaneHealthy and SurgeCapacity used data of AWS only\n", strings.Join(missed, ", "))
	case len(missed) > 0:
		fmt.Fprintf(out, "  skipped, because the cluster's API does not answer: %s\n", strings.Join(missed, ", "))
	}
	p := &outlook{out: out, plan: plan, facts: facts, clusters: clusters, pools: pools}
	if err := p.steps(ctx); err != nil {
		return err
	}
	blocks := preflight.Blocks(checks)
	if caller.denied == nil {
		if blocks {
			return fmt.Errorf("the upgrade of %s is blocked: fix what the checks above found", in.Cluster)
		}
		return nil
	}
	denied, err := explainDenied(ctx, c, in.Cluster, caller.denied)
	if err != nil {
		return err
	}
	if blocks {
		return fmt.Errorf("the upgrade of %s is blocked: fix what the checks above found; and %s", in.Cluster, denied.text)
	}
	return denied
}

// PrintBusy prints what an upgrade would have to wait for.
func PrintBusy(ctx context.Context, out io.Writer, c *Cell, cluster string) error {
	r, _, err := c.State.Upgrade(ctx, cluster)
	if err != nil {
		return err
	}
	if r != nil && !r.State.Final() {
		fmt.Fprintf(out, "An upgrade to %s is in flight (drover status %s): this one would wait for it.\n", r.Target, cluster)
	}
	lease, err := c.State.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return err
	}
	running, err := stepfunctions.New(sfn.NewFromConfig(c.cfg), "").Running(ctx, lease.Execution)
	if err == nil && running {
		fmt.Fprintf(out, "The cluster is being converged by %s: an upgrade would wait for that.\n", lease.Execution)
	}
	return err
}

// The least times of steps. EKS seldom takes less.
const (
	leastControlPlane = 8 * time.Minute
	leastAddons       = 30 * time.Second
)

// outlook prints the steps of an upgrade.
type outlook struct {
	out      io.Writer
	plan     *preflight.Plan
	facts    *preflight.Facts
	clusters *kube.Clusters
	pools    *autoscaling.Groups
}

// surveyed reports whether the cluster's nodes and pods were read.
func (p *outlook) surveyed() bool { return p.facts.Unreachable == "" && !p.facts.Forbidden }

// steps prints the steps in their order, with the least time of each and of all.
func (p *outlook) steps(ctx context.Context) error {
	fmt.Fprintf(p.out, "\nSteps:\n\n")
	var all time.Duration
	for i, step := range p.plan.Steps {
		var details strings.Builder
		least, err := p.step(ctx, &details, step)
		if err != nil {
			return err
		}
		all += least
		fmt.Fprintf(p.out, "  %d. %s: at least %s\n%s", i+1, route.StepName(step), least.Round(time.Second), details.String())
	}
	pods := "and pods their whole grace periods"
	if !p.surveyed() {
		pods = "and pods leave at once: they could not be read"
	}
	fmt.Fprintf(p.out, "\nLeast time: %s, when EKS takes %s for a control plane and %s for add-ons, a node %s until it is Ready, %s.\n",
		all.Round(time.Second), leastControlPlane, leastAddons, leastBoot, pods)
	return nil
}

// step prints what a step changes, and returns its least time.
func (p *outlook) step(ctx context.Context, out io.Writer, step upgrade.Step) (least time.Duration, err error) {
	switch step.Kind {
	case upgrade.StepControlPlane:
		return leastControlPlane, nil
	case upgrade.StepAddonsFirst:
		for _, name := range slices.Sorted(maps.Keys(step.Addons)) {
			fmt.Fprintf(out, "     %s %s\n", name, step.Addons[name])
		}
		return leastAddons, nil
	case upgrade.StepAddons:
		for _, addon := range p.plan.After.Spec.Addons {
			if was := versionIn(p.plan.Before.Spec.Addons, addon.Name); addon.Version != was {
				fmt.Fprintf(out, "     %s %s → %s\n", addon.Name, was, addon.Version)
				least = leastAddons
			}
		}
		return least, nil
	case upgrade.StepNodes:
		if step.NodesRolledBack {
			fmt.Fprintf(out, "     the nodes stay: they were rolled back before the control plane\n")
			return 0, nil
		}
	}
	return p.nodes(ctx, out)
}

// versionIn returns the version of an add-on in a list, or "".
func versionIn(addons []api.Addon, name string) string {
	for _, a := range addons {
		if a.Name == name {
			return a.Version
		}
	}
	return ""
}

// nodes prints the pools in the order in which their nodes are replaced. Pools with the same update.order are replaced together.
func (p *outlook) nodes(ctx context.Context, out io.Writer) (least time.Duration, err error) {
	ordered := slices.Clone(p.plan.After.Spec.Pools)
	slices.SortStableFunc(ordered, func(a, b api.Pool) int { return a.Update.Order - b.Update.Order })
	longest := map[int]time.Duration{}
	for _, pool := range ordered {
		takes, err := p.pool(ctx, out, pool)
		if err != nil {
			return 0, err
		}
		longest[pool.Update.Order] = max(longest[pool.Update.Order], takes)
	}
	for _, takes := range longest {
		least += takes
	}
	return least, nil
}

// pool prints the nodes of a pool with the least times of their drains, and returns the least time in which all are replaced.
func (p *outlook) pool(ctx context.Context, out io.Writer, pool api.Pool) (time.Duration, error) {
	count := p.facts.Groups[pool.Name].Desired
	if !replaced(p.plan, pool) {
		fmt.Fprintf(out, "     pool %s: %d nodes stay, their image is %s already\n", pool.Name, count, pool.ImageID)
		return 0, nil
	}
	if !p.surveyed() || count == 0 {
		fmt.Fprintf(out, "     pool %s: %d nodes to %s\n", pool.Name, count, pool.ImageID)
		return rollTime(make([]time.Duration, count), pool.Update), nil
	}
	opened, err := p.clusters.Open(ctx, p.plan.Cluster)
	if err != nil {
		return 0, err
	}
	nodes, err := drainer.New(opened).Preview(ctx, pool.Name, "")
	if err != nil {
		return 0, fmt.Errorf("reading the nodes of pool %s: %w", pool.Name, err)
	}
	policy, err := policyOf(ctx, p.pools, p.plan.Cluster, pool.Name)
	if err != nil {
		return 0, err
	}
	var lines strings.Builder
	var drains []time.Duration
	for _, node := range nodes {
		// `drover roll --dry-run` shows the pods of each node.
		estimate := printPreview(io.Discard, node, policy)
		drains = append(drains, max(0, estimate))
		if estimate < 0 {
			fmt.Fprintf(&lines, "       %s would wait for what blocks its pods: drover roll %s %s --dry-run\n", node.Node, p.plan.Cluster, pool.Name)
		} else {
			fmt.Fprintf(&lines, "       %s drained in at least %s\n", node.Node, estimate.Round(time.Second))
		}
	}
	takes := rollTime(drains, pool.Update)
	fmt.Fprintf(out, "     pool %s: %d nodes to %s, in at least %s\n%s", pool.Name, count, pool.ImageID, takes.Round(time.Second),
		lines.String())
	return takes, nil
}

// replaced reports whether the upgrade replaces a pool's nodes: with another image, or with other templates.
func replaced(plan *preflight.Plan, pool api.Pool) bool {
	for _, was := range plan.Before.Spec.Pools {
		if was.Name == pool.Name {
			return was.ImageID != pool.ImageID || plan.Before.Spec.TemplateVersion != plan.After.Spec.TemplateVersion
		}
	}
	return true
}
