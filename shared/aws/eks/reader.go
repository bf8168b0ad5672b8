// Package eks reads from EKS the offered Kubernetes versions, and the clusters and their add-ons. It starts rollbacks of control planes. It
// caches nothing.
package eks

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/shared/fault"
)

// Reader reads from EKS in one account and region, and requests refreshes of insights and rollbacks.
type Reader struct {
	client client
}

// New returns a reader that uses a client.
func New(client *eks.Client) *Reader { return &Reader{newClient(client)} }

// Offered returns the minor versions that EKS offers now, such as "1.36".
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
func (r *Reader) Offered(ctx context.Context) ([]string, error) {
	var offered []string
	pages := eks.NewDescribeClusterVersionsPaginator(r.client.DescribeClusterVersions, &eks.DescribeClusterVersionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the versions of EKS: %w", err)
		}
		for _, version := range page.ClusterVersions {
			offered = append(offered, aws.ToString(version.ClusterVersion))
		}
	}
	return offered, nil
}

// Clusters returns the number of the account's EKS clusters in the region, drover's and others. One call returns a hundred. Clusters that
// are only registered with EKS are left out; they have a quota of their own.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ListClusters.html
func (r *Reader) Clusters(ctx context.Context) (int, error) {
	sum := 0
	for pages := eks.NewListClustersPaginator(r.client.ListClusters, &eks.ListClustersInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("counting the clusters: %w", err)
		}
		sum += len(page.Clusters)
	}
	return sum, nil
}

// RollBack starts the rollback of a control plane to a Kubernetes version. EKS needs minutes for it. refused is why EKS does not start it.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
func (r *Reader) RollBack(ctx context.Context, eksCluster, version string) (refused string, err error) {
	_, err = r.client.UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: &eksCluster, Version: &version})
	var failure interface{ ErrorMessage() string }
	switch code := fault.Code(err); {
	case err == nil:
		return "", nil
	case (code == "InvalidParameterException" || code == "InvalidRequestException") && errors.As(err, &failure):
		return failure.ErrorMessage(), nil
	}
	return "", fmt.Errorf("rolling back EKS cluster %s to %s: %w", eksCluster, version, err)
}

// Exists reports whether an EKS cluster exists, in any state.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
func (r *Reader) Exists(ctx context.Context, eksCluster string) (bool, error) {
	_, err := r.client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &eksCluster})
	if fault.Code(err) == "ResourceNotFoundException" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describing EKS cluster %s: %w", eksCluster, err)
	}
	return true, nil
}
