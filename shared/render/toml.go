package render

// TOML, for the user data of Bottlerocket. https://toml.io/en/v1.0.0

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// stackValue is the value of a stack parameter: an address or base64.
type stackValue string

// tomlTable is a table of a TOML document: its header, and its values that are no tables.
type tomlTable struct {
	Path   []string
	Values []tomlValue
}

type tomlValue struct {
	Key   string
	Value any
}

// tomlTables returns the tables of an object, sorted. Each has its header once. A table without values is left out unless it is empty.
func tomlTables(path []string, object map[string]any) (tables []tomlTable) {
	table := tomlTable{Path: path}
	var within []tomlTable
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if inner, ok := object[key].(map[string]any); ok {
			within = append(within, tomlTables(append(slices.Clone(path), key), inner)...)
		} else {
			table.Values = append(table.Values, tomlValue{key, object[key]})
		}
	}
	if len(table.Values) > 0 || len(object) == 0 {
		tables = append(tables, table)
	}
	return append(tables, within...)
}

// encodeTOML writes a value in one line, in ASCII: objects as inline tables.
func encodeTOML(v any) (string, error) {
	if parameter, ok := v.(stackValue); ok {
		return encodeRef(string(parameter))
	}
	text, err := appendTOML(nil, v)
	return string(text), err
}

func appendTOML(out []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case string:
		return appendYAML(out, v) // TOML has the same escapes
	case bool, int, int64, float64:
		number, err := json.Marshal(v)
		return append(out, number...), err
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ", "...)
			}
			if out, err = appendTOML(out, element); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case map[string]any:
		out = append(out, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ", "...)
			}
			if out, err = appendTOMLKey(out, key); err != nil {
				return nil, err
			}
			if out, err = appendTOML(append(out, " = "...), v[key]); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
	return nil, fmt.Errorf("no TOML encoding of a %T", v)
}

// encodeTOMLKey writes a key, or the keys of a table's header.
func encodeTOMLKey(v any) (string, error) {
	path, ok := v.([]string)
	if key, single := v.(string); single {
		path, ok = []string{key}, true
	}
	if !ok || len(path) == 0 {
		return "", fmt.Errorf("no TOML key for a %T", v)
	}
	var out []byte
	var err error
	for i, key := range path {
		if i > 0 {
			out = append(out, '.')
		}
		if out, err = appendTOMLKey(out, key); err != nil {
			return "", err
		}
	}
	return string(out), nil
}

// appendTOMLKey writes a key bare if TOML allows it, and else quoted.
func appendTOMLKey(out []byte, key string) ([]byte, error) {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !bare(r) }) {
		return append(out, key...), nil
	}
	return appendYAML(out, key)
}

// errSettingTwice is a setting that both drover and the spec state.
var errSettingTwice = errors.New("it is stated twice")

// mergeSettings adds the spec's settings to drover's.
func mergeSettings(own, more map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		mine, found := own[name]
		if !found {
			own[name] = more[name]
			continue
		}
		inner, ok := mine.(map[string]any)
		theirs, isObject := more[name].(map[string]any)
		if !ok || !isObject {
			return fmt.Errorf("%s: %w", name, errSettingTwice)
		}
		if err := mergeSettings(inner, theirs); err != nil {
			return fmt.Errorf("%s.%w", name, err)
		}
	}
	return nil
}
