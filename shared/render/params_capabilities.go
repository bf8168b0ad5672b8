package render

// The stack of EKS Capabilities.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// capabilitiesParams are the parameters of capabilities.yaml.tmpl.
type capabilitiesParams struct {
	Description  string
	Capabilities []capability
}

// capability is one resource.
type capability struct {
	ID, Name, Type, RoleARN string
	ArgoCD                  *api.ArgoCD
}

// capabilityTypes are EKS's names of types, where they differ.
var capabilityTypes = map[api.CapabilityType]string{api.CapabilityArgoCD: "ARGOCD"}

func (r *renderer) capabilities() error {
	if len(r.Resolved.Spec.Capabilities) == 0 {
		return nil
	}
	p := &capabilitiesParams{Description: "drover: capabilities of cluster " + r.Resolved.Metadata.Name}
	for i, in := range r.Resolved.Spec.Capabilities {
		if (in.Type == api.CapabilityArgoCD) != (in.ArgoCD != nil) {
			return fmt.Errorf("spec.capabilities[%d].argoCD: the type ArgoCD needs it, and no other type has it", i)
		}
		out := capability{ID: digest(in.Name), Name: in.Name, Type: cmp.Or(capabilityTypes[in.Type], string(in.Type)), RoleARN: in.RoleARN}
		if in.ArgoCD != nil {
			argo := *in.ArgoCD
			argo.Admins = slices.Sorted(slices.Values(argo.Admins)) // their order means nothing
			out.ArgoCD = &argo
		}
		p.Capabilities = append(p.Capabilities, out)
	}
	// Sorted by id, so that the order in the spec does not matter.
	slices.SortFunc(p.Capabilities, func(a, b capability) int { return strings.Compare(a.ID, b.ID) })
	return r.stack(Stack{Name: names.Capabilities, Parameters: []Parameter{fromControlPlane("ClusterName")}}, "capabilities.yaml.tmpl", p)
}
