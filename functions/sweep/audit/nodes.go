package audit

// Replacement of unhealthy nodes.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// replaceNodes has Auto Scaling replace nodes that stay NotReady. Auto Scaling drains them first. In a paused cluster it
// only returns the findings.
func (r *auditRun) replaceNodes(ctx context.Context, cluster string, s *status.Status) ([]string, error) {
	api := r.stacks[cluster][names.ControlPlane].API()
	if api.Endpoint == "" {
		return nil, nil
	}
	listed, err := r.Nodes.Health(ctx, cluster, api)
	if err != nil {
		logging.From(ctx).Warn("nodes not listed", "cluster", cluster, "error", err.Error())
		return []string{"drover could not check the nodes: " + withoutAddress(err).Error()}, nil
	}
	pools := map[string]pool.Group{}
	for name, deployed := range r.stacks[cluster] {
		if pool, ok := strings.CutPrefix(name, names.PoolPrefix); ok && stack.Settled(deployed.Status) {
			if group, found := r.groups[names.Group(cluster, pool)]; found {
				pools[pool] = group
			}
		}
	}
	instances, findings, alone := chooseUnhealthy(listed, pools, r.now)
	if isPaused(s) {
		return findings, nil
	}
	if n := nextNotReady(listed, r.now); n != nil {
		if err := r.State.RequestInspection(ctx, cluster, describe(*n)); err != nil {
			return findings, err
		}
	}
	if len(instances) == 0 {
		return findings, nil
	}
	if alone {
		next, err := r.countReplacement(ctx, cluster, s)
		if err != nil || !next.IsZero() {
			return append(findings, fmt.Sprintf("replacing the cluster's only node did not help: drover replaces it again at %s at the earliest",
				next.UTC().Format(time.RFC3339))), err
		}
	}
	for _, instance := range instances {
		logging.From(ctx).Warn("replacing unhealthy node", "cluster", cluster, "instance", instance)
		if err := r.Groups.MarkUnhealthy(ctx, instance); err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// withoutAddress is a network error without its connection, so that the same error has the same text each time.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// countReplacement returns the zero time if the only node of a cluster may be replaced now, and then counts the replacement. Otherwise it
// returns when. After each replacement that does not help, the pause doubles, up to a day. A node that was healthy for two days has helped.
func (r *auditRun) countReplacement(ctx context.Context, cluster string, s *status.Status) (next time.Time, err error) {
	const day = 24 * time.Hour
	replaced := status.Replaced{Count: 1, At: r.now.UTC().Truncate(time.Second)}
	if last := s.Replaced; last != nil && r.now.Sub(last.At) < 2*day {
		next = last.At.Add(min(period<<min(last.Count, 10), day))
		if r.now.Before(next.Add(-period / 2)) {
			return next, nil
		}
		replaced.Count = last.Count + 1
	}
	return time.Time{}, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Replaced = &replaced })
}

func describe(n pool.NodeHealth) string {
	if n.Name == "" {
		return fmt.Sprintf("instance %s of pool %s is in service without a node", n.Instance, n.Pool)
	}
	return fmt.Sprintf("node %s (%s) of pool %s is not Ready since %s: %s", n.Name, n.Instance, n.Pool, n.Since.UTC().Format(time.RFC3339),
		n.Message)
}

// notReadyLimit is how long a node may be NotReady before it is replaced. Most nodes that recover do so within minutes.
const notReadyLimit = 20 * time.Minute

// nextNotReady returns a node that passes notReadyLimit before the next audit; nil if there is none. Until then each sweep audits the
// cluster, so that the node is replaced within minutes after the limit.
func nextNotReady(listed []pool.NodeHealth, now time.Time) *pool.NodeHealth {
	for _, n := range listed {
		if remaining := n.Since.Add(notReadyLimit).Sub(now); !n.Ready && !n.Cordoned && remaining > 0 && remaining < period {
			return &n
		}
	}
	return nil
}

// chooseUnhealthy chooses the instances to replace:
//
//  1. Of each idle pool, the instance without a node, or whose node is NotReady for the longest time.
//  2. None if more than one node and more than a third of the nodes are NotReady: the cause is elsewhere, and new nodes would not help.
//  3. None that an operator cordoned.
//
// alone reports that the cluster has no other node.
func chooseUnhealthy(listed []pool.NodeHealth, pools map[string]pool.Group, now time.Time) (instances, findings []string, alone bool) {
	byInstance := map[string]pool.NodeHealth{}
	for _, n := range listed {
		byInstance[n.Instance] = n
	}
	total, unhealthy := 0, 0
	chosen := map[string]pool.NodeHealth{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		changing := false
		for _, i := range pools[name].Instances {
			if !i.IsInService() {
				changing = true // one at a time
				continue
			}
			total++
			n, found := byInstance[i.ID]
			if !found {
				n = pool.NodeHealth{Instance: i.ID, Pool: name}
			}
			if n.Ready {
				continue
			}
			unhealthy++
			if found && (now.Sub(n.Since) < notReadyLimit || n.Cordoned) {
				continue
			}
			findings = append(findings, describe(n))
			if first, ok := chosen[name]; !ok || n.Since.Before(first.Since) {
				chosen[name] = n
			}
		}
		if changing {
			delete(chosen, name)
		}
	}
	if unhealthy > 1 && unhealthy*3 > total {
		return nil, append(findings, fmt.Sprintf("%d of %d nodes are not Ready: drover replaces none while there are so many",
			unhealthy, total)), false
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		instances = append(instances, chosen[name].Instance)
	}
	return instances, findings, total == 1
}
