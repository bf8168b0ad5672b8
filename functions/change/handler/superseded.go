package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/templates"
)

// superseded says whether people want something else by now than what was planned. It is asked just before a stack is changed:
// between two stacks a round of changes can stop without leaving anything half done. A newer spec that is no good supersedes
// nothing; one that is paused does.
func (h *Handler) superseded(ctx context.Context, cluster string, p plan.Plan) error {
	key := names.ClusterSpec(cluster)
	object, err := h.Specs.Get(ctx, key, api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.As(err, &large):
		return nil
	case errors.Is(err, store.ErrNotFound):
		object.Version = ""
	case err != nil:
		return err
	}
	if object.Version == p.SpecVersion {
		return nil
	}
	if object.Version == "" {
		return &fault.Superseded{Cause: fmt.Errorf("%s was deleted", key)}
	}
	if object.Version == p.Rejected {
		return nil
	}
	if _, errs := api.ReadCluster(key, object.Body, api.Options{Name: cluster, TemplateVersions: templates.Versions()}); errs != nil {
		return nil
	}
	return &fault.Superseded{Cause: fmt.Errorf("version %s of %s came after %s", object.Version, key, p.SpecVersion)}
}
