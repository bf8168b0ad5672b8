package render

import "github.com/drover-run/drover/shared/api"

// Roles returns how many IAM roles the stacks of a resolved cluster create: those of the control plane and of the nodes, that of its relay,
// one for each add-on with an identity, and those of pod identities with policies or a preset.
func Roles(cluster *api.Cluster) int {
	roles := 2
	if cluster.Spec.ControlPlane.Endpoint.NeedsRelay() {
		roles++
	}
	if cluster.HasAddon(api.PodIdentityAgent) {
		for _, a := range cluster.Spec.Addons {
			identities, _ := a.Identities()
			for _, identity := range identities {
				if identity.RoleARN == "" {
					roles++
				}
			}
		}
	}
	for _, identity := range cluster.Spec.PodIdentities {
		if identity.RoleARN == "" {
			roles++
		}
	}
	return roles
}
