package api

// Permissions of pods in AWS, by EKS Pod Identity.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-identities.html

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodIdentity gives the pods of a service account an IAM role: one that exists, one that drover creates with AWS managed policies, or one
// that drover creates for a well-known controller.
type PodIdentity struct {
	// Namespace of the service account. Default with a preset: kube-system.
	Namespace string `json:"namespace,omitempty" rule:"format=namespace-name"`
	// ServiceAccount is the name of the service account. It may be created later. Default with a preset: cluster-autoscaler or
	// aws-load-balancer-controller.
	ServiceAccount string `json:"serviceAccount,omitempty" rule:"format=service-account"`
	// RoleARN is a role of drover's account that pods.eks.amazonaws.com may assume, with sts:AssumeRole and sts:TagSession. The platform
	// team lists the roles that specs may name in workloadRoles of cellSettings.
	RoleARN string `json:"roleARN,omitempty" rule:"format=role-arn"`
	// TargetRoleARN is a role, often of another account, that EKS assumes through roleARN. Pods get its credentials. It must trust roleARN.
	TargetRoleARN string `json:"targetRoleARN,omitempty" rule:"format=role-arn"`
	// Policies are AWS managed policies by name, such as AmazonS3ReadOnlyAccess. drover creates a role with them. The platform team lists
	// the policies that specs may name in workloadPolicies of cellSettings, and limits them by workloadBoundary.
	Policies []string `json:"policies,omitempty" rule:"format=managed-policy;unique;minItems=1;maxItems=10"`
	// Preset makes drover create a role for a controller that you install: the Cluster Autoscaler, or the AWS Load Balancer Controller
	// without ACM, WAF and Shield.
	Preset Preset `json:"preset,omitempty" rule:"enum=ClusterAutoscaler,LoadBalancerController"`
}

// Preset is a controller whose permissions drover knows.
type Preset string

// The values of Preset.
const (
	PresetClusterAutoscaler      Preset = "ClusterAutoscaler"
	PresetLoadBalancerController Preset = "LoadBalancerController"
)

// presetAccounts are the service accounts in the installation guides of the controllers, in kube-system.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/examples/cluster-autoscaler-autodiscover.yaml
// https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/deploy/installation/
var presetAccounts = map[Preset]string{
	PresetClusterAutoscaler: "cluster-autoscaler", PresetLoadBalancerController: "aws-load-balancer-controller",
}

// setIdentityDefaults fills in the service accounts of presets.
func setIdentityDefaults(identities []PodIdentity) {
	for i := range identities {
		if identity := &identities[i]; identity.Preset != "" {
			fill(&identity.Namespace, "kube-system")
			fill(&identity.ServiceAccount, presetAccounts[identity.Preset])
		}
	}
}

// MaxPodIdentities is how many pod identities a spec may have. CloudFormation takes at most 500 resources in a stack, and an identity has
// up to two. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
const MaxPodIdentities = 200

// addonNamespaces are the namespaces of add-ons that are not in kube-system.
// https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
var addonNamespaces = map[string]string{
	"amazon-cloudwatch-observability": "amazon-cloudwatch", "external-dns": "external-dns",
}

// PodIdentityAgent is the add-on from which pods get the credentials of their roles.
const PodIdentityAgent = "eks-pod-identity-agent"

// HasAddon reports whether a resolved cluster has an add-on.
func (c *Cluster) HasAddon(name string) bool {
	return slices.ContainsFunc(c.Spec.Addons, func(a Addon) bool { return a.Name == name })
}

// Accounts returns the service accounts, as namespace/name, that get their roles from an add-on.
func (a Addon) Accounts() (accounts []string) {
	identities, _ := a.Identities()
	for _, identity := range identities {
		accounts = append(accounts, cmp.Or(addonNamespaces[a.Name], "kube-system")+"/"+identity.ServiceAccount)
	}
	return accounts
}

// accountsOf returns the add-on of each service account, as namespace/name, that gets its role from an add-on.
func accountsOf(addons []Addon) map[string]string {
	owners := map[string]string{}
	for _, addon := range addons {
		for _, account := range addon.Accounts() {
			owners[account] = addon.Name
		}
	}
	return owners
}

// validatePodIdentities checks identities with their defaults. EKS has one role for a service account, so that of an add-on has no other.
func validatePodIdentities(path *field.Path, identities []PodIdentity, addons []Addon, cell *CellSettings) (errs field.ErrorList) {
	seen, owners := map[string]bool{}, accountsOf(addons)
	for i := range identities {
		identity, at := &identities[i], path.Index(i)
		if identity.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), "unless preset is given"))
		}
		if identity.ServiceAccount == "" {
			errs = append(errs, field.Required(at.Child("serviceAccount"), "unless preset is given"))
		}
		errs = append(errs, validateGrant(at, "roleARN, policies, preset",
			identity.RoleARN != "", identity.Policies != nil, identity.Preset != "")...)
		if identity.TargetRoleARN != "" && identity.RoleARN == "" {
			errs = append(errs, field.Forbidden(at.Child("targetRoleARN"), "EKS assumes it through roleARN: state roleARN, or remove this field"))
		}
		errs = append(errs, cell.validateRole(at.Child("roleARN"), identity.RoleARN)...)
		errs = append(errs, cell.validatePolicies(at.Child("policies"), identity.Policies)...)
		key := identity.Namespace + "/" + identity.ServiceAccount
		if seen[key] && identity.Namespace != "" && identity.ServiceAccount != "" {
			errs = append(errs, field.Duplicate(at.Child("serviceAccount"), key))
		}
		seen[key] = true
		if owner := owners[key]; owner != "" {
			errs = append(errs, field.Invalid(at.Child("serviceAccount"), key, fmt.Sprintf("the add-on %s has this service account and a role "+
				"for it: remove this entry, or state podIdentities of the add-on", owner)))
		}
	}
	return errs
}

// validateGrant checks that exactly one of some fields is given.
func validateGrant(path *field.Path, fields string, given ...bool) field.ErrorList {
	count := 0
	for _, isGiven := range given {
		if isGiven {
			count++
		}
	}
	switch count {
	case 0:
		return field.ErrorList{field.Required(path, "state one of "+fields)}
	case 1:
		return nil
	}
	return field.ErrorList{
		field.Forbidden(path, fmt.Sprintf("has %d of %s: a service account has one role; state one of them", count, fields)),
	}
}
