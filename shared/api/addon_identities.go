package api

// Permissions of add-ons in AWS, by EKS Pod Identity.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AddonIdentity gives the pods of a service account of an add-on an IAM role. The association belongs to the add-on.
type AddonIdentity struct {
	// ServiceAccount is the name of the add-on's service account, such as ebs-csi-controller-sa. EKS names those of each version in
	// DescribeAddonConfiguration.
	ServiceAccount string `json:"serviceAccount" rule:"format=service-account"`
	// RoleARN is a role of drover's account that pods.eks.amazonaws.com may assume, as in spec.podIdentities.
	RoleARN string `json:"roleARN,omitempty" rule:"format=role-arn"`
	// Policies are AWS managed policies for which drover creates a role. Other add-ons need a roleARN.
	Policies []string `json:"policies,omitempty" rule:"format=addon-policy;unique;minItems=1"`
}

// AddonPolicies are the policies of add-ons for which drover creates roles, with their paths. The permissions boundary of clusters covers
// them. https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html
var AddonPolicies = map[string]string{
	"AmazonEKS_CNI_Policy":        "AmazonEKS_CNI_Policy",
	"AmazonEBSCSIDriverPolicyV2":  "AmazonEBSCSIDriverPolicyV2",
	"AmazonEFSCSIDriverPolicy":    "service-role/AmazonEFSCSIDriverPolicy",
	"CloudWatchAgentServerPolicy": "CloudWatchAgentServerPolicy",
	"AWSXrayWriteOnlyAccess":      "AWSXrayWriteOnlyAccess",
}

// addonPolicyNames are the names of AddonPolicies, sorted.
var addonPolicyNames = slices.Sorted(maps.Keys(AddonPolicies))

// defaultIdentities are those of add-ons for which neither spec nor release states any.
// https://docs.aws.amazon.com/eks/latest/userguide/add-ons-iam.html
var defaultIdentities = map[string][]AddonIdentity{
	"vpc-cni":            {{ServiceAccount: "aws-node", Policies: []string{"AmazonEKS_CNI_Policy"}}},
	"aws-ebs-csi-driver": {{ServiceAccount: "ebs-csi-controller-sa", Policies: []string{"AmazonEBSCSIDriverPolicyV2"}}},
}

// Identities returns the identities of an add-on: those that it states, or the defaults. stated is false if there are neither. An add-on
// that states an empty list has its permissions from elsewhere.
func (a Addon) Identities() (identities []AddonIdentity, stated bool) {
	if a.PodIdentities != nil {
		return a.PodIdentities, true
	}
	identities, stated = defaultIdentities[a.Name]
	return identities, stated
}

// validateAddonIdentities checks the identities of add-ons, of a spec or of a release.
func validateAddonIdentities(path *field.Path, addons []Addon, cell *CellSettings) (errs field.ErrorList) {
	for i, addon := range addons {
		for j, identity := range addon.PodIdentities {
			at := path.Index(i).Child("podIdentities").Index(j)
			errs = append(errs, validateGrant(at, "roleARN, policies", identity.RoleARN != "", identity.Policies != nil)...)
			errs = append(errs, cell.validateRole(at.Child("roleARN"), identity.RoleARN)...)
		}
	}
	return errs
}

// AddonWithoutPermission is an add-on that needs permissions in AWS and has none.
type AddonWithoutPermission struct {
	Name, Version string
	// Recommended are the identities that EKS recommends.
	Recommended []RecommendedIdentity
}

// RecommendedIdentity is what EKS recommends for a service account of an add-on.
type RecommendedIdentity struct {
	ServiceAccount string
	// Policies are the names of AWS managed policies, without their paths.
	Policies []string
}

// String explains what is missing and what to do.
func (a AddonWithoutPermission) String() string {
	text := fmt.Sprintf("the add-on %s %s needs permissions in AWS, and has no podIdentities", a.Name, a.Version)
	for _, r := range a.Recommended {
		if len(r.Policies) == 0 {
			text += fmt.Sprintf("; EKS recommends no policy for service account %s: name a role in roleARN", r.ServiceAccount)
			continue
		}
		text += fmt.Sprintf("; EKS recommends for service account %s: %s", r.ServiceAccount, strings.Join(r.Policies, ", "))
		if missing := slices.DeleteFunc(slices.Clone(r.Policies), covered); len(missing) > 0 {
			text += fmt.Sprintf(" (drover creates no role for %s: name a role in roleARN)", strings.Join(missing, ", "))
		}
	}
	return text
}

func covered(policy string) bool { return AddonPolicies[policy] != "" }

// Identity returns the identity that follows a recommendation. covered is false if drover creates no role for one of its policies.
func (r RecommendedIdentity) Identity() (identity AddonIdentity, isCovered bool) {
	identity.ServiceAccount = r.ServiceAccount
	for _, policy := range r.Policies {
		// Version 2 replaces the first one, and limits the driver to its own resources.
		if policy == "AmazonEBSCSIDriverPolicy" {
			policy = "AmazonEBSCSIDriverPolicyV2"
		}
		if !covered(policy) {
			return identity, false
		}
		identity.Policies = append(identity.Policies, policy)
	}
	return identity, len(identity.Policies) > 0
}
