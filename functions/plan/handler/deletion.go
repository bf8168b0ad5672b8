package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// errAbsent says that a cluster has no spec: it was deleted, or there never was one.
var errAbsent = errors.New("there is no spec")

// delete plans the next step of deleting a cluster whose spec was deleted, unless the stacks or the specs that were accepted protect it.
func (h *Handler) delete(ctx context.Context, in events.PlanRequest, lease store.Lease, result events.PlanResult) (events.PlanResult,
	error) {
	key := names.ClusterSpec(in.Cluster)
	before, err := h.State.Status(ctx, in.Cluster)
	absent := errors.Is(err, store.ErrNotFound)
	if err != nil && !absent {
		return result, err
	}
	read, deployed := h.Now(), map[string]stack.Deployed{}
	if !absent || api.IsClusterName(in.Cluster) { // no stack is called after anything else, and CloudFormation refuses the question
		if deployed, err = h.Stacks.Of(ctx, in.Cluster, known(before.Status)); err != nil {
			return result, err
		}
	}
	if absent && len(deployed) == 0 {
		result.Outcome, result.Message = events.OutcomeUnknown, fmt.Sprintf("there is no cluster %q: it has neither a spec (%s) nor stacks",
			in.Cluster, key)
		logging.From(ctx).Warn("unknown cluster", "cluster", in.Cluster)
		return result, nil
	}
	if absent {
		return result, &stop{status.ReasonSpecAbsent, fmt.Sprintf("there is no spec %s, and never was: upload one", key)}
	}
	protected, err := h.protected(ctx, in.Cluster, deployed, before.Status.GoodVersion)
	if err != nil {
		return result, err
	}
	if len(protected) > 0 {
		why := &stop{status.ReasonDeletionProtected, fmt.Sprintf("%s was deleted, but deletion protection is on (%s): nothing is deleted. "+
			"Upload the spec again to keep the cluster; to delete it, upload it with deletionProtection: false, wait until it is Ready, "+
			"then delete the spec",
			key, strings.Join(protected, ", "))}
		err := h.tellDeletion(ctx, in, deployed, read, lease.Fence, func(s *status.Status) {
			// From here on the deletion counts as heard, and no lease is held: whoever stops the execution before its report
			// would leave no word of it.
			s.Phase, s.Message = status.Stopped, why.message
			s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: why.reason, Message: why.message}, h.Now())
		})
		if err != nil {
			return result, err
		}
		return result, why
	}
	if len(deployed) == 0 && before.Status.Phase == status.Deleted {
		result.Outcome = events.OutcomeGone
		return result, nil
	}
	if lease, err = h.State.Acquire(ctx, in.Cluster, lease, in.Execution); err != nil {
		return result, err
	}
	p, next := plan.NextDeletion(in.Cluster, deployed)
	logging.From(ctx).Info("deleting", "cluster", in.Cluster, "stacks", next.Stacks, "leftovers", next.Leftovers)
	result.Outcome, result.Deletion, result.Fence, result.Seen = events.OutcomeDeletes, &next, lease.Fence, lease.Fence
	body, err := json.Marshal(p)
	if err != nil {
		return result, err
	}
	result.PlanKey = names.Plan(body)
	if err := h.State.PutOnce(ctx, result.PlanKey, body); err != nil {
		return result, err
	}
	return result, h.tellDeletion(ctx, in, deployed, read, lease.Fence, func(s *status.Status) {
		s.Phase, s.Execution, s.Message = status.Deleting, in.Execution, progress(deployed, next)
		s.GoodVersion = "" // it counts no more, whatever comes next
		for _, change := range p.Changes {
			s.Plan = append(s.Plan, status.Change{Stack: change.Stack, Operation: string(change.Operation), Reasons: change.Reasons})
		}
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonDeleting, Message: s.Message}, h.Now())
	})
}

// known lists the stacks that a cluster may have, less those that only the tag index knows: what its status has seen, or was about to see.
func known(s status.Status) []string {
	stacks := append(seen(s), names.Network, names.ControlPlane, names.Addons, names.NodeAddons)
	slices.Sort(stacks)
	return slices.Compact(stacks)
}

// seen lists the stacks that a status has, or was about to have.
func seen(s status.Status) (stacks []string) {
	for _, stack := range s.Stacks {
		stacks = append(stacks, stack.Name)
	}
	for _, change := range s.Plan {
		stacks = append(stacks, change.Stack)
	}
	return stacks
}

// progress says what goes and how much is left.
func progress(deployed map[string]stack.Deployed, next events.Deletion) string {
	var now []string
	if next.Leftovers {
		now = append(now, "what Kubernetes made in the account")
	}
	now = append(now, next.Stacks...)
	return fmt.Sprintf("the spec was deleted, and so is the cluster: stacks left: %d; now %s", len(deployed), strings.Join(now, ", "))
}

// tellDeletion writes what is known of a cluster without a spec into the status. See tell for what a later holder wrote.
func (h *Handler) tellDeletion(
	ctx context.Context, in events.PlanRequest, deployed map[string]stack.Deployed, read time.Time, fence int64, more func(*status.Status),
) error {
	late := false
	err := h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if late = s.Fence > fence; late {
			return
		}
		s.Fence, s.SpecVersion, s.Plan = fence, "", nil
		s.KubernetesVersion = plan.KubernetesVersion(deployed)
		s.Endpoint = deployed[names.ControlPlane].Outputs["ClusterEndpoint"]
		var seen []status.Stack
		for _, name := range slices.Sorted(maps.Keys(deployed)) {
			seen = append(seen, status.Stack{Name: name, Status: deployed[name].Status})
		}
		s.Observe(seen, read, h.Now())
		more(s)
	})
	if err == nil && late {
		return store.ErrConflict
	}
	return err
}
