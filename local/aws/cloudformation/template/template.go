package template

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The structure of a template: its sections, and the checks before evaluation.

// Limits of a template.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
const (
	// MaxInline is the maximum size of a template in a request, in bytes.
	MaxInline = 51_200
	// MaxObject is the maximum size of a template in S3, in bytes.
	MaxObject     = 1_000_000
	maxResources  = 500
	maxParameters = 200
	maxOutputs    = 200
	maxMappings   = 200
)

// Template is a CloudFormation template.
type Template struct {
	FormatVersion string
	Description   string
	Metadata      any
	Parameters    map[string]Parameter
	Mappings      map[string]any
	// Conditions, unevaluated.
	Conditions map[string]any
	// Rules, unevaluated.
	Rules     map[string]Rule
	Resources map[string]Resource
	Outputs   map[string]Output
}

// Resource of a template, unevaluated.
type Resource struct {
	Type       string
	Properties map[string]any
	DependsOn  []string
	Condition  string
	// DeletionPolicy is Delete, Retain, RetainExceptOnCreate or Snapshot.
	DeletionPolicy string
	// UpdateReplacePolicy is Delete, Retain or Snapshot.
	UpdateReplacePolicy string
	CreationPolicy      map[string]any
	UpdatePolicy        map[string]any
	Metadata            any
}

// Output of a template, unevaluated.
type Output struct {
	Description string
	Value       any
	// Export is the name under which other stacks import the value. It is nil without an export.
	Export    any
	Condition string
}

// Rule of a template: assertions on parameters.
type Rule struct {
	RuleCondition any
	Assertions    []Assertion
}

// Assertion of a rule.
type Assertion struct {
	Assert      any
	Description string
}

var (
	sections = []string{
		"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Conditions", "Rules", "Resources",
		"Outputs", "Transform", "Hooks",
	}
	resourceMembers = []string{
		"Type", "Properties", "DependsOn", "Condition", "DeletionPolicy", "UpdateReplacePolicy", "CreationPolicy", "UpdatePolicy",
		"Metadata",
	}
	logicalName = regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`)
	policies    = map[string][]string{
		"DeletionPolicy":      {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"},
		"UpdateReplacePolicy": {"Delete", "Retain", "Snapshot"},
	}
)

// Parse reads a template and checks its structure: sections, members, names, limits, references and cycles. Errors are *Error or
// *UnsupportedError.
func Parse(body []byte) (*Template, error) {
	root, err := values(body)
	if err != nil {
		return nil, err
	}
	if unknown := unknownKeys(root, sections); len(unknown) > 0 {
		return nil, errorf("Invalid template property or properties [%s]", strings.Join(unknown, ", "))
	}
	for _, section := range []string{"Transform", "Hooks"} {
		if _, found := root[section]; found {
			return nil, &UnsupportedError{What: "the template section " + section}
		}
	}
	t := &Template{Metadata: root["Metadata"]}
	if t.FormatVersion, err = text(root, "AWSTemplateFormatVersion", "Template format error: "); err != nil {
		return nil, err
	}
	if t.FormatVersion != "" && t.FormatVersion != "2010-09-09" {
		return nil, errorf("Template format error: %s is not a supported value for AWSTemplateFormatVersion.", t.FormatVersion)
	}
	if t.Description, err = text(root, "Description", "Template format error: "); err != nil {
		return nil, err
	}
	if len(t.Description) > 1024 {
		return nil, errorf("Template format error: 'Description' length is greater than 1024.")
	}
	for _, read := range []func(map[string]any) error{
		t.readParameters, t.readMappings, t.readConditions, t.readRules, t.readResources, t.readOutputs,
	} {
		if err := read(root); err != nil {
			return nil, err
		}
	}
	return t, t.check()
}

func (t *Template) readMappings(root map[string]any) error {
	mappings, err := section(root, "Mappings", maxMappings)
	t.Mappings = mappings
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(mappings) {
		top, ok := mappings[name].(map[string]any)
		if !ok {
			return errorf("Template format error: Every Mappings member must be a map. [%s]", name)
		}
		for _, key := range sortedKeys(top) {
			second, ok := top[key].(map[string]any)
			if !ok {
				return errorf("Template format error: Every Mappings attribute must be a String or a List. [%s/%s]", name, key)
			}
			for _, leaf := range sortedKeys(second) {
				if _, nested := second[leaf].(map[string]any); nested {
					return errorf("Template format error: Every Mappings attribute must be a String or a List. [%s/%s/%s]", name, key, leaf)
				}
			}
		}
	}
	return nil
}

func (t *Template) readConditions(root map[string]any) error {
	var err error
	t.Conditions, err = section(root, "Conditions", maxResources)
	return err
}

func (t *Template) readRules(root map[string]any) error {
	rules, err := section(root, "Rules", maxResources)
	if err != nil {
		return err
	}
	t.Rules = make(map[string]Rule, len(rules))
	for _, name := range sortedKeys(rules) {
		body, err := object(rules[name], "Rules/"+name, "RuleCondition", "Assertions")
		if err != nil {
			return err
		}
		rule := Rule{RuleCondition: body["RuleCondition"]}
		list, ok := body["Assertions"].([]any)
		if !ok {
			return errorf("Template format error: [/Rules/%s] Every Rules object must contain a list of Assertions.", name)
		}
		for _, item := range list {
			assertion, err := object(item, "Rules/"+name+"/Assertions", "Assert", "AssertDescription")
			if err != nil {
				return err
			}
			description, err := text(assertion, "AssertDescription", "Template format error: ")
			if err != nil {
				return err
			}
			rule.Assertions = append(rule.Assertions, Assertion{Assert: assertion["Assert"], Description: description})
		}
		t.Rules[name] = rule
	}
	return nil
}

func (t *Template) readResources(root map[string]any) error {
	resources, err := section(root, "Resources", maxResources)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		return errorf("Template format error: At least one Resources member must be defined.")
	}
	t.Resources = make(map[string]Resource, len(resources))
	for _, name := range sortedKeys(resources) {
		if strings.HasPrefix(name, "Fn::") {
			return &UnsupportedError{What: name + " in Resources"}
		}
		if !logicalName.MatchString(name) {
			return errorf("Template format error: Resource name %s is non alphanumeric.", name)
		}
		resource, err := readResource(name, resources[name])
		if err != nil {
			return err
		}
		t.Resources[name] = resource
	}
	return nil
}

func readResource(name string, value any) (Resource, error) {
	var r Resource
	where := "Template format error: [/Resources/" + name + "] "
	body, ok := value.(map[string]any)
	if !ok {
		return r, errorf("%sResources must be objects.", where)
	}
	if unknown := unknownKeys(body, resourceMembers); len(unknown) > 0 {
		return r, errorf("Invalid template resource property '%s' of resource %s", unknown[0], name)
	}
	var err error
	if r.Type, err = text(body, "Type", where); err != nil {
		return r, err
	}
	if r.Type == "" {
		return r, errorf("%sEvery Resources object must contain a Type member.", where)
	}
	if r.Condition, err = text(body, "Condition", where); err != nil {
		return r, err
	}
	for _, member := range []struct {
		name string
		into *map[string]any
	}{{"Properties", &r.Properties}, {"CreationPolicy", &r.CreationPolicy}, {"UpdatePolicy", &r.UpdatePolicy}} {
		if *member.into, err = optionalObject(body, member.name, where); err != nil {
			return r, err
		}
	}
	if r.Properties == nil {
		r.Properties = map[string]any{}
	}
	r.Metadata = body["Metadata"]
	switch depends := body["DependsOn"].(type) {
	case nil:
	case string:
		r.DependsOn = []string{depends}
	case []any:
		for _, item := range depends {
			on, ok := item.(string)
			if !ok {
				return r, errorf("%sDependsOn must be a string or a list of strings.", where)
			}
			r.DependsOn = append(r.DependsOn, on)
		}
	default:
		return r, errorf("%sDependsOn must be a string or a list of strings.", where)
	}
	for policy, into := range map[string]*string{"DeletionPolicy": &r.DeletionPolicy, "UpdateReplacePolicy": &r.UpdateReplacePolicy} {
		if *into, err = text(body, policy, where); err != nil {
			return r, err
		}
		*into = cmp.Or(*into, "Delete")
		if !slices.Contains(policies[policy], *into) {
			return r, errorf("Template error: Unrecognized %s %s for resource %s", policy, *into, name)
		}
		if *into == "Snapshot" {
			return r, &UnsupportedError{What: policy + " Snapshot of resource " + name}
		}
	}
	return r, nil
}

func (t *Template) readOutputs(root map[string]any) error {
	outputs, err := section(root, "Outputs", maxOutputs)
	if err != nil {
		return err
	}
	t.Outputs = make(map[string]Output, len(outputs))
	for _, name := range sortedKeys(outputs) {
		if strings.HasPrefix(name, "Fn::") {
			return &UnsupportedError{What: name + " in Outputs"}
		}
		if !logicalName.MatchString(name) {
			return errorf("Template format error: Output name %s is non alphanumeric.", name)
		}
		where := "Template format error: [/Outputs/" + name + "] "
		body, err := object(outputs[name], "Outputs/"+name, "Description", "Value", "Export", "Condition")
		if err != nil {
			return err
		}
		output := Output{Value: body["Value"]}
		if output.Value == nil {
			return errorf("%sEvery Outputs member must contain a Value object", where)
		}
		if output.Description, err = text(body, "Description", where); err != nil {
			return err
		}
		if output.Condition, err = text(body, "Condition", where); err != nil {
			return err
		}
		if _, found := body["Export"]; found {
			export, err := object(body["Export"], "Outputs/"+name+"/Export", "Name")
			if err != nil {
				return err
			}
			if output.Export = export["Name"]; output.Export == nil {
				return errorf("%sExport must contain a Name.", where)
			}
		}
		t.Outputs[name] = output
	}
	return nil
}

// section returns a top-level map. It is empty if the template has no such section.
func section(root map[string]any, name string, limit int) (map[string]any, error) {
	value, found := root[name]
	if !found {
		return map[string]any{}, nil
	}
	body, ok := value.(map[string]any)
	if !ok {
		return nil, errorf("Template format error: %s must be an object.", name)
	}
	if len(body) > limit {
		return nil, errorf("Template format error: Number of %s, %d, is greater than maximum allowed, %d",
			strings.ToLower(name), len(body), limit)
	}
	return body, nil
}

func object(value any, path string, members ...string) (map[string]any, error) {
	body, ok := value.(map[string]any)
	if !ok {
		return nil, errorf("Template format error: [/%s] must be an object.", path)
	}
	if unknown := unknownKeys(body, members); len(unknown) > 0 {
		return nil, errorf("Template format error: [/%s] Invalid property '%s'", path, unknown[0])
	}
	return body, nil
}

func optionalObject(body map[string]any, name, where string) (map[string]any, error) {
	value, found := body[name]
	if !found {
		return nil, nil
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, errorf("%s%s must be an object.", where, name)
	}
	return m, nil
}

func text(body map[string]any, name, where string) (string, error) {
	value, found := body[name]
	if !found {
		return "", nil
	}
	s, ok := value.(string)
	if !ok {
		return "", errorf("%s%s must be a string.", where, name)
	}
	return s, nil
}

func unknownKeys(m map[string]any, known []string) []string {
	return slices.DeleteFunc(sortedKeys(m), func(key string) bool { return slices.Contains(known, key) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
