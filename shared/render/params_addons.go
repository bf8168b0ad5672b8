package render

// The two add-on stacks: what nodes need before they are Ready, and what needs nodes to run on.

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// addonsParams are the parameters of addons.yaml.tmpl.
type addonsParams struct {
	Description string
	roleParams
	Addons []addon
}

type addon struct {
	// ID is the logical id; After that of an add-on to be created first, or "".
	ID, After     string
	Name, Version string
	// Configuration is nil when there is none.
	Configuration map[string]any
	// RolePolicy is the ARN of the policy that the add-on's service account gets by pod identity, or "".
	RolePolicy, ServiceAccount string
}

const podIdentityAgent = "eks-pod-identity-agent"

// podIdentities are the add-ons that call AWS, with the policy that AWS made for each.
// https://docs.aws.amazon.com/eks/latest/userguide/add-ons-iam.html
var podIdentities = map[string]struct{ serviceAccount, policy string }{
	"vpc-cni":            {"aws-node", "AmazonEKS_CNI_Policy"},
	"aws-ebs-csi-driver": {"ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"},
}

// newAddonsParams takes the add-ons that belong to a stack, or nil when there are none.
func newAddonsParams(cell Cell, cluster *api.Cluster, description string, belongs func(name string) bool) (*addonsParams, error) {
	p := &addonsParams{Description: description, roleParams: cell.roles()}
	for _, a := range cluster.Spec.Addons {
		if !belongs(a.Name) {
			continue
		}
		if slices.ContainsFunc(p.Addons, func(other addon) bool { return other.Name == a.Name }) {
			return nil, errors.New("spec.addons: " + a.Name + " is there twice")
		}
		out := addon{ID: addonID(a.Name), Name: a.Name, Version: a.Version}
		if len(a.Configuration) > 0 {
			out.Configuration = a.Configuration
		}
		if identity, calls := podIdentities[a.Name]; calls {
			switch {
			case has(cluster, podIdentityAgent):
				out.RolePolicy, out.ServiceAccount = cell.managedPolicy(identity.policy), identity.serviceAccount
				if belongs(podIdentityAgent) {
					out.After = addonID(podIdentityAgent)
				}
			case a.Name != "vpc-cni": // which runs in the host's network and so may use the role of the node
				return nil, errors.New("spec.addons: " + a.Name + " has its permission by pod identity: add " + podIdentityAgent)
			}
		}
		p.Addons = append(p.Addons, out)
	}
	if len(p.Addons) == 0 {
		return nil, nil
	}
	// In the order of their names, so that their order in spec and release means nothing.
	slices.SortFunc(p.Addons, func(a, b addon) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// has says whether a cluster has an add-on.
func has(cluster *api.Cluster, name string) bool {
	return slices.ContainsFunc(cluster.Spec.Addons, func(a api.Addon) bool { return a.Name == name })
}

// plainName matches names of which the camel case says everything.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$`)

// addonID is VpcCni for vpc-cni, and a digest for names that would not come out unambiguous.
func addonID(name string) string {
	if !plainName.MatchString(name) {
		return "Addon" + digest(name)
	}
	var id strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}

// AddonOutput is the output of the stack of an add-on that says its version.
func AddonOutput(name string) string { return addonID(name) + "Version" }
