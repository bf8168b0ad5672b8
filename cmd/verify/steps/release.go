package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// release is one that the run makes, from what EKS recommends today.
type release struct {
	name, kubernetes, image string
	addons                  []addon
}

type addon struct{ name, version string }

// addonNames are the add-ons of the run's clusters, in the order of the examples.
var addonNames = []string{"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"}

// resolveReleases makes a release for each of two minor versions, once.
func (t *Target) resolveReleases(ctx context.Context) error {
	if t.newer.name != "" {
		return nil
	}
	older, newer, err := t.minors(ctx)
	if err != nil {
		return err
	}
	if t.older, err = t.resolve(ctx, older); err != nil {
		return err
	}
	t.newer, err = t.resolve(ctx, newer)
	return err
}

// releases uploads the releases of the run.
func (t *Target) releases(ctx context.Context, log *runner.Log) error {
	if err := t.resolveReleases(ctx); err != nil {
		return err
	}
	for _, r := range []release{t.older, t.newer} {
		file, err := t.write(r.name, r.yaml())
		if err != nil {
			return err
		}
		if _, err := t.drover(ctx, log, "apply", file, "--watch"); err != nil {
			return err
		}
		log.Found("release %s: Kubernetes %s, image %s, %s", r.name, r.kubernetes, r.image, r.list())
	}
	return nil
}

// minors returns the two minor versions of the run.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
func (t *Target) minors(ctx context.Context) (older, newer string, err error) {
	var minors []int
	var byDefault string
	pages := eks.NewDescribeClusterVersionsPaginator(eks.NewFromConfig(t.cfg), &eks.DescribeClusterVersionsInput{
		VersionStatus: types.VersionStatusStandardSupport,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", "", fmt.Errorf("listing the versions of EKS: %w", err)
		}
		for _, version := range page.ClusterVersions {
			if version.DefaultVersion {
				byDefault = aws.ToString(version.ClusterVersion)
			}
			if minor, err := strconv.Atoi(strings.TrimPrefix(aws.ToString(version.ClusterVersion), "1.")); err == nil {
				minors = append(minors, minor)
			}
		}
	}
	return choose(minors, cmp.Or(t.Kubernetes, byDefault))
}

// choose returns wanted and the minor version before it. Without wanted, it returns the newest two.
func choose(minors []int, wanted string) (older, newer string, err error) {
	slices.SortFunc(minors, func(a, b int) int { return cmp.Compare(b, a) })
	for _, minor := range minors {
		if name := fmt.Sprintf("1.%d", minor); (wanted == "" || wanted == name) && slices.Contains(minors, minor-1) {
			return fmt.Sprintf("1.%d", minor-1), name, nil
		}
	}
	if wanted == "" {
		return "", "", errors.New("EKS offers no two consecutive minor versions in standard support: choose one with --kubernetes")
	}
	return "", "", fmt.Errorf("EKS does not offer %s and the minor version before it in standard support: choose another with --kubernetes",
		wanted)
}

// resolve makes a release of the image and the add-on versions that EKS recommends.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
func (t *Target) resolve(ctx context.Context, minor string) (release, error) {
	r := release{name: minor + "-" + t.cluster(), kubernetes: minor}
	parameter := "/aws/service/eks/optimized-ami/" + minor + "/amazon-linux-2023/x86_64/standard/recommended/image_id"
	image, err := ssm.NewFromConfig(t.cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &parameter})
	if err != nil {
		return r, fmt.Errorf("reading the recommended image: %w", err)
	}
	r.image = aws.ToString(image.Parameter.Value)
	for _, name := range addonNames {
		version, err := t.addonVersion(ctx, name, minor)
		if err != nil {
			return r, err
		}
		r.addons = append(r.addons, addon{name, version})
	}
	return r, nil
}

// addonVersion returns the default version of an add-on for a minor version.
func (t *Target) addonVersion(ctx context.Context, name, minor string) (string, error) {
	pages := eks.NewDescribeAddonVersionsPaginator(eks.NewFromConfig(t.cfg), &eks.DescribeAddonVersionsInput{
		AddonName: &name, KubernetesVersion: &minor,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("listing the versions of add-on %s: %w", name, err)
		}
		for _, info := range page.Addons {
			for _, version := range info.AddonVersions {
				for _, fits := range version.Compatibilities {
					if aws.ToString(fits.ClusterVersion) == minor && fits.DefaultVersion {
						return aws.ToString(version.AddonVersion), nil
					}
				}
			}
		}
	}
	return "", fmt.Errorf("EKS has no default version of add-on %s for Kubernetes %s", name, minor)
}

func (r release) list() string {
	var parts []string
	for _, a := range r.addons {
		parts = append(parts, a.name+" "+a.version)
	}
	return strings.Join(parts, ", ")
}

func (r release) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: drover.run/v1alpha1
kind: Release
metadata:
  name: %q
spec:
  kubernetesVersion: %q
  images:
    amd64: %s
  addons:
`, r.name, r.kubernetes, r.image)
	for _, a := range r.addons {
		fmt.Fprintf(&b, "    - {name: %s, version: %s}\n", a.name, a.version)
	}
	b.WriteString("  templateVersion: v1\n")
	return b.String()
}
