package preflight

// Whether images exist, and fit the pools.

import (
	"fmt"
	"regexp"

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
	return "does not exist, or is not shared with this account"
}

// eksImage matches the names of EKS's AMIs, which contain the Kubernetes version: amazon-eks-node-al2023-x86_64-standard-1.36-v20261101,
// or amazon-eks-node-1.30-v20241106 of Amazon Linux 2.
var eksImage = regexp.MustCompile(`^amazon-eks-(?:arm64-|gpu-)?node-(?:.*-)?(1\.[0-9]+)-v[0-9]+`)

// Kubernetes returns the version of an EKS image, such as 1.36. It is "" for others, whose names do not contain it.
func (i Image) Kubernetes() string {
	if name := eksImage.FindStringSubmatch(i.Name); name != nil {
		return name[1]
	}
	return ""
}

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
		version := image.Kubernetes()
		apart := minor(p.To.KubernetesVersion) - minor(version)
		switch {
		case image.State != "available":
			unusable = append(unusable, finding+" is "+image.State)
		case image.Architecture != architectures[pool.Architecture]:
			unusable = append(unusable, fmt.Sprintf("%s is for %s, not for %s", finding, image.Architecture, pool.Architecture))
		case version != "" && apart < 0:
			unusable = append(unusable, fmt.Sprintf("%s has a kubelet newer than Kubernetes %s", finding, p.To.KubernetesVersion))
		case version != "" && apart > upgrade.Skew:
			unusable = append(unusable, fmt.Sprintf("%s has a kubelet too old for Kubernetes %s", finding, p.To.KubernetesVersion))
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
		r.warn("Name a newer image in the release or the pool's imageID.", "%s", list(doubtful))
	}
}
