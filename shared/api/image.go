package api

// The image of a pool: its family and variant, and the key under which a release has it.

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Image is the operating system of a pool's nodes. A change replaces the nodes.
type Image struct {
	// Family is the operating system.
	Family ImageFamily `json:"family,omitempty" rule:"default=AL2023;enum=AL2023,Bottlerocket"`
	// Variant is what AWS adds to the operating system. Nvidia has the driver of NVIDIA's GPUs. Neuron has the driver of AWS's accelerators:
	// of AL2023 for amd64. FIPS and NvidiaFIPS use cryptography that is validated for FIPS 140: of Bottlerocket.
	Variant ImageVariant `json:"variant,omitempty" rule:"default=Standard;enum=Standard,Nvidia,Neuron,FIPS,NvidiaFIPS"`
	// Settings of Bottlerocket, below settings: any object, such as {kernel: {lockdown: integrity}}. What drover or Bottlerocket sets cannot
	// be given. A node does not boot with settings that its image does not know.
	Settings map[string]any `json:"settings,omitempty"`
}

// String returns the family and the variant, with defaults.
func (i Image) String() string {
	return string(cmp.Or(i.Family, AL2023)) + "/" + string(cmp.Or(i.Variant, VariantStandard))
}

// ImageOutput describes the kind of image that the pool's nodes boot from, as the output Image of its stack has it: such as
// Bottlerocket/FIPS/arm64. It is "" for AL2023/Standard/amd64, which has no such output.
func (p *Pool) ImageOutput() string {
	kind := p.Image.String() + "/" + string(cmp.Or(p.Architecture, AMD64))
	if kind == (Image{}).String()+"/"+string(AMD64) {
		return ""
	}
	return kind
}

// ImageFamily is the operating system of an image.
type ImageFamily string

// The values of ImageFamily.
const (
	AL2023       ImageFamily = "AL2023"
	Bottlerocket ImageFamily = "Bottlerocket"
)

// ImageVariant is what AWS adds to an operating system.
type ImageVariant string

// The values of ImageVariant.
const (
	VariantStandard   ImageVariant = "Standard"
	VariantNvidia     ImageVariant = "Nvidia"
	VariantNeuron     ImageVariant = "Neuron"
	VariantFIPS       ImageVariant = "FIPS"
	VariantNvidiaFIPS ImageVariant = "NvidiaFIPS"
)

// ImageKind is what AWS publishes one image of, for each Kubernetes version: a family in one variant, for one architecture.
type ImageKind struct {
	Key          string
	Architecture Architecture
	Family       ImageFamily
	Variant      ImageVariant
}

// kinds are the types of images that EKS has.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html#AmazonEKS-Type-Nodegroup-amiType
var kinds = []ImageKind{
	{"amd64", AMD64, AL2023, VariantStandard},
	{"arm64", ARM64, AL2023, VariantStandard},
	{"amd64-nvidia", AMD64, AL2023, VariantNvidia},
	{"arm64-nvidia", ARM64, AL2023, VariantNvidia},
	{"amd64-neuron", AMD64, AL2023, VariantNeuron},
	{"bottlerocket-amd64", AMD64, Bottlerocket, VariantStandard},
	{"bottlerocket-arm64", ARM64, Bottlerocket, VariantStandard},
	{"bottlerocket-amd64-nvidia", AMD64, Bottlerocket, VariantNvidia},
	{"bottlerocket-arm64-nvidia", ARM64, Bottlerocket, VariantNvidia},
	{"bottlerocket-amd64-fips", AMD64, Bottlerocket, VariantFIPS},
	{"bottlerocket-arm64-fips", ARM64, Bottlerocket, VariantFIPS},
	{"bottlerocket-amd64-nvidia-fips", AMD64, Bottlerocket, VariantNvidiaFIPS},
	{"bottlerocket-arm64-nvidia-fips", ARM64, Bottlerocket, VariantNvidiaFIPS},
}

// ImageKinds returns the kinds of images.
func ImageKinds() []ImageKind { return slices.Clone(kinds) }

// ImageKindOf returns the kind of image of a release's key.
func ImageKindOf(key string) (kind ImageKind, found bool) {
	i := slices.IndexFunc(kinds, func(k ImageKind) bool { return k.Key == key })
	if i < 0 {
		return ImageKind{}, false
	}
	return kinds[i], true
}

// ImageKey returns the key of the pool's image in a release. It is empty if there is no such image. Defaults need not be filled in.
func (p *Pool) ImageKey() string {
	want := ImageKind{
		Architecture: cmp.Or(p.Architecture, AMD64), Family: cmp.Or(p.Image.Family, AL2023), Variant: cmp.Or(p.Image.Variant, VariantStandard),
	}
	for _, k := range kinds {
		if want.Key = k.Key; k == want {
			return k.Key
		}
	}
	return ""
}

// imageType has the rules of Image.
var imageType = reflect.TypeFor[Image]()

func validateImage(path *field.Path, p *Pool) (errs field.ErrorList) {
	family, variant := p.Image.Family, p.Image.Variant
	known := func(field, value string) bool {
		i := slices.IndexFunc(fieldsOf(imageType), func(r Rules) bool { return r.Name == field })
		return slices.Contains(fieldsOf(imageType)[i].Enum, value)
	}
	if !known("family", string(family)) || !known("variant", string(variant)) || p.ImageKey() != "" {
		return errs // unknown values have their own errors
	}
	at := path.Child("image", "variant")
	switch {
	case !slices.Contains([]Architecture{AMD64, ARM64}, p.Architecture):
	case family == AL2023 && (variant == VariantFIPS || variant == VariantNvidiaFIPS):
		errs = append(errs, field.Invalid(at, variant, "AWS has no FIPS image of AL2023: use the family Bottlerocket, or remove the variant"))
	case variant == VariantNeuron && family == AL2023:
		errs = append(errs, field.Invalid(at, variant, fmt.Sprintf("AWS has images with Neuron for amd64 only, but the pool's architecture is "+
			"%s: use amd64 with instance types such as inf2.xlarge, or another variant", p.Architecture)))
	default:
		errs = append(errs, field.Invalid(at, variant, fmt.Sprintf("AWS has no %s image of %s: use one of %s", variant, family,
			strings.Join(variantsOf(family), ", "))))
	}
	return errs
}

// variantsOf returns the variants of a family, each once.
func variantsOf(family ImageFamily) (variants []string) {
	for _, k := range kinds {
		if k.Family == family && !slices.Contains(variants, string(k.Variant)) {
			variants = append(variants, string(k.Variant))
		}
	}
	return variants
}

// In returns the release as a cell of a region uses it: with the images of spec.regions, where it has some. The release itself does not
// change.
func (r *Release) In(region string) *Release {
	own, found := r.Spec.Regions[region]
	if !found {
		return r
	}
	here := *r
	here.Spec.Images = maps.Clone(r.Spec.Images)
	if here.Spec.Images == nil {
		here.Spec.Images = map[string]string{}
	}
	maps.Copy(here.Spec.Images, own.Images)
	return &here
}

// noImage is the detail of the error that a release has no image for a pool.
func noImage(release, key string) string {
	return fmt.Sprintf("the release %s has no image %s either: add it to spec.images of the release (`drover release new --images %[2]s` "+
		"prints one), or state imageID", release, key)
}
