package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// checkConverging checks whether drover can still reach the API server of a converging cluster. Otherwise a roll would wait for its nodes
// until CloudFormation ends it.
//
//  1. If the relay was deleted, the execution plans again: it recreates the relay while the pools still change.
//  2. If the access to the endpoint was changed, the finding is recorded. drover waits.
func (r *auditRun) checkConverging(ctx context.Context, cluster string, s *status.Status) error {
	control := r.stacks[cluster][names.ControlPlane]
	if control.Outputs[stack.OutputEndpoint] == "" || stack.InProgress(control.Status) {
		return nil
	}
	seen, err := r.Planner.PreviewWith(ctx, cluster, r.stacks[cluster])
	if err != nil {
		return err
	}
	if change, changes := seen.Plan.Find(names.ControlPlane); changes && change.RepairKey != "" {
		return r.replan(ctx, cluster, s)
	}
	if seen.Access == nil {
		return nil
	}
	is, err := r.EKS.ControlPlane(ctx, names.EKSCluster(cluster))
	if fault.Code(err) == "ResourceNotFoundException" {
		return nil
	}
	if err != nil {
		return err
	}
	finding, in := accessDrift(cluster, is.Access, seen.Access), s.Condition(status.InSync)
	switch recorded := in != nil && in.Status == "False" && strings.Contains(in.Message, accessChanged); {
	case finding != "" && !recorded:
		logging.From(ctx).Warn("drift detected", "cluster", cluster, "findings", []string{finding})
		return r.setInSync(ctx, cluster, status.Condition{
			Type: status.InSync, Status: "False", Reason: status.ReasonDrifted, Message: finding,
		})
	case finding == "" && recorded:
		return r.setInSync(ctx, cluster, status.InSyncAgain())
	}
	return nil
}

func (r *auditRun) setInSync(ctx context.Context, cluster string, now status.Condition) error {
	return r.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Set(now, r.now) })
}

// replan has the execution plan again if it waits for pools. A stack that changes continues to change.
func (r *auditRun) replan(ctx context.Context, cluster string, s *status.Status) error {
	var failed []error
	for _, planned := range s.Plan {
		stackName := names.Stack(cluster, planned.Stack)
		if !strings.HasPrefix(planned.Stack, names.PoolPrefix) {
			continue
		}
		w, err := r.State.Waiter(ctx, stackName)
		if err == nil {
			logging.From(ctx).Warn("relay deleted, planning again", "cluster", cluster, "stack", stackName)
			err = r.Supersede.Supersede(ctx, w, fmt.Sprintf("the relay %s was deleted outside drover", names.Relay(cluster)))
		}
		if !errors.Is(err, store.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
