package eks

// What EKS reports for the checks of an upgrade: the cluster's health, its insights, and compatible versions.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
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
	pages := eks.NewListAddonsPaginator(r.client, &eks.ListAddonsInput{ClusterName: &eksCluster})
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

// Insights returns the insights of a cluster for an upgrade to these versions, or for a rollback, that are not PASSING. refreshed is when
// EKS made the oldest one, PASSING or not. It is zero if there is none.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_ListInsights.html, API_DescribeInsight.html
func (r *Reader) Insights(ctx context.Context, eksCluster string, rollback bool, versions []string) (insights []preflight.Insight,
	refreshed time.Time, err error) {
	filter := &types.InsightsFilter{Categories: []types.Category{types.CategoryUpgradeReadiness}, KubernetesVersions: versions}
	if rollback {
		filter.Categories = []types.Category{types.CategoryRollbackReadiness}
	}
	pages := eks.NewListInsightsPaginator(r.client, &eks.ListInsightsInput{ClusterName: &eksCluster, Filter: filter})
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
			API: aws.ToString(d.Usage), ReplacedWith: aws.ToString(d.ReplacedWith), Gone: aws.ToString(d.StopServingVersion),
		}
		for _, client := range d.ClientStats {
			deprecation.Clients = append(deprecation.Clients, aws.ToString(client.UserAgent))
		}
		out.Deprecations = append(out.Deprecations, deprecation)
	}
	return out
}

// Catalog returns the versions that EKS offers now, with their ends of support.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
func (r *Reader) Catalog(ctx context.Context) ([]preflight.Version, error) {
	var catalog []preflight.Version
	pages := eks.NewDescribeClusterVersionsPaginator(r.client, &eks.DescribeClusterVersionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the versions of EKS: %w", err)
		}
		for _, version := range page.ClusterVersions {
			catalog = append(catalog, preflight.Version{
				Version: aws.ToString(version.ClusterVersion), Status: string(version.VersionStatus),
				EndOfStandard: aws.ToTime(version.EndOfStandardSupportDate), EndOfExtended: aws.ToTime(version.EndOfExtendedSupportDate),
			})
		}
	}
	return catalog, nil
}

// Compat returns the versions of add-ons, and the Kubernetes versions with which each is compatible. An add-on that EKS does not offer
// has none.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
func (r *Reader) Compat(ctx context.Context, addons []string) (upgrade.Compat, error) {
	compat := upgrade.Compat{}
	for _, addon := range slices.Compact(slices.Sorted(slices.Values(addons))) {
		pages := eks.NewDescribeAddonVersionsPaginator(r.client, &eks.DescribeAddonVersionsInput{AddonName: &addon})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("listing the versions of add-on %s: %w", addon, err)
			}
			for _, info := range page.Addons {
				compat[addon] = append(compat[addon], versionsOf(info)...)
			}
		}
	}
	return compat, nil
}

func versionsOf(addon types.AddonInfo) []upgrade.AddonVersion {
	var versions []upgrade.AddonVersion
	for _, a := range addon.AddonVersions {
		version := upgrade.AddonVersion{Version: aws.ToString(a.AddonVersion)}
		for _, with := range a.Compatibilities {
			version.Kubernetes = append(version.Kubernetes, aws.ToString(with.ClusterVersion))
		}
		versions = append(versions, version)
	}
	return versions
}
