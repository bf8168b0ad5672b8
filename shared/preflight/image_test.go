package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestImageParameter(t *testing.T) {
	for key, want := range map[string]string{
		"amd64":                          "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id",
		"arm64-nvidia":                   "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/nvidia/recommended/image_id",
		"amd64-neuron":                   "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id",
		"bottlerocket-arm64":             "/aws/service/bottlerocket/aws-k8s-1.36/arm64/latest/image_id",
		"bottlerocket-amd64-nvidia-fips": "/aws/service/bottlerocket/aws-k8s-1.36-nvidia-fips/x86_64/latest/image_id",
		"bottlerocket-amd64-fips":        "/aws/service/bottlerocket/aws-k8s-1.36-fips/x86_64/latest/image_id",
	} {
		kind, found := api.ImageKindOf(key)
		require.True(t, found)
		require.Equal(t, want, ImageParameter("1.36", kind))
	}
}

func TestKubernetesOfImages(t *testing.T) {
	for name, want := range map[string]string{
		"amazon-eks-node-al2023-x86_64-nvidia-1.36-v20261101":      "1.36",
		"amazon-eks-node-1.30-v20241106":                           "1.30",
		"bottlerocket-aws-k8s-1.36-nvidia-x86_64-v1.60.1-0123abcd": "1.36",
		"bottlerocket-aws-ecs-2-x86_64-v1.60.1-0123abcd":           "",
		"mine": "",
	} {
		image := Image{Name: name}
		require.Equal(t, want, image.Kubernetes(), name)
		require.Equal(t, want == "1.36", image.NewerThan("1.35"), name)
		require.False(t, image.NewerThan("1.36"), name)
	}
}

func TestMisfit(t *testing.T) {
	al2023, bottlerocket := api.Pool{Architecture: api.AMD64}, api.Pool{Architecture: api.AMD64, Image: api.Image{Family: api.Bottlerocket}}
	one, two := []string{"/dev/xvda"}, []string{"/dev/xvda", "/dev/xvdb"}
	named := &Image{Name: "bottlerocket-aws-k8s-1.36-x86_64-v1.60.1-0123abcd"}
	variant := func(p api.Pool, v api.ImageVariant) api.Pool { p.Image.Variant = v; return p }
	for name, test := range map[string]struct {
		image    Image
		source   *Image
		pool     api.Pool
		want     string
		verified bool
	}{
		"a name of the family":    {image: Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v1"}, pool: al2023, verified: true},
		"its name, other devices": {image: Image{Name: named.Name, Devices: one}, pool: bottlerocket, verified: true},
		"an unknown name":         {image: Image{Name: "mine", RootDevice: "/dev/xvda", Devices: one}, pool: al2023},
		"two devices":             {image: Image{Name: "mine", RootDevice: "/dev/xvda", Devices: two}, pool: bottlerocket},
		"no devices that we know": {image: Image{Name: "mine"}, pool: bottlerocket},
		"a copy":                  {image: Image{Name: "mine", Devices: one}, source: named, pool: bottlerocket, verified: true},
		"a copy of another family": {
			image: Image{Name: "mine"}, source: named, pool: al2023, want: "is an image of Bottlerocket, and not of AL2023",
		},
		"a name of its variant": {
			image: Image{Name: "amazon-eks-node-al2023-x86_64-nvidia-1.36-v1"}, pool: variant(al2023, api.VariantNvidia), verified: true,
		},
		"another variant": {
			image: Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v1"}, pool: variant(al2023, api.VariantNvidia),
			want: "is of the variant Standard, and not of Nvidia",
		},
		"no FIPS": {
			image: Image{Name: named.Name}, pool: variant(bottlerocket, api.VariantFIPS), want: "is of the variant Standard, and not of FIPS",
		},
		"FIPS without NVIDIA": {
			image: Image{Name: "bottlerocket-aws-k8s-1.36-fips-x86_64-v1.60.1-0123abcd"}, pool: variant(bottlerocket, api.VariantNvidiaFIPS),
			want: "is of the variant FIPS, and not of NvidiaFIPS",
		},
		"NVIDIA and FIPS": {
			image: Image{Name: "bottlerocket-aws-k8s-1.36-nvidia-fips-x86_64-v1.60.1-0123abcd"},
			pool:  variant(bottlerocket, api.VariantNvidiaFIPS), verified: true,
		},
		"a copy of another variant": {
			image: Image{Name: "mine"}, source: named, pool: variant(bottlerocket, api.VariantNvidia),
			want: "is of the variant Standard, and not of Nvidia",
		},
		"a variant for a standard pool": {
			image: Image{Name: "bottlerocket-aws-k8s-1.36-fips-x86_64-v1.60.1-0123abcd"}, pool: bottlerocket, verified: true,
		},
		"a variant that no name shows": {image: Image{Name: "mine", Devices: two}, pool: variant(bottlerocket, api.VariantFIPS)},
		"a copy without a name":        {image: Image{Name: "mine"}, source: &Image{Name: "mine too"}, pool: al2023},
		"Windows": {
			image: Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v1", Platform: "Windows BYOL"}, pool: al2023,
			want: "is an image of Windows, which drover does not support",
		},
		"Ubuntu": {image: Image{Name: "ubuntu-eks/k8s_1.36/images/x"}, pool: al2023, want: "is an image of Ubuntu, and not of AL2023"},
	} {
		t.Run(name, func(t *testing.T) {
			test.image.Architecture = "x86_64"
			why, verified := test.image.Misfit(&test.pool, test.source)
			require.Equal(t, test.want, why)
			require.Equal(t, test.verified, verified)
			test.image.Architecture = "arm64"
			why, _ = test.image.Misfit(&test.pool, test.source)
			require.NotEmpty(t, why)
		})
	}
}

func TestMissingImage(t *testing.T) {
	require.Equal(t, "does not exist in this region, or is not shared with this account", MissingImage("ami-0123456789abcdef0"))
	require.Equal(t, "is an id of the local account, and no image of AWS: run `drover release new` for a release with images of AWS",
		MissingImage("ami-00000000000013601"))
}
