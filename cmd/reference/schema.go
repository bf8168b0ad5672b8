package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/drover-run/drover/shared/api"
)

// object is a JSON object that keeps the order in which its members are set.
type object []member

type member struct {
	key   string
	value any
}

func (o *object) set(key string, value any) { *o = append(*o, member{key, value}) }

// MarshalJSON writes the members in order, without escapes for HTML.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encoder.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// between has the rules between fields of a type that a schema contains, so that editors show violations.
var between = map[reflect.Type]object{
	reflect.TypeFor[api.Network](): {
		{"if", object{{"required", []string{"existing"}}}},
		{"then", object{{"properties", object{{"cidr", false}, {"secondaryCIDRs", false}, {"zones", false}, {"natGateways", false}}}}},
		{"else", object{{"required", []string{"cidr", "zones"}}}},
	},
	// What a pool needs may be in the defaults.
	reflect.TypeFor[api.ClusterSpec](): {
		{"if", object{{"properties", object{{"poolDefaults", false}}}}},
		{"then", object{{"properties", object{{"pools", object{{"items", object{
			{"required", []string{"instanceTypes", "minSize", "maxSize"}},
			{"properties", object{{"spot", object{{"required", []string{"onDemandBase", "onDemandPercentage"}}}}}},
		}}}}}}}},
	},
	reflect.TypeFor[api.Window](): {
		{"if", object{{"required", []string{"cron"}}}},
		{"then", object{{"properties", object{{"days", false}, {"start", false}}}}},
		{"else", object{{"required", []string{"start"}}}},
	},
	reflect.TypeFor[api.RolloutSpec]():    {{"oneOf", []object{{{"required", []string{"stages"}}}, {{"required", []string{"like"}}}}}},
	reflect.TypeFor[api.RolloutSubject](): {{"oneOf", []object{{{"required", []string{"release"}}}, {{"required", []string{"releases"}}}}}},
	reflect.TypeFor[api.Gate]():           {{"required", []string{"approval"}}},
	reflect.TypeFor[api.FreezeSpec](): {
		{"if", object{{"required", []string{"windows"}}}},
		{"then", object{{"properties", object{{"from", false}, {"until", false}}}}},
		{"else", object{{"required", []string{"from", "until"}}}},
	},
}

// mayBeDefaults are the types whose required fields spec.poolDefaults may have, except a name.
var mayBeDefaults = map[reflect.Type]bool{reflect.TypeFor[api.Pool](): true, reflect.TypeFor[api.Spot](): true}

// schemaOf returns the JSON Schema of a kind.
// https://json-schema.org/draft/2020-12
func schemaOf(kind reflect.Type, name string, docs comments) ([]byte, error) {
	s := schemas{docs: docs, defs: map[string]bool{}, output: name == output}
	root := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://drover.run/v1alpha1/" + name + ".schema.json"},
		{"title", kind.Name()},
	}
	root = append(root, s.structure(kind)...)
	root.set("$defs", s.list)
	text, err := root.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return nil, err
	}
	return append(indented.Bytes(), '\n'), nil
}

// schemas collects the definitions of the types below a kind.
type schemas struct {
	docs comments
	defs map[string]bool
	// output means that drover writes the document: a required string may be empty.
	output bool
	list   object
}

func (s *schemas) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		rules := api.RulesOf(f)
		property := object{{"description", s.docs.field(t, f, rules.Name)}}
		properties.set(rules.Name, append(property, s.value(f.Type, rules)...))
		if rules.Required && (!mayBeDefaults[t] || rules.Name == "name") {
			required = append(required, rules.Name)
		}
	}
	o := object{{"description", s.docs[t.Name()]}, {"type", "object"}, {"additionalProperties", false}}
	if len(required) > 0 {
		o.set("required", required)
	}
	o.set("properties", properties)
	return append(o, between[t]...) // no type has both
}

// value is the schema of a field's type under its rules.
func (s *schemas) value(t reflect.Type, rules api.Rules) (o object) {
	t = elem(t)
	if t == reflect.TypeFor[api.Amount]() {
		o = object{{"type", []string{"integer", "string"}}, {"minimum", 0}, {"maximum", 9999}, {"pattern", `^([0-9]|[1-9][0-9]|100)%$`}}
		if rules.Default != nil {
			o.set("default", amount(rules.Default[0]))
		}
		return o
	}
	if o, ok := s.outputValue(t); ok {
		if rules.Keys != nil {
			o.set("propertyNames", ofFormat(rules.Keys))
		}
		return o
	}
	switch t.Kind() {
	case reflect.Struct:
		if rules.Partial {
			o.set("$ref", s.definePartial(t, rules.Without))
			return o
		}
		o.set("$ref", s.define(t))
		if rules.ObjectName != nil {
			o.set("properties", object{{"name", ofFormat(rules.ObjectName)}})
		}
		return o
	case reflect.Slice:
		o = object{{"type", "array"}}
		bound(&o, "minItems", rules.MinItems)
		bound(&o, "maxItems", rules.MaxItems)
		if rules.Unique && len(rules.UniqueBy) == 0 {
			o.set("uniqueItems", true)
		}
		o.set("items", s.value(t.Elem(), api.Rules{Format: rules.Format, Enum: rules.Enum}))
	case reflect.Map:
		o = object{{"type", "object"}}
		bound(&o, "minProperties", rules.MinItems)
		bound(&o, "maxProperties", rules.MaxItems)
		if rules.Keys != nil {
			o.set("propertyNames", ofFormat(rules.Keys))
		}
		if t.Elem().Kind() == reflect.String {
			o.set("additionalProperties", append(object{{"type", "string"}}, ofFormat(rules.Format)...))
		}
		if t.Elem().Kind() == reflect.Int {
			value := object{{"type", "integer"}}
			bound(&value, "minimum", rules.Min)
			bound(&value, "maximum", rules.Max)
			o.set("additionalProperties", value)
		}
	case reflect.Bool:
		o = object{{"type", "boolean"}}
	case reflect.Int:
		o = object{{"type", "integer"}}
		bound(&o, "minimum", rules.Min)
		bound(&o, "maximum", rules.Max)
	case reflect.String:
		o = object{{"type", "string"}}
		if len(rules.Enum) > 0 {
			o.set("enum", rules.Enum)
		}
		if rules.Required && !rules.MayBeEmpty && !s.output && rules.Format == nil && rules.Enum == nil {
			o.set("minLength", 1)
		}
		o = append(o, ofFormat(rules.Format)...)
	default:
		panic(fmt.Sprintf("no schema for %s", t))
	}
	if rules.Default != nil {
		o.set("default", defaultOf(t, rules.Default))
	}
	return o
}

// define adds a type and the types that it uses to the definitions, and returns its reference.
func (s *schemas) define(t reflect.Type) string {
	if !s.defs[t.Name()] {
		s.defs[t.Name()] = true
		s.list.set(t.Name(), s.structure(t))
	}
	return "#/$defs/" + t.Name()
}

// definePartial adds the definition of a type with defaults: without some of its fields, and none is required.
func (s *schemas) definePartial(t reflect.Type, without []string) string {
	var partial object
	for _, m := range s.structure(t) {
		switch m.key {
		case "required":
			continue
		case "properties":
			m.value = slices.DeleteFunc(m.value.(object), func(p member) bool { return slices.Contains(without, p.key) })
		}
		partial = append(partial, m)
	}
	s.list.set(t.Name()+"Defaults", partial)
	return "#/$defs/" + t.Name() + "Defaults"
}

func ofFormat(f *api.Format) (o object) {
	if f == nil {
		return nil
	}
	if f.MaxLength > 0 {
		o.set("maxLength", f.MaxLength)
	}
	if f.Pattern != "" {
		o.set("pattern", f.Pattern)
	}
	return o
}

func bound(o *object, key string, n *int) {
	if n != nil {
		o.set(key, *n)
	}
}

// amount is the value of an amount in a file.
func amount(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}

// defaultOf is a default as JSON.
func defaultOf(t reflect.Type, texts []string) any {
	switch t.Kind() {
	case reflect.Slice:
		return texts
	case reflect.Bool:
		return texts[0] == "true"
	case reflect.Int:
		n, err := strconv.Atoi(texts[0])
		if err != nil {
			panic(err)
		}
		return n
	}
	return texts[0]
}
