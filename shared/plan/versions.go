package plan

// What a cluster is made of now, as its stacks say.

import (
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
)

// Pin is the release that a cluster is pinned to: its name and the digest of its content. Empty when there is no control plane.
func Pin(deployed map[string]stack.Deployed) (release, sha256 string) {
	release, sha256, _ = strings.Cut(deployed[names.ControlPlane].Tags[names.TagRelease], "@")
	return release, sha256
}

// KubernetesVersion of a control plane; empty while there is none that is whole. A stack of which not all could be
// deleted has its outputs still.
func KubernetesVersion(deployed map[string]stack.Deployed) string {
	if stack.MustRecreate(deployed[names.ControlPlane].Status) {
		return ""
	}
	return deployed[names.ControlPlane].Outputs["KubernetesVersion"]
}

// Images of the pools that there are, by pool.
func Images(deployed map[string]stack.Deployed) map[string]string {
	images := map[string]string{}
	for name, stack := range deployed {
		if pool, is := strings.CutPrefix(name, names.PoolPrefix); is && stack.Outputs["ImageId"] != "" {
			images[pool] = stack.Outputs["ImageId"]
		}
	}
	return images
}

// TemplateVersions of the pools that there are, by pool.
func TemplateVersions(deployed map[string]stack.Deployed) map[string]string {
	versions := map[string]string{}
	for name, stack := range deployed {
		if pool, is := strings.CutPrefix(name, names.PoolPrefix); is && stack.Outputs["ImageId"] != "" {
			versions[pool] = render.TemplateVersion(stack.Tags)
		}
	}
	return versions
}

// AddonVersions are those of the add-ons that there are, of those given.
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
