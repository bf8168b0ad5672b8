package eks

// The insights of EKS: what would break after an upgrade or a rollback.

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
)

// Insights returns the insights of a cluster for an upgrade to these versions, or for a rollback, that are not PASSING. refreshed is when
// EKS made the oldest one, PASSING or not. It is zero if there is none.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ListInsights.html, API_DescribeInsight.html
func (r *Reader) Insights(ctx context.Context, eksCluster string, rollback bool, versions []string) (insights []preflight.Insight,
	refreshed time.Time, err error) {
	filter := &types.InsightsFilter{Categories: []types.Category{types.CategoryUpgradeReadiness}, KubernetesVersions: versions}
	if rollback {
		filter.Categories = []types.Category{types.CategoryRollbackReadiness}
	}
	pages := eks.NewListInsightsPaginator(r.client.ListInsights, &eks.ListInsightsInput{ClusterName: &eksCluster, Filter: filter})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, refreshed, fmt.Errorf("listing the insights of EKS cluster %s: %w", eksCluster, err)
		}
		for _, summary := range page.Insights {
			if at := aws.ToTime(summary.LastRefreshTime); !at.IsZero() && (refreshed.IsZero() || at.Before(refreshed)) {
				refreshed = at
			}
			if summary.InsightStatus != nil && summary.InsightStatus.Status == types.InsightStatusValuePassing {
				continue
			}
			out, err := r.client.DescribeInsight(ctx, &eks.DescribeInsightInput{ClusterName: &eksCluster, Id: summary.Id})
			if err != nil {
				return nil, refreshed, fmt.Errorf("describing insight %s of EKS cluster %s: %w", aws.ToString(summary.Name), eksCluster, err)
			}
			insights = append(insights, insight(out.Insight))
		}
	}
	return insights, refreshed, nil
}

// RefreshInsights requests new insights for a cluster. EKS itself makes them once a day. A refresh that is in flight or not possible now
// is no error: each insight has its age.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_StartInsightsRefresh.html
func (r *Reader) RefreshInsights(ctx context.Context, eksCluster string) error {
	_, err := r.client.StartInsightsRefresh(ctx, &eks.StartInsightsRefreshInput{ClusterName: &eksCluster})
	if err != nil && fault.Code(err) != "InvalidRequestException" {
		return fmt.Errorf("refreshing the insights of %s: %w", eksCluster, err)
	}
	return nil
}

// Refreshing reports whether a requested refresh of insights is in flight.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeInsightsRefresh.html
func (r *Reader) Refreshing(ctx context.Context, eksCluster string) (bool, error) {
	out, err := r.client.DescribeInsightsRefresh(ctx, &eks.DescribeInsightsRefreshInput{ClusterName: &eksCluster})
	if fault.Code(err) == "ResourceNotFoundException" { // no refresh was requested yet
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the refresh of the insights of %s: %w", eksCluster, err)
	}
	return out.Status == types.InsightsRefreshStatusInProgress, nil
}

func insight(in *types.Insight) preflight.Insight {
	out := preflight.Insight{
		Name: aws.ToString(in.Name), KubernetesVersion: aws.ToString(in.KubernetesVersion), Recommendation: aws.ToString(in.Recommendation),
	}
	if in.InsightStatus != nil {
		out.Status, out.Reason = string(in.InsightStatus.Status), aws.ToString(in.InsightStatus.Reason)
	}
	for _, resource := range in.Resources {
		name := aws.ToString(resource.KubernetesResourceUri)
		if name == "" {
			name = aws.ToString(resource.Arn)
		}
		out.Resources = append(out.Resources, name)
	}
	if in.CategorySpecificSummary == nil {
		return out
	}
	for _, d := range in.CategorySpecificSummary.DeprecationDetails {
		deprecation := preflight.Deprecation{
			API: aws.ToString(d.Usage), ReplacedWith: aws.ToString(d.ReplacedWith), RemovedIn: aws.ToString(d.StopServingVersion),
		}
		for _, client := range d.ClientStats {
			deprecation.Clients = append(deprecation.Clients, aws.ToString(client.UserAgent))
		}
		out.Deprecations = append(out.Deprecations, deprecation)
	}
	return out
}
