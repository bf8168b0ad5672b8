package wire

// The members of Go structs, by their tags. They are computed once for each type.

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// fieldOf is a struct field that is a member.
type fieldOf struct {
	name string
	// named means that a tag sets the name. flat and omitEmpty are options of the tag.
	named, flat, omitEmpty bool
	index                  []int // for reflect.Value.FieldByIndex
}

var fieldsKnown = map[string]*sync.Map{"json": {}, "xml": {}} // types to []fieldOf, by tag
var namesKnown sync.Map                                       // types to map[string]fieldOf

// fieldsOf returns the exported fields of a struct type and of its embedded structs, except those with the tag "-".
func fieldsOf(t reflect.Type, tag string) []fieldOf {
	all := fieldsKnown[tag]
	if cached, ok := all.Load(t); ok {
		return cached.([]fieldOf)
	}
	found := findFields(t, tag, nil)
	all.Store(t, found)
	return found
}

func findFields(t reflect.Type, tag string, at []int) (found []fieldOf) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clip(at), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Type != timeType {
			found = append(found, findFields(f.Type, tag, index)...)
			continue
		}
		options := strings.Split(f.Tag.Get(tag), ",")
		name := options[0]
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		found = append(found, fieldOf{name, options[0] != "", slices.Contains(options, "flat"), slices.Contains(options, "omitempty"), index})
	}
	return found
}

// fieldsByName returns fieldsOf by lower-case name.
func fieldsByName(t reflect.Type) map[string]fieldOf {
	if cached, ok := namesKnown.Load(t); ok {
		return cached.(map[string]fieldOf)
	}
	found := map[string]fieldOf{}
	for _, f := range fieldsOf(t, "json") {
		found[strings.ToLower(f.name)] = f
	}
	namesKnown.Store(t, found)
	return found
}
