package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/specs"
)

// superseded returns *fault.Superseded if the spec has changed since planning. Handle calls it before it changes a stack, because between
// two stacks a plan can stop without a partial result. An unusable newer spec supersedes nothing. A paused one does.
func (h *Handler) superseded(ctx context.Context, cluster string, p plan.Plan) error {
	key := names.ClusterSpec(cluster)
	_, version, err := specs.Cluster(ctx, h.Specs, cluster)
	var unusable *specs.Unusable
	switch {
	case errors.As(err, &unusable):
		return nil
	case err != nil && !errors.Is(err, specs.ErrAbsent):
		return err
	case version == p.SpecVersion:
		return nil
	case version == "":
		return &fault.Superseded{Cause: fmt.Errorf("%s was deleted", key)}
	case version == p.Rejected:
		return nil
	}
	return &fault.Superseded{Cause: fmt.Errorf("version %s of %s is newer than %s", version, key, p.SpecVersion)}
}
