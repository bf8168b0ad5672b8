package cloudformation

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/engine/resource"
)

// The comparison of a stack with a revision, as change sets show it.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChange.html

const (
	actionAdd    = "Add"
	actionModify = "Modify"
	actionRemove = "Remove"
)

// planner compares a stack with a revision. It works on a copy of the stack, so that no lock is held.
type planner struct {
	service   *Service
	current   *revision
	target    *revision
	resources map[string]*stackResource
	outputs   []Output
	scope     template.Scope
	changes   map[string]*ResourceChange
	// values adds property values to details.
	values bool
}

// comparison is the result of a comparison.
type comparison struct {
	changes []Change
	// effective reports whether the revision changes anything. Changed outputs count, changed policies alone do not.
	effective bool
}

// plan compares a stack with a revision. Changes are sorted by action and logical ID; AWS does not document an order. The caller does not
// hold s.mu.
func (s *Service) plan(st *stack, target *revision, values bool) (comparison, error) {
	p := &planner{service: s, target: target, changes: map[string]*ResourceChange{}, values: values, scope: target.scope}
	s.mu.Lock()
	p.current, p.outputs = st.current, slices.Clone(st.outputs)
	p.resources = make(map[string]*stackResource, len(st.resources))
	for name, r := range st.resources {
		if r.exists() {
			copied := *r
			p.resources[name] = &copied
		}
	}
	s.mu.Unlock()
	p.scope.Ref = func(name string) (any, error) {
		if p.keepsID(name) {
			return p.resources[name].refValue(), nil
		}
		return template.Unknown{Causes: []string{name}}, nil
	}
	p.scope.GetAtt = func(name, attribute string) (any, error) {
		if p.changes[name] == nil && p.resources[name].usable() {
			return p.resources[name].attribute(attribute)
		}
		return template.Unknown{Causes: []string{name + "." + attribute}}, nil
	}
	return p.run()
}

// keepsID reports whether the physical ID of a resource is known before the change.
func (p *planner) keepsID(name string) bool {
	if !p.resources[name].usable() {
		return false
	}
	change := p.changes[name]
	return change == nil || change.Replacement == "False"
}

func (p *planner) run() (comparison, error) {
	active := p.scope.Active()
	if err := p.checkTypeChanges(active); err != nil {
		return comparison{}, err
	}
	done := map[string]bool{}
	var visit func(string) error
	visit = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		for _, on := range p.scope.Dependencies(name) {
			if err := visit(on); err != nil {
				return err
			}
		}
		return p.compare(name)
	}
	for _, name := range active {
		if err := visit(name); err != nil {
			return comparison{}, templateError(err)
		}
	}
	for name, r := range p.resources {
		if slices.Contains(active, name) {
			continue
		}
		change := &ResourceChange{
			Action: actionRemove, LogicalResourceId: name, PhysicalResourceId: r.physicalID, ResourceType: r.resourceType,
			PolicyAction: "Delete",
		}
		if retains(r.deletionPolicy) {
			change.PolicyAction = "Retain"
		}
		p.changes[name] = change
	}
	result := comparison{effective: !maps.Equal(p.current.tags, p.target.tags)}
	for _, action := range []string{actionRemove, actionModify, actionAdd} {
		for _, name := range sortedKeys(p.changes) {
			change := p.changes[name]
			if change.Action != action {
				continue
			}
			result.changes = append(result.changes, Change{Type: "Resource", ResourceChange: *change})
			result.effective = result.effective || change.effective()
		}
	}
	outputs, err := p.outputsChange()
	result.effective = result.effective || outputs
	return result, err
}

// effective returns false for a change of policies alone, which cannot be executed.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
func (c *ResourceChange) effective() bool {
	return c.Action != actionModify || slices.ContainsFunc(c.Scope, func(scope string) bool { return !strings.HasSuffix(scope, "Policy") })
}

func (p *planner) checkTypeChanges(active []string) error {
	var changed []string
	for _, name := range active {
		if r := p.resources[name]; r.exists() && r.resourceType != p.target.template.Resources[name].Type {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		return invalid("Update of resource type is not permitted. The new template modifies resource type of the following resources: [%s]",
			strings.Join(changed, ", "))
	}
	return nil
}

func (p *planner) compare(name string) error {
	definition := p.target.template.Resources[name]
	properties, err := p.scope.Object(definition.Properties)
	if err != nil {
		return err
	}
	old := p.resources[name]
	change := &ResourceChange{LogicalResourceId: name, ResourceType: definition.Type}
	if !old.usable() {
		change.Action = actionAdd
		if p.values {
			change.AfterContext = encodeContext(properties)
		}
		p.changes[name] = change
		return nil
	}
	change.Action, change.PhysicalResourceId = actionModify, old.physicalID
	p.service.mu.Lock()
	provider := p.service.provider(definition.Type)
	p.service.mu.Unlock()
	schema := provider.Schema()
	for _, property := range changedProperties(old.properties, properties) {
		change.Details = append(change.Details, p.details(name, property, schema, old.properties[property], properties[property])...)
	}
	if takesTags(schema) && !maps.Equal(userTags(old.tags), p.target.tags) && !slices.ContainsFunc(change.Details,
		func(d ResourceChangeDetail) bool {
			return d.Target.Attribute == "Tags"
		}) {
		change.Details = append(change.Details, direct(ResourceTargetDefinition{Attribute: "Tags", RequiresRecreation: "Never"}))
	}
	attributes, err := p.definitionChanges(old, definition)
	if err != nil {
		return err
	}
	for _, attribute := range attributes {
		change.Details = append(change.Details, direct(ResourceTargetDefinition{Attribute: attribute, RequiresRecreation: "Never"}))
	}
	if len(change.Details) == 0 {
		return nil
	}
	change.Replacement = "False"
	for _, detail := range change.Details {
		if !slices.Contains(change.Scope, detail.Target.Attribute) {
			change.Scope = append(change.Scope, detail.Target.Attribute)
		}
		if detail.Target.RequiresRecreation != "Always" || change.Replacement == "True" {
			continue
		}
		change.Replacement = "Conditional"
		if detail.Evaluation == "Static" {
			change.Replacement = "True"
		}
	}
	if change.Replacement != "False" {
		change.PolicyAction = "ReplaceAndDelete"
		if retains(definition.UpdateReplacePolicy) {
			change.PolicyAction = "ReplaceAndRetain"
		}
	}
	if p.values {
		change.BeforeContext, change.AfterContext = encodeContext(old.properties), encodeContext(properties)
	}
	p.changes[name] = change
	return nil
}

// details returns the reasons of a property's change.
func (p *planner) details(name, property string, schema resource.Schema, before, after any) []ResourceChangeDetail {
	target := ResourceTargetDefinition{Attribute: "Properties", Name: property, RequiresRecreation: "Never"}
	if schema.Properties[property] == resource.Replaces {
		target.RequiresRecreation = "Always"
	}
	if property == "Tags" {
		target.Attribute, target.Name = "Tags", ""
	}
	if p.values {
		target.Path = "/Properties/" + property
		target.BeforeValue, target.AfterValue = encodeValue(before), encodeValue(after)
		switch {
		case before == nil:
			target.AttributeChangeType = actionAdd
		case after == nil:
			target.AttributeChangeType = actionRemove
		default:
			target.AttributeChangeType = actionModify
		}
	}
	oldRaw := p.current.template.Resources[name].Properties[property]
	newRaw := p.target.template.Resources[name].Properties[property]
	var details []ResourceChangeDetail
	causes := template.Causes(after)
	for _, cause := range causes {
		entity, attribute, isAttribute := strings.Cut(cause, ".")
		detail := ResourceChangeDetail{Target: target, Evaluation: "Dynamic", ChangeSource: "ResourceReference", CausingEntity: cause}
		if change := p.changes[entity]; change != nil && (change.Replacement == "True" || change.Action == actionAdd) {
			detail.Evaluation = "Static"
		}
		if isAttribute && attribute != "" {
			detail.ChangeSource = "ResourceAttribute"
		}
		details = append(details, detail)
	}
	same := template.Equal(oldRaw, newRaw)
	for _, reference := range template.References(newRaw, &p.scope) {
		_, isParameter := p.target.template.Parameters[reference.Name]
		if isParameter && same && !template.Equal(p.current.values[reference.Name], p.target.values[reference.Name]) {
			details = append(details, ResourceChangeDetail{
				Target: target, Evaluation: "Static", ChangeSource: "ParameterReference", CausingEntity: reference.Name,
			})
		}
	}
	if !same || len(details) == 0 {
		return append([]ResourceChangeDetail{direct(target)}, details...)
	}
	if len(causes) == 0 {
		// As in the API reference: the value might also have been changed outside of CloudFormation.
		details = append(details, ResourceChangeDetail{Target: target, Evaluation: "Dynamic", ChangeSource: "DirectModification"})
	}
	return details
}

// definitionChanges lists the changed attributes of a resource other than its properties.
func (p *planner) definitionChanges(old *stackResource, definition template.Resource) ([]string, error) {
	evaluated, err := evaluateDefinition(&p.scope, definition)
	if err != nil {
		return nil, err
	}
	var changed []string
	if !reflect.DeepEqual(old.metadata, evaluated.Metadata) {
		changed = append(changed, "Metadata")
	}
	if !template.Equal(asAny(old.definition.CreationPolicy), asAny(evaluated.CreationPolicy)) {
		changed = append(changed, "CreationPolicy")
	}
	if !template.Equal(asAny(old.definition.UpdatePolicy), asAny(evaluated.UpdatePolicy)) {
		changed = append(changed, "UpdatePolicy")
	}
	if old.deletionPolicy != evaluated.DeletionPolicy {
		changed = append(changed, "DeletionPolicy")
	}
	if old.updateReplacePolicy != evaluated.UpdateReplacePolicy {
		changed = append(changed, "UpdateReplacePolicy")
	}
	return changed, nil
}

// outputsChange reports whether the values of outputs differ, as far as they are known.
func (p *planner) outputsChange() (bool, error) {
	wanted := map[string]Output{}
	for _, name := range sortedKeys(p.target.template.Outputs) {
		declared := p.target.template.Outputs[name]
		if !p.scope.Holds(declared.Condition) {
			continue
		}
		value, err := p.scope.Value(declared.Value)
		if err != nil {
			return false, templateError(err)
		}
		export, err := p.scope.Value(declared.Export)
		if err != nil {
			return false, templateError(err)
		}
		output := Output{OutputKey: name, Description: declared.Description}
		at := slices.IndexFunc(p.outputs, func(o Output) bool { return o.OutputKey == name })
		if at >= 0 && (len(template.Causes(value)) > 0 || len(template.Causes(export)) > 0) {
			output = p.outputs[at]
		} else {
			output.OutputValue = outputText(value)
			if export != nil {
				output.ExportName = outputText(export)
			}
		}
		wanted[name] = output
	}
	if len(wanted) != len(p.outputs) {
		return true, nil
	}
	return slices.ContainsFunc(p.outputs, func(o Output) bool { return wanted[o.OutputKey] != o }), nil
}

func direct(target ResourceTargetDefinition) ResourceChangeDetail {
	return ResourceChangeDetail{Target: target, Evaluation: "Static", ChangeSource: "DirectModification"}
}

// changedProperties lists the properties whose values differ, sorted.
func changedProperties(old, wanted map[string]any) []string {
	var changed []string
	for property, value := range wanted {
		before, found := old[property]
		if !found || !template.Equal(before, value) {
			changed = append(changed, property)
		}
	}
	for property := range old {
		if _, found := wanted[property]; !found {
			changed = append(changed, property)
		}
	}
	slices.Sort(changed)
	return changed
}

// takesTags reports whether the stack's tags are applied to the resource type.
func takesTags(schema resource.Schema) bool {
	_, takes := schema.Properties["Tags"]
	return takes
}

// userTags returns the tags without CloudFormation's own.
func userTags(tags map[string]string) map[string]string {
	tags = maps.Clone(tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") })
	return tags
}

func retains(policy string) bool { return policy == "Retain" || policy == "RetainExceptOnCreate" }

func asAny(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// knownAfterApply is AWS's placeholder for values that are known after execution.
const knownAfterApply = "{{changeSet:KNOWN_AFTER_APPLY}}"

func encodeValue(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case template.Unknown:
		return knownAfterApply
	default:
		encoded, _ := json.Marshal(showUnknown(v)) // decoded JSON and YAML always marshals
		return string(encoded)
	}
}

func encodeContext(properties map[string]any) string {
	encoded, _ := json.Marshal(map[string]any{"Properties": showUnknown(properties)}) // as above
	return string(encoded)
}

func showUnknown(value any) any {
	switch v := value.(type) {
	case template.Unknown:
		return knownAfterApply
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, item := range v {
			shown[key] = showUnknown(item)
		}
		return shown
	case []any:
		shown := make([]any, 0, len(v))
		for _, item := range v {
			shown = append(shown, showUnknown(item))
		}
		return shown
	default:
		return v
	}
}
