package api

// Resolving fills in the defaults of the release and of drover.

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Resolve returns a copy of a cluster with all defaults of the release and of drover, as rendering needs it. The spec takes precedence.
// Add-ons are merged by name: first the release's, in its order, then the spec's own. An add-on of both keeps what the spec states and
// takes the rest from the release. Resolving twice changes nothing. The errors are about fields that neither states. Call Validate first
// for all other errors.
func Resolve(c *Cluster, r *Release) (*Cluster, Errors) {
	out := clone(reflect.ValueOf(c)).Interface().(*Cluster)
	spec, path := &out.Spec, field.NewPath("spec")
	var errs field.ErrorList
	lacks := func(p *field.Path, what string) {
		errs = append(errs, field.Required(p, fmt.Sprintf("the release %s has no %s either", r.Metadata.Name, what)))
	}

	if spec.Release.Name != r.Metadata.Name {
		errs = append(errs, field.Invalid(path.Child("release", "name"), spec.Release.Name, fmt.Sprintf("the release read is %q",
			r.Metadata.Name)))
	}
	if fill(&spec.KubernetesVersion, r.Spec.KubernetesVersion); spec.KubernetesVersion == "" {
		lacks(path.Child("kubernetesVersion"), "Kubernetes version")
	}
	if fill(&spec.TemplateVersion, r.Spec.TemplateVersion); spec.TemplateVersion == "" {
		lacks(path.Child("templateVersion"), "template version")
	}
	setDefaults(out)
	for i := range spec.Pools {
		pool := &spec.Pools[i]
		if fill(&pool.ImageID, r.Spec.Images[pool.ImageKey()]); pool.ImageID == "" {
			errs = append(errs, field.Required(path.Child("pools").Index(i).Child("imageID"), noImage(r.Metadata.Name, pool.ImageKey())))
		}
	}
	own := spec.Addons
	spec.Addons = mergeAddons(r.Spec.Addons, own)
	for _, addon := range spec.Addons {
		if addon.Version == "" {
			i := slices.IndexFunc(own, func(a Addon) bool { return a.Name == addon.Name })
			lacks(path.Child("addons").Index(max(i, 0)).Child("version"), "version of "+addon.Name)
		}
	}
	return out, fromFields(errs)
}

// NodesNeed reports whether nodes need an add-on to become Ready, or to get their permissions. Every other add-on runs on nodes, and so
// is installed after them.
func NodesNeed(addon string) bool {
	switch addon {
	case "vpc-cni", "kube-proxy", PodIdentityAgent:
		return true
	}
	return false
}

// mergeAddons returns copies: first the release's add-ons, then the spec's own.
func mergeAddons(release, spec []Addon) []Addon {
	merged := clone(reflect.ValueOf(release)).Interface().([]Addon)
	for _, own := range spec {
		i := slices.IndexFunc(merged, func(a Addon) bool { return a.Name == own.Name })
		if i < 0 {
			merged = append(merged, own)
			continue
		}
		if own.Version != "" {
			merged[i].Version = own.Version
		}
		if own.Configuration != nil {
			merged[i].Configuration = own.Configuration
		}
		if own.PodIdentities != nil {
			merged[i].PodIdentities = own.PodIdentities
		}
	}
	return merged
}

// fill sets a value that is empty.
func fill(target *string, value string) {
	if *target == "" {
		*target = value
	}
}

// setDefaults fills in drover's own defaults from the fields' rules.
func setDefaults(c *Cluster) {
	if c.Spec.Network.Existing != nil {
		// drover does not manage the gateways of an existing network.
		defer func(stated NATGateways) { c.Spec.Network.NATGateways = stated }(c.Spec.Network.NATGateways)
	}
	applyDefaults(reflect.ValueOf(c).Elem())
	setIdentityDefaults(c.Spec.PodIdentities)
}

func applyDefaults(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			applyDefaults(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			applyDefaults(v.Index(i))
		}
	case reflect.Struct:
		for i, rules := range fieldsOf(v.Type()) {
			if f := v.Field(i); rules.Default != nil && f.IsZero() {
				f.Set(defaultOf(f.Type(), rules.Default))
			} else {
				applyDefaults(f)
			}
		}
	}
}

// defaultOf parses a default from a tag. Tags are code: it panics on a value that does not fit the type.
func defaultOf(t reflect.Type, texts []string) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(defaultOf(t.Elem(), texts))
	case reflect.Slice:
		for _, text := range texts {
			v = reflect.Append(v, defaultOf(t.Elem(), []string{text}))
		}
	case reflect.Bool:
		v.SetBool(texts[0] == "true")
	case reflect.Int:
		n, err := strconv.Atoi(texts[0])
		if err != nil {
			panic(err)
		}
		v.SetInt(int64(n))
	case reflect.String:
		v.SetString(texts[0])
	default:
		panic(fmt.Sprintf("a default for type %s", t))
	}
	return v
}

// clone copies a value with everything to which it points.
func clone(v reflect.Value) reflect.Value {
	if flat(v.Kind()) {
		return v
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(clone(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(clone(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			if reflect.Copy(out, v); flat(v.Type().Elem().Kind()) {
				break
			}
			for i := range v.Len() {
				out.Index(i).Set(clone(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for key, item := range v.Seq2() {
				out.SetMapIndex(key, clone(item))
			}
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if f := v.Field(i); !flat(f.Kind()) && !f.IsZero() {
				out.Field(i).Set(clone(f))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

// flat reports whether values of a kind point to nothing that could be changed. They are copied by assignment.
func flat(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Complex128
}
