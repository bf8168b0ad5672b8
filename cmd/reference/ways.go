package main

// Ways to change a field: other values, which are tried until one is valid.

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/shared/api"
)

// pemEnd is the end of a certificate in PEM.
const pemEnd = "-----END CERTIFICATE-----\n"

// way to change a value. other returns the n-th value to try, from 0, and false after the last one.
type way struct {
	name  string
	other func(v any, n int) (any, bool)
}

// fieldsOf are the fields of a kind by path, including objects, and without the fields of defaults: they have those of the objects that
// take them.
func fieldsOf(t reflect.Type, path string) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			here := strings.TrimPrefix(path+"."+api.RulesOf(f).Name, ".")
			if !yield(here, f) {
				return
			}
			if _, object := typeName(f.Type); object != nil && !api.RulesOf(f).Partial {
				if elem(f.Type).Kind() == reflect.Slice {
					here += "[]"
				}
				for path, field := range fieldsOf(object, here) {
					if !yield(path, field) {
						return
					}
				}
			}
		}
	}
}

// ways of a field, by its type. An object has none of its own.
func ways(path string, field reflect.StructField) []way {
	t, enum := elem(field.Type), api.RulesOf(field).Enum
	switch t.Kind() {
	case reflect.Slice:
		return []way{
			{"adding\x00", func(v any, n int) (any, bool) { return longer(v, n, enum) }},
			{"removing\x00", func(v any, n int) (any, bool) {
				list, _ := v.([]any)
				return slices.Delete(slices.Clone(list), max(0, len(list)-1-n), max(0, len(list)-n)), n < len(list)
			}},
		}
	case reflect.Struct:
		return nil
	}
	return []way{{"\x00", func(v any, n int) (any, bool) {
		all := others(v, t, enum)
		if n >= len(all) {
			return nil, false
		}
		return all[n], true
	}}}
}

// longer adds an element to a list that differs from its last element.
func longer(v any, n int, enum []string) (any, bool) {
	list, _ := v.([]any)
	var last any
	if len(list) > 0 {
		last = list[len(list)-1]
	}
	var tries []any
	switch last := last.(type) {
	case map[string]any:
		for _, key := range []string{"name", "key", "path", "principalARN", "until", "serviceAccount"} {
			for _, other := range others(last[key], reflect.TypeFor[string](), nil) {
				more := maps.Clone(last)
				more[key] = other
				tries = append(tries, more)
			}
		}
	default:
		tries = others(last, reflect.TypeFor[string](), enum)
	}
	if n >= len(tries) {
		return nil, false
	}
	return append(slices.Clone(list), tries[n]), true
}

// words are values that a rule accepts without an enumeration: types of disks, time zones, policies of add-ons.
var words = []any{"gp3", "gp2", "io1", "America/New_York", "AmazonEFSCSIDriverPolicy"}

var digits = regexp.MustCompile(`\d+`)

// others are values that may be valid in place of v.
func others(v any, t reflect.Type, enum []string) (all []any) {
	for _, e := range enum {
		if e != v {
			all = append(all, e)
		}
	}
	if len(enum) > 0 {
		return all
	}
	switch v := v.(type) {
	case bool:
		return []any{!v}
	case float64:
		return []any{v + 1, v - 1, v * 2}
	case map[string]any:
		more := maps.Clone(v)
		more["example"] = "x"
		if t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Int {
			more["example"] = float64(1)
		}
		return []any{more}
	case nil:
		switch t.Kind() {
		case reflect.Bool:
			return []any{true, false}
		case reflect.Int:
			return []any{1, 2, 100}
		case reflect.Map:
			return []any{map[string]any{"example": "x"}}
		}
		return append([]any{
			"x", "10m", "50%", "2030-01-01T00:00:00Z", "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
		}, words...)
	case string:
		if strings.HasSuffix(v, pemEnd) { // a certificate: text around it has no effect
			return []any{v + v}
		}
		all = append(all, v+"x")
		for _, at := range digits.FindAllStringIndex(v, -1) {
			number := v[at[0]:at[1]]
			if n, err := strconv.Atoi(number); err == nil {
				for _, by := range []int{1, -1} {
					all = append(all, v[:at[0]]+fmt.Sprintf("%0*d", len(number), max(0, n+by))+v[at[1]:])
				}
			}
		}
		if v != "" {
			all = append(all, v[:len(v)-1]+string(v[len(v)-1]+1))
		}
		return append(all, words...)
	}
	return nil
}

// edit changes the value at a path of a document and returns the document. In a list of objects, it changes the first element that can be
// changed. It creates absent values unless strict. ok is false if nothing can be changed.
func edit(document any, path []string, strict bool, change func(any) (any, bool)) (out any, ok bool) {
	if len(path) == 0 {
		return change(document)
	}
	object, isObject := document.(map[string]any)
	if !isObject {
		if document != nil || strict {
			return nil, false
		}
		object = map[string]any{}
	}
	key, list := strings.CutSuffix(path[0], "[]")
	value, found := object[key]
	if strict && !found {
		return nil, false
	}
	if !list {
		object[key], ok = edit(value, path[1:], strict, change)
		return object, ok
	}
	elements, _ := value.([]any)
	for i := range elements {
		if other, ok := edit(elements[i], path[1:], strict, change); ok {
			elements[i] = other
			return object, true
		}
	}
	return nil, false
}
