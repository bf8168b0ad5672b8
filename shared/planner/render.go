package planner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// render reads the stacks and the release of a spec, resolves the spec, and renders it.
func (p *Planner) render(ctx context.Context, w work, in Request, spec *api.Cluster, body []byte) (work, error) {
	cluster, key := w.cluster, names.ClusterSpec(w.cluster)
	if in.Accept != nil {
		if err := in.Accept(ctx, spec); err != nil {
			return w, err
		}
	}
	stacks, err := p.candidateStacks(ctx, in, spec)
	if err != nil {
		return w, err
	}
	w.readAt = p.Now()
	if w.deployed, err = p.Stacks.ListCluster(ctx, cluster, stacks); err != nil {
		return w, err
	}
	if w.record, _, err = p.State.Upgrade(ctx, cluster); err != nil {
		return w, err
	}
	if err := p.decide(ctx, &w, spec); err != nil {
		return w, err
	}
	errs, err := p.resolve(ctx, &w, spec)
	if errs == nil && err == nil {
		errs, err = p.validateWanted(ctx, &w, spec)
	}
	if errs == nil && err == nil && !w.decision.Step.NodesRolledBack {
		errs, err = p.validateVersions(ctx, w.resolved, plan.KubernetesVersion(w.deployed), "")
	}
	if errs == nil && err == nil {
		errs, err = p.validateSettings(ctx, &w)
	}
	if errs == nil && err == nil {
		errs, err = p.validateOwners(ctx, &w)
	}
	if err != nil {
		return w, err
	}
	if errs != nil {
		return w, &Stop{status.ReasonSpecInvalid, errs.In(key, body).Error()}
	}
	requested, err := p.State.Rolls(ctx, cluster)
	if err != nil {
		return w, err
	}
	var rollAt map[string]time.Time
	rollAt, w.later = plan.RollAt(w.resolved, w.deployed, requested, p.Now())
	if !w.decision.RecheckAt.IsZero() {
		w.later = append(w.later, w.decision.RecheckAt)
	}
	w.desired = render.Cluster{
		Cell: p.Cell, Resolved: w.resolved, RollAt: rollAt, Relay: p.relayCode(w.deployed), HadRelay: hadRelay(w.deployed),
		Templates: w.templates, WorkloadBoundary: p.workloadBoundary(w.deployed),
	}
	if w.desired.RelayMissing, err = p.relayMissing(ctx, &w); err != nil {
		return w, err
	}
	if w.rendered, err = render.Render(w.desired); err != nil {
		return w, renderError(err)
	}
	return w, p.validatePermissions(ctx, &w, spec)
}

// renderError returns the error of planning for one of rendering. The spec is at fault, unless drover's deployment is damaged: that is a
// failure, which is retried.
func renderError(err error) error {
	if errors.Is(err, render.ErrNoRelayCode) {
		return err
	}
	return &Stop{status.ReasonSpecInvalid, err.Error()}
}

// candidateStacks lists, by name, the stacks of the cluster's spec and, for an execution, also those of its status. The cluster may not
// have all of them. The tag index does not find a stack with only a change set.
func (p *Planner) candidateStacks(ctx context.Context, in Request, spec *api.Cluster) ([]string, error) {
	stacks := expectedStacks(spec)
	if !in.StacksOfStatus {
		return stacks, nil
	}
	before, err := p.State.Status(ctx, in.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return stacks, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range recordedStacks(before.Status) {
		if !slices.Contains(stacks, name) {
			stacks = append(stacks, name)
		}
	}
	return stacks, nil
}

// expectedStacks lists the stacks that a spec requires, without rendering it. It lists both add-on stacks, as a release
// may use either.
func expectedStacks(spec *api.Cluster) []string {
	var stacks []string
	if spec.Spec.Network.Existing == nil {
		stacks = append(stacks, names.Network)
	}
	stacks = append(stacks, names.ControlPlane, names.Addons, names.NodeAddons)
	if len(spec.Spec.PodIdentities) > 0 {
		stacks = append(stacks, names.Identities)
	}
	if len(spec.Spec.Capabilities) > 0 {
		stacks = append(stacks, names.Capabilities)
	}
	for _, pool := range spec.Spec.Pools {
		stacks = append(stacks, names.PoolStack(pool.Name))
	}
	return stacks
}

// recordedStacks lists the stacks that a status names, as deployed or as planned.
func recordedStacks(s status.Status) (stacks []string) {
	for _, stack := range s.Stacks {
		stacks = append(stacks, stack.Name)
	}
	for _, change := range s.Plan {
		stacks = append(stacks, change.Stack)
	}
	return stacks
}
