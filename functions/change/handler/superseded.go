package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// refuseSuperseded returns *fault.Superseded if the spec has changed since planning. Handle calls it before it changes a stack, because
// between two stacks a plan can stop without a partial result. An unusable newer spec supersedes nothing. A paused one does.
func (h *Handler) refuseSuperseded(ctx context.Context, cluster string, p plan.Plan) error {
	key := names.ClusterSpec(cluster)
	_, version, err := specs.Cluster(ctx, h.Specs, cluster)
	var unusable *specs.Unusable
	switch {
	case errors.As(err, &unusable):
		return h.acceptedSince(ctx, cluster, p)
	case err != nil && !errors.Is(err, specs.ErrAbsent):
		return err
	case version == p.SpecVersion:
		return h.acceptedSince(ctx, cluster, p)
	case version == "":
		return &fault.Superseded{Cause: fmt.Errorf("%s was deleted", key)}
	case version == p.Rejected:
		return nil
	}
	return &fault.Superseded{Cause: fmt.Errorf("version %s of %s is newer than %s", version, key, p.SpecVersion)}
}

// acceptedSince returns *fault.Superseded if a spec was accepted since a deletion was planned, even if it was deleted again: only planning
// decides whether it protects the cluster.
func (h *Handler) acceptedSince(ctx context.Context, cluster string, p plan.Plan) error {
	if p.SpecVersion != "" {
		return nil
	}
	document, err := h.State.Status(ctx, cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if version := document.Status.AcceptedVersion(); version != p.Accepted {
		return &fault.Superseded{Cause: fmt.Errorf("version %s of %s was accepted after planning", version, names.ClusterSpec(cluster))}
	}
	return nil
}
