package api

// The defaults of pools. They are filled in while the file is decoded: only there a field that a pool states, such as minSize: 0, differs
// from one that it does not. The filled fields keep the positions of the defaults, so that errors name the line to correct.

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fillPools gives each pool of a spec what it does not state of spec.poolDefaults: objects field by field, lists and maps whole. A null is
// like an absent field. It reports false if the file would have more than maxValues values.
func fillPools(root *yaml.Node) bool {
	_, spec := lookup(root, "spec")
	if spec == nil {
		return true
	}
	_, defaults := lookup(spec, "poolDefaults")
	_, pools := lookup(spec, "pools")
	if defaults == nil || pools == nil {
		return true
	}
	left := maxValues - count(root)
	for _, pool := range pools.Content {
		left -= fillNode(pool, defaults, reflect.TypeFor[Pool]())
		if left < 0 {
			return false
		}
	}
	return true
}

// fillNode gives an object the fields that it does not state, and returns the number of nodes that it got. Values are shared with the
// defaults, because decoding changes none.
func fillNode(object, defaults *yaml.Node, t reflect.Type) (added int) {
	if object.Kind != yaml.MappingNode || defaults.Kind != yaml.MappingNode {
		return 0
	}
	for i, r := range fieldsOf(t) {
		key, value := lookup(defaults, r.Name)
		if value == nil || isNull(value) || r.Name == "name" {
			continue
		}
		stated, own := lookup(object, r.Name)
		switch inner := indirect(t.Field(i).Type); {
		case own == nil:
			object.Content = append(object.Content, key, value)
			added += 1 + count(value)
		case isNull(own):
			*stated, *own = *key, *value
			added += count(value)
		case inner.Kind() == reflect.Struct:
			added += fillNode(own, value, inner)
		}
	}
	return added
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// withoutFilled drops errors of pools that are errors of the defaults with which they were filled.
func (l Errors) withoutFilled() Errors {
	const pools, defaults = "spec.pools[", "spec.poolDefaults."
	type identity struct {
		line, column int
		kind         field.ErrorType
		detail       string
	}
	of := func(e *Error) identity { return identity{e.Line, e.Column, e.Cause.Type, e.Cause.Detail} }
	known := map[identity]bool{}
	for _, e := range l {
		if strings.HasPrefix(e.Cause.Field, defaults) {
			known[of(e)] = true
		}
	}
	return slices.DeleteFunc(l, func(e *Error) bool { return strings.HasPrefix(e.Cause.Field, pools) && known[of(e)] })
}
