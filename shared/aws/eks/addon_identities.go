package eks

// The permissions that EKS recommends for add-ons.

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/shared/api"
)

// Recommended returns what EKS recommends for the service accounts of a version of an add-on. There is nothing if it needs no permissions.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html
func (r *Reader) Recommended(ctx context.Context, addon, version string) ([]api.RecommendedIdentity, error) {
	out, err := r.client.DescribeAddonConfiguration(ctx, &eks.DescribeAddonConfigurationInput{AddonName: &addon, AddonVersion: &version})
	if err != nil {
		return nil, fmt.Errorf("describing the configuration of add-on %s %s: %w", addon, version, err)
	}
	var recommended []api.RecommendedIdentity
	for _, configuration := range out.PodIdentityConfiguration {
		identity := api.RecommendedIdentity{ServiceAccount: aws.ToString(configuration.ServiceAccount)}
		for _, policy := range configuration.RecommendedManagedPolicies { // ARNs
			identity.Policies = append(identity.Policies, policy[strings.LastIndex(policy, "/")+1:])
		}
		recommended = append(recommended, identity)
	}
	return recommended, nil
}
