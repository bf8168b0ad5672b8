package upgrade

// The desired state of a cluster during an upgrade.

import (
	"maps"

	"github.com/drover-run/drover/shared/api"
)

// Effective resolves a spec during a step from the old release to the next one. Without an upgrade next is nil, and the old release applies
// with the Kubernetes version of the step. Everything that the step does not concern follows the spec, so unrelated changes continue. The
// errors are those of api.Resolve.
func Effective(spec *api.Cluster, old, next *api.Release, step Step) (*api.Cluster, api.Errors) {
	release := *old
	if next != nil {
		if step.AppliesRelease() {
			release = *next
			release.Spec.Addons = old.Spec.Addons
		}
		if step.Kind == StepAddons || step.Kind == StepNodes {
			release.Spec.Addons = next.Spec.Addons
		}
		if step.NodesRolledBack || step.Kind == StepNodes {
			release.Spec.Images = next.Spec.Images
		}
	}
	mixed := *spec
	mixed.Spec.Release.Name, mixed.Spec.KubernetesVersion = release.Metadata.Name, step.KubernetesVersion
	resolved, errs := api.Resolve(&mixed, &release)
	if errs != nil {
		return nil, errs
	}
	for i := range resolved.Spec.Addons {
		if forced := step.Addons[resolved.Spec.Addons[i].Name]; forced != "" {
			resolved.Spec.Addons[i].Version = forced
		}
	}
	return resolved, nil
}

// Keep is what stays as deployed, even if the spec and the release say otherwise.
type Keep struct {
	// Images keeps the deployed images of pools, Addons the deployed versions of add-ons.
	Images, Addons bool
	// With OverridesSpec, deployed images and versions stay even where the spec states others.
	OverridesSpec bool
}

// keep returns what stays as deployed during a step.
func (s Step) keep() Keep {
	switch s.Kind {
	case StepAddons:
		return Keep{Images: true, OverridesSpec: true}
	case StepNodes:
		return Keep{}
	case StepNodesBack:
		return Keep{Addons: true, OverridesSpec: true}
	}
	return Keep{Images: true, Addons: true, OverridesSpec: true}
}

// Apply keeps what is deployed: images by pool, and versions by add-on. What is not deployed or not known stays as resolved. What the step
// forces is not kept.
func (k Keep) Apply(spec, resolved *api.Cluster, step Step, images, addons map[string]string) {
	images, addons = k.withoutStated(spec, images, addons)
	for i := range resolved.Spec.Pools {
		pool := &resolved.Spec.Pools[i]
		if image := images[pool.Name]; k.Images && image != "" {
			pool.ImageID = image
		}
	}
	for i := range resolved.Spec.Addons {
		addon := &resolved.Spec.Addons[i]
		if version := addons[addon.Name]; k.Addons && version != "" && step.Addons[addon.Name] == "" {
			addon.Version = version
		}
	}
}

// Templates returns the template versions of pools that may differ from the cluster's version, which changes in the last step. Pools that
// keep their images keep their templates: another template would replace the nodes before their step. A rollback replaces the nodes first,
// and uses the templates of its target. deployed are the versions of the existing pools.
func Templates(spec *api.Cluster, next *api.Release, step Step, keep Keep, deployed map[string]string) map[string]string {
	stated := spec.Spec.TemplateVersion != ""
	switch {
	case keep.Images && (keep.OverridesSpec || !stated):
		return deployed
	case step.Kind == StepNodesBack && next != nil && !stated:
		versions := map[string]string{}
		for _, pool := range spec.Spec.Pools {
			versions[pool.Name] = next.Spec.TemplateVersion
		}
		return versions
	}
	return nil
}

// withoutStated removes what the spec states itself.
func (k Keep) withoutStated(spec *api.Cluster, images, addons map[string]string) (map[string]string, map[string]string) {
	if k.OverridesSpec {
		return images, addons
	}
	images, addons = maps.Clone(images), maps.Clone(addons)
	for _, pool := range spec.Spec.Pools {
		if pool.ImageID != "" {
			delete(images, pool.Name)
		}
	}
	for _, addon := range spec.Spec.Addons {
		if addon.Version != "" {
			delete(addons, addon.Name)
		}
	}
	return images, addons
}
