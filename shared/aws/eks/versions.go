// Package eks is what EKS has: its catalogue of Kubernetes versions, and whether a cluster is there. It is asked, never remembered.
package eks

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/shared/fault"
)

// Versions of an account and region.
type Versions struct {
	client *eks.Client
	// Described is who describes clusters: the client, unless another is set.
	Described eks.DescribeClusterAPIClient
}

// New returns the versions that a client is offered.
func New(client *eks.Client) *Versions { return &Versions{client, client} }

// Offered lists the minor versions that EKS offers now, such as "1.36".
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
func (v *Versions) Offered(ctx context.Context) ([]string, error) {
	var offered []string
	pages := eks.NewDescribeClusterVersionsPaginator(v.client, &eks.DescribeClusterVersionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking EKS for its versions: %w", err)
		}
		for _, version := range page.ClusterVersions {
			offered = append(offered, aws.ToString(version.ClusterVersion))
		}
	}
	return offered, nil
}

// Clusters counts the account's EKS clusters in the region, whoever made them, a hundred a call. Those that are only
// registered with EKS are not among them, and have a quota of their own.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ListClusters.html
func (v *Versions) Clusters(ctx context.Context) (int, error) {
	sum := 0
	for pages := eks.NewListClustersPaginator(v.client, &eks.ListClustersInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("counting the clusters: %w", err)
		}
		sum += len(page.Clusters)
	}
	return sum, nil
}

// Exists says whether there is an EKS cluster of a name, in whatever state.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
func (v *Versions) Exists(ctx context.Context, eksCluster string) (bool, error) {
	_, err := v.Described.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &eksCluster})
	if fault.Code(err) == "ResourceNotFoundException" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describing EKS cluster %s: %w", eksCluster, err)
	}
	return true, nil
}
