package handler

// Pruning of stale node entries in statuses. An entry is stale when no execution works on the node. The function that
// should have removed the entry died, or could not write the status.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// toldFor is the age of an entry from which the audit checks for a drain of its node. Most drains end sooner.
const toldFor = 10 * time.Minute

// forget removes stale node entries from the status of a cluster:
//
//  1. Instances that did not join an idle pool, when the pool has its desired capacity without them. During a change
//     these entries belong to the verdict on the change.
//  2. Nodes that no execution drains. Instances at the launch hook stay: they have an execution, or the sweep starts one.
func (r *round) forget(ctx context.Context, cluster string, s *status.Status) error {
	var drains map[string]bool
	over := func(n status.Node) bool {
		switch {
		case n.State != status.NodeNotJoined:
			return drains != nil && r.lasts(n) && !drains[n.Instance] && !drains[cluster+"/"+n.Name] && !r.joins(cluster, n)
		case n.Execution != "" || !n.Since.Before(r.now):
			return false
		}
		group := r.groups[names.Group(cluster, n.Pool)]
		serve := slices.DeleteFunc(slices.Clone(group.Instances), func(i pool.Instance) bool { return i.State != pool.InService })
		return len(serve) >= group.Desired
	}
	var err error
	if slices.ContainsFunc(s.Nodes, r.lasts) {
		drains, err = r.drains()
	}
	if !slices.ContainsFunc(s.Nodes, over) {
		return err
	}
	return errors.Join(err, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), over)
		s.MentionDrains()
	}))
}

// lasts says that a drain goes on for long, as far as the status knows.
func (r *round) lasts(n status.Node) bool {
	return n.State != status.NodeNotJoined && r.now.Sub(n.Since) > toldFor
}

// joins says that a node waits at its launch hook.
func (r *round) joins(cluster string, n status.Node) bool {
	return slices.ContainsFunc(r.groups[names.Group(cluster, n.Pool)].Instances, func(i pool.Instance) bool {
		return i.ID == n.Instance && i.State == pool.PendingWait
	})
}

// draining asks, once a round and only if somebody wants to know, what is being drained: instances by id, and nodes as cluster/name.
func (h *Handler) draining(ctx context.Context) func() (map[string]bool, error) {
	return sync.OnceValues(func() (map[string]bool, error) {
		running, err := h.DrainNode.Running(ctx)
		if err != nil {
			return nil, err
		}
		drains := map[string]bool{}
		for _, x := range running {
			var in events.DrainRequest
			if err := h.DrainNode.Input(ctx, x, &in); err != nil {
				return nil, err
			}
			drains[drained(in)] = true
		}
		return drains, nil
	})
}

// drained is what a request asks to be drained: an instance by id, a node as cluster/name, or "" when it names none.
func drained(in events.DrainRequest) string {
	switch {
	case in.Lifecycle != nil:
		return in.EC2InstanceID
	case in.InstanceID != "":
		return in.InstanceID
	case in.Instance != "":
		return in.Instance
	case in.Node == "" || names.IsInstance(in.Node):
		return in.Node
	}
	return in.Cluster + "/" + in.Node
}
