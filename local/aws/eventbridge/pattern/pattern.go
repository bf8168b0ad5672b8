// Package pattern matches events with EventBridge event patterns. It is pure.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
//
// It supports exact values, null, the empty string, $or, prefix, suffix, equals-ignore-case (alone and in prefix,
// suffix, anything-but), anything-but (values, prefix, suffix, wildcard, each with one or several), numeric, exists,
// wildcard, cidr.
package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
)

// Pattern is a compiled event pattern.
type Pattern struct {
	fields []field
	// either are the $or alternatives at this level. Each $or must match.
	either [][]*Pattern
}

// field is one key of a pattern, with a nested pattern or with conditions on a leaf.
type field struct {
	key    string
	nested *Pattern
	leaf   []condition
}

// Parse compiles a pattern. An error states the problem in the words of InvalidEventPatternException.
func Parse(text []byte) (*Pattern, error) {
	v, err := decode(text)
	if err != nil {
		return nil, invalid("it is no JSON: %v", err)
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, invalid("it is not an object")
	}
	return compile(o, "")
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("Event pattern is not valid. Reason: "+format, args...) // AWS's wording
}

func compile(o map[string]any, at string) (*Pattern, error) {
	if len(o) == 0 {
		return nil, invalid("empty objects are not allowed%s", where(at))
	}
	p := &Pattern{}
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		here := at + "/" + k
		if alternatives, ok := alternatives(k, o[k]); ok {
			var either []*Pattern
			for _, a := range alternatives {
				c, err := compile(a, here)
				if err != nil {
					return nil, err
				}
				either = append(either, c)
			}
			p.either = append(p.either, either)
			continue
		}
		f := field{key: k}
		var err error
		switch v := o[k].(type) {
		case map[string]any:
			f.nested, err = compile(v, here)
		case []any:
			f.leaf, err = conditions(v, here)
		default:
			err = invalid("%q must be an object or an array", k)
		}
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, f)
	}
	return p, nil
}

// alternatives returns the patterns of a $or, which is an array of two or more objects. Any other value makes $or a
// field of that name.
func alternatives(key string, v any) ([]map[string]any, bool) {
	list, ok := v.([]any)
	if key != "$or" || !ok || len(list) < 2 {
		return nil, false
	}
	var all []map[string]any
	for _, e := range list {
		o, ok := e.(map[string]any)
		if !ok {
			return nil, false
		}
		for k := range o {
			if operators[k] != nil {
				return nil, false // conditions on a field called $or
			}
		}
		all = append(all, o)
	}
	return all, true
}

// Match reports whether an event, which is a JSON object, matches.
func (p *Pattern) Match(event []byte) (bool, error) {
	v, err := decode(event)
	if err != nil {
		return false, fmt.Errorf("the event is no JSON: %w", err)
	}
	o, ok := v.(map[string]any)
	if !ok {
		return false, errors.New("the event is not an object")
	}
	return p.matches(o), nil
}

func (p *Pattern) matches(o map[string]any) bool {
	for _, f := range p.fields {
		value, present := o[f.key]
		if f.nested != nil && !anyObject(value, f.nested.matches) {
			// A missing object matches a pattern that only requires missing fields.
			if present && anyObject(value, func(map[string]any) bool { return true }) || !f.nested.matches(nil) {
				return false
			}
		}
		if f.leaf != nil && !anyLeaf(f.leaf, leaves(value, present)) {
			return false
		}
	}
	for _, either := range p.either {
		found := false
		for _, a := range either {
			found = found || a.matches(o)
		}
		if !found {
			return false
		}
	}
	return true
}

// anyObject applies matches to an object, or to each object in an array: all fields of a pattern must match in the same
// object. https://github.com/aws/event-ruler#json-array-matching
func anyObject(v any, matches func(map[string]any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		return matches(v)
	case []any:
		for _, e := range v {
			if anyObject(e, matches) {
				return true
			}
		}
	}
	return false
}

// leaves returns the scalar values of a field: the value itself, or those in nested arrays.
func leaves(v any, present bool) []any {
	switch v := v.(type) {
	case map[string]any:
		return nil
	case []any:
		var all []any
		for _, e := range v {
			all = append(all, leaves(e, true)...)
		}
		return all
	}
	if !present {
		return nil
	}
	return []any{v}
}

func anyLeaf(conditions []condition, values []any) bool {
	for _, c := range conditions {
		if c.absent {
			if len(values) == 0 {
				return true
			}
			continue
		}
		for _, v := range values {
			if c.matches(v) {
				return true
			}
		}
	}
	return false
}

// decode keeps the text of numbers, which are compared by it.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("data after the value")
	}
	return v, nil
}

func where(at string) string {
	if at == "" {
		return ""
	}
	return " at " + at
}
