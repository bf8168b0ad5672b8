package planner

import (
	"context"
	"maps"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
)

// validateSettings checks the settings of the control plane against EKS's bounds. EKS has them by Kubernetes version and tier. It asks EKS
// only if a setting or the version changes.
func (p *Planner) validateSettings(ctx context.Context, w *work) (api.Errors, error) {
	control, spec := w.deployed[names.ControlPlane], &w.resolved.Spec
	deployed := render.ParseKept(control.Outputs[render.Kept])
	stated := spec.ControlPlane.Kept()
	if maps.Equal(stated, deployed) && (len(stated) == 0 || plan.KubernetesVersion(w.deployed) == spec.KubernetesVersion) {
		return nil, nil
	}
	bounds, err := p.EKS.SettingBounds(ctx, spec.KubernetesVersion, spec.ControlPlane.Tier)
	if err != nil {
		return nil, err
	}
	return api.FieldErrors(bounds.CheckSettings(spec, deployed)), nil
}
