package handler

// Nodes that a status speaks of, though nothing keeps anybody waiting there any more: whoever was to take them out died before, or could not
// write.

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

// toldFor is how long a node is told of before somebody asks whether it is still drained: most drains are over by then.
const toldFor = 10 * time.Minute

// forget takes nodes out of the status of a cluster. Instances that did not join a pool at rest, once it has as many as it should without them:
// those of a change are its verdict's, until the cluster is what it should be. And nodes that no execution drains, less those that join: who waits at
// the launch hook of a cluster that cannot be asked has an execution, too, or gets one from the sweep.
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
