package releases_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/releases"
)

// catalogs are what AWS recommends in a region. They implement releases.Parameters, releases.Defaults and releases.Images.
type catalogs struct {
	parameters, addons map[string]string
	images             map[string]preflight.Image
	recommended        map[string][]api.RecommendedIdentity
	requests           int
	failing            error
}

func newCatalogs() *catalogs {
	c := &catalogs{
		parameters: map[string]string{
			"/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/x86_64/standard/recommended/image_id": "ami-0000000000000000a",
			"/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/arm64/standard/recommended/image_id":  "ami-0000000000000000b",
		},
		addons: map[string]string{
			"vpc-cni": "v1.21.1-eksbuild.1", "kube-proxy": "v1.37.0-eksbuild.1", "eks-pod-identity-agent": "v1.3.10-eksbuild.1",
			"coredns": "v1.14.0-eksbuild.1", "aws-ebs-csi-driver": "v1.55.0-eksbuild.1",
		},
		images: map[string]preflight.Image{},
	}
	for id, architecture := range map[string]string{"ami-0000000000000000a": "x86_64", "ami-0000000000000000b": "arm64"} {
		c.images[id] = preflight.Image{ID: id, Name: "amazon-eks-node-al2023-" + architecture + "-standard-1.37-v20261120"}
	}
	return c
}

func (c *catalogs) Values(_ context.Context, names []string) (map[string]string, error) {
	c.requests++
	return choose(c.parameters, names), c.failing
}

func (c *catalogs) DefaultVersions(_ context.Context, _ string, addons []string) (map[string]string, error) {
	return choose(c.addons, addons), nil
}

func (c *catalogs) Recommended(_ context.Context, addon, _ string) ([]api.RecommendedIdentity, error) {
	return c.recommended[addon], nil
}

func (c *catalogs) Images(_ context.Context, ids []string) (map[string]preflight.Image, error) {
	return choose(c.images, ids), nil
}

// choose returns the entries of keys.
func choose[V any](all map[string]V, keys []string) map[string]V {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(key string, _ V) bool { return !slices.Contains(keys, key) })
	return some
}

func (c *catalogs) draft(t *testing.T, o releases.DraftOptions) (*releases.Draft, error) {
	t.Helper()
	d := releases.Drafter{Defaults: c, Catalogs: []releases.Catalog{{Region: "eu-central-1", Parameters: c, Images: c}}}
	return d.Draft(t.Context(), o)
}

func draftOptions() releases.DraftOptions {
	return releases.DraftOptions{
		Name: "1.37-20261201", KubernetesVersion: "1.37", Images: []string{"arm64", "amd64"},
	}
}

const drafted = `# What AWS recommended in eu-central-1. Images of other regions have other ids.
apiVersion: drover.run/v1alpha1
kind: Release
metadata:
  name: "1.37-20261201"
spec:
  kubernetesVersion: "1.37"
  images:
    amd64: ami-0000000000000000a # amazon-eks-node-al2023-x86_64-standard-1.37-v20261120
    arm64: ami-0000000000000000b # amazon-eks-node-al2023-arm64-standard-1.37-v20261120
  addons:
    - name: "vpc-cni"
      version: "v1.21.1-eksbuild.1"
    - name: "kube-proxy"
      version: "v1.37.0-eksbuild.1"
    - name: "eks-pod-identity-agent"
      version: "v1.3.10-eksbuild.1"
    - name: "coredns"
      version: "v1.14.0-eksbuild.1"
    - name: "aws-ebs-csi-driver"
      version: "v1.55.0-eksbuild.1"
  templateVersion: "v1"
`

func TestDraft(t *testing.T) {
	t.Run("pins what AWS recommends, with the same bytes each time", func(t *testing.T) {
		c := newCatalogs()
		for range 3 {
			draft, err := c.draft(t, draftOptions())
			require.NoError(t, err)
			require.Equal(t, drafted, string(draft.YAML()))
		}
	})
	t.Run("reads all images in one request: AWS may publish others in between", func(t *testing.T) {
		c := newCatalogs()
		_, err := c.draft(t, draftOptions())
		require.NoError(t, err)
		require.Equal(t, 1, c.requests)
	})
	t.Run("keeps add-ons, their configuration and the template version of another release", func(t *testing.T) {
		o := draftOptions()
		// Text that would change the structure of the file if it were not encoded.
		configuration := map[string]any{"b": "x: y\n  - name: z # no comment", "a": map[string]any{"list": []any{"'", "\"", "<&>"}}}
		o.From = &api.Release{Spec: api.ReleaseSpec{
			KubernetesVersion: "1.36", TemplateVersion: "v1",
			Addons: []api.Addon{{Name: "coredns", Version: "v1.13.2-eksbuild.1", Configuration: configuration}},
		}}
		draft, err := newCatalogs().draft(t, o)
		require.NoError(t, err)
		read, errs := api.ReadRelease("releases/1.37-20261201.yaml", draft.YAML(), api.Options{Name: "1.37-20261201"})
		require.NoError(t, errs.Err())
		require.Equal(t, []api.Addon{{Name: "coredns", Version: "v1.14.0-eksbuild.1", Configuration: configuration}}, read.Spec.Addons)
		require.Equal(t, "v1.13.2-eksbuild.1", o.From.Spec.Addons[0].Version, "the other release does not change")
		require.Equal(t, draft.Release, read)
	})
	t.Run("encodes the names of images", func(t *testing.T) {
		c := newCatalogs()
		c.images["ami-0000000000000000a"] = preflight.Image{Name: "a\n    arm64: ami-0000000000000000c"}
		draft, err := c.draft(t, draftOptions())
		require.NoError(t, err)
		require.Contains(t, string(draft.YAML()), "amd64: ami-0000000000000000a # a arm64: ami-0000000000000000c\n")
	})
}

func TestDraftOfKindsAndRegions(t *testing.T) {
	west := newCatalogs()
	west.parameters = map[string]string{
		"/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/x86_64/nvidia/recommended/image_id": "ami-0000000000000000c",
		"/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/x86_64/neuron/recommended/image_id": "ami-0000000000000000d",
		"/aws/service/bottlerocket/aws-k8s-1.37/arm64/latest/image_id":                             "ami-0000000000000000e",
		"/aws/service/bottlerocket/aws-k8s-1.37-nvidia-fips/x86_64/latest/image_id":                "ami-0000000000000000f",
	}
	east := newCatalogs()
	east.parameters = map[string]string{}
	for name, id := range west.parameters {
		other := strings.Replace(id, "ami-0", "ami-1", 1)
		east.parameters[name] = other
		west.images[id], east.images[other] = preflight.Image{Name: "west"}, preflight.Image{Name: "east"}
	}
	d := releases.Drafter{Defaults: west, Catalogs: []releases.Catalog{
		{Region: "us-west-2", Parameters: west, Images: west}, {Region: "us-east-1", Parameters: east, Images: east},
	}}
	o := draftOptions()
	o.Images = []string{"amd64-nvidia", "amd64-neuron", "bottlerocket-arm64", "bottlerocket-amd64-nvidia-fips"}
	draft, err := d.Draft(t.Context(), o)
	require.NoError(t, err)
	require.Contains(t, string(draft.YAML()), `# What AWS recommended in us-west-2, us-east-1. Images of other regions have other ids.
`)
	require.Contains(t, string(draft.YAML()), `  images:
    amd64-neuron: ami-0000000000000000d # west
    amd64-nvidia: ami-0000000000000000c # west
    bottlerocket-amd64-nvidia-fips: ami-0000000000000000f # west
    bottlerocket-arm64: ami-0000000000000000e # west
  regions:
    us-east-1:
      images:
        amd64-neuron: ami-1000000000000000d # east
        amd64-nvidia: ami-1000000000000000c # east
        bottlerocket-amd64-nvidia-fips: ami-1000000000000000f # east
        bottlerocket-arm64: ami-1000000000000000e # east
  addons:
`)

	delete(east.parameters, "/aws/service/bottlerocket/aws-k8s-1.37/arm64/latest/image_id")
	_, err = d.Draft(t.Context(), o)
	require.EqualError(t, err, "AWS recommends no bottlerocket-arm64 image for Kubernetes 1.37 in us-east-1: the parameter "+
		"/aws/service/bottlerocket/aws-k8s-1.37/arm64/latest/image_id does not exist; choose another version with --kubernetes, or other "+
		"images with --images")
}

func TestDraftFails(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*catalogs, *releases.DraftOptions)
		want   string
	}{
		"without an image: it names the parameter": {
			func(c *catalogs, _ *releases.DraftOptions) {
				maps.DeleteFunc(c.parameters, func(name, _ string) bool { return strings.Contains(name, "arm64") })
			},
			"AWS recommends no arm64 image for Kubernetes 1.37 in eu-central-1: the parameter " +
				"/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/arm64/standard/recommended/image_id does not exist; choose another version " +
				"with --kubernetes, or other images with --images",
		},
		"without a version of an add-on": {
			func(c *catalogs, _ *releases.DraftOptions) { delete(c.addons, "coredns") },
			"EKS has no default version of the add-on coredns for Kubernetes 1.37: use --from with a release without it",
		},
		"if EC2 lacks the image": {
			func(c *catalogs, _ *releases.DraftOptions) { delete(c.images, "ami-0000000000000000b") },
			"EC2 has no image ami-0000000000000000b in eu-central-1, which AWS recommends for arm64: repeat the command",
		},
		"if SSM refuses": {
			func(c *catalogs, _ *releases.DraftOptions) { c.failing = errors.New("AccessDenied") },
			"AccessDenied",
		},
		"with a name that no release may have": {
			func(_ *catalogs, o *releases.DraftOptions) { o.Name = "A b" },
			"metadata.name",
		},
		"with a version that is none": {
			func(c *catalogs, o *releases.DraftOptions) {
				for _, architecture := range []string{"x86_64", "arm64"} {
					c.parameters["/aws/service/eks/optimized-ami/latest/amazon-linux-2023/"+architecture+"/standard/recommended/image_id"] =
						"ami-0000000000000000a"
				}
				o.KubernetesVersion = "latest"
			},
			"spec.kubernetesVersion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := newCatalogs(), draftOptions()
			test.change(c, &o)
			_, err := c.draft(t, o)
			require.ErrorContains(t, err, test.want)
		})
	}
}
