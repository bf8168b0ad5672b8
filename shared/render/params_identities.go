package render

// The stack of pod identities: the IAM roles of service accounts that the spec names.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// WorkloadBoundary is the parameter with the permissions boundary of roles with policies of the spec.
const WorkloadBoundary = "WorkloadBoundary"

// identitiesParams are the parameters of identities.yaml.tmpl.
type identitiesParams struct {
	Description string
	roleParams
	// WorkloadBoundary is the name of that parameter, or "" if no role has it.
	WorkloadBoundary string
	Identities       []identity
}

// identity is an association, and its role if drover creates that.
type identity struct {
	ID, Namespace, ServiceAccount, RoleARN, TargetRoleARN string
	// RoleID is the logical id of the role that drover creates, or "": with Policies, which are ARNs, or with Document.
	RoleID   string
	Policies []string
	Document map[string]any
}

// newIdentitiesParams returns the identities of a cluster, or nil if there are none. boundary is that of roles with policies of the spec.
func newIdentitiesParams(cell Cell, cluster *api.Cluster, boundary string) (*identitiesParams, error) {
	if len(cluster.Spec.PodIdentities) == 0 {
		return nil, nil
	}
	if !cluster.HasAddon(api.PodIdentityAgent) {
		return nil, errors.New("spec.podIdentities: pods get their credentials from the add-on " + api.PodIdentityAgent +
			": add it to spec.addons, or use a release with it")
	}
	p := &identitiesParams{Description: "drover: pod identities of cluster " + cluster.Metadata.Name, roleParams: cell.roles()}
	for i, in := range cluster.Spec.PodIdentities {
		if given := grants(in); given != 1 {
			return nil, fmt.Errorf("spec.podIdentities[%d]: has %d of roleARN, policies, preset: state one of them", i, given)
		}
		out := identity{
			ID: digest(in.Namespace) + digest(in.ServiceAccount), Namespace: in.Namespace, ServiceAccount: in.ServiceAccount,
			RoleARN: in.RoleARN, TargetRoleARN: in.TargetRoleARN,
		}
		if in.RoleARN == "" {
			out.RoleID = "Identity" + out.ID + "Role"
		}
		if len(in.Policies) > 0 {
			// Another boundary of the cell makes another role: CloudFormation's role may not give that boundary to an existing one.
			out.RoleID += digest(boundary)
		}
		for _, policy := range in.Policies {
			p.WorkloadBoundary = WorkloadBoundary
			out.Policies = append(out.Policies, cell.managedPolicy(policy))
		}
		slices.Sort(out.Policies)
		switch in.Preset {
		case "":
		case api.PresetClusterAutoscaler:
			out.Document = autoscalerPolicy(cell, cluster.Metadata.Name)
		case api.PresetLoadBalancerController:
			out.Document = loadBalancerPolicy(cell, eksName(cluster))
		default:
			return nil, fmt.Errorf("spec.podIdentities[%d].preset: %q is not known", i, in.Preset)
		}
		p.Identities = append(p.Identities, out)
	}
	// Sorted by id, so that the order in the spec does not matter.
	slices.SortFunc(p.Identities, func(a, b identity) int { return strings.Compare(a.ID, b.ID) })
	return p, nil
}

// grants counts the fields of an identity that say which role it has.
func grants(in api.PodIdentity) (given int) {
	for _, is := range []bool{in.RoleARN != "", len(in.Policies) > 0, in.Preset != ""} {
		if is {
			given++
		}
	}
	return given
}

func (r *renderer) identities() error {
	params, err := newIdentitiesParams(r.Cell, r.Resolved, r.WorkloadBoundary)
	if params == nil || err != nil {
		return err
	}
	s := Stack{Name: names.Identities, Parameters: []Parameter{fromControlPlane("ClusterName")}}
	if params.WorkloadBoundary != "" {
		s.Parameters = append(s.Parameters, Parameter{Name: params.WorkloadBoundary, Value: r.WorkloadBoundary})
	}
	if slices.ContainsFunc(params.Identities, func(i identity) bool { return i.RoleID != "" }) {
		s.Capabilities = []string{"CAPABILITY_IAM"}
	}
	return r.stack(s, "identities.yaml.tmpl", params)
}
