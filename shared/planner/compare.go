package planner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// compare computes the changes from the deployed to the desired stacks. It reads the groups only if a change needs a node and the spec
// guarantees none.
func (p *Planner) compare(ctx context.Context, w *work) (plan.Plan, error) {
	changes, err := p.differences(ctx, *w)
	if err != nil {
		return changes, err
	}
	updated, err := p.updateRelay(w, changes)
	if err != nil {
		return changes, err
	}
	old, outdated := p.relayOutdated(w)
	if updated {
		if changes, err = p.differences(ctx, *w); err != nil {
			return changes, err
		}
		relayReason(changes, old, p.Relay)
	}
	changes.Warnings = api.Warnings(w.resolved, &api.Release{}) // the release's add-ons are in the resolved spec
	if outdated && !updated {
		changes.RelayOutdated = []string{relayWarning(w.cluster, old, p.Relay)}
	}
	if changes, err = p.refuseReplacingLive(ctx, *w, changes); err != nil || !changes.NeedsNode(w.resolved) {
		return changes, err
	}
	found, err := p.hasNode(ctx, *w)
	if err != nil || found {
		return changes, err
	}
	return changes.WithoutNodes(), nil
}

// hasNode reports whether a pool has an instance in service.
func (p *Planner) hasNode(ctx context.Context, w work) (bool, error) {
	for _, pool := range w.resolved.Spec.Pools {
		group, _, err := p.Groups.Describe(ctx, names.Group(w.cluster, pool.Name))
		if err != nil {
			return false, err
		}
		if group.Serving() > 0 {
			return true, nil
		}
	}
	return false, nil
}

// differences computes all changes. It reads the deployed specs only if a stack is updated or deleted: the reasons then name fields and
// values, and the changes are in the order in which service accounts move.
func (p *Planner) differences(ctx context.Context, w work) (plan.Plan, error) {
	in := plan.Input{
		Cluster: w.cluster, SpecVersion: w.version, Release: w.pin, New: w.resolved,
		Desired: w.rendered.Stacks, Deployed: w.deployed,
	}
	if w.rejected != nil {
		in.Rejected = w.newest
	}
	changes := plan.Compute(in)
	if !slices.ContainsFunc(changes.Changes, func(c plan.Change) bool { return c.Operation != plan.Create }) {
		return changes, nil
	}
	var err error
	if in.Old, err = p.deployedSpecs(ctx, w); err != nil {
		return changes, err
	}
	changes = plan.Compute(in)
	if len(changes.Refused) > 0 {
		return changes, refuse(changes.Refused)
	}
	return changes, nil
}

// refuse stops planning because of forbidden changes, and names them.
func refuse(changes []status.Reason) *Stop {
	var lines []string
	for _, refused := range changes {
		lines = append(lines, refused.Line())
	}
	return &Stop{status.ReasonChangeRefused, strings.Join(lines, "\n")}
}

// deployedSpecs reads the spec that last changed each stack, by stack. It leaves out a spec whose version expired or that this drover
// cannot read. The reasons of that stack's change then name checksums.
func (p *Planner) deployedSpecs(ctx context.Context, w work) (map[string]*api.Cluster, error) {
	var release *api.Release
	name, sha := w.current.Release, w.current.SHA256
	if sha == "" { // a control plane whose creation failed
		name, sha = plan.Pin(w.deployed)
	}
	if sha != "" {
		var err error
		if release, _, err = specs.PinnedRelease(ctx, p.State, name, sha); err != nil && !isUnreadable(err) {
			return nil, err
		}
		if release != nil {
			release = release.In(p.Cell.Region)
		}
	}
	read, old := map[string]*api.Cluster{}, map[string]*api.Cluster{}
	for _, stack := range slices.Sorted(maps.Keys(w.deployed)) {
		version := w.deployed[stack].Tags[names.TagSpecVersion]
		if _, found := read[version]; !found && version != "" {
			object, err := specs.ClusterVersion(ctx, p.Specs, w.cluster, version)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			read[version] = nil
			if spec, errs := api.ReadCluster("", object.Body, api.Options{}); errs == nil && release != nil {
				read[version] = asDeployed(spec, release, w.deployed)
			}
		}
		if read[version] != nil {
			old[stack] = read[version]
		}
	}
	return old, nil
}

// isUnreadable reports whether a pinned release is absent or unusable.
func isUnreadable(err error) bool { return errors.Is(err, store.ErrNotFound) || specs.Missing(err) }

// asDeployed resolves a spec with what is deployed. Releases and versions come from the stacks, whatever the spec says. It returns nil if
// the spec cannot be resolved.
func asDeployed(spec *api.Cluster, release *api.Release, deployed map[string]stack.Deployed) *api.Cluster {
	version := plan.KubernetesVersion(deployed)
	if version == "" {
		version = spec.Spec.KubernetesVersion
	}
	step := upgrade.Step{KubernetesVersion: version}
	resolved, errs := upgrade.Effective(spec, release, nil, step)
	if errs != nil {
		return nil
	}
	upgrade.Keep{
		Images: true, Addons: true, OverridesSpec: true,
	}.Apply(spec, resolved, step, plan.KeptImages(deployed, resolved), plan.AddonVersions(deployed, resolved.Spec.Addons))
	return resolved
}
