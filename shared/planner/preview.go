package planner

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Preview plans without writing anything. It returns the plan, or the reason and message that the plan function would put into the status.
// If it returns both, the plan is that of the last good spec, and the reason says why the newest spec does not apply.
func (p *Planner) Preview(ctx context.Context, cluster string) (planned plan.Plan, reason, message string, err error) {
	_, seen, err := p.preview(ctx, cluster)
	if seen.Reason == "" && seen.Unused != nil {
		return seen.Plan, seen.Unused.Reason, seen.Unused.Message, err
	}
	return seen.Plan, seen.Reason, seen.Message, err
}

func (p *Planner) preview(ctx context.Context, cluster string) (w work, seen plan.Preview, err error) {
	w, err = p.read(ctx, Request{Cluster: cluster})
	if err == nil {
		seen.Plan, err = p.compare(ctx, &w)
	}
	if err == nil {
		o := Outcome{Plan: seen.Plan, work: w}
		if err = p.checkImages(ctx, &o); fault.Denied(err) {
			seen.ImagesUnchecked, err = err.Error(), nil
		}
		seen.Plan = o.Plan
	}
	if w.rejected != nil {
		seen.Unused = w.rejected.rejection()
	}
	var stopped *Stop
	switch {
	case errors.As(err, &stopped):
		seen.Reason, seen.Message = stopped.Reason, stopped.Message
		return w, seen, nil
	case errors.Is(err, ErrAbsent):
		seen.Reason, seen.Message = status.ReasonSpecAbsent, "there is no spec "+names.ClusterSpec(cluster)
		return w, seen, nil
	}
	return w, seen, err
}

// PreviewWith is Preview over stacks that were read before, by name. The audit lists all stacks once for the plans of all clusters.
func (p *Planner) PreviewWith(ctx context.Context, cluster string, stacks map[string]stack.Deployed) (plan.Preview, error) {
	with := *p
	with.Stacks = snapshot(stacks)
	w, seen, err := with.preview(ctx, cluster)
	if err != nil || seen.Reason != "" {
		return seen, err
	}
	if _, changes := seen.Plan.Find(names.ControlPlane); !changes && w.resolved != nil {
		access := w.resolved.Spec.ControlPlane.Endpoint.Access()
		seen.Access = &access
	}
	if seen.Unused == nil {
		seen.Next = w.nextUpgrade(&status.Status{}, with.Now())
		accepted := w.acceptedUpload()
		seen.Accepted = &accepted
	}
	return seen, err
}

// snapshot is a list of stacks that were read before.
type snapshot map[string]stack.Deployed

// ListCluster returns what cloudformation.Stacks.ListCluster would: the expected stacks, and those with the cluster's tag.
func (l snapshot) ListCluster(_ context.Context, cluster string, expected []string) (map[string]stack.Deployed, error) {
	found := maps.Clone(l)
	maps.DeleteFunc(found, func(name string, deployed stack.Deployed) bool {
		if deployed.Status == stack.InReview { // it has no tags yet
			return false
		}
		return stack.Absent(deployed.Status) || deployed.Tags[names.TagCluster] != cluster && !slices.Contains(expected, name)
	})
	return found, nil
}

// Owners returns none: before anything is created, an execution plans again and reads the owners.
func (l snapshot) Owners(context.Context, []string) (map[string]string, error) { return nil, nil }
