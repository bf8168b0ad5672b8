package render

// The encoders: the only way for a value into a template. Each writes a value so that the surrounding language reads back exactly that
// value, or returns an error.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"
)

// encoders by name, as templates call them.
var encoders = template.FuncMap{
	"yaml":     encodeYAML,
	"jsontext": encodeJSONText,
	"flow":     encodeFlow,
	"id":       encodeID,
	"ref":      encodeRef,
	"shell":    encodeShell,
	"toml":     encodeTOML,
	"tomlkey":  encodeTOMLKey,
}

// languages lists the encoders that a template file may use, by the end of its name.
var languages = map[string][]string{
	".yaml.tmpl": {"yaml", "jsontext", "flow", "id", "ref"},
	".sh.tmpl":   {"shell"},
	".mime.tmpl": {},
	".toml.tmpl": {"toml", "tomlkey"},
}

// encodeYAML writes a string, number, boolean, or one of the lists below as YAML, in ASCII.
func encodeYAML(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if plain(v) {
			return `"` + v + `"`, nil
		}
		out, err := appendYAML(nil, v)
		return string(out), err
	case int:
		return strconv.Itoa(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case []string:
		return encodeList(v, ", ", appendYAML)
	case []tag:
		return encodeList(v, ", ", func(out []byte, t tag) ([]byte, error) { return appendTag(out, t, "}") })
	case []groupTag:
		return encodeList(v, ", ", func(out []byte, t groupTag) ([]byte, error) {
			return appendTag(out, tag(t), ", PropagateAtLaunch: false}")
		})
	case []part:
		// One line each, indented deeper than any block around it, so that user data is readable.
		return encodeList(v, ",\n                  ", appendPart)
	}
	return "", fmt.Errorf("no YAML encoding of a %T", v)
}

// encodeList writes a list in YAML's flow style.
func encodeList[E any](list []E, separator string, element func([]byte, E) ([]byte, error)) (string, error) {
	out, err := make([]byte, 1, 64*len(list)+2), error(nil)
	out[0] = '['
	for i, e := range list {
		if i > 0 {
			out = append(out, separator...)
		}
		if out, err = element(out, e); err != nil {
			return "", err
		}
	}
	return string(append(out, ']')), nil
}

func appendTag(out []byte, t tag, end string) ([]byte, error) {
	out, err := appendYAML(append(out, "{Key: "...), t.Key)
	if err != nil {
		return nil, err
	}
	out, err = appendYAML(append(out, ", Value: "...), t.Value)
	return append(out, end...), err
}

func appendPart(out []byte, p part) ([]byte, error) {
	if p.Ref == "" {
		return appendYAML(out, p.Text)
	}
	out, err := appendYAML(append(out, "{Ref: "...), p.Ref)
	return append(out, '}'), err
}

// appendYAML writes a string. It returns an error if CloudFormation would read something else.
func appendYAML(out []byte, s string) ([]byte, error) {
	// CloudFormation resolves these inside any string, and they cannot be escaped.
	// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html
	if strings.Contains(s, "{{resolve:") {
		return nil, fmt.Errorf("%.80q: CloudFormation would take {{resolve: for a reference to a parameter or secret", s)
	}
	return appendString(out, s, yamlEscapes)
}

// plain reports whether a string needs no escapes. Most do not.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '{' {
			return false
		}
	}
	return true
}

// encodeJSONText writes any JSON value as a string that contains JSON: with sorted keys, in ASCII.
func encodeJSONText(v any) (string, error) {
	text, err := appendJSON(nil, v, jsonEscapes)
	if err != nil {
		return "", err
	}
	return encodeYAML(string(text))
}

// encodeFlow writes any JSON value as YAML in flow style: like JSON, with sorted keys, in ASCII.
func encodeFlow(v any) (string, error) {
	text, err := appendJSON(nil, v, yamlEscapes)
	return string(text), err
}

// encodeID returns a string that is valid in a logical id of CloudFormation: letters and digits.
func encodeID(s string) (string, error) {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", fmt.Errorf("%q cannot be part of a logical id: only letters and digits can", s)
		}
	}
	return s, nil
}

// refMark encloses the name of a stack parameter in a text that becomes a Fn::Join. Every other encoder rejects it.
const refMark = "\x00"

// encodeRef marks the value of a stack parameter: an address or base64, which need no escapes in a YAML string.
func encodeRef(parameter string) (string, error) {
	name, err := encodeID(parameter)
	return `"` + refMark + name + refMark + `"`, err
}

// encodeShell writes a string as one word of a shell script.
func encodeShell(s string) (string, error) {
	if strings.Contains(s, "\x00") {
		return "", errors.New("a word of a shell script cannot hold a NUL character")
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", nil
}

// escapes writes a character outside the Basic Multilingual Plane, the only difference between quoted YAML and JSON.
type escapes func(out []byte, r rune) []byte

func yamlEscapes(out []byte, r rune) []byte { return fmt.Appendf(out, `\U%08x`, r) }

func jsonEscapes(out []byte, r rune) []byte {
	r -= 0x10000
	return fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}

// appendString writes a quoted string in ASCII: CloudFormation turns other characters of some properties into question marks.
func appendString(out []byte, s string, astral escapes) ([]byte, error) {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		out = append(out, s[start:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, fmt.Errorf("%.80q is not UTF-8", s)
		case r == '"' || r == '\\':
			out = append(out, '\\', c)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r > 0xffff:
			out = astral(out, r)
		default:
			out = append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += size
		start = i
	}
	return append(append(out, s[start:]...), '"'), nil
}

// appendJSON writes a JSON value as decoded by encoding/json, with sorted keys.
func appendJSON(out []byte, v any, astral escapes) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case string:
		return appendString(out, v, astral)
	case map[string]any:
		out = append(out, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendString(out, key, astral); err != nil {
				return nil, err
			}
			if out, err = appendJSON(append(out, ':'), v[key], astral); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendJSON(out, element, astral); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case nil, bool, int, int64, float64, json.Number:
		number, err := json.Marshal(v)
		return append(out, number...), err
	}
	return nil, fmt.Errorf("no JSON encoding of a %T", v)
}
