package releases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/templates"
)

// Parameters are the public parameters of a region: a subset of ssm.Parameters.
type Parameters interface {
	Values(ctx context.Context, names []string) (map[string]string, error)
}

// Defaults are the default versions of add-ons: a subset of eks.Reader.
type Defaults interface {
	DefaultVersions(ctx context.Context, kubernetesVersion string, addons []string) (map[string]string, error)
}

// Drafter writes releases from what AWS recommends in one region now.
type Drafter struct {
	Parameters Parameters
	Defaults   Defaults
	Images     Images
	Region     string
}

// DraftOptions say what a release is to have.
type DraftOptions struct {
	Name, KubernetesVersion string
	Architectures           []api.Architecture
	// From is the release whose add-ons, their configuration and the template version the new one keeps, or nil.
	From *api.Release
}

// defaultAddons are those of a release that is made from no other.
var defaultAddons = []api.Addon{
	{Name: "vpc-cni"}, {Name: "kube-proxy"}, {Name: "eks-pod-identity-agent"}, {Name: "coredns"}, {Name: "aws-ebs-csi-driver"},
}

// Draft is a new release.
type Draft struct {
	Release *api.Release
	region  string
	images  map[string]preflight.Image
}

// Draft makes a release. It fails if AWS recommends no image for an architecture, or no version of an add-on. All images are read in one
// request, so that they belong to one edition of AWS's images.
func (d *Drafter) Draft(ctx context.Context, o DraftOptions) (*Draft, error) {
	versions := templates.Versions()
	spec := api.ReleaseSpec{
		KubernetesVersion: o.KubernetesVersion, Images: map[api.Architecture]string{}, Addons: defaultAddons,
		TemplateVersion: versions[len(versions)-1],
	}
	if o.From != nil {
		spec.Addons, spec.TemplateVersion = o.From.Spec.Addons, o.From.Spec.TemplateVersion
	}
	release := &api.Release{APIVersion: api.GroupVersion, Kind: api.KindRelease, Metadata: api.Metadata{Name: o.Name}, Spec: spec}

	var parameters []string
	for _, architecture := range o.Architectures {
		parameters = append(parameters, imageParameter(o.KubernetesVersion, architecture))
	}
	values, err := d.Parameters.Values(ctx, parameters)
	if err != nil {
		return nil, err
	}
	for i, architecture := range o.Architectures {
		image := values[parameters[i]]
		if image == "" {
			return nil, fmt.Errorf("AWS recommends no %s image for Kubernetes %s in %s: the parameter %s does not exist; choose another version "+
				"with --kubernetes, or other images with --images", architecture, o.KubernetesVersion, d.Region, parameters[i])
		}
		release.Spec.Images[architecture] = image
	}
	if release.Spec.Addons, err = d.addons(ctx, o.KubernetesVersion, spec.Addons); err != nil {
		return nil, err
	}
	images, err := d.Images.Images(ctx, slices.Sorted(maps.Values(release.Spec.Images)))
	if err != nil {
		return nil, err
	}
	for architecture, id := range release.Spec.Images {
		if _, found := images[id]; !found {
			return nil, fmt.Errorf("EC2 has no image %s in %s, which AWS recommends for %s: repeat the command", id, d.Region, architecture)
		}
	}
	draft := &Draft{Release: release, region: d.Region, images: images}
	return draft, draft.check()
}

// addons returns the add-ons with their default versions.
func (d *Drafter) addons(ctx context.Context, kubernetesVersion string, addons []api.Addon) ([]api.Addon, error) {
	var names []string
	for _, addon := range addons {
		names = append(names, addon.Name)
	}
	versions, err := d.Defaults.DefaultVersions(ctx, kubernetesVersion, names)
	if err != nil {
		return nil, err
	}
	addons = slices.Clone(addons)
	for i := range addons {
		if addons[i].Version = versions[addons[i].Name]; addons[i].Version == "" {
			return nil, fmt.Errorf("EKS has no default version of the add-on %s for Kubernetes %s: use --from with a release without it",
				addons[i].Name, kubernetesVersion)
		}
	}
	return addons, nil
}

// imageParameter returns the public parameter with the AL2023 image that AWS recommends.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
func imageParameter(kubernetesVersion string, architecture api.Architecture) string {
	in := map[api.Architecture]string{api.AMD64: "x86_64", api.ARM64: "arm64"}[architecture]
	return "/aws/service/eks/optimized-ami/" + kubernetesVersion + "/amazon-linux-2023/" + in + "/standard/recommended/image_id"
}

// check decodes and validates what YAML returns, as drover does after an upload.
func (d *Draft) check() error {
	name := d.Release.Metadata.Name
	_, errs := api.ReadRelease(names.ReleaseSpec(name), d.YAML(), api.Options{Name: name, TemplateVersions: templates.Versions()})
	return errs.Err()
}

// YAML returns the file of the release. The same draft has the same bytes.
func (d *Draft) YAML() []byte {
	var b bytes.Buffer
	spec := d.Release.Spec
	fmt.Fprintf(&b, "# What AWS recommended in %s. Images of other regions have other ids.\n", d.region)
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n", d.Release.APIVersion, d.Release.Kind,
		quote(d.Release.Metadata.Name))
	fmt.Fprintf(&b, "  kubernetesVersion: %s\n  images:\n", quote(spec.KubernetesVersion))
	for _, architecture := range slices.Sorted(maps.Keys(spec.Images)) {
		id := spec.Images[architecture]
		fmt.Fprintf(&b, "    %s: %s # %s\n", architecture, id, oneLine(d.images[id].Name))
	}
	if len(spec.Addons) > 0 {
		b.WriteString("  addons:\n")
	}
	for _, addon := range spec.Addons {
		fmt.Fprintf(&b, "    - name: %s\n      version: %s\n", quote(addon.Name), quote(addon.Version))
		if addon.Configuration != nil {
			fmt.Fprintf(&b, "      configuration: %s\n", quote(addon.Configuration))
		}
	}
	fmt.Fprintf(&b, "  templateVersion: %s\n", quote(spec.TemplateVersion))
	return b.Bytes()
}

// quote returns a value as JSON, which is YAML too. Keys of objects are sorted.
func quote(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // values come from decoded YAML
		panic(err)
	}
	return string(text)
}

// oneLine makes a name safe for a comment.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }
