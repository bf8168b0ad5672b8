package eks

// What EKS recommends for the service accounts of add-ons.

import (
	"context"

	"github.com/drover-run/drover/local/aws/iam"
)

// DescribeAddonConfigurationInput of the API.
type DescribeAddonConfigurationInput struct{ AddonName, AddonVersion string }

// DescribeAddonConfigurationOutput of the API. The schema of the configuration is left out: this account does not check configurations.
type DescribeAddonConfigurationOutput struct {
	AddonName                string                          `json:"addonName"`
	AddonVersion             string                          `json:"addonVersion"`
	PodIdentityConfiguration []AddonPodIdentityConfiguration `json:"podIdentityConfiguration"`
}

// AddonPodIdentityConfiguration is what EKS recommends for a service account.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_AddonPodIdentityConfiguration.html
type AddonPodIdentityConfiguration struct {
	ServiceAccount             string   `json:"serviceAccount"`
	RecommendedManagedPolicies []string `json:"recommendedManagedPolicies"`
}

// addonPermissions are the service accounts of add-ons of the catalog, with the policies of their guides.
// https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
// https://docs.aws.amazon.com/eks/latest/userguide/community-addons.html
var addonPermissions = map[string]map[string]string{
	"vpc-cni":            {"aws-node": "AmazonEKS_CNI_Policy"},
	"aws-ebs-csi-driver": {"ebs-csi-controller-sa": "AmazonEBSCSIDriverPolicyV2"},
	"aws-efs-csi-driver": {"efs-csi-controller-sa": "service-role/AmazonEFSCSIDriverPolicy"},
	"external-dns":       {"external-dns": "AmazonRoute53FullAccess"},
}

// DescribeAddonConfiguration returns what EKS recommends for an add-on.
func (s *Service) DescribeAddonConfiguration(_ context.Context, caller iam.Caller, in DescribeAddonConfigurationInput) (
	*DescribeAddonConfigurationOutput, error) {
	if err := caller.Authorize("eks:DescribeAddonConfiguration", "*", nil); err != nil {
		return nil, err
	}
	a, err := findCatalogAddon(in.AddonName)
	if err != nil {
		return nil, notFound("No addon %s", in.AddonName)
	}
	found := false
	for _, v := range a.versions {
		found = found || v.version == in.AddonVersion
	}
	if !found {
		return nil, notFound("No version %s of addon %s", in.AddonVersion, in.AddonName)
	}
	out := &DescribeAddonConfigurationOutput{AddonName: in.AddonName, AddonVersion: in.AddonVersion,
		PodIdentityConfiguration: []AddonPodIdentityConfiguration{}}
	for account, policy := range addonPermissions[in.AddonName] {
		out.PodIdentityConfiguration = append(out.PodIdentityConfiguration, AddonPodIdentityConfiguration{
			account, []string{"arn:aws:iam::aws:policy/" + policy},
		})
	}
	return out, nil
}
