// Package versions is EKS's catalogue of Kubernetes versions. It is asked, never remembered.
package versions

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Versions of an account and region.
type Versions struct{ client *eks.Client }

// New returns the versions that a client is offered.
func New(client *eks.Client) *Versions { return &Versions{client} }

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
