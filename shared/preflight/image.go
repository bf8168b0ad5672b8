package preflight

// Whether images exist, and fit the pools.

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/upgrade"
)

// ImageParameter returns the public parameter of SSM with the image that AWS recommends for a kind of image.
//   - https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
//   - https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id-bottlerocket.html
func ImageParameter(kubernetes string, kind api.ImageKind) string {
	architecture := architectures[kind.Architecture]
	if kind.Family == api.Bottlerocket {
		flavor := map[api.ImageVariant]string{
			api.VariantNvidia: "-nvidia", api.VariantFIPS: "-fips", api.VariantNvidiaFIPS: "-nvidia-fips",
		}[kind.Variant]
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/latest/image_id", kubernetes, flavor, architecture)
	}
	variant := map[api.ImageVariant]string{
		api.VariantStandard: "standard", api.VariantNvidia: "nvidia", api.VariantNeuron: "neuron",
	}[kind.Variant]
	return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/recommended/image_id", kubernetes, architecture, variant)
}

// localImage matches the ids of the images of the local account.
var localImage = regexp.MustCompile(`^ami-0{11}[0-9]{6}$`)

// missing says why there is no image with an id.
func missing(id string) string {
	if localImage.MatchString(id) {
		return "is an id of the local account, and no image of AWS: run `drover release new` for a release with images of AWS"
	}
	return "does not exist in this region, or is not shared with this account"
}

// eksImage matches the names of AWS's AMIs for EKS, which contain the Kubernetes version:
// amazon-eks-node-al2023-x86_64-standard-1.36-v20261101, amazon-eks-node-1.30-v20241106 of Amazon Linux 2, or
// bottlerocket-aws-k8s-1.36-nvidia-x86_64-v1.60.0-0123abcd.
var eksImage = regexp.MustCompile(`^(?:amazon-eks-(?:arm64-|gpu-)?node-(?:.*-)?(1\.[0-9]+)-v[0-9]+|bottlerocket-aws-k8s-(1\.[0-9]+)-)`)

// Kubernetes returns the version of an EKS image, such as 1.36. It is "" for others, whose names do not contain it.
func (i Image) Kubernetes() string {
	if name := eksImage.FindStringSubmatch(i.Name); name != nil {
		return name[1] + name[2]
	}
	return ""
}

// families are the beginnings of the names of images, and what they are. The first match counts.
//   - https://docs.aws.amazon.com/eks/latest/userguide/eks-linux-ami-versions.html
//   - https://github.com/bottlerocket-os/bottlerocket#variants
//   - https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-versions-windows.html
//   - https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/
var families = []struct{ prefix, family string }{
	{"amazon-eks-node-al2023-", string(api.AL2023)},
	{"amazon-eks-node-", "Amazon Linux 2"},
	{"amazon-eks-gpu-node-", "Amazon Linux 2"},
	{"amazon-eks-arm64-node-", "Amazon Linux 2"},
	{"bottlerocket-aws-k8s-", string(api.Bottlerocket)},
	{"bottlerocket-", "Bottlerocket without Kubernetes"},
	{"Windows_Server-", "Windows"},
	{"ubuntu-eks/", "Ubuntu"},
}

// family returns the operating system in the image's name, or "".
func (i Image) family() string {
	for _, f := range families {
		if strings.HasPrefix(i.Name, f.prefix) {
			return f.family
		}
	}
	return ""
}

// variant returns the variant in the name of an image of AWS, such as amazon-eks-node-al2023-x86_64-nvidia-1.36-v20261101 or
// bottlerocket-aws-k8s-1.36-nvidia-fips-x86_64-v1.60.0-0123abcd, or "".
func (i Image) variant() api.ImageVariant {
	has := func(word string) bool { return strings.Contains(i.Name, "-"+word+"-") }
	switch {
	case i.Kubernetes() == "":
		return ""
	case has("nvidia-fips"):
		return api.VariantNvidiaFIPS
	case has("nvidia"):
		return api.VariantNvidia
	case has("fips"):
		return api.VariantFIPS
	case has("neuron"):
		return api.VariantNeuron
	}
	return api.VariantStandard
}

// IsNamed reports whether the image's name has its operating system.
func (i Image) IsNamed() bool { return i.family() != "" }

// Misfit returns why the nodes of a pool could not boot from an image, or "". verified reports whether a name shows that it fits: its own,
// or that of its source, if it is a copy. Without such a name, only the devices are compared.
func (i Image) Misfit(pool *api.Pool, source *Image) (why string, verified bool) {
	if why, verified = i.misfitByName(pool, source); why == "" && !verified {
		why = i.misfitByDevices(pool)
	}
	return why, verified
}

// misfitByName compares the platform, the architecture, the family and the variant, which names show. A pool of the variant Standard may
// have an image of any variant: it is Standard, and more.
func (i Image) misfitByName(pool *api.Pool, source *Image) (why string, verified bool) {
	want := string(cmp.Or(pool.Image.Family, api.AL2023))
	family, variant := i.family(), i.variant()
	if family == "" && source != nil {
		family, variant = source.family(), source.variant()
	}
	wantVariant := cmp.Or(pool.Image.Variant, api.VariantStandard)
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html
	switch {
	case strings.HasPrefix(i.Platform, "Windows"):
		return "is an image of Windows, which drover does not support", false
	case i.Architecture != architectures[pool.Architecture]:
		return fmt.Sprintf("is for %s, not for %s", i.Architecture, pool.Architecture), false
	case family != "" && family != want:
		return fmt.Sprintf("is an image of %s, and not of %s", family, want), false
	case variant != "" && variant != wantVariant && wantVariant != api.VariantStandard:
		return fmt.Sprintf("is of the variant %s, and not of %s", variant, wantVariant), false
	}
	return "", family != ""
}

// misfitByDevices compares the devices. It may be wrong about an image that someone built.
func (i Image) misfitByDevices(pool *api.Pool) string {
	want := string(cmp.Or(pool.Image.Family, api.AL2023))
	if i.RootDevice != "" && i.RootDevice != systemDevice {
		return fmt.Sprintf("has the root device %s, and images of %s have %s", i.RootDevice, want, systemDevice)
	}
	data := slices.Contains(i.Devices, dataDevice)
	switch {
	case len(i.Devices) == 0:
	case want == string(api.AL2023) && data:
		return fmt.Sprintf("has the devices %s and %s, as images of Bottlerocket have, and the pool's family is AL2023", systemDevice,
			dataDevice)
	case want == string(api.Bottlerocket) && !data:
		return fmt.Sprintf("has no device %s, on which Bottlerocket has its data", dataDevice)
	}
	return ""
}

// The devices of the operating system, and of the data of Bottlerocket.
const (
	systemDevice = "/dev/xvda"
	dataDevice   = "/dev/xvdb"
)

// NewerThan reports whether the image has a kubelet that is newer than a Kubernetes version. The name of the image says it.
func (i Image) NewerThan(kubernetes string) bool {
	version := i.Kubernetes()
	return version != "" && minor(version) > minor(kubernetes)
}

// MissingImage says why there is no image with an id.
func MissingImage(id string) string { return missing(id) }

// architectures in EC2's terms.
var architectures = map[api.Architecture]string{api.AMD64: "x86_64", api.ARM64: "arm64"}

// images checks the images of new nodes. Each must exist, have the pool's architecture, and not be newer than the control plane.
func images(r *report, f *Facts, p *Plan) {
	if p.After == nil || !p.replaces() {
		return
	}
	var unusable, doubtful []string
	for _, pool := range p.After.Spec.Pools {
		owner := " of pool " + pool.Name
		if pool.Name == "" { // a release's
			owner = " for " + pool.ImageKey()
		}
		image, found := f.Images[pool.ImageID]
		if !found {
			unusable = append(unusable, fmt.Sprintf("%s%s %s", pool.ImageID, owner, missing(pool.ImageID)))
			continue
		}
		finding := fmt.Sprintf("%s (%s)%s", image.ID, image.Name, owner)
		misfit, verified := image.misfitByName(&pool, nil)
		version := image.Kubernetes()
		apart := minor(p.To.KubernetesVersion) - minor(version)
		switch {
		case image.State != "available":
			unusable = append(unusable, finding+" is "+image.State)
		case misfit != "":
			unusable = append(unusable, finding+" "+misfit)
		case version != "" && apart < 0:
			unusable = append(unusable, fmt.Sprintf("%s has a kubelet newer than Kubernetes %s", finding, p.To.KubernetesVersion))
		case version != "" && apart > upgrade.Skew:
			unusable = append(unusable, fmt.Sprintf("%s has a kubelet too old for Kubernetes %s", finding, p.To.KubernetesVersion))
		// A cluster may run on such an image already. The planner refuses a change to one.
		case !verified && image.misfitByDevices(&pool) != "":
			doubtful = append(doubtful, finding+" "+image.misfitByDevices(&pool))
		case version != "" && apart > 0:
			doubtful = append(doubtful, fmt.Sprintf("%s has a kubelet older than Kubernetes %s", finding, p.To.KubernetesVersion))
		case !image.Deprecated.IsZero() && image.Deprecated.Before(f.ReadAt):
			doubtful = append(doubtful, fmt.Sprintf("%s is deprecated since %s", finding, day(image.Deprecated)))
		}
	}
	if len(unusable) > 0 {
		r.block("Name a compatible image in the release or the pool's imageID.", "%s", list(unusable))
	}
	if len(doubtful) > 0 {
		r.warn("Name another image in the release or the pool's imageID.", "%s", list(doubtful))
	}
}
