package eks

// The versions of Kubernetes and of add-ons that EKS offers.

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// Catalog returns the versions that EKS offers now, with their ends of support.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
func (r *Reader) Catalog(ctx context.Context) ([]preflight.Version, error) {
	var catalog []preflight.Version
	pages := eks.NewDescribeClusterVersionsPaginator(r.client.DescribeClusterVersions, &eks.DescribeClusterVersionsInput{})
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
		pages := eks.NewDescribeAddonVersionsPaginator(r.client.DescribeAddonVersions, &eks.DescribeAddonVersionsInput{AddonName: &addon})
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
		version := upgrade.AddonVersion{Version: aws.ToString(a.AddonVersion), NeedsPermissions: a.RequiresIamPermissions}
		for _, with := range a.Compatibilities {
			version.Kubernetes = append(version.Kubernetes, aws.ToString(with.ClusterVersion))
		}
		versions = append(versions, version)
	}
	return versions
}

// DefaultVersions returns the default versions of add-ons for a Kubernetes version. An add-on without one is left out.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
func (r *Reader) DefaultVersions(ctx context.Context, kubernetesVersion string, addons []string) (map[string]string, error) {
	defaults := map[string]string{}
	for _, addon := range addons {
		pages := eks.NewDescribeAddonVersionsPaginator(r.client.DescribeAddonVersions, &eks.DescribeAddonVersionsInput{
			AddonName: &addon, KubernetesVersion: &kubernetesVersion,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("listing the versions of add-on %s: %w", addon, err)
			}
			for _, info := range page.Addons {
				if version := defaultOf(info, kubernetesVersion); version != "" {
					defaults[addon] = version
				}
			}
		}
	}
	return defaults, nil
}

// defaultOf returns the default version of an add-on for a Kubernetes version, or "".
func defaultOf(addon types.AddonInfo, kubernetesVersion string) string {
	for _, version := range addon.AddonVersions {
		for _, with := range version.Compatibilities {
			if with.DefaultVersion && aws.ToString(with.ClusterVersion) == kubernetesVersion {
				return aws.ToString(version.AddonVersion)
			}
		}
	}
	return ""
}
