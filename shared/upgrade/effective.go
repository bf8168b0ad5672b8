package upgrade

// What a cluster should be while it is upgraded.

import (
	"maps"

	"github.com/drover-run/drover/shared/api"
)

// Effective resolves a spec as it counts during a step from the old release to the new one. Without a step it is the old release that
// counts, at that Kubernetes version: next is nil then. Unlike what it moves, everything else is what the spec says, so that unrelated
// changes go on. The errors are those of api.Resolve.
func Effective(spec *api.Cluster, old, next *api.Release, step Step) (*api.Cluster, api.Errors) {
	counts := *old
	if next != nil {
		if step.Moved() {
			counts = *next
			counts.Spec.Addons = old.Spec.Addons
		}
		if step.Kind == StepAddons || step.Kind == StepNodes {
			counts.Spec.Addons = next.Spec.Addons
		}
		if step.NodesBack || step.Kind == StepNodes {
			counts.Spec.Images = next.Spec.Images
		}
	}
	mixed := *spec
	mixed.Spec.Release.Name, mixed.Spec.KubernetesVersion = counts.Metadata.Name, step.KubernetesVersion
	resolved, errs := api.Resolve(&mixed, &counts)
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

// Keep is what stays as it is deployed, though spec and release may say otherwise.
type Keep struct {
	// Images of pools, and versions of Addons, that there are.
	Images, Addons bool
	// Stated: those that the spec states, too. Otherwise the spec wins.
	Stated bool
}

// keep says what a step leaves as it is.
func (s Step) keep() Keep {
	switch s.Kind {
	case StepAddons:
		return Keep{Images: true, Stated: true}
	case StepNodes:
		return Keep{}
	case StepNodesBack:
		return Keep{Addons: true, Stated: true}
	}
	return Keep{Images: true, Addons: true, Stated: true}
}

// Apply keeps what is deployed: images by pool, and versions by add-on. What is not known of, or not there yet, is left as it was
// resolved; what the step forces is not kept.
func (k Keep) Apply(spec, resolved *api.Cluster, step Step, images, addons map[string]string) {
	images, addons = k.less(spec, images, addons)
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

// Templates are the template versions of pools that may differ from the cluster's, which moves with the last step.
// Pools that keep their images keep their templates, too: with others their nodes would be replaced before it is
// their turn. In a rollback nodes go back first, to the templates of the release that they go to. deployed are those
// of the pools that there are.
func Templates(spec *api.Cluster, next *api.Release, step Step, keep Keep, deployed map[string]string) map[string]string {
	stated := spec.Spec.TemplateVersion != ""
	switch {
	case keep.Images && (keep.Stated || !stated):
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

// less leaves out what the spec states itself.
func (k Keep) less(spec *api.Cluster, images, addons map[string]string) (map[string]string, map[string]string) {
	if k.Stated {
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
