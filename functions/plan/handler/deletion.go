package handler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// delete plans the next step of deleting a cluster whose spec was deleted, and takes the lease for it.
func (h *Handler) delete(ctx context.Context, in events.PlanRequest, lease store.Lease, result events.PlanResult) (events.PlanResult,
	error) {
	d, err := h.Planner.PlanDeletion(ctx, in.Cluster)
	switch {
	case err != nil:
		return result, err
	case d.Unknown:
		result.Outcome, result.Message = events.OutcomeUnknown, fmt.Sprintf("there is no cluster %q: it has neither a spec (%s) nor stacks",
			in.Cluster, names.ClusterSpec(in.Cluster))
		logging.From(ctx).Warn("unknown cluster", "cluster", in.Cluster)
		return result, nil
	case d.Protected != nil:
		err := h.recordDeletion(ctx, in, d, lease.Fence, func(s *status.Status) {
			// From here on the deletion counts as handled, and no execution holds the lease. If this execution is aborted before
			// its report, nothing else would record the refusal.
			s.RefuseDeletion(d.Protected.Reason, d.Protected.Message, h.Now())
		})
		if err != nil {
			return result, err
		}
		return result, d.Protected
	case d.Done:
		result.Outcome = events.OutcomeGone
		return result, nil
	}
	if lease, err = h.State.Acquire(ctx, in.Cluster, lease, in.Execution); err != nil {
		return result, err
	}
	logging.From(ctx).Info("deletion planned", "cluster", in.Cluster, "stacks", d.Next.Stacks, "leftovers", d.Next.Leftovers)
	result.Outcome, result.Deletion, result.Fence, result.Seen = events.OutcomeDeletes, &d.Next, lease.Fence, lease.Fence
	if result.PlanKey, err = h.Planner.PersistDeletion(ctx, d.Plan); err != nil {
		return result, err
	}
	var changes []status.Change
	for _, change := range d.Plan.Changes {
		changes = append(changes, status.Change{Stack: change.Stack, Operation: string(change.Operation), Reasons: change.Reasons})
	}
	return result, h.recordDeletion(ctx, in, d, lease.Fence, func(s *status.Status) {
		s.BeginDeletion(in.Execution, changes, progress(d.Deployed, d.Next), h.Now())
	})
}

// progress says which stacks are deleted now, and how many are left.
func progress(deployed map[string]stack.Deployed, next events.Deletion) string {
	var now []string
	if next.Leftovers {
		now = append(now, "what Kubernetes created in the account")
	}
	now = append(now, next.Stacks...)
	return fmt.Sprintf("the spec was deleted, so drover deletes the cluster: stacks left: %d; now %s", len(deployed), strings.Join(now, ", "))
}

// recordDeletion writes the deployed state of a cluster without a spec to the status, and then more.
func (h *Handler) recordDeletion(
	ctx context.Context, in events.PlanRequest, d planner.Deletion, fence int64, more func(*status.Status),
) error {
	return h.updateStatus(ctx, in.Cluster, fence, func(s *status.Status) {
		s.PlannedVersion, s.Plan = "", nil
		s.KubernetesVersion = plan.KubernetesVersion(d.Deployed)
		s.Endpoint = d.Deployed[names.ControlPlane].Outputs["ClusterEndpoint"]
		var stacks []status.Stack
		for _, name := range slices.Sorted(maps.Keys(d.Deployed)) {
			stacks = append(stacks, status.Stack{Name: name, Status: d.Deployed[name].Status})
		}
		s.Observe(stacks, d.ReadAt, h.Now())
		more(s)
	})
}
