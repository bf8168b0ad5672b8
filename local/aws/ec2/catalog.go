package ec2

// The catalog: predefined machine images, instance types and zones.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Image is an AMI.
type Image struct {
	ID, Name string
	// Architecture is EC2's: x86_64 or arm64.
	Architecture string
	// KubernetesVersion is the minor version of an EKS image, such as 1.36. KubeletVersion is its kubelet, such as v1.36.3-eks-0e3cf2b. Both
	// are empty for other images, whose instances never become nodes.
	KubernetesVersion, KubeletVersion string
	// Silent reports whether its kubelet does not start.
	Silent bool
}

// KubernetesVersions that EKS publishes images for.
// https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
var KubernetesVersions = []string{"1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"}

// kubeletPatches are the patch releases on the images of the catalog.
var kubeletPatches = map[string]int{"1.31": 14, "1.32": 13, "1.33": 9, "1.34": 7, "1.35": 5, "1.36": 3, "1.37": 0}

// ImageID returns the ID of the catalog's AL2023 image for a Kubernetes minor version and an architecture (x86_64 or arm64; amd64 is
// x86_64).
func ImageID(version, architecture string) string {
	if architecture == "amd64" {
		architecture = "x86_64"
	}
	sum := sha256.Sum256([]byte("eks-" + version + "-" + architecture))
	return "ami-" + hex.EncodeToString(sum[:])[:17]
}

// EKSImages are the AMIs that EKS publishes.
func EKSImages() []Image {
	var images []Image
	for _, version := range KubernetesVersions {
		for _, architecture := range []string{"x86_64", "arm64"} {
			images = append(images, Image{
				ID:                ImageID(version, architecture),
				Name:              fmt.Sprintf("amazon-eks-node-al2023-%s-standard-%s-v20261101", architecture, version),
				Architecture:      architecture,
				KubernetesVersion: version,
				KubeletVersion:    fmt.Sprintf("v%s.%d-eks-0e3cf2b", version, kubeletPatches[version]),
			})
		}
	}
	return images
}

// RebuiltImageID returns the ID of an image that EKS rebuilt later, with the next patch release of Kubernetes. Pools are rolled to it. AWS
// does not recommend it yet.
func RebuiltImageID(version, architecture string) string {
	return ImageID(version+"-rebuilt", architecture)
}

// rebuiltImages are the images of RebuiltImageID.
func rebuiltImages() []Image {
	images := EKSImages()
	for i := range images {
		version := images[i].KubernetesVersion
		images[i].ID = RebuiltImageID(version, images[i].Architecture)
		images[i].Name = strings.TrimSuffix(images[i].Name, "v20261101") + "v20261115"
		images[i].KubeletVersion = fmt.Sprintf("v%s.%d-eks-0e3cf2b", version, kubeletPatches[version]+1)
	}
	return images
}

// SilentImageID returns the ID of an image whose kubelet never starts: its instances run and never become nodes.
func SilentImageID(version, architecture string) string {
	return ImageID(version+"-silent", architecture)
}

func silentImages() []Image {
	images := EKSImages()
	for i := range images {
		images[i].ID = SilentImageID(images[i].KubernetesVersion, images[i].Architecture)
		images[i].Name += "-silent"
		images[i].Silent = true
	}
	return images
}

func (s *Service) images() []Image {
	return slices.Concat(EKSImages(), rebuiltImages(), s.config.Images)
}

func (s *Service) image(id string) (Image, error) {
	if !strings.HasPrefix(id, "ami-") {
		return Image{}, fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
	}
	// Silent images are found only by their ID.
	for _, image := range append(s.images(), silentImages()...) {
		if image.ID == id {
			return image, nil
		}
	}
	return Image{}, fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

// InstanceType is a kind of machine.
type InstanceType struct {
	Name string
	// Architecture is x86_64 or arm64.
	Architecture string
	VCPUs        int
	MemoryMiB    int
	// Interfaces and AddressesPerInterface bound the pods of the VPC CNI.
	Interfaces, AddressesPerInterface int
	Burstable                         bool
}

// MaxPods is the number of pods that nodeadm allows without prefix delegation.
// https://github.com/awslabs/amazon-eks-ami: eni-max-pods.txt
func (t InstanceType) MaxPods() int { return t.Interfaces*(t.AddressesPerInterface-1) + 2 }

// size of an instance of one of the m, c and r families.
type size struct {
	name                  string
	vcpus                 int
	interfaces, addresses int
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/AvailableIpPerENI.html
var sizes = []size{
	{"medium", 1, 2, 4}, {"large", 2, 3, 10}, {"xlarge", 4, 4, 15}, {"2xlarge", 8, 4, 15}, {"4xlarge", 16, 8, 30},
	{"8xlarge", 32, 8, 30}, {"12xlarge", 48, 8, 30}, {"16xlarge", 64, 15, 50}, {"24xlarge", 96, 15, 50},
}

var burstableSizes = []struct {
	size
	memoryMiB int
}{
	{size{"micro", 2, 2, 2}, 1 << 10}, {size{"small", 2, 3, 4}, 2 << 10}, {size{"medium", 2, 3, 6}, 4 << 10},
	{size{"large", 2, 3, 12}, 8 << 10}, {size{"xlarge", 4, 4, 15}, 16 << 10}, {size{"2xlarge", 8, 4, 15}, 32 << 10},
}

var instanceTypes = func() map[string]InstanceType {
	types := map[string]InstanceType{}
	add := func(family, architecture string, s size, memoryMiB int, burstable bool) {
		name := family + "." + s.name
		types[name] = InstanceType{name, architecture, s.vcpus, memoryMiB, s.interfaces, s.addresses, burstable}
	}
	memoryPerVCPU := map[byte]int{'c': 2 << 10, 'm': 4 << 10, 'r': 8 << 10}
	for _, letter := range []byte("cmr") {
		for _, generation := range []string{"5", "5a", "6i", "6a", "7i", "7a", "6g", "7g", "8g"} {
			architecture := "x86_64"
			if strings.HasSuffix(generation, "g") {
				architecture = "arm64"
			}
			for _, s := range sizes {
				if s.name == "medium" && architecture == "x86_64" && generation != "7a" ||
					s.name == "24xlarge" && (generation == "6g" || generation == "7g") {
					continue
				}
				add(string(letter)+generation, architecture, s, s.vcpus*memoryPerVCPU[letter], false)
			}
		}
	}
	for family, architecture := range map[string]string{"t3": "x86_64", "t3a": "x86_64", "t4g": "arm64"} {
		for _, s := range burstableSizes {
			add(family, architecture, s.size, s.memoryMiB, true)
		}
	}
	return types
}()

// InstanceTypes of the catalog by name.
func InstanceTypes() []InstanceType {
	types := make([]InstanceType, 0, len(instanceTypes))
	for _, t := range instanceTypes {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return types
}

// instanceType finds a type of the catalog.
func instanceType(name string) (InstanceType, error) {
	t, ok := instanceTypes[name]
	if !ok {
		return InstanceType{}, fail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
	}
	return t, nil
}

// privateDNSName is the name of an instance in the VPC's DNS, by its address.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/hostname-types.html
func (s *Service) privateDNSName(address string) string {
	domain := s.config.Region + ".compute.internal"
	if s.config.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(address, ".", "-") + "." + domain
}

// ImageParameters returns the public SSM parameters that name the EKS images, for ssm.Config. name returns the name of a parameter for a
// Kubernetes minor version and an architecture.
func ImageParameters(name func(version, architecture string) string) map[string]string {
	parameters := map[string]string{}
	for _, image := range EKSImages() {
		parameters[name(image.KubernetesVersion, image.Architecture)] = image.ID
	}
	return parameters
}
