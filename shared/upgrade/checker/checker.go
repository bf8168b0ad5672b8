// Package checker runs the checks before an upgrade. First it reads what the route of the upgrade depends on: the spec, the release and
// the stacks. It writes nothing. The upgrade function uses it, and so does `drover upgrade --dry-run`.
package checker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// Specs reads the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State reads the state bucket: a subset of store.State.
type State interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
}

// Stacks describes stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
}

// Executions reports whether an execution runs: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
}

// EKS describes control planes and the catalog of versions: a subset of eks.Reader.
type EKS interface {
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
	// Compat lists the versions of add-ons, and the Kubernetes versions that each supports.
	Compat(ctx context.Context, addons []string) (upgrade.Compat, error)
	// Offered lists the Kubernetes versions that EKS offers.
	Offered(ctx context.Context) ([]string, error)
}

// Facts collects the input of the checks: a subset of collect.Gatherer.
type Facts interface {
	Before(ctx context.Context, plan *preflight.Plan) (*preflight.Facts, error)
}

// Checker computes routes and runs checks.
type Checker struct {
	Specs      Specs
	State      State
	Stacks     Stacks
	Executions Executions
	EKS        EKS
	// Facts is needed by Check alone.
	Facts Facts
	// Region is the region of the cell: releases have images by region.
	Region string
	Now    func() time.Time
	// IgnorePaused treats a paused spec as if it were not paused.
	IgnorePaused bool
}

// Spec reads the spec of a cluster. If there is none, if it is invalid or if it is paused, the error is a *route.StopError.
func (c *Checker) Spec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := c.NewestSpec(ctx, cluster)
	switch {
	case err != nil:
		return nil, err
	case spec == nil:
		return nil, route.Stopf("there is no spec %s: there is nothing to upgrade", names.ClusterSpec(cluster))
	case spec.Spec.Paused && !c.IgnorePaused:
		return nil, route.Stopf("spec.paused is true: drover starts nothing on this cluster")
	}
	return spec, nil
}

// NewestSpec reads the spec of a cluster with its version. It returns nil without one. An invalid spec is a *route.StopError.
func (c *Checker) NewestSpec(ctx context.Context, cluster string) (spec *api.Cluster, version string, err error) {
	spec, version, err = specs.Cluster(ctx, c.Specs, cluster)
	if errors.Is(err, specs.ErrAbsent) {
		return nil, "", nil
	}
	return spec, version, stopUnusable("the newest spec cannot be used", err)
}

// stopUnusable returns a *route.StopError for an upload that cannot be used, and other errors unchanged. The prefix
// introduces the errors of validation. That an upload is too large needs no introduction: the message names it.
func stopUnusable(prefix string, err error) error {
	var unusable *specs.Unusable
	switch {
	case !errors.As(err, &unusable):
		return err
	case unusable.Reason == specs.TooLarge:
		return route.Stopf("%s", unusable.Message)
	}
	return route.Stopf("%s: %s", prefix, unusable.Message)
}

// Deployed reads the deployed release and version of a cluster.
func (c *Checker) Deployed(ctx context.Context, cluster string) (upgrade.Target, error) {
	deployed, err := c.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	if err != nil {
		return upgrade.Target{}, err
	}
	return route.Deployed(cluster, deployed)
}

// IsCurrent reports whether a record belongs to the deployed cluster, and not to an earlier cluster of the same name.
func (c *Checker) IsCurrent(ctx context.Context, cluster string, r *upgrade.Record) (bool, error) {
	deployed, err := c.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
	return deployed.ID == r.Stack, err
}

// ResolveRoute computes the route of a requested upgrade or rollback. last is the last record under the cluster's name. If the route's Busy
// is set, the upgrade has to wait, whatever the error.
func (c *Checker) ResolveRoute(ctx context.Context, in events.Upgrade, last *upgrade.Record) (r route.Route, err error) {
	if r.Spec, err = c.Spec(ctx, in.Cluster); err != nil {
		return r, err
	}
	controlPlane, err := c.Stacks.Describe(ctx, names.Stack(in.Cluster, names.ControlPlane))
	if err != nil {
		return r, err
	}
	if r.From, err = route.Deployed(in.Cluster, controlPlane); err != nil {
		return r, err
	}
	r.Stack, r.Busy = controlPlane.ID, route.Busy(controlPlane)
	if last != nil && last.Stack == r.Stack {
		r.Last = last
	}
	if r.Old, _, err = c.pinnedRelease(ctx, r.From); err != nil {
		return r, err
	}
	if in.Rollback {
		err = c.readRollbackTarget(ctx, in, &r)
	} else {
		err = c.readTarget(ctx, in, &r)
	}
	if err == nil {
		err = r.Resolve()
	}
	if err != nil {
		return r, err
	}
	deployed := map[string]stack.Deployed{}
	for _, name := range r.ComponentStacks() {
		if deployed[name], err = c.Stacks.Describe(ctx, names.Stack(in.Cluster, name)); err != nil {
			return r, err
		}
	}
	r.ApplyDeployed(deployed)
	return r, nil
}

// NodesSince reads, by pool, the launch template version since which the deployed nodes are made of the same: see render.NodesSince.
func (c *Checker) NodesSince(ctx context.Context, cluster string, pools []api.Pool) (map[string]string, error) {
	deployed := map[string]stack.Deployed{}
	for _, pool := range pools {
		var err error
		name := names.PoolStack(pool.Name)
		if deployed[name], err = c.Stacks.Describe(ctx, names.Stack(cluster, name)); err != nil {
			return nil, err
		}
	}
	return plan.NodesSince(deployed), nil
}

// LoadRoute reads the route of an upgrade that has begun, as its record states it.
func (c *Checker) LoadRoute(ctx context.Context, cluster string, record *upgrade.Record) (r route.Route, err error) {
	r.From, r.To = record.From, record.Target
	if r.Spec, err = c.Spec(ctx, cluster); err != nil {
		return r, err
	}
	if r.Old, _, err = c.pinnedRelease(ctx, r.From); err != nil {
		return r, err
	}
	if r.New, r.NewBody, err = c.pinnedRelease(ctx, r.To); err != nil {
		return r, err
	}
	return r, r.Resolve()
}

// RemainingSteps returns the steps of an upgrade and the index of the open one. steps and open belong to the upgrade that is continued, if
// any. It computes the steps before the next update of the control plane again, unless that update has happened, and skips steps that EKS
// has passed.
func (c *Checker) RemainingSteps(ctx context.Context, in events.Upgrade, r *route.Route, steps []upgrade.Step, open int) ([]upgrade.Step,
	int, error) {
	eks, err := c.EKS.ControlPlane(ctx, names.EKSCluster(in.Cluster))
	if err != nil {
		return nil, 0, err
	}
	if from := upgrade.FirstToReplan(steps, open, r.From.KubernetesVersion); len(steps) == 0 || from >= 0 &&
		eks.Version == r.From.KubernetesVersion {
		planned, err := c.steps(ctx, r, in.Rollback || len(steps) > 0 && steps[0].NodesRolledBack)
		if err != nil {
			return nil, 0, err
		}
		steps, open = upgrade.Replan(steps, from, planned), from
	}
	return upgrade.SkipReached(steps, min(open, len(steps)), eks.Version), open, nil
}

// steps computes the steps of the whole route.
func (c *Checker) steps(ctx context.Context, r *route.Route, rollback bool) ([]upgrade.Step, error) {
	var addons []string
	for _, a := range r.Before.Spec.Addons {
		addons = append(addons, a.Name)
	}
	compat, err := c.EKS.Compat(ctx, addons)
	if err != nil {
		return nil, err
	}
	steps, err := r.Steps(rollback, compat)
	var far *upgrade.TooFar
	if errors.As(err, &far) {
		if far.Offered, err = c.EKS.Offered(ctx); err != nil {
			return nil, err
		}
		return nil, route.Stopf("%s", far)
	}
	return steps, err
}

// readTarget reads the requested release.
func (c *Checker) readTarget(ctx context.Context, in events.Upgrade, r *route.Route) (err error) {
	pinned, complete := r.SetTarget(in)
	if pinned {
		r.New, r.NewBody, err = c.pinnedRelease(ctx, r.To)
	} else {
		err = c.readRelease(ctx, r)
	}
	if err == nil && !complete {
		r.SetVersion(in)
	}
	return err
}

// readRollbackTarget reads the release before the last upgrade.
func (c *Checker) readRollbackTarget(ctx context.Context, in events.Upgrade, r *route.Route) error {
	err := r.SetRollbackTarget(in, c.Now())
	if err == nil {
		r.New, r.NewBody, err = c.pinnedRelease(ctx, r.To)
	}
	return err
}

// pinnedRelease reads a release by its content.
func (c *Checker) pinnedRelease(ctx context.Context, t upgrade.Target) (*api.Release, []byte, error) {
	release, body, err := specs.PinnedRelease(ctx, c.State, t.Release, t.SHA256)
	var unusable *specs.Unusable
	switch {
	case errors.As(err, &unusable):
		return nil, nil, route.Stopf("the pinned content of release %s is invalid: %s", t.Release, unusable.Message)
	case err != nil:
		return nil, nil, fmt.Errorf("reading the pinned release %s: %w", t.Release, err)
	}
	return release.In(c.Region), body, nil
}

// readRelease reads a release from the specs bucket.
func (c *Checker) readRelease(ctx context.Context, r *route.Route) error {
	key := names.ReleaseSpec(r.To.Release)
	release, body, err := specs.Release(ctx, c.Specs, r.To.Release)
	if errors.Is(err, specs.ErrAbsent) {
		return route.Stopf("there is no release %s: upload it, or name another", key)
	}
	if err != nil {
		return stopUnusable("the release "+key+" cannot be used", err)
	}
	r.New, r.NewBody, r.To.SHA256 = release.In(c.Region), body, names.SHA256(body)
	return nil
}
