package eks

// The Kubernetes versions of EKS and their support periods.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/kubernetes"
)

// calendarRow is a row of EKS's calendar: a version has 14 months of standard support and 12 months of extended support.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html#kubernetes-release-calendar
type calendarRow struct {
	minor, patch                      string
	released, endOfStandard, endOfAll time.Time
}

func date(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// calendar of November 2026, oldest first.
var calendar = []calendarRow{
	{minor: "1.30", patch: "1.30.14", released: date("2024-05-23"), endOfStandard: date("2025-07-23"), endOfAll: date("2026-07-23")},
	{minor: "1.31", patch: "1.31.14", released: date("2024-09-26"), endOfStandard: date("2025-11-26"), endOfAll: date("2026-11-26")},
	{minor: "1.32", patch: "1.32.13", released: date("2025-01-23"), endOfStandard: date("2026-03-23"), endOfAll: date("2027-03-23")},
	{minor: "1.33", patch: "1.33.9", released: date("2025-05-29"), endOfStandard: date("2026-07-29"), endOfAll: date("2027-07-29")},
	{minor: "1.34", patch: "1.34.7", released: date("2025-10-02"), endOfStandard: date("2026-12-02"), endOfAll: date("2027-12-02")},
	{minor: "1.35", patch: "1.35.5", released: date("2026-01-27"), endOfStandard: date("2027-03-27"), endOfAll: date("2028-03-27")},
	{minor: "1.36", patch: "1.36.3", released: date("2026-06-03"), endOfStandard: date("2027-08-03"), endOfAll: date("2028-08-03")},
	{minor: "1.37", patch: "1.37.0", released: date("2026-10-20"), endOfStandard: date("2027-12-20"), endOfAll: date("2028-12-20")},
}

// defaultMinor is the version of a cluster whose request contains none.
const defaultMinor = "1.36"

const (
	standardSupport = "STANDARD_SUPPORT"
	extendedSupport = "EXTENDED_SUPPORT"
	noSupport       = "UNSUPPORTED"
)

func (v calendarRow) support(now time.Time) string {
	switch {
	case now.Before(v.endOfStandard):
		return standardSupport
	case now.Before(v.endOfAll):
		return extendedSupport
	}
	return noSupport
}

// checkVersion returns an error unless a cluster may have the minor version.
func (s *Service) checkVersion(minor string) error {
	i := slices.IndexFunc(calendar, func(v calendarRow) bool { return v.minor == minor })
	if i < 0 || calendar[i].support(s.config.Clock.Now()) == noSupport {
		return invalid("unsupported Kubernetes version")
	}
	if !kubernetes.CanActAs(minor) {
		return unsupportedError("Kubernetes %s: its control planes are %s, which act as %s to %s", minor,
			kubernetes.Version, kubernetes.MinMinor(),
			kubernetes.MaxMinor())
	}
	return nil
}

// minorNumber is 36 for 1.36.
func minorNumber(minor string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(minor, "1."))
	return n
}

// ClusterVersion is a version in DescribeClusterVersions.
type ClusterVersion struct {
	ClusterVersion           string    `json:"clusterVersion"`
	ClusterType              string    `json:"clusterType"`
	DefaultPlatformVersion   string    `json:"defaultPlatformVersion"`
	DefaultVersion           bool      `json:"defaultVersion"`
	ReleaseDate              time.Time `json:"releaseDate"`
	EndOfStandardSupportDate time.Time `json:"endOfStandardSupportDate"`
	EndOfExtendedSupportDate time.Time `json:"endOfExtendedSupportDate"`
	Status                   string    `json:"status"`
	VersionStatus            string    `json:"versionStatus"`
	KubernetesPatchVersion   string    `json:"kubernetesPatchVersion"`

	ControlPlaneComponentConfig map[string]any   `json:"controlPlaneComponentConfig,omitempty"`
	ControlPlaneScalingTiers    []map[string]any `json:"controlPlaneScalingTiers,omitempty"`
}

// DescribeClusterVersionsInput of the API.
type DescribeClusterVersionsInput struct {
	ClusterType, Status, VersionStatus string
	ClusterVersions                    []string
	DefaultOnly, IncludeAll            bool
	Page
}

// DescribeClusterVersionsOutput of the API.
type DescribeClusterVersionsOutput struct {
	ClusterVersions []ClusterVersion `json:"clusterVersions"`
	NextToken       *string          `json:"nextToken"`
}

// DescribeClusterVersions lists the versions that EKS supports, newest first. IncludeAll adds those after the end of support.
func (s *Service) DescribeClusterVersions(_ context.Context, caller iam.Caller,
	in DescribeClusterVersionsInput) (*DescribeClusterVersionsOutput, error) {
	if err := caller.Authorize("eks:DescribeClusterVersions", "*", nil); err != nil {
		return nil, err
	}
	want := in.VersionStatus
	if want == "" {
		want = strings.ToUpper(strings.ReplaceAll(in.Status, "-", "_"))
	}
	out := &DescribeClusterVersionsOutput{ClusterVersions: []ClusterVersion{}}
	for _, v := range slices.Backward(calendar) {
		support := v.support(s.config.Clock.Now())
		switch {
		case len(in.ClusterVersions) > 0 && !slices.Contains(in.ClusterVersions, v.minor),
			in.DefaultOnly && v.minor != defaultMinor,
			want != "" && support != want,
			support == noSupport && !in.IncludeAll && want == "" && len(in.ClusterVersions) == 0:
			continue
		}
		out.ClusterVersions = append(out.ClusterVersions, ClusterVersion{
			ClusterVersion: v.minor, ClusterType: "eks", DefaultPlatformVersion: platformVersion, DefaultVersion: v.minor == defaultMinor,
			ReleaseDate: v.released, EndOfStandardSupportDate: v.endOfStandard, EndOfExtendedSupportDate: v.endOfAll,
			Status: strings.ToLower(strings.ReplaceAll(support, "_", "-")), VersionStatus: support, KubernetesPatchVersion: v.patch,
			ControlPlaneComponentConfig: bounds(v.minor), ControlPlaneScalingTiers: tierInfo(),
		})
	}
	return out, nil
}
