package planner

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// newestSpec reads the newest spec. It also returns the bytes, from which later errors get their line numbers.
func (p *Planner) newestSpec(ctx context.Context, w *work) (*api.Cluster, []byte, error) {
	object, err := specs.Upload(ctx, p.Specs, names.ClusterSpec(w.cluster))
	var unusable *specs.Unusable
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return nil, nil, ErrAbsent
	case errors.As(err, &unusable):
		w.newest = unusable.Version
		return nil, nil, &Stop{status.ReasonSpecInvalid, unusable.Message}
	case err != nil:
		return nil, nil, err
	}
	w.newest = object.Version
	return p.decode(w, object)
}

// decode decodes a version of the spec. A paused spec is a Stop, unless pauses are ignored.
func (p *Planner) decode(w *work, object store.Object) (*api.Cluster, []byte, error) {
	key := names.ClusterSpec(w.cluster)
	w.version, w.uploadedAt = object.Version, object.Modified
	spec, errs := api.ReadCluster(key, object.Body, p.validation(w))
	if errs != nil {
		return nil, nil, &Stop{status.ReasonSpecInvalid, errs.Error()}
	}
	w.spec = spec
	if spec.Spec.Paused && !p.IgnorePaused {
		return nil, nil, &Stop{status.ReasonPaused, "spec.paused is true: drover starts nothing on this cluster"}
	}
	return spec, object.Body, nil
}

// rejections are the reasons for which a spec does not apply.
var rejections = []string{status.ReasonSpecInvalid, status.ReasonReleaseUnusable, status.ReasonAddonWithoutPermission}

// read selects the spec that applies, and renders it. While the newest spec or its release cannot be used, the last good spec applies: an
// invalid upload changes nothing, and drover still repairs the cluster.
func (p *Planner) read(ctx context.Context, in Request) (work, error) {
	w := work{cluster: in.Cluster, releases: map[string]content{}}
	spec, body, err := p.newestSpec(ctx, &w)
	if err == nil {
		w, err = p.render(ctx, w, in, spec, body)
	}
	refuseRoll := func(why error) error {
		if spec == nil && len(in.Roll) > 0 { // with a spec, in.Accept has decided
			return refuseRolls(in.Cluster, why)
		}
		return why
	}
	var rejected *Stop
	if !errors.As(err, &rejected) || !slices.Contains(rejections, rejected.Reason) {
		return w, refuseRoll(err)
	}
	good, err := p.readLastGood(ctx, in)
	good.newest, good.rejected = w.newest, rejected
	var stopped *Stop
	if errors.Is(err, store.ErrNotFound) || errors.As(err, &stopped) {
		return w, refuseRoll(rejected)
	}
	return good, err
}

// readLastGood renders the last good spec. It returns store.ErrNotFound if there is none.
func (p *Planner) readLastGood(ctx context.Context, in Request) (work, error) {
	w := work{cluster: in.Cluster, releases: map[string]content{}}
	spec, body, err := p.lastGoodSpec(ctx, &w)
	if err != nil {
		return w, err
	}
	return p.render(ctx, w, in, spec, body)
}

// lastGoodSpec reads the last spec that could be planned. It returns store.ErrNotFound if there is none.
func (p *Planner) lastGoodSpec(ctx context.Context, w *work) (*api.Cluster, []byte, error) {
	before, err := p.State.Status(ctx, w.cluster)
	if err != nil {
		return nil, nil, err
	}
	version := before.Status.GoodVersion
	if version == "" {
		return nil, nil, store.ErrNotFound
	}
	object, err := specs.ClusterVersion(ctx, p.Specs, w.cluster, version)
	if err != nil {
		return nil, nil, err
	}
	return p.decode(w, object)
}
