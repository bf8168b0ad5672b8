package api

// Rules come from the fields' `rule` tags. Decoding, defaults, validation, the JSON Schemas and the field reference read them. So each
// fact is stated once, at its field.

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Rules of one field. A tag is a list separated by semicolons, such as `rule:"default=50;min=20;max=65536"`; lists
// within are separated by commas.
type Rules struct {
	// Name is the field's name in YAML. Required reports whether it must be present.
	Name     string
	Required bool
	// Default is drover's default if neither spec nor release sets the field. A list has several.
	Default []string
	// Enum lists the allowed values of the field, or of each item of a list.
	Enum []string
	// Min and Max bound a number that is set.
	Min, Max *int
	// MinItems and MaxItems bound a list that is given.
	MinItems, MaxItems *int
	// Format of the string, of each item of a list, or of each value of a map. Keys is the format of a map's keys.
	Format, Keys *Format
	// Unique forbids duplicate values in a list. UniqueBy names the fields that identify its objects.
	Unique   bool
	UniqueBy []string
	// MayBeEmpty allows "" in a required string.
	MayBeEmpty bool
	// Partial objects need none of the fields that are required, and do not have those of Without. The objects within are partial, too.
	Partial bool
	Without []string
	// Secret values never appear in messages.
	Secret bool
	// ObjectName is the format of metadata.name below this field.
	ObjectName *Format
}

// RulesOf returns the rules of a field. It panics on an invalid tag: tags are code.
func RulesOf(f reflect.StructField) Rules {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	r := Rules{Name: name, Required: options == ""}
	for _, part := range strings.Split(f.Tag.Get("rule"), ";") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "default":
			r.Default = strings.Split(value, ",")
		case "enum":
			r.Enum = strings.Split(value, ",")
		case "min":
			r.Min = number(f, value)
		case "max":
			r.Max = number(f, value)
		case "minItems":
			r.MinItems = number(f, value)
		case "maxItems":
			r.MaxItems = number(f, value)
		case "format":
			r.Format = formatNamed(value)
		case "keys":
			r.Keys = formatNamed(value)
		case "unique":
			r.Unique = true
			if value != "" {
				r.UniqueBy = strings.Split(value, ",")
			}
		case "empty":
			r.MayBeEmpty = true
		case "partial":
			r.Partial = true
		case "without":
			r.Without = strings.Split(value, ",")
		case "secret":
			r.Secret = true
		case "name":
			r.ObjectName = formatNamed(value)
		default:
			panic(fmt.Sprintf("field %s: unknown rule %q", f.Name, part))
		}
	}
	return r
}

// within returns the rules of a field in an object with rules.
func (r Rules) within(object Rules) Rules {
	if object.Partial {
		r.Partial, r.Required = true, false
	}
	return r
}

// ofItem returns the rules of each item of a list. The items of a list in a partial object are complete.
func (r Rules) ofItem() Rules {
	r.Partial = false
	return r
}

func number(f reflect.StructField, value string) *int {
	n, err := strconv.Atoi(value)
	if err != nil {
		panic(fmt.Sprintf("field %s: %q is not a number", f.Name, value))
	}
	return &n
}

// structFields caches the rules of each struct's fields, in the order in which they are declared.
var structFields sync.Map // reflect.Type → []Rules

func fieldsOf(t reflect.Type) []Rules {
	if cached, ok := structFields.Load(t); ok {
		return cached.([]Rules)
	}
	fields := make([]Rules, t.NumField())
	for i := range fields {
		fields[i] = RulesOf(t.Field(i))
	}
	structFields.Store(t, fields)
	return fields
}
