package handler

// A step that replaces nodes is complete when the old nodes are removed. CloudFormation does not wait for the drains of the last nodes. EKS
// removes the Node object of a terminated instance some minutes later. Until then EKS counts the old kubelet, and rejects a rollback of the
// control plane.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// remainingNodes are the old nodes of a step that replaced nodes.
type remainingNodes struct {
	// description is empty if no old node remains.
	description string
	// allowed is how long the step waits for them, and advice is what to do afterwards.
	allowed time.Duration
	advice  string
}

// waitForOldNodes waits until no old node remains, for as long as the pools allow a drain. The outcome is empty if no old node remains.
func (c *call) waitForOldNodes(ctx context.Context) (events.UpgradeResult, error) {
	s := &c.record.Steps[c.record.Step]
	if s.Kind != upgrade.StepNodes && s.Kind != upgrade.StepNodesBack {
		return events.UpgradeResult{}, nil
	}
	remaining, err := c.findRemainingNodes(ctx)
	if err != nil || remaining.description == "" {
		return events.UpgradeResult{}, err
	}
	if s.Converged.IsZero() {
		s.Converged = c.Now().UTC()
		if err := c.write(ctx); err != nil {
			return events.UpgradeResult{}, err
		}
	} else if c.Now().Sub(s.Converged) > remaining.allowed+backoff.DrainGrace {
		return events.UpgradeResult{}, route.Stopf("%s, for longer than drain.timeout (%s). %s", remaining.description, remaining.allowed,
			remaining.advice)
	}
	wait := asOf(remaining.description, c.Now(), backoff.StepCalls.Pause(c.Now().Sub(s.Opened)))
	return wait, c.recordProgress(ctx, nil, wait.Message)
}

// findRemainingNodes returns the instances that are being drained. If there are none, it returns the Node objects of terminated instances.
func (c *call) findRemainingNodes(ctx context.Context) (remainingNodes, error) {
	way, err := c.Checker.LoadRoute(ctx, c.in.Cluster, c.record)
	if err != nil {
		return remainingNodes{}, err
	}
	var draining []string
	var drains, longest time.Duration
	states := map[string]string{}
	for _, p := range way.After.Spec.Pools {
		group, _, err := c.Groups.Describe(ctx, names.Group(c.in.Cluster, p.Name))
		if err != nil {
			return remainingNodes{}, err
		}
		allowed, err := time.ParseDuration(p.Drain.Timeout)
		if err != nil {
			return remainingNodes{}, fmt.Errorf("reading drain.timeout of pool %s: %w", p.Name, err)
		}
		longest = max(longest, allowed)
		for _, instance := range group.Draining() {
			draining = append(draining, fmt.Sprintf("%s of pool %s", instance, p.Name))
			drains = max(drains, allowed)
		}
		for _, i := range group.Instances {
			states[i.ID] = i.State
		}
	}
	if len(draining) > 0 {
		return remainingNodes{
			"nodes are still being drained: " + strings.Join(draining, ", "), drains, "The status shows which pods they wait for",
		}, nil
	}
	ended, err := c.endedNodes(ctx, states)
	var unreachable *fault.ClusterUnreachable
	switch {
	case errors.As(err, &unreachable):
		return remainingNodes{
			"drover cannot check whether the old nodes are removed: " + err.Error(), longest, "Find out why the cluster's API does not answer",
		}, nil
	case err != nil || len(ended) == 0:
		return remainingNodes{}, err
	}
	return remainingNodes{
		"the cluster still lists nodes whose instances are terminated: " + strings.Join(ended, ", "), longest,
		"EKS removes such nodes within minutes: find out why it does not, or run kubectl delete node",
	}, nil
}

// endedNodes lists the nodes of drover's pools whose instances are terminated. states are the lifecycle states of the instances in groups.
// An instance that was detached from its group still runs, and its node stays.
func (c *call) endedNodes(ctx context.Context, states map[string]string) ([]string, error) {
	control, err := c.Stacks.Describe(ctx, names.Stack(c.in.Cluster, names.ControlPlane))
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes.Health(ctx, c.in.Cluster, control.API())
	if err != nil {
		return nil, err
	}
	old := map[string]pool.NodeHealth{}
	var ungrouped []string
	for _, n := range nodes {
		switch state, member := states[n.Instance]; {
		case !member:
			ungrouped = append(ungrouped, n.Instance)
			old[n.Instance] = n
		case state == pool.TerminatingProceed:
			old[n.Instance] = n
		}
	}
	running, err := c.Instances.RunningInstances(ctx, ungrouped)
	if err != nil {
		return nil, err
	}
	for _, id := range running {
		delete(old, id)
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(old)) {
		all = append(all, fmt.Sprintf("%s (%s) of pool %s", old[id].Name, id, old[id].Pool))
	}
	return all, nil
}
