package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
)

func TestVersionsOffered(t *testing.T) {
	pool := func(image string, architecture api.Architecture) []api.Pool {
		return []api.Pool{{Name: "a", ImageID: image, Architecture: architecture}}
	}
	image := func(architecture string) string {
		return "name an image of this list in the release or the spec: aws ssm get-parameter --region eu-central-1 --query Parameter.Value " +
			"--output text --name /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/" + architecture + "/standard/recommended/image_id"
	}
	for name, test := range map[string]struct {
		change func(*api.ClusterSpec)
		want   []Finding
	}{
		"everything is offered": {
			func(s *api.ClusterSpec) {
				s.Addons, s.Pools = []api.Addon{{Name: "coredns", Version: "v1"}}, pool("ami-1", api.AMD64)
			}, []Finding{
				{VersionOffered, OK, "EKS offers the Kubernetes versions", ""},
				{AddonsCompatible, OK, "EKS offers the add-ons in their versions", ""},
				{Images, OK, "the images of the pools exist and fit", ""},
			},
		},
		"an old Kubernetes version": {
			func(s *api.ClusterSpec) { s.KubernetesVersion = "1.21" }, []Finding{{VersionOffered, Blocks,
				"demo: EKS does not offer Kubernetes 1.21 in this region; it offers 1.36, 1.37",
				"name a Kubernetes version of this list in the release or the spec: aws eks describe-cluster-versions --region eu-central-1 " +
					"--query 'clusterVersions[].clusterVersion'"}},
		},
		"an add-on's version of another Kubernetes version": {
			func(s *api.ClusterSpec) { s.Addons = []api.Addon{{Name: "coredns", Version: "v2"}} }, []Finding{{AddonsCompatible, Blocks,
				"demo: coredns v2 is not a version that EKS offers for Kubernetes 1.36: v1",
				"name add-on versions of this list in the release or the spec: aws eks describe-addon-versions --region eu-central-1 " +
					"--kubernetes-version 1.36 --addon-name coredns --query 'addons[].addonVersions[].addonVersion'"}},
		},
		"an image that does not exist": {
			func(s *api.ClusterSpec) { s.Pools = pool("ami-2", api.ARM64) }, []Finding{{Images, Blocks,
				"demo: ami-2 of pool a does not exist in this region, or is not shared with this account", image("arm64")}},
		},
		"an image for another architecture": {
			func(s *api.ClusterSpec) { s.Pools = pool("ami-1", api.ARM64) }, []Finding{{Images, Blocks,
				"demo: ami-1 (amazon-eks-node-al2023-x86_64-standard-1.36-v20261101) of pool a is for x86_64, not for arm64", image("arm64")}},
		},
		"an image that is deprecated": {
			func(s *api.ClusterSpec) { s.Pools = pool("ami-old", api.AMD64) }, []Finding{{Images, Warning,
				"demo: ami-old (mine) of pool a is deprecated since 2026-01-01", image("x86_64")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := roomy()
			f.Offered.ReadAt = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
			f.Offered.Images["ami-old"] = preflight.Image{
				ID: "ami-old", Name: "mine", Architecture: "x86_64", State: "available", Deprecated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			}
			found := Examine(f, []Cluster{demo(test.change)})
			for _, want := range test.want {
				require.Equal(t, []Finding{want}, of(found, want.Check))
			}
		})
	}
}
