package audit

// Stale node entries in statuses. An entry is stale when no execution works on the node. The function that should have removed the
// entry died, or could not write the status.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// staleAfter is the age of an entry from which the audit checks for a drain of its node. Most drains end sooner.
const staleAfter = 10 * time.Minute

// pruneNodes removes stale node entries from the status of a cluster:
//
//  1. Instances that did not join an idle pool, when the pool has its desired capacity without them. During a change
//     these entries belong to the verdict on the change.
//  2. Nodes that no execution drains. Instances at the launch hook stay: they have an execution, or the sweep starts one.
func (r *auditRun) pruneNodes(ctx context.Context, cluster string, s *status.Status) error {
	var drains map[string]bool
	stale := func(n status.Node) bool {
		switch {
		case n.State != status.NodeNotJoined:
			return drains != nil && r.isLongDrain(n) && !drains[n.Instance] && !drains[cluster+"/"+n.Name] && !r.isJoining(cluster, n)
		case n.Execution != "" || !n.Since.Before(r.now):
			return false
		}
		group := r.groups[names.Group(cluster, n.Pool)]
		serve := slices.DeleteFunc(slices.Clone(group.Instances), func(i pool.Instance) bool { return i.State != pool.InService })
		return len(serve) >= group.Desired
	}
	var err error
	if slices.ContainsFunc(s.Nodes, r.isLongDrain) {
		drains, err = r.drains()
	}
	if !slices.ContainsFunc(s.Nodes, stale) {
		return err
	}
	return errors.Join(err, r.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), stale)
		s.MentionDrains()
	}))
}

// isLongDrain reports whether the drain of a node takes long, according to the status.
func (r *auditRun) isLongDrain(n status.Node) bool {
	return n.State != status.NodeNotJoined && r.now.Sub(n.Since) > staleAfter
}

// isJoining reports whether a node waits at its launch hook.
func (r *auditRun) isJoining(cluster string, n status.Node) bool {
	return slices.ContainsFunc(r.groups[names.Group(cluster, n.Pool)].Instances, func(i pool.Instance) bool {
		return i.ID == n.Instance && i.State == pool.PendingWait
	})
}
