package plan

// The deployed versions of a cluster, from its stacks.

import (
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
)

// Pin returns the release to which a cluster is pinned: its name and the digest of its content. They are empty without a control plane.
func Pin(deployed map[string]stack.Deployed) (release, sha256 string) {
	release, sha256, _ = strings.Cut(deployed[names.ControlPlane].Tags[names.TagRelease], "@")
	return release, sha256
}

// KubernetesVersion returns the version of a control plane. It is empty unless the stack is complete. A stack whose deletion failed still
// has its outputs.
func KubernetesVersion(deployed map[string]stack.Deployed) string {
	if stack.MustRecreate(deployed[names.ControlPlane].Status) {
		return ""
	}
	return deployed[names.ControlPlane].Outputs["KubernetesVersion"]
}

// Images returns the images of the deployed pools, by pool.
func Images(deployed map[string]stack.Deployed) map[string]string {
	images := map[string]string{}
	for name, stack := range deployed {
		if pool, ok := strings.CutPrefix(name, names.PoolPrefix); ok && stack.Outputs["ImageId"] != "" {
			images[pool] = stack.Outputs["ImageId"]
		}
	}
	return images
}

// KeptImages returns the images of the deployed pools that a cluster can keep. A pool that changes its family, variant or architecture
// needs another one.
func KeptImages(deployed map[string]stack.Deployed, resolved *api.Cluster) map[string]string {
	images := Images(deployed)
	for i := range resolved.Spec.Pools {
		pool := &resolved.Spec.Pools[i]
		if deployed[names.PoolStack(pool.Name)].Outputs["Image"] != pool.ImageOutput() {
			delete(images, pool.Name)
		}
	}
	return images
}

// NodesSince returns the launch template versions since which the nodes of the deployed pools are made of the same, by pool. A pool that an
// older drover deployed has none.
func NodesSince(deployed map[string]stack.Deployed) map[string]string {
	since := map[string]string{}
	for name, stack := range deployed {
		if pool, ok := strings.CutPrefix(name, names.PoolPrefix); ok && stack.Outputs[render.NodesSince] != "" {
			since[pool] = stack.Outputs[render.NodesSince]
		}
	}
	return since
}

// TemplateVersions returns the template versions of the deployed pools, by pool.
func TemplateVersions(deployed map[string]stack.Deployed) map[string]string {
	versions := map[string]string{}
	for name, stack := range deployed {
		if pool, ok := strings.CutPrefix(name, names.PoolPrefix); ok && stack.Outputs["ImageId"] != "" {
			versions[pool] = render.TemplateVersion(stack.Tags)
		}
	}
	return versions
}

// AddonVersions returns the deployed versions of the given add-ons.
func AddonVersions(deployed map[string]stack.Deployed, addons []api.Addon) map[string]string {
	versions := map[string]string{}
	for _, addon := range addons {
		for _, stack := range []string{names.Addons, names.NodeAddons} {
			if version := deployed[stack].Outputs[render.AddonOutput(addon.Name)]; version != "" {
				versions[addon.Name] = version
			}
		}
	}
	return versions
}
