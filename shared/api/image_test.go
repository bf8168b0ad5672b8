package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

func TestImageKey(t *testing.T) {
	require.Equal(t, "amd64", (&api.Pool{}).ImageKey(), "the defaults of a pool")
	seen := map[string]bool{}
	for _, kind := range api.ImageKinds() {
		pool := api.Pool{Architecture: kind.Architecture, Image: api.Image{Family: kind.Family, Variant: kind.Variant}}
		require.Equal(t, kind.Key, pool.ImageKey())
		found, ok := api.ImageKindOf(kind.Key)
		require.True(t, ok)
		require.Equal(t, kind, found)
		require.False(t, seen[kind.Key])
		seen[kind.Key] = true
		_, errs := api.ReadRelease("r.yaml", edit(t, goodRelease, pairs{"amd64: ami", kind.Key + ": ami"}), api.Options{})
		require.NoError(t, errs.Err())
	}
	require.Len(t, seen, 13)
	_, ok := api.ImageKindOf("arm64-neuron")
	require.False(t, ok)
}

func TestImageOfPool(t *testing.T) {
	const imageID = `spec.pools[0].imageID: Required value: the release 1.36-1 has no image %[1]s either: add it to spec.images of the ` +
		"release (`drover release new --images %[1]s` prints one), or state imageID"
	for name, c := range map[string]struct {
		image string
		want  string
	}{
		"an image that the release has": {image: "{family: AL2023}"},
		"a variant that it does not have": {
			image: "{variant: Nvidia}", want: fmt.Sprintf(imageID, "amd64-nvidia"),
		},
		"a variant with an image of the spec": {image: "{variant: Neuron}\n      imageID: ami-11111111"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := readCluster(t, edit(t, good, pool("image: "+c.image)))
			resolved, errs := api.Resolve(cluster, readRelease(t, []byte(goodRelease)))
			if c.want != "" {
				require.Equal(t, []string{c.want}, lines(errs))
				return
			}
			require.NoError(t, errs.Err())
			require.NotEmpty(t, resolved.Spec.Pools[0].ImageID)
			require.NotEmpty(t, resolved.Spec.Pools[0].Image.Variant)
		})
	}
}

func TestImageIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edits pairs
		want  string
	}{
		"a family that is none": {
			pool("image: {family: Ubuntu}"), `spec.pools[0].image.family: Unsupported value: "Ubuntu": supported values: "AL2023", "Bottlerocket"`,
		},
		"a variant that is none": {
			pool("image: {variant: GPU}"),
			`spec.pools[0].image.variant: Unsupported value: "GPU": supported values: "Standard", "Nvidia", "Neuron", "FIPS", "NvidiaFIPS"`,
		},
		"Neuron for arm64": {
			append(pool("image: {variant: Neuron}\n      architecture: arm64"), "m7i.large", "m7g.large"),
			`spec.pools[0].image.variant: Invalid value: "Neuron": AWS has images with Neuron for amd64 only, but the pool's architecture is ` +
				`arm64: use amd64 with instance types such as inf2.xlarge, or another variant`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := api.ReadCluster("demo.yaml", edit(t, good, c.edits), options)
			require.Len(t, errs, 1)
			require.Contains(t, lines(errs)[0], ": "+c.want)
		})
	}
}

func TestReleaseInARegion(t *testing.T) {
	release := readRelease(t, edit(t, goodRelease, pairs{"  addons:\n", "  regions:\n    eu-west-1:\n" +
		"      images: {amd64: ami-22222222, amd64-nvidia: ami-33333333}\n  addons:\n"}))
	here := release.In("eu-west-1")
	require.Equal(t, map[string]string{"amd64": "ami-22222222", "amd64-nvidia": "ami-33333333"}, here.Spec.Images)
	require.Equal(t, map[string]string{"amd64": "ami-0123456789abcdef0"}, release.Spec.Images, "the release does not change")
	require.Same(t, release, release.In("us-east-1"))
	require.Equal(t, here, here.In("eu-west-1"))

	release = readRelease(t, edit(t, goodRelease, pairs{"    amd64: ami-0123456789abcdef0\n", "    amd64: ami-11111111\n" +
		"    arm64: ami-44444444\n  regions: {eu-west-1: {images: {amd64: ami-22222222}}}\n"}))
	require.Equal(t, map[string]string{"amd64": "ami-22222222", "arm64": "ami-44444444"}, release.In("eu-west-1").Spec.Images, "key by key")
}

func TestRegionsOfReleaseAreRefused(t *testing.T) {
	const images = "    amd64: ami-0123456789abcdef0\n"
	for regions, want := range map[string]string{
		"{europe: {images: {amd64: ami-22222222}}}": `r.yaml:9: spec.regions[europe]: Invalid value: "europe": must be a region, such as ` +
			`"us-east-1"`,
		"{eu-west-1: {}}":              `r.yaml:9: spec.regions[eu-west-1].images: Required value`,
		"{eu-west-1: {images: {}}}":    `r.yaml:9: spec.regions[eu-west-1].images: Too few: 0: must have at least 1 item`,
		"{eu-west-1: {image: {a: b}}}": `r.yaml:9: spec.regions[eu-west-1].image: Forbidden: unknown field, did you mean "images"?`,
		"{eu-west-1: {images: {arm64-neuron: ami-22222222}}}": `r.yaml:9: spec.regions[eu-west-1].images[arm64-neuron]: Invalid value: ` +
			`"arm64-neuron": must be a kind of image, such as "amd64", "arm64-nvidia", "amd64-neuron" or "bottlerocket-arm64-fips"`,
		"{eu-west-1: {images: {amd64: latest}}}": `r.yaml:9: spec.regions[eu-west-1].images[amd64]: Invalid value: "latest": must be an AMI ` +
			`id, such as "ami-0123456789abcdef0"`,
	} {
		t.Run(regions, func(t *testing.T) {
			_, errs := api.ReadRelease("r.yaml", edit(t, goodRelease, pairs{images, images + "  regions: " + regions + "\n"}), api.Options{})
			require.Contains(t, lines(errs), want)
		})
	}
}
