package eks

// What EKS reports about a cluster: its control plane and its add-ons.

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
)

// ControlPlane returns the state of an EKS cluster.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
func (r *Reader) ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error) {
	out, err := r.client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &eksCluster})
	if err != nil {
		return preflight.ControlPlane{}, fmt.Errorf("describing EKS cluster %s: %w", eksCluster, err)
	}
	c := preflight.ControlPlane{Version: aws.ToString(out.Cluster.Version), Status: string(out.Cluster.Status)}
	if out.Cluster.Health != nil {
		for _, issue := range out.Cluster.Health.Issues {
			c.Issues = append(c.Issues, fmt.Sprintf("%s: %s", issue.Code, aws.ToString(issue.Message)))
		}
	}
	if network := out.Cluster.ResourcesVpcConfig; network != nil {
		c.Subnets = network.SubnetIds
		c.Access = api.Access{
			Public: network.EndpointPublicAccess, Private: network.EndpointPrivateAccess, CIDRs: network.PublicAccessCidrs,
		}
	}
	return c, nil
}

// Addons returns all add-ons of a cluster, also those that drover did not install.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ListAddons.html, API_DescribeAddon.html
func (r *Reader) Addons(ctx context.Context, eksCluster string) ([]preflight.Addon, error) {
	var addons []preflight.Addon
	pages := eks.NewListAddonsPaginator(r.client.ListAddons, &eks.ListAddonsInput{ClusterName: &eksCluster})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the add-ons of EKS cluster %s: %w", eksCluster, err)
		}
		for _, name := range page.Addons {
			out, err := r.client.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &eksCluster, AddonName: &name})
			if err != nil {
				return nil, fmt.Errorf("describing add-on %s of EKS cluster %s: %w", name, eksCluster, err)
			}
			addon := preflight.Addon{Name: name, Version: aws.ToString(out.Addon.AddonVersion), Status: string(out.Addon.Status)}
			if out.Addon.Health != nil {
				for _, issue := range out.Addon.Health.Issues {
					addon.Issues = append(addon.Issues, fmt.Sprintf("%s: %s", issue.Code, aws.ToString(issue.Message)))
				}
			}
			addons = append(addons, addon)
		}
	}
	return addons, nil
}
