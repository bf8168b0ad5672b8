package planner

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
)

// protectedStacks lists the stacks that deletion protection retains: see plan.Protected. The versioned bucket keeps versions of a deleted
// spec. An expired version protects nothing.
func (p *Planner) protectedStacks(ctx context.Context, cluster string, deployed map[string]stack.Deployed, accepted ...string) ([]string,
	error) {
	protects := map[string]bool{}
	for _, version := range append(slices.Clone(accepted),
		deployed[names.Network].Tags[names.TagSpecVersion], deployed[names.ControlPlane].Tags[names.TagSpecVersion]) {
		if _, read := protects[version]; read || version == "" {
			continue
		}
		object, err := specs.ClusterVersion(ctx, p.Specs, cluster, version)
		if errors.Is(err, store.ErrNotFound) {
			logging.From(ctx).Warn("spec version not found", "cluster", cluster, "version", version)
			continue
		}
		if err != nil {
			return nil, err
		}
		protects[version] = api.ProtectsDeletion(object.Body)
	}
	return plan.Protected(deployed, accepted, protects), nil
}
