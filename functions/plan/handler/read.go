package handler

// The spec that counts: the newest, or the last good one while the newest cannot be used.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/templates"
)

// spec reads the newest spec. Its bytes are for the places of errors that are found later.
func (h *Handler) spec(ctx context.Context, w *work) (*api.Cluster, []byte, error) {
	object, err := h.Specs.Get(ctx, names.ClusterSpec(w.cluster), api.MaxFile)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil, errAbsent
	case errors.As(err, &large):
		w.newest = large.Version
		return nil, nil, &stop{status.ReasonSpecInvalid, err.Error()}
	case err != nil:
		return nil, nil, err
	}
	w.newest = object.Version
	return h.parse(w, object)
}

// parse reads what a version of the spec says.
func (h *Handler) parse(w *work, object store.Object) (*api.Cluster, []byte, error) {
	key := names.ClusterSpec(w.cluster)
	w.version = object.Version
	spec, errs := api.ReadCluster(key, object.Body, api.Options{Name: w.cluster, TemplateVersions: templates.Versions()})
	if errs != nil {
		return nil, nil, &stop{status.ReasonSpecInvalid, errs.Error()}
	}
	w.spec = spec
	if spec.Spec.Paused && !h.IgnorePaused {
		return nil, nil, &stop{status.ReasonPaused, "spec.paused is true: drover starts nothing on this cluster"}
	}
	return spec, object.Body, nil
}

// read reads spec, stacks and release, and renders. While the newest spec cannot be used the last good one counts: a bad upload changes
// nothing, and what it names is still mended.
func (h *Handler) read(ctx context.Context, cluster string, in events.PlanRequest) (work, error) {
	w := work{cluster: cluster, releases: map[string]content{}}
	spec, body, err := h.spec(ctx, &w)
	if err == nil {
		w, err = h.render(ctx, w, in, spec, body)
	}
	// A roll is written down when the spec was read.
	refuse := func(why error) error {
		if spec == nil && len(in.Roll) > 0 {
			return unrolled(in.Cluster, why)
		}
		return why
	}
	var rejected *stop
	if !errors.As(err, &rejected) || rejected.reason != status.ReasonSpecInvalid && rejected.reason != status.ReasonReleaseUnusable {
		return w, refuse(err)
	}
	good, err := h.lastGood(ctx, cluster, in)
	good.newest, good.rejected = w.newest, rejected
	var stopped *stop
	if errors.Is(err, store.ErrNotFound) || errors.As(err, &stopped) {
		return w, refuse(rejected)
	}
	return good, err
}

// lastGood is read with the last spec that could be planned. Without one it is store.ErrNotFound.
func (h *Handler) lastGood(ctx context.Context, cluster string, in events.PlanRequest) (work, error) {
	w := work{cluster: cluster, releases: map[string]content{}}
	spec, body, err := h.goodSpec(ctx, &w)
	if err != nil {
		return w, err
	}
	return h.render(ctx, w, in, spec, body)
}

// goodSpec reads the last spec that could be planned. Without one it is store.ErrNotFound.
func (h *Handler) goodSpec(ctx context.Context, w *work) (*api.Cluster, []byte, error) {
	before, err := h.State.Status(ctx, w.cluster)
	if err != nil {
		return nil, nil, err
	}
	version := before.Status.GoodVersion
	if version == "" {
		return nil, nil, store.ErrNotFound
	}
	object, err := h.Specs.GetVersion(ctx, names.ClusterSpec(w.cluster), version, api.MaxFile)
	if err != nil {
		return nil, nil, err
	}
	return h.parse(w, object)
}
