package render

import "github.com/drover-run/drover/shared/api"

// Roles returns how many IAM roles the stacks of a resolved cluster create: those of the control plane and of the nodes, that of its relay,
// and one for each add-on with an identity.
func Roles(cluster *api.Cluster) int {
	roles := 2
	if cluster.Spec.ControlPlane.Endpoint.NeedsRelay() {
		roles++
	}
	if has(cluster, podIdentityAgent) {
		for _, a := range cluster.Spec.Addons {
			if _, found := podIdentities[a.Name]; found {
				roles++
			}
		}
	}
	return roles
}
