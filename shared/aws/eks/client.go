package eks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// operation is one operation of EKS's client.
type operation[In, Out any] = call.Operation[In, Out, eks.Options]

// client has the operations of EKS that this package needs: see call.Operation.
type client struct {
	DescribeAddon              operation[eks.DescribeAddonInput, eks.DescribeAddonOutput]
	DescribeAddonConfiguration operation[eks.DescribeAddonConfigurationInput, eks.DescribeAddonConfigurationOutput]
	DescribeAddonVersions      describeAddonVersions
	DescribeCluster            operation[eks.DescribeClusterInput, eks.DescribeClusterOutput]
	DescribeClusterVersions    describeClusterVersions
	DescribeInsight            operation[eks.DescribeInsightInput, eks.DescribeInsightOutput]
	DescribeInsightsRefresh    operation[eks.DescribeInsightsRefreshInput, eks.DescribeInsightsRefreshOutput]
	ListAddons                 listAddons
	ListClusters               listClusters
	ListInsights               listInsights
	StartInsightsRefresh       operation[eks.StartInsightsRefreshInput, eks.StartInsightsRefreshOutput]
	UpdateClusterVersion       operation[eks.UpdateClusterVersionInput, eks.UpdateClusterVersionOutput]
}

func newClient(c *eks.Client) client {
	return client{
		DescribeAddon: c.DescribeAddon, DescribeAddonConfiguration: c.DescribeAddonConfiguration,
		DescribeAddonVersions: c.DescribeAddonVersions, DescribeCluster: c.DescribeCluster,
		DescribeClusterVersions: c.DescribeClusterVersions, DescribeInsight: c.DescribeInsight,
		DescribeInsightsRefresh: c.DescribeInsightsRefresh, ListAddons: c.ListAddons, ListClusters: c.ListClusters,
		ListInsights: c.ListInsights, StartInsightsRefresh: c.StartInsightsRefresh, UpdateClusterVersion: c.UpdateClusterVersion,
	}
}

// describeAddonVersions is what the paginator of DescribeAddonVersions needs of a client.
type describeAddonVersions operation[eks.DescribeAddonVersionsInput, eks.DescribeAddonVersionsOutput]

func (d describeAddonVersions) DescribeAddonVersions(
	ctx context.Context, in *eks.DescribeAddonVersionsInput, options ...func(*eks.Options),
) (*eks.DescribeAddonVersionsOutput, error) {
	return d(ctx, in, options...)
}

// describeClusterVersions is what the paginator of DescribeClusterVersions needs of a client.
type describeClusterVersions operation[eks.DescribeClusterVersionsInput, eks.DescribeClusterVersionsOutput]

func (d describeClusterVersions) DescribeClusterVersions(
	ctx context.Context, in *eks.DescribeClusterVersionsInput, options ...func(*eks.Options),
) (*eks.DescribeClusterVersionsOutput, error) {
	return d(ctx, in, options...)
}

// listAddons is what the paginator of ListAddons needs of a client.
type listAddons operation[eks.ListAddonsInput, eks.ListAddonsOutput]

func (l listAddons) ListAddons(
	ctx context.Context, in *eks.ListAddonsInput, options ...func(*eks.Options),
) (*eks.ListAddonsOutput, error) {
	return l(ctx, in, options...)
}

// listClusters is what the paginator of ListClusters needs of a client.
type listClusters operation[eks.ListClustersInput, eks.ListClustersOutput]

func (l listClusters) ListClusters(
	ctx context.Context, in *eks.ListClustersInput, options ...func(*eks.Options),
) (*eks.ListClustersOutput, error) {
	return l(ctx, in, options...)
}

// listInsights is what the paginator of ListInsights needs of a client.
type listInsights operation[eks.ListInsightsInput, eks.ListInsightsOutput]

func (l listInsights) ListInsights(
	ctx context.Context, in *eks.ListInsightsInput, options ...func(*eks.Options),
) (*eks.ListInsightsOutput, error) {
	return l(ctx, in, options...)
}
