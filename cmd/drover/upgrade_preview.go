package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/upgrade/handler"
	"github.com/drover-run/drover/shared/alarms"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/capacity"
	"github.com/drover-run/drover/shared/executions"
	"github.com/drover-run/drover/shared/gather"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/quotas"
	"github.com/drover-run/drover/shared/stacks"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/versions"
)

// previewUpgrade prints what an upgrade would find and do. It only reads, and fails when a check blocks.
func previewUpgrade(ctx context.Context, out io.Writer, c *cell, clusters *kube.Clusters, in events.Upgrade) error {
	offered := versions.New(eks.NewFromConfig(c.cfg))
	h := &handler.Handler{
		Specs: c.specs, State: c.state, EKS: offered, Now: time.Now,
		Stacks:     stacks.New(cloudformation.NewFromConfig(c.cfg), resourcegroupstaggingapi.NewFromConfig(c.cfg), ""),
		Executions: executions.New(sfn.NewFromConfig(c.cfg), ""),
	}
	plan, err := h.Preview(ctx, in)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "A dry run: nothing is changed.")
	if len(plan.Steps) == 0 {
		fmt.Fprintf(out, "\n%s is at %s already: there is nothing to upgrade\n", in.Cluster, plan.To)
		return nil
	}
	fmt.Fprintf(out, "\n%s: %s → %s\n", in.Cluster, plan.From, plan.To)
	pools := groups.New(autoscaling.NewFromConfig(c.cfg))
	g := &gather.Gatherer{
		Kubernetes: clusters, EKS: offered, Groups: pools, Alarms: alarms.New(cloudwatch.NewFromConfig(c.cfg)), Capacity: capacity.New(c.cfg),
		Quotas: quotas.New(servicequotas.NewFromConfig(c.cfg)), Now: time.Now,
	}
	facts, err := g.Before(ctx, plan)
	if err != nil {
		return err
	}
	checks := preflight.Before(facts, plan)
	fmt.Fprintf(out, "\n%d checks, %d found something:\n\n", len(preflight.BeforeNames()), len(checks))
	for _, line := range checkLines(checks) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if err := printSteps(ctx, out, plan, facts, clusters, pools); err != nil {
		return err
	}
	if preflight.Blocks(checks) {
		return fmt.Errorf("the upgrade of %s would not begin: mend what blocks", in.Cluster)
	}
	return nil
}

// printSteps prints what is done one after the other, and for the nodes how many there are and the least time of their drains.
func printSteps(ctx context.Context, out io.Writer, plan *preflight.Plan, facts *preflight.Facts, clusters *kube.Clusters, pools *groups.Groups) error {
	fmt.Fprintf(out, "\nSteps:\n\n")
	for i, step := range plan.Steps {
		fmt.Fprintf(out, "  %d. %s\n", i+1, handler.StepName(step))
		switch step.Kind {
		case upgrade.StepAddonsFirst:
			for _, name := range slices.Sorted(maps.Keys(step.Addons)) {
				fmt.Fprintf(out, "     %s %s\n", name, step.Addons[name])
			}
		case upgrade.StepAddons:
			for _, addon := range plan.After.Spec.Addons {
				if addon.Version != versionIn(plan.Before.Spec.Addons, addon.Name) {
					fmt.Fprintf(out, "     %s %s → %s\n", addon.Name, versionIn(plan.Before.Spec.Addons, addon.Name), addon.Version)
				}
			}
		case upgrade.StepNodes, upgrade.StepNodesBack:
			if err := printPools(ctx, out, plan, facts, clusters, pools); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionIn is the version of an add-on in a list, or "".
func versionIn(addons []api.Addon, name string) string {
	for _, a := range addons {
		if a.Name == name {
			return a.Version
		}
	}
	return ""
}

// printPools prints the pools in the order in which their nodes are replaced.
func printPools(ctx context.Context, out io.Writer, plan *preflight.Plan, facts *preflight.Facts, clusters *kube.Clusters, pools *groups.Groups) error {
	ordered := slices.Clone(plan.After.Spec.Pools)
	slices.SortStableFunc(ordered, func(a, b api.Pool) int { return a.Update.Order - b.Update.Order })
	for _, pool := range ordered {
		fmt.Fprintf(out, "     pool %s: %d nodes to %s", pool.Name, facts.Groups[pool.Name].Desired, pool.ImageID)
		if facts.Unreachable == "" && facts.Groups[pool.Name].Desired > 0 {
			least, blocked, err := leastTime(ctx, clusters, pools, plan.Cluster, pool.Name)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, ", least time of all drains %s", least.Round(time.Second))
			if blocked > 0 {
				fmt.Fprintf(out, " beside %d that would wait for what blocks: drover roll %s %s --dry-run", blocked, plan.Cluster, pool.Name)
			}
		}
		fmt.Fprintln(out)
	}
	return nil
}

// leastTime of the drains of a pool's nodes, one after the other, and how many of them have none because something blocks.
func leastTime(ctx context.Context, clusters *kube.Clusters, pools *groups.Groups, cluster, pool string) (least time.Duration, blocked int, err error) {
	opened, err := clusters.Open(ctx, cluster)
	if err != nil {
		return 0, 0, err
	}
	nodes, err := opened.Preview(ctx, pool, "")
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the nodes of pool %s: %w", pool, err)
	}
	policy, err := policyOf(ctx, pools, cluster, pool)
	if err != nil {
		return 0, 0, err
	}
	for _, node := range nodes {
		// What is on each is for drover roll --dry-run to tell.
		if estimate := printPreview(io.Discard, node, policy); estimate >= 0 {
			least += estimate
		} else {
			blocked++
		}
	}
	return least, blocked, nil
}
