package ec2

// The catalog of machine images: those that AWS publishes for EKS.

import (
	"fmt"
	"slices"
	"strings"
)

// The families of EKS's images.
const (
	AL2023       = "al2023"
	Bottlerocket = "bottlerocket"
)

// Image is an AMI.
type Image struct {
	ID, Name string
	// Architecture is EC2's: x86_64 or arm64.
	Architecture string
	// Family is the operating system: AL2023, Bottlerocket, or "" for another one, which reads no user data.
	Family string
	// Variant is what AWS adds to the operating system: "", nvidia, neuron, fips or nvidia-fips.
	Variant string
	// KubernetesVersion is the minor version of an EKS image, such as 1.36. KubeletVersion is its kubelet, such as v1.36.3-eks-0e3cf2b. Both
	// are empty for other images, whose instances never become nodes.
	KubernetesVersion, KubeletVersion string
	// Silent reports whether its kubelet does not start.
	Silent bool
	// Platform is PlatformDetails of EC2. Default: Linux/UNIX.
	Platform string
	// Devices are the block devices, the root device first. Default: those of the family.
	Devices []string
	// SourceID is the image that this one is a copy of, or "".
	SourceID string
}

// KubernetesVersions that EKS publishes images for.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
var KubernetesVersions = []string{"1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"}

// kubeletPatches are the patch releases on the images of the catalog.
var kubeletPatches = map[string]int{"1.31": 14, "1.32": 13, "1.33": 9, "1.34": 7, "1.35": 5, "1.36": 3, "1.37": 0}

// published are the kinds of images that EKS publishes for each version, in the order of their numbers.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html#AmazonEKS-Type-Nodegroup-amiType
var published = []struct{ key, family, variant, architecture string }{
	{"amd64", AL2023, "", "x86_64"},
	{"arm64", AL2023, "", "arm64"},
	{"amd64-nvidia", AL2023, "nvidia", "x86_64"},
	{"arm64-nvidia", AL2023, "nvidia", "arm64"},
	{"amd64-neuron", AL2023, "neuron", "x86_64"},
	{"bottlerocket-amd64", Bottlerocket, "", "x86_64"},
	{"bottlerocket-arm64", Bottlerocket, "", "arm64"},
	{"bottlerocket-amd64-nvidia", Bottlerocket, "nvidia", "x86_64"},
	{"bottlerocket-arm64-nvidia", Bottlerocket, "nvidia", "arm64"},
	{"bottlerocket-amd64-fips", Bottlerocket, "fips", "x86_64"},
	{"bottlerocket-arm64-fips", Bottlerocket, "fips", "arm64"},
	{"bottlerocket-amd64-nvidia-fips", Bottlerocket, "nvidia-fips", "x86_64"},
	{"bottlerocket-arm64-nvidia-fips", Bottlerocket, "nvidia-fips", "arm64"},
}

// Series of image ids.
const (
	recommended = iota
	rebuilt
	silent
)

// imageID returns the id of a published image, such as ami-00000000000013601: the series, the minor version, and the number of the kind. No
// image of AWS has so small an id.
func imageID(series int, version, key string) string {
	key = strings.Replace(key, "x86_64", "amd64", 1)
	for number, kind := range published {
		if kind.key == key {
			return fmt.Sprintf("ami-%012d1%s%02d", series, strings.TrimPrefix(version, "1."), number+1)
		}
	}
	panic("no image " + key)
}

// ImageID returns the id of the image that AWS recommends for a Kubernetes minor version. The key says which: amd64, arm64,
// bottlerocket-arm64-fips and so on, as in drover's releases. x86_64 is amd64.
func ImageID(version, key string) string { return imageID(recommended, version, key) }

// EKSImages are the AMIs that AWS publishes for EKS.
func EKSImages() []Image { return imagesOf(recommended) }

func imagesOf(series int) []Image {
	var images []Image
	for _, version := range KubernetesVersions {
		for _, kind := range published {
			patch, build := kubeletPatches[version], 1
			if series == rebuilt {
				patch, build = patch+1, 15
			}
			image := Image{
				ID: imageID(series, version, kind.key), Architecture: kind.architecture, Family: kind.family, Variant: kind.variant,
				KubernetesVersion: version, KubeletVersion: fmt.Sprintf("v%s.%d-eks-0e3cf2b", version, patch), Silent: series == silent,
			}
			image.Name = image.publishedName(build)
			if image.Silent {
				image.Name += "-silent"
			}
			images = append(images, image)
		}
	}
	return images
}

// publishedName returns the name that AWS gives an image of a day in November.
//   - https://docs.aws.amazon.com/eks/latest/userguide/eks-linux-ami-versions.html
//   - https://github.com/bottlerocket-os/bottlerocket#variants: bottlerocket-<variant>-<architecture>-<version>-<commit>
func (i Image) publishedName(day int) string {
	if i.Family == AL2023 {
		variant := i.Variant
		if variant == "" {
			variant = "standard"
		}
		return fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-v202611%02d", i.Architecture, variant, i.KubernetesVersion, day)
	}
	variant := i.KubernetesVersion
	if i.Variant != "" {
		variant += "-" + i.Variant
	}
	return fmt.Sprintf("bottlerocket-aws-k8s-%s-%s-v1.60.%d-0123abcd", variant, i.Architecture, day)
}

// RebuiltImageID returns the id of an image that AWS rebuilt later, with the next patch release of Kubernetes. Pools are rolled to it. AWS
// does not recommend it yet.
func RebuiltImageID(version, key string) string { return imageID(rebuilt, version, key) }

// SilentImageID returns the id of an image whose kubelet never starts: its instances run and never become nodes.
func SilentImageID(version, key string) string { return imageID(silent, version, key) }

// Other images of the catalog, which pools may name.
const (
	WindowsImage  = "ami-00000000000900001"
	AL2Image      = "ami-00000000000900002"
	ECSImage      = "ami-00000000000900003"
	OwnAL2023     = "ami-00000000000900004"
	OwnTwoDisks   = "ami-00000000000900005"
	OwnSDA        = "ami-00000000000900006"
	CopyOf136     = "ami-00000000000900007"
	CopyOf137     = "ami-00000000000900008"
	CopyOfWindows = "ami-00000000000900009"
	// TooNewImage has a kubelet of Kubernetes 1.37, and a name that does not say so. Nodes of it cannot join a cluster of 1.36.
	TooNewImage    = "ami-00000000000900010"
	ownKubeletOf36 = "v1.36.3-eks-0e3cf2b"
)

// otherImages are images of other operating systems, and those that users make of EKS's images and give names of their own.
func otherImages() []Image {
	const x86 = "x86_64"
	return []Image{
		{
			ID: WindowsImage, Name: "Windows_Server-2022-English-Core-EKS_Optimized-1.36-2026.11.12", Architecture: x86, Platform: "Windows",
			Devices: []string{"/dev/sda1"},
		},
		{ID: AL2Image, Name: "amazon-eks-node-1.32-v20251120", Architecture: x86},
		{ID: ECSImage, Name: "bottlerocket-aws-ecs-2-x86_64-v1.60.1-0123abcd", Architecture: x86, Devices: []string{"/dev/xvda", "/dev/xvdb"}},
		{ID: OwnAL2023, Name: "node-2026-11", Architecture: x86, Family: AL2023, KubernetesVersion: "1.36", KubeletVersion: ownKubeletOf36},
		{
			ID: OwnTwoDisks, Name: "safe-2026-11", Architecture: x86, Family: Bottlerocket, KubernetesVersion: "1.36",
			KubeletVersion: ownKubeletOf36,
		},
		{ID: OwnSDA, Name: "other-2026-11", Architecture: x86, Devices: []string{"/dev/sda1"}},
		{
			ID: CopyOf136, Name: "copy-36", Architecture: x86, Family: Bottlerocket, KubernetesVersion: "1.36",
			KubeletVersion: ownKubeletOf36, SourceID: ImageID("1.36", "bottlerocket-amd64"),
		},
		{ID: CopyOf137, Name: "copy-37", Architecture: x86, Family: AL2023, SourceID: ImageID("1.37", "amd64")},
		{ID: CopyOfWindows, Name: "copy-windows", Architecture: x86, SourceID: WindowsImage},
		{
			ID: TooNewImage, Name: "node-next", Architecture: x86, Family: AL2023, KubernetesVersion: "1.37",
			KubeletVersion: "v1.37.0-eks-0e3cf2b",
		},
	}
}

func (s *Service) images() []Image {
	return slices.Concat(EKSImages(), imagesOf(rebuilt), otherImages(), s.config.Images)
}

func (s *Service) image(id string) (Image, error) {
	if !strings.HasPrefix(id, "ami-") {
		return Image{}, fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
	}
	// Silent images are found only by their id.
	for _, image := range append(s.images(), imagesOf(silent)...) {
		if image.ID == id {
			return image, nil
		}
	}
	return Image{}, fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

// devices returns the block devices of an image, the root device first. Bottlerocket has its system on the first, and its data on the
// second. https://github.com/bottlerocket-os/bottlerocket#default-volumes
func (i Image) devices() []string {
	switch {
	case len(i.Devices) > 0:
		return i.Devices
	case i.Family == Bottlerocket:
		return []string{"/dev/xvda", "/dev/xvdb"}
	}
	return []string{"/dev/xvda"}
}

// ImageParameters returns the public SSM parameters that name the recommended images, for ssm.Config. name returns the name of a parameter.
func ImageParameters(name func(version, family, variant, architecture string) string) map[string]string {
	parameters := map[string]string{}
	for _, image := range EKSImages() {
		parameters[name(image.KubernetesVersion, image.Family, image.Variant, image.Architecture)] = image.ID
	}
	return parameters
}
