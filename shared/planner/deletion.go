package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Deletion is the plan for a cluster whose spec was deleted.
type Deletion struct {
	// Unknown reports whether no cluster has this name: it has neither a status nor stacks.
	Unknown bool
	// Done reports whether the cluster is deleted.
	Done bool
	// Protected says why no stack is deleted; nil if no stack and no accepted spec protects the cluster.
	Protected *Stop
	// Plan deletes the stacks of the next step, Next.
	Plan plan.Plan
	Next events.Deletion
	// Deployed are the stacks as they were at the time ReadAt.
	Deployed map[string]stack.Deployed
	ReadAt   time.Time
}

// PlanDeletion plans the next step of deleting a cluster without a spec. The stacks and the specs that were accepted
// may protect the cluster. It returns a Stop for a cluster that never had a spec. It only reads.
func (p *Planner) PlanDeletion(ctx context.Context, cluster string) (d Deletion, err error) {
	key := names.ClusterSpec(cluster)
	before, err := p.State.Status(ctx, cluster)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return d, err
	}
	d.ReadAt, d.Deployed = p.Now(), map[string]stack.Deployed{}
	if !absent || api.IsClusterName(cluster) { // no stack has another name, and CloudFormation rejects the request
		if d.Deployed, err = p.Stacks.ListCluster(ctx, cluster, knownStacks(before.Status)); err != nil {
			return d, err
		}
	}
	if absent && len(d.Deployed) == 0 {
		d.Unknown = true
		return d, nil
	}
	if absent {
		return d, &Stop{status.ReasonSpecAbsent, fmt.Sprintf("no spec %s was ever uploaded: upload one", key)}
	}
	protected, err := p.protectedStacks(ctx, cluster, d.Deployed, before.Status.GoodVersion, before.Status.AcceptedVersion())
	if err != nil {
		return d, err
	}
	if len(protected) > 0 {
		d.Protected = &Stop{status.ReasonDeletionProtected,
			fmt.Sprintf("%s was deleted, but deletion protection is on (%s): nothing is deleted. Upload the spec again to keep the cluster; "+
				"to delete it with its workloads, upload it with deletionProtection: false, wait until it is Ready, then delete the spec",
				key, strings.Join(protected, ", "))}
		return d, nil
	}
	if d.Done = len(d.Deployed) == 0 && before.Status.Phase == status.Deleted; d.Done {
		return d, nil
	}
	d.Plan, d.Next = plan.NextDeletion(cluster, d.Deployed)
	d.Plan.Accepted = before.Status.AcceptedVersion()
	return d, nil
}

// knownStacks lists, by name, the stacks of a cluster's status and the stacks of most clusters. The cluster may not have all of them. The
// tag index finds the others.
func knownStacks(s status.Status) []string {
	stacks := append(recordedStacks(s), names.Network, names.ControlPlane, names.Addons, names.NodeAddons)
	slices.Sort(stacks)
	return slices.Compact(stacks)
}
