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
	Recommended(ctx context.Context, addon, version string) ([]api.RecommendedIdentity, error)
}

// Catalog is what AWS recommends in one region.
type Catalog struct {
	Region     string
	Parameters Parameters
	Images     Images
}

// Drafter writes releases from what AWS recommends now.
type Drafter struct {
	// Catalogs of the regions. The release has the images of the first in spec.images, and those of the others in spec.regions.
	Catalogs []Catalog
	// Defaults are those of the first region.
	Defaults Defaults

	uncovered map[string][]api.RecommendedIdentity
}

// DraftOptions say what a release is to have.
type DraftOptions struct {
	Name, KubernetesVersion string
	// Images are the kinds of images, as keys of a release.
	Images []string
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
	// regions of the catalogs, in their order.
	regions []string
	images  map[string]preflight.Image
	// uncovered has what EKS recommends for add-ons that the release gives no permissions, by add-on.
	uncovered map[string][]api.RecommendedIdentity
}

// Draft makes a release. It fails if AWS recommends no image of a kind in a region, or no version of an add-on.
func (d *Drafter) Draft(ctx context.Context, o DraftOptions) (*Draft, error) {
	versions := templates.Versions()
	spec := api.ReleaseSpec{
		KubernetesVersion: o.KubernetesVersion, Addons: defaultAddons, TemplateVersion: versions[len(versions)-1],
	}
	if o.From != nil {
		spec.Addons, spec.TemplateVersion = o.From.Spec.Addons, o.From.Spec.TemplateVersion
	}
	draft := &Draft{images: map[string]preflight.Image{}}
	for i, catalog := range d.Catalogs {
		draft.regions = append(draft.regions, catalog.Region)
		recommended, found, err := catalog.recommended(ctx, o)
		if err != nil {
			return nil, err
		}
		maps.Copy(draft.images, found)
		if i == 0 {
			spec.Images = recommended
			continue
		}
		if spec.Regions == nil {
			spec.Regions = map[string]api.ReleaseRegion{}
		}
		spec.Regions[catalog.Region] = api.ReleaseRegion{Images: recommended}
	}
	var err error
	if spec.Addons, err = d.addons(ctx, o.KubernetesVersion, spec.Addons); err != nil {
		return nil, err
	}
	draft.Release = &api.Release{APIVersion: api.GroupVersion, Kind: api.KindRelease, Metadata: api.Metadata{Name: o.Name}, Spec: spec}
	draft.uncovered = d.uncovered
	return draft, draft.check()
}

// recommended returns the images that AWS recommends in a region, by key and by id. All are read in one request, unless they are more than
// ten, so that they belong to one edition of AWS's images.
func (c *Catalog) recommended(ctx context.Context, o DraftOptions) (byKey map[string]string, byID map[string]preflight.Image, err error) {
	var parameters []string
	for _, key := range o.Images {
		kind, found := api.ImageKindOf(key)
		if !found {
			return nil, nil, fmt.Errorf("%q is no kind of image", key)
		}
		parameters = append(parameters, preflight.ImageParameter(o.KubernetesVersion, kind))
	}
	values, err := c.Parameters.Values(ctx, parameters)
	if err != nil {
		return nil, nil, err
	}
	byKey = map[string]string{}
	for i, key := range o.Images {
		if byKey[key] = values[parameters[i]]; byKey[key] == "" {
			return nil, nil, fmt.Errorf("AWS recommends no %s image for Kubernetes %s in %s: the parameter %s does not exist; choose another "+
				"version with --kubernetes, or other images with --images", key, o.KubernetesVersion, c.Region, parameters[i])
		}
	}
	if byID, err = c.Images.Images(ctx, slices.Sorted(maps.Values(byKey))); err != nil {
		return nil, nil, err
	}
	for _, key := range o.Images {
		if _, found := byID[byKey[key]]; !found {
			return nil, nil, fmt.Errorf("EC2 has no image %s in %s, which AWS recommends for %s: repeat the command", byKey[key], c.Region, key)
		}
	}
	return byKey, byID, nil
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
		if err := d.identities(ctx, &addons[i]); err != nil {
			return nil, err
		}
	}
	return addons, nil
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
	fmt.Fprintf(&b, "# What AWS recommended in %s. Images of other regions have other ids.\n", strings.Join(d.regions, ", "))
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n", d.Release.APIVersion, d.Release.Kind,
		quote(d.Release.Metadata.Name))
	fmt.Fprintf(&b, "  kubernetesVersion: %s\n  images:\n", quote(spec.KubernetesVersion))
	d.writeImages(&b, "    ", spec.Images)
	for i, region := range slices.Sorted(maps.Keys(spec.Regions)) {
		if i == 0 {
			b.WriteString("  regions:\n")
		}
		fmt.Fprintf(&b, "    %s:\n      images:\n", region)
		d.writeImages(&b, "        ", spec.Regions[region].Images)
	}
	if len(spec.Addons) > 0 {
		b.WriteString("  addons:\n")
	}
	for _, addon := range spec.Addons {
		fmt.Fprintf(&b, "    - name: %s\n      version: %s\n", quote(addon.Name), quote(addon.Version))
		if addon.Configuration != nil {
			fmt.Fprintf(&b, "      configuration: %s\n", quote(addon.Configuration))
		}
		b.WriteString(d.identitiesYAML(addon))
	}
	fmt.Fprintf(&b, "  templateVersion: %s\n", quote(spec.TemplateVersion))
	return b.Bytes()
}

// writeImages writes the images of a region, with their names.
func (d *Draft) writeImages(b *bytes.Buffer, indent string, images map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(images)) {
		fmt.Fprintf(b, "%s%s: %s # %s\n", indent, key, images[key], oneLine(d.images[images[key]].Name))
	}
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
