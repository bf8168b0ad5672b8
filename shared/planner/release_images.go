package planner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drover-run/drover/shared/api"
)

// explainImages corrects what api.Resolve advises about pools without an image, for a cluster that exists. The deployed release applies
// until the nodes are upgraded to the next one, and the cluster keeps its content: adding an image to it changes nothing.
func (p *Planner) explainImages(ctx context.Context, w *work, spec *api.Cluster, next *api.Release, errs api.Errors) error {
	d, target := w.decision, next
	if w.current.SHA256 == "" || next != nil && d.Step.AppliesRelease() {
		return nil
	}
	if d.SpecTarget != nil {
		c, err := p.namedRelease(ctx, w, d.SpecTarget.Release)
		if err != nil {
			return err
		}
		target = c.release
	}
	for i := range spec.Spec.Pools {
		pool := spec.Spec.Pools[i] // as written: without the default of its image
		key := pool.ImageKey()
		for _, e := range errs {
			if e.Cause.Type != field.ErrorTypeRequired || e.Cause.Field != fmt.Sprintf("spec.pools[%d].imageID", i) || key == "" {
				continue
			}
			const first = "First upload the spec %s and without this pool or its new image, and upload that after the upgrade; or state imageID"
			if target != nil && target.Spec.Images[key] != "" {
				e.Cause.Detail = fmt.Sprintf("the release %s is deployed, and has no image %s. The release %s has one, but its upgrade comes first. "+
					first, w.current.Release, key, target.Metadata.Name, "with the release "+target.Metadata.Name)
				continue
			}
			e.Cause.Detail = fmt.Sprintf("the release %s is deployed, and has no image %s. An edited release changes no cluster. "+
				first, w.current.Release, key, "with another release that has this image")
		}
	}
	return nil
}
