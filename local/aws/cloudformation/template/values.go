// Package template reads CloudFormation templates and evaluates them: sections, parameters, conditions and intrinsic functions, as in the
// template reference. It is pure: a Scope provides the external values.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/
package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The conversion of template text, YAML or JSON, to plain values: maps, slices, strings, bools and float64. Short forms (!Ref) become long
// forms ({"Ref": …}).

// Error is a template that CloudFormation rejects, with CloudFormation's text.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// UnsupportedError is a part of the template language that the local account does not support.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string {
	return "the local account's CloudFormation does not support " + e.What
}

func errorf(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// shortForms are the intrinsic functions that can be a YAML tag.
var shortForms = map[string]string{
	"!Ref": "Ref", "!Condition": "Condition", "!GetAtt": "Fn::GetAtt", "!Sub": "Fn::Sub", "!Join": "Fn::Join",
	"!Select": "Fn::Select", "!Split": "Fn::Split", "!If": "Fn::If", "!Equals": "Fn::Equals", "!And": "Fn::And",
	"!Or": "Fn::Or", "!Not": "Fn::Not", "!FindInMap": "Fn::FindInMap", "!Base64": "Fn::Base64", "!GetAZs": "Fn::GetAZs",
	"!ImportValue": "Fn::ImportValue", "!Cidr": "Fn::Cidr", "!Transform": "Fn::Transform", "!Length": "Fn::Length",
	"!ToJsonString": "Fn::ToJsonString",
}

// values decodes a whole template.
func values(body []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errorf("Template format error: unsupported structure.")
	}
	var tree any
	if bytes.TrimSpace(body)[0] == '{' && json.Valid(body) {
		if err := json.Unmarshal(body, &tree); err != nil {
			return nil, errorf("Template format error: JSON not well-formed. %v", err)
		}
	} else {
		decoder := yaml.NewDecoder(bytes.NewReader(body))
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return nil, errorf("Template format error: YAML not well-formed. (%v)", err)
		}
		if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			return nil, errorf("Template format error: YAML not well-formed. (more than one document)")
		}
		var err error
		if tree, err = fromNode(document.Content[0]); err != nil {
			return nil, err
		}
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, errorf("Template format error: unsupported structure.")
	}
	return root, noNulls("", root)
}

func fromNode(node *yaml.Node) (any, error) {
	function, isShort := shortForms[node.Tag]
	if !isShort {
		return fromPlain(node)
	}
	plain := *node
	plain.Tag = ""
	value, err := fromPlain(&plain)
	if err != nil {
		return nil, err
	}
	if text, ok := value.(string); ok && function == "Fn::GetAtt" {
		resource, attribute, _ := strings.Cut(text, ".")
		value = []any{resource, attribute}
	}
	return map[string]any{function: value}, nil
}

func fromPlain(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.MappingNode:
		if tag := node.ShortTag(); tag != "!!map" {
			return nil, badTag(node, tag)
		}
		m := make(map[string]any, len(node.Content)/2)
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return nil, malformedError(key, "a key must be a plain name")
			}
			if _, twice := m[key.Value]; twice {
				return nil, malformedError(key, "duplicate key "+key.Value)
			}
			value, err := fromNode(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[key.Value] = value
		}
		return m, nil
	case yaml.SequenceNode:
		if tag := node.ShortTag(); tag != "!!seq" {
			return nil, badTag(node, tag)
		}
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			value, err := fromNode(item)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.ScalarNode:
		return fromScalar(node)
	default:
		return nil, errorf("Template error: YAML aliases are not allowed in CloudFormation templates")
	}
}

func fromScalar(node *yaml.Node) (any, error) {
	switch tag := node.ShortTag(); tag {
	case "!!str":
		return node.Value, nil
	case "!!timestamp":
		// CloudFormation has no timestamps: 2010-09-09 is a string.
		return node.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := node.Decode(&b)
		return b, err
	case "!!int", "!!float":
		var f float64
		if err := node.Decode(&f); err != nil || f != f || f > 1e300 || f < -1e300 {
			return node.Value, nil // a number that JSON does not allow stays text
		}
		return f, nil
	default:
		return nil, badTag(node, tag)
	}
}

func badTag(node *yaml.Node, tag string) error {
	return errorf("Template format error: unsupported tag %s (line %d, column %d)", tag, node.Line, node.Column)
}

func malformedError(node *yaml.Node, why string) error {
	return errorf("Template format error: YAML not well-formed. (line %d, column %d: %s)", node.Line, node.Column, why)
}

func noNulls(path string, value any) error {
	switch v := value.(type) {
	case nil:
		return errorf("Template format error: [%s] Null values are not allowed in templates", path)
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if err := noNulls(path+"/"+key, v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := noNulls(fmt.Sprintf("%s/%d", path, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}
