package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
)

// checkImages stops a plan that gives a pool an image that its nodes could not boot from: of another family or architecture, or with a
// kubelet newer than the control plane. It asks EC2 once, and only about images that the pools do not have yet. An image passes if neither
// its name nor that of its source shows the family, and its devices fit. The change of the pool's stack then has one more reason.
func (p *Planner) checkImages(ctx context.Context, o *Outcome) error {
	pools := newImages(&o.work, o.Plan)
	if p.Images == nil || len(pools) == 0 {
		return nil
	}
	images, err := p.describeImages(ctx, pools)
	if err != nil {
		return err
	}
	version := o.work.resolved.Spec.KubernetesVersion
	var refused []string
	for _, pool := range pools {
		image, found := images[pool.ImageID]
		if !found {
			refused = append(refused, fmt.Sprintf("pool %s: %s %s", pool.Name, pool.ImageID, preflight.MissingImage(pool.ImageID)))
			continue
		}
		var source *preflight.Image
		if original, found := images[image.SourceID]; found {
			source = &original
		}
		misfit, verified := image.Misfit(pool, source)
		if misfit == "" && (image.NewerThan(version) || source != nil && source.NewerThan(version)) {
			misfit = "has a kubelet newer than Kubernetes " + version
		}
		if misfit == "" && image.State != "available" {
			misfit = "is " + image.State + ", and EC2 launches available images only"
		}
		switch {
		case misfit != "":
			refused = append(refused, fmt.Sprintf("pool %s: %s (%s) %s", pool.Name, image.ID, image.Name, misfit))
		case !verified:
			addUnverified(o, pool, &image)
			logging.From(ctx).Info("image not verified", "cluster", o.work.cluster, "pool", pool.Name, "image", image.ID)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &Stop{status.ReasonChangeRefused, fmt.Sprintf("no stack was changed, because nodes could not join from these images:\n%s\n"+
		"Name another image in the release or in imageID of the pool, or correct image and architecture of the pool. "+
		"If you change the image itself, or share it, run `drover converge %s` afterwards",
		strings.Join(refused, "\n"), o.work.cluster)}
}

// describeImages returns the images of pools, and the sources of copies that have no name of AWS.
func (p *Planner) describeImages(ctx context.Context, pools []*api.Pool) (map[string]preflight.Image, error) {
	var ids []string
	for _, pool := range pools {
		ids = append(ids, pool.ImageID)
	}
	slices.Sort(ids)
	images, err := p.Images.Images(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	var sources []string
	for _, image := range images {
		if image.SourceID != "" && !image.IsNamed() {
			sources = append(sources, image.SourceID)
		}
	}
	if len(sources) == 0 {
		return images, nil
	}
	slices.Sort(sources)
	originals, err := p.Images.Images(ctx, slices.Compact(sources))
	if err != nil {
		return nil, err
	}
	for id, original := range originals {
		if _, found := images[id]; !found {
			images[id] = original
		}
	}
	return images, nil
}

// newImages returns the pools whose stack gets an image that it does not have yet, or another family, variant or architecture for it.
func newImages(w *work, changes plan.Plan) (pools []*api.Pool) {
	for _, pool := range changedPools(w, changes) {
		outputs := w.deployed[names.PoolStack(pool.Name)].Outputs
		if outputs["ImageId"] != pool.ImageID || outputs["Image"] != pool.ImageOutput() {
			pools = append(pools, pool)
		}
	}
	return pools
}

// addUnverified adds to the reasons of a pool's change that its image could not be verified.
func addUnverified(o *Outcome, pool *api.Pool, image *preflight.Image) {
	addReason(o, pool, status.Reason{
		Field: fmt.Sprintf("image of pool %s, not verified", pool.Name), New: fmt.Sprintf("%s (%s)", image.ID, image.Name),
	})
}
