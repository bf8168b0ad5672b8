package render

// The two stacks of add-ons: those that nodes need to become Ready, and those that need nodes to run on.

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
	// ID is the logical id. After is that of an add-on to create first, or "".
	ID, After     string
	Name, Version string
	// Configuration is nil if there is none.
	Configuration map[string]any
	// RolePolicy is the ARN of the policy for the add-on's service account, by pod identity, or "".
	RolePolicy, ServiceAccount string
}

const podIdentityAgent = "eks-pod-identity-agent"

// podIdentities are the add-ons that call AWS, with the AWS managed policy of each.
// https://docs.aws.amazon.com/eks/latest/userguide/add-ons-iam.html
var podIdentities = map[string]struct{ serviceAccount, policy string }{
	"vpc-cni":            {"aws-node", "AmazonEKS_CNI_Policy"},
	"aws-ebs-csi-driver": {"ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"},
}

// newAddonsParams returns the add-ons of a stack, or nil if there are none.
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
		if identity, ok := podIdentities[a.Name]; ok {
			switch {
			case has(cluster, podIdentityAgent):
				out.RolePolicy, out.ServiceAccount = cell.managedPolicy(identity.policy), identity.serviceAccount
				if belongs(podIdentityAgent) {
					out.After = addonID(podIdentityAgent)
				}
			case a.Name != "vpc-cni": // it runs in the host's network and can use the node's role
				return nil, errors.New("spec.addons: " + a.Name + " has its permission by pod identity: add " + podIdentityAgent)
			}
		}
		p.Addons = append(p.Addons, out)
	}
	if len(p.Addons) == 0 {
		return nil, nil
	}
	// Sorted by name, so that the order in spec and release does not matter.
	slices.SortFunc(p.Addons, func(a, b addon) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// has reports whether a cluster has an add-on.
func has(cluster *api.Cluster, name string) bool {
	return slices.ContainsFunc(cluster.Spec.Addons, func(a api.Addon) bool { return a.Name == name })
}

// plainName matches names that camel case represents unambiguously.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$`)

// addonID returns VpcCni for vpc-cni, and a digest for names that would be ambiguous.
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

// AddonOutput returns the output of an add-on's stack that holds its version.
func AddonOutput(name string) string { return addonID(name) + "Version" }
