package api

// YAML nodes: their types, their positions, and how messages show them.

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// place is a position in a file, counted from 1.
type place struct{ line, column int }

// raw prints a text from the file without quotes.
type raw string

// MarshalJSON returns what field errors print.
func (r raw) MarshalJSON() ([]byte, error) { return nil, errors.New("not JSON") }

// String returns the text from the file.
func (r raw) String() string { return string(r) }

// shownValue returns the value of a node for messages: scalars from the file, and no secrets or large values.
func shownValue(node *yaml.Node, secret bool) any {
	switch {
	case secret && node.Kind == yaml.ScalarNode:
		return raw(fmt.Sprintf("(%d bytes)", len(node.Value)))
	case node.Kind == yaml.MappingNode:
		return raw("an object")
	case node.Kind == yaml.SequenceNode:
		return raw("a list")
	case isNull(node):
		return raw("null")
	case isString(node):
		return shorten(node.Value)
	}
	return raw(shorten(node.Value))
}

// shorten keeps messages readable.
func shorten(s string) string {
	const most = 120
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// count returns the number of nodes.
func count(node *yaml.Node) int {
	n := 1
	for _, child := range node.Content {
		n += count(child)
	}
	return n
}

func lookup(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Kind == yaml.ScalarNode && mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// isString reports whether a node is a string. Dates are strings too, as in YAML 1.2.
func isString(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (node.Tag == "!!str" || node.Tag == "!!timestamp")
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null" && node.Anchor == ""
}

func notUTF8(data []byte) place {
	at := place{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return at
		case r == '\n':
			at = place{at.line + 1, 1}
		default:
			at.column++
		}
		data = data[size:]
	}
	return at
}
