package api

// Validation reports all errors that can be found without calling AWS, at once. Rules of one field are in its tag. Rules about several
// fields are in the other validate files.

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options of validation.
type Options struct {
	// Name that the object must have: that of the file or key, without .yaml. If it is empty, any name is allowed.
	Name string
	// TemplateVersions of this drover. If it is empty, they are not checked.
	TemplateVersions []string
	// Now is the current time, with which a window that never opens again is an error. The zero time skips that check.
	Now time.Time
	// Cell has the settings of the cell. If it is nil, they are not checked.
	Cell *CellSettings
}

// Validate returns the errors of a cluster's spec, as written or resolved.
func Validate(c *Cluster, o Options) Errors { return fromFields(validateCluster(c, o)) }

// ValidateRelease returns the errors of a release.
func ValidateRelease(r *Release, o Options) Errors { return fromFields(validateRelease(r, o)) }

// ValidateChannels returns the errors of channels.
func ValidateChannels(c *Channels, o Options) Errors { return fromFields(validateChannels(c, o)) }

// ReadChannels decodes and validates channels, like ReadCluster.
func ReadChannels(file string, data []byte, o Options) (*Channels, Errors) {
	d := decode(file, data, KindChannels)
	if errs := d.withValidation(func() field.ErrorList { return validateChannels(d.object.(*Channels), o) }); len(errs) > 0 {
		return nil, errs
	}
	return d.object.(*Channels), nil
}

// withValidation adds the errors of validation to those of decoding. It does not check what could not be read.
func (d *document) withValidation(validate func() field.ErrorList) Errors {
	errs := d.errors()
	if len(d.places) == 0 {
		return errs // nothing could be read
	}
	var found Errors
	for _, e := range fromFields(validate()) {
		unread := func(u *field.Error) bool {
			rest, ok := strings.CutPrefix(e.Cause.Field, u.Field)
			return ok && u.Field != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if !slices.ContainsFunc(d.errs, unread) {
			found = append(found, e)
		}
	}
	return append(errs, d.locate(found)...).sortedByLine().withoutFilled()
}

func validateCluster(c *Cluster, o Options) field.ErrorList {
	errs := validateFields(nil, reflect.ValueOf(c).Elem(), Rules{}, nil)
	errs = append(errs, validateMetadata(c.Metadata, o)...)

	// Fields are compared with drover's defaults filled in. Lists keep their order, so paths stay valid.
	full := clone(reflect.ValueOf(c)).Interface().(*Cluster)
	setDefaults(full)
	spec := field.NewPath("spec")
	errs = append(errs, validateTemplateVersion(spec.Child("templateVersion"), c.Spec.TemplateVersion, o)...)
	errs = append(errs, validateNetwork(spec.Child("network"), &full.Spec)...)
	errs = append(errs, validateControlPlane(spec.Child("controlPlane"), &full.Spec)...)
	for i := range full.Spec.Pools {
		pool := spec.Child("pools").Index(i)
		errs = append(errs, validatePool(pool, &full.Spec.Pools[i])...)
		errs = append(errs, validatePoolZones(pool.Child("zones"), full.Spec.Pools[i].Zones, &full.Spec.Network)...)
		errs = append(errs, validatePoolSubnets(pool.Child("subnets"), full.Spec.Pools[i].Subnets, &full.Spec.Network)...)
		errs = append(errs, validateDiskKeys(pool, &full.Spec.Pools[i], &full.Spec.Network)...)
		errs = append(errs, validateProxy(pool.Child("proxy"), full.Spec.Pools[i].Proxy, &full.Spec.Network)...)
		errs = append(errs, validateBundle(pool.Child("caBundle"), full.Spec.Pools[i].CABundle, o.Now)...)
		errs = append(errs, validatePoolTags(pool.Child("tags"), full.Spec.Pools[i].Tags, c.Spec.Tags)...)
	}
	errs = append(errs, validateAddonIdentities(spec.Child("addons"), full.Spec.Addons, o.Cell)...)
	errs = append(errs, validatePodIdentities(spec.Child("podIdentities"), full.Spec.PodIdentities, full.Spec.Addons, o.Cell)...)
	errs = append(errs, validateCapabilities(spec.Child("capabilities"), full.Spec.Capabilities, o.Cell)...)
	errs = append(errs, validateUpgrade(spec.Child("upgrade"), &full.Spec, o.Now)...)
	errs = append(errs, validateTags(spec.Child("tags"), c.Spec.Tags)...)
	return errs
}

func validateRelease(r *Release, o Options) field.ErrorList {
	errs := validateFields(nil, reflect.ValueOf(r).Elem(), Rules{}, nil)
	errs = append(errs, validateMetadata(r.Metadata, o)...)
	spec := field.NewPath("spec")
	errs = append(errs, validateTemplateVersion(spec.Child("templateVersion"), r.Spec.TemplateVersion, o)...)
	for i, addon := range r.Spec.Addons {
		if addon.Version == "" {
			errs = append(errs, field.Required(spec.Child("addons").Index(i).Child("version"), "a release states the versions of its add-ons"))
		}
	}
	errs = append(errs, validateAddonIdentities(spec.Child("addons"), r.Spec.Addons, o.Cell)...)
	return append(errs, validateUpgradeFrom(spec.Child("upgradeFrom"), r)...)
}

func validateChannels(c *Channels, o Options) field.ErrorList {
	return append(validateFields(nil, reflect.ValueOf(c).Elem(), Rules{}, nil), validateMetadata(c.Metadata, o)...)
}

func validateMetadata(m Metadata, o Options) field.ErrorList {
	var errs field.ErrorList
	if o.Name != "" && m.Name != o.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), m.Name, fmt.Sprintf("must be the name of the file, %q", o.Name)))
	}
	if total := sizeOf(m.Annotations); total > maxAnnotations {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "annotations"), nil, maxAnnotations))
	}
	return errs
}

// maxAnnotations is Kubernetes' limit for the size of all annotations of an object, in bytes.
const maxAnnotations = 256 << 10

func sizeOf(m map[string]string) (total int) {
	for key, value := range m {
		total += len(key) + len(value)
	}
	return total
}

func validateTemplateVersion(path *field.Path, version string, o Options) field.ErrorList {
	if version == "" || len(o.TemplateVersions) == 0 || slices.Contains(o.TemplateVersions, version) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, version, o.TemplateVersions)}
}

// validateFields checks each field against its rules. name is the format of metadata.name.
func validateFields(path *field.Path, v reflect.Value, rules Rules, name *Format) (errs field.ErrorList) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return validateFields(path, v.Elem(), rules, name)
		}
	case reflect.Struct:
		for i, r := range fieldsOf(v.Type()) {
			if r.Name == "name" && name != nil {
				r.Format = name
			}
			f, here, r := v.Field(i), child(path, r.Name), r.within(rules)
			switch {
			case !absent(f, r):
				errs = append(errs, validateFields(here, f, r, r.ObjectName)...)
			case r.Required && !r.MayBeEmpty:
				errs = append(errs, field.Required(here, ""))
			}
		}
	case reflect.Slice:
		errs = append(errs, validateList(path, v, rules)...)
	case reflect.Map:
		errs = append(errs, validateMap(path, v, rules)...)
	case reflect.String:
		errs = append(errs, validateString(path, v.String(), rules)...)
	case reflect.Int:
		n := v.Int()
		if rules.Min != nil && n < int64(*rules.Min) {
			errs = append(errs, field.Invalid(path, n, atLeast(*rules.Min)))
		}
		if rules.Max != nil && n > int64(*rules.Max) {
			errs = append(errs, field.Invalid(path, n, fmt.Sprintf("must be less than or equal to %d", *rules.Max)))
		}
	}
	return errs
}

// absent reports whether a field looks absent by its value.
func absent(v reflect.Value, rules Rules) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() == 0
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return v.IsNil()
	case reflect.Int:
		return v.IsZero() && !rules.Required
	}
	return false
}

func atLeast(n int) string { return fmt.Sprintf("must be greater than or equal to %d", n) }

func validateList(path *field.Path, v reflect.Value, rules Rules) (errs field.ErrorList) {
	errs = append(errs, validateCount(path, v.Len(), rules)...)
	seen := map[string]bool{}
	for i := range v.Len() {
		item, here := v.Index(i), path.Index(i)
		if rules.Unique {
			identity, at, value := identityOf(here, item, rules.UniqueBy)
			if seen[identity] {
				errs = append(errs, field.Duplicate(at, value))
			}
			// Missing values are reported as missing, not as duplicates.
			seen[identity] = value != ""
		}
		errs = append(errs, validateFields(here, item, rules.ofItem(), nil)...)
	}
	return errs
}

// identityOf returns what identifies an item of a list, where it is in the file, and how to show it.
func identityOf(path *field.Path, item reflect.Value, by []string) (identity string, at *field.Path, value string) {
	if len(by) == 0 {
		return item.String(), path, item.String()
	}
	parts := make([]string, len(by))
	for i, r := range fieldsOf(item.Type()) {
		if n := slices.Index(by, r.Name); n >= 0 {
			parts[n] = item.Field(i).String()
		}
	}
	if len(by) == 1 {
		path = path.Child(by[0])
	}
	return strings.Join(parts, "\x00"), path, strings.Join(parts, ":")
}

func validateMap(path *field.Path, v reflect.Value, rules Rules) (errs field.ErrorList) {
	errs = append(errs, validateCount(path, v.Len(), rules)...)
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		here := path.Key(key.String())
		if rules.Keys != nil {
			errs = append(errs, validateString(here, key.String(), Rules{Format: rules.Keys})...)
		}
		switch item := v.MapIndex(key); item.Kind() {
		case reflect.String:
			errs = append(errs, validateString(here, item.String(), rules)...)
		case reflect.Int:
			errs = append(errs, validateFields(here, item, rules, nil)...)
		case reflect.Struct:
			errs = append(errs, validateFields(here, item, Rules{}, nil)...)
		}
	}
	return errs
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func validateCount(path *field.Path, n int, rules Rules) (errs field.ErrorList) {
	if rules.MinItems != nil && n < *rules.MinItems {
		errs = append(errs, field.TooFew(path, n, *rules.MinItems))
	}
	if rules.MaxItems != nil && n > *rules.MaxItems {
		errs = append(errs, field.TooMany(path, n, *rules.MaxItems))
	}
	return errs
}

func validateString(path *field.Path, value string, rules Rules) (errs field.ErrorList) {
	if len(rules.Enum) > 0 && !slices.Contains(rules.Enum, value) {
		return field.ErrorList{field.NotSupported(path, shorten(value), rules.Enum)}
	}
	if rules.Format == nil {
		return nil
	}
	for _, wrong := range rules.Format.Wrong(value) {
		var bad any = shorten(value)
		if rules.Secret {
			bad = raw(fmt.Sprintf("(%d bytes)", len(value)))
		}
		errs = append(errs, field.Invalid(path, bad, wrong))
	}
	return errs
}
