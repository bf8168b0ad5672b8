package wire

// The members of Go structs, by their tags: found once for each type.

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// fieldOf a struct that is a member.
type fieldOf struct {
	name string
	// named says that a tag gives the name; flat and omitEmpty are the tag's options.
	named, flat, omitEmpty bool
	index                  []int // reflect.Value.FieldByIndex
}

var fieldsKnown = map[string]*sync.Map{"json": {}, "xml": {}} // of types to []fieldOf, by tag
var namesKnown sync.Map                                       // of types to map[string]fieldOf

// fieldsOf a struct type are its exported fields, and those of structs embedded in it, less those that tag calls "-".
func fieldsOf(t reflect.Type, tag string) []fieldOf {
	all := fieldsKnown[tag]
	if known, ok := all.Load(t); ok {
		return known.([]fieldOf)
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

// fieldsByName are fieldsOf by their names in lower case.
func fieldsByName(t reflect.Type) map[string]fieldOf {
	if known, ok := namesKnown.Load(t); ok {
		return known.(map[string]fieldOf)
	}
	found := map[string]fieldOf{}
	for _, f := range fieldsOf(t, "json") {
		found[strings.ToLower(f.name)] = f
	}
	namesKnown.Store(t, found)
	return found
}
