package template

import (
	"fmt"
	"slices"
	"strings"
)

// Evaluation of values. It walks them and resolves each intrinsic function. functions.go has the functions.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html

// Scope has the inputs of an evaluation.
type Scope struct {
	Template *Template
	// Parameters as ParameterValues returned them.
	Parameters map[string]any
	// Pseudo are AWS::Region, AWS::AccountId, AWS::Partition, AWS::URLSuffix, AWS::StackName, AWS::StackId and
	// AWS::NotificationARNs.
	Pseudo map[string]any
	// Zones of a region.
	Zones func(region string) ([]string, error)
	// Ref and GetAtt return a resource's values. They are nil where resources cannot be referred to. Either may return an Unknown.
	Ref    func(resource string) (any, error)
	GetAtt func(resource, attribute string) (any, error)
	// Import returns an exported value of another stack.
	Import func(export string) (any, error)

	conditions map[string]bool
}

// Unknown is a value that is known only after resources have changed. Every value that contains it is unknown too.
type Unknown struct {
	// Causes are the references that it comes from: Resource or Resource.Attribute.
	Causes []string
}

// noValue is AWS::NoValue, which removes its property.
type noValue struct{}

// EvaluateConditions evaluates the template's conditions; call it before Value.
func (s *Scope) EvaluateConditions() error {
	s.conditions = map[string]bool{}
	beforeResources := *s
	beforeResources.Ref, beforeResources.GetAtt = nil, nil
	for _, name := range sortedKeys(s.Template.Conditions) {
		if _, err := beforeResources.namedCondition(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// Holds reports whether a condition holds. The empty name always holds.
func (s *Scope) Holds(condition string) bool { return condition == "" || s.conditions[condition] }

// Active lists the resources whose condition holds, sorted.
func (s *Scope) Active() []string {
	return slices.DeleteFunc(sortedKeys(s.Template.Resources), func(name string) bool {
		return !s.Holds(s.Template.Resources[name].Condition)
	})
}

// CheckRules evaluates the Rules section.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html
func (s *Scope) CheckRules() error {
	for _, name := range sortedKeys(s.Template.Rules) {
		rule := s.Template.Rules[name]
		if rule.RuleCondition != nil {
			applies, err := s.condition(rule.RuleCondition, nil)
			if err != nil {
				return err
			}
			if !applies {
				continue
			}
		}
		for _, assertion := range rule.Assertions {
			holds, err := s.condition(assertion.Assert, nil)
			if err != nil {
				return err
			}
			if !holds {
				return errorf("Template validation error: Rule %s failed: %s", name, assertion.Description)
			}
		}
	}
	return nil
}

// Value evaluates a value of the template. AWS::NoValue evaluates to nil.
func (s *Scope) Value(value any) (any, error) {
	result, err := s.value(value)
	if _, none := result.(noValue); none {
		return nil, err
	}
	return result, err
}

// Object evaluates a map of the template. A nil map stays nil.
func (s *Scope) Object(value map[string]any) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	result, err := s.value(value)
	if err != nil {
		return nil, err
	}
	m, ok := result.(map[string]any)
	if !ok {
		return nil, errorf("Template error: a function cannot stand for a whole Properties object")
	}
	return m, nil
}

func (s *Scope) value(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if function, argument, ok := intrinsic(v); ok {
			return s.call(function, argument)
		}
		result := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			item, err := s.value(v[key])
			if err != nil {
				return nil, err
			}
			if _, none := item.(noValue); !none {
				result[key] = item
			}
		}
		return result, nil
	case []any:
		result := make([]any, 0, len(v))
		for _, item := range v {
			item, err := s.value(item)
			if err != nil {
				return nil, err
			}
			if _, none := item.(noValue); !none {
				result = append(result, item)
			}
		}
		return result, nil
	default:
		return v, nil
	}
}

// intrinsic returns the function and the argument if a map is a function call.
func intrinsic(m map[string]any) (function string, argument any, ok bool) {
	if len(m) != 1 {
		return "", nil, false
	}
	for key, value := range m {
		return key, value, key == "Ref" || strings.HasPrefix(key, "Fn::")
	}
	return "", nil, false
}

func (s *Scope) call(function string, argument any) (any, error) {
	switch function {
	case "Ref":
		name, ok := argument.(string)
		if !ok {
			return nil, errorf("Template error: every Ref object must have a single String value.")
		}
		return s.ref(name)
	case "Fn::If":
		return s.branch(argument)
	case "Fn::GetAtt":
		return s.getAtt(argument)
	case "Fn::Sub":
		return s.sub(argument)
	}
	run, found := functions[function]
	if !found {
		return nil, &UnsupportedError{What: function}
	}
	evaluated, err := s.value(argument)
	if err != nil {
		return nil, err
	}
	if causes := Causes(evaluated); len(causes) > 0 {
		return Unknown{Causes: causes}, nil
	}
	return run(s, evaluated)
}

func (s *Scope) ref(name string) (any, error) {
	if name == "AWS::NoValue" {
		return noValue{}, nil
	}
	if value, found := s.Pseudo[name]; found {
		return value, nil
	}
	if value, found := s.Parameters[name]; found {
		return value, nil
	}
	if _, found := s.Template.Resources[name]; found && s.Ref != nil {
		return s.Ref(name)
	}
	return nil, errorf("Template format error: Unresolved dependencies [%s]. Cannot reference resources in the Conditions block "+
		"of the template", name)
}

func (s *Scope) getAtt(argument any) (any, error) {
	resource, attribute, err := getAttNames(argument)
	if err != nil {
		return nil, err
	}
	name, err := s.value(attribute)
	if err != nil {
		return nil, err
	}
	text, ok := name.(string)
	if !ok || s.GetAtt == nil {
		return nil, errorf("%s", badGetAtt)
	}
	return s.GetAtt(resource, text)
}

const badGetAtt = "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute"

// getAttNames splits the argument of Fn::GetAtt. The attribute may be a Ref.
func getAttNames(argument any) (resource string, attribute any, err error) {
	if text, ok := argument.(string); ok {
		before, after, _ := strings.Cut(text, ".")
		argument = []any{before, after}
	}
	list, ok := argument.([]any)
	if !ok || len(list) < 2 {
		return "", nil, errorf("%s", badGetAtt)
	}
	resource, ok = list[0].(string)
	if !ok || resource == "" || list[1] == "" {
		return "", nil, errorf("%s", badGetAtt)
	}
	if len(list) == 2 {
		return resource, list[1], nil
	}
	parts := make([]string, 0, len(list)-1)
	for _, part := range list[1:] {
		parts = append(parts, Text(part))
	}
	return resource, strings.Join(parts, "."), nil
}

func (s *Scope) branch(argument any) (any, error) {
	list, ok := argument.([]any)
	if !ok || len(list) != 3 {
		return nil, errorf("Template error: Fn::If requires a list argument with three parameters")
	}
	name, ok := list[0].(string)
	if !ok {
		return nil, errorf("Template error: Fn::If requires a list argument with the first element being a condition")
	}
	holds, declared := s.conditions[name]
	switch {
	case !declared:
		return nil, errorf("Template format error: Unresolved condition dependency %s in the Fn::If function", name)
	case holds:
		return s.value(list[1])
	default:
		return s.value(list[2])
	}
}

func (s *Scope) namedCondition(name string, path []string) (bool, error) {
	if holds, done := s.conditions[name]; done {
		return holds, nil
	}
	body, declared := s.Template.Conditions[name]
	if !declared {
		return false, errorf("Template format error: Unresolved condition dependency %s in the Conditions block of the template", name)
	}
	if slices.Contains(path, name) {
		return false, errorf("Circular dependency between conditions: [%s]", strings.Join(path, ", "))
	}
	holds, err := s.condition(body, append(path, name))
	if err == nil {
		s.conditions[name] = holds
	}
	return holds, err
}

// condition evaluates a condition function. path has the named conditions under evaluation.
func (s *Scope) condition(value any, path []string) (bool, error) {
	m, ok := value.(map[string]any)
	if !ok || len(m) != 1 {
		return false, errorf("Template format error: Every Conditions member must be a condition function.")
	}
	function := sortedKeys(m)[0]
	argument := m[function]
	if function == "Condition" {
		name, ok := argument.(string)
		if !ok {
			return false, errorf("Template format error: Condition must name a condition.")
		}
		return s.namedCondition(name, path)
	}
	list, ok := argument.([]any)
	if !ok {
		return false, errorf("Template error: every %s object requires a list of parameters.", function)
	}
	switch function {
	case "Fn::Equals":
		if len(list) != 2 {
			return false, errorf("Template error: every Fn::Equals object requires a list of 2 string parameters.")
		}
		operands, err := s.value(list)
		if err != nil {
			return false, err
		}
		pair, ok := operands.([]any)
		return ok && len(pair) == 2 && Equal(pair[0], pair[1]), nil
	case "Fn::Not":
		if len(list) != 1 {
			return false, errorf("Template error: every Fn::Not object requires a list of 1 condition.")
		}
		holds, err := s.condition(list[0], path)
		return !holds, err
	case "Fn::And", "Fn::Or":
		if len(list) < 2 || len(list) > 10 {
			return false, errorf("Template error: every %s object requires a list of at least 2 and at most 10 boolean parameters.", function)
		}
		for _, item := range list {
			holds, err := s.condition(item, path)
			if err != nil || holds == (function == "Fn::Or") {
				return holds, err
			}
		}
		return function == "Fn::And", nil
	case "Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn":
		return s.ruleFunction(function, list)
	}
	return false, &UnsupportedError{What: fmt.Sprintf("%s in a condition", function)}
}

// ruleFunction evaluates the functions of the Rules section.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-rules.html
func (s *Scope) ruleFunction(function string, arguments []any) (bool, error) {
	evaluated, err := s.value(arguments)
	if err != nil {
		return false, err
	}
	bad := errorf("Template error: every %s object requires a list of strings and what to compare them with.", function)
	pair, ok := evaluated.([]any)
	if !ok || len(pair) != 2 {
		return false, bad
	}
	list, ok := pair[0].([]any)
	if !ok {
		return false, bad
	}
	has := func(list []any, value any) bool {
		return slices.ContainsFunc(list, func(item any) bool { return Equal(item, value) })
	}
	if function == "Fn::Contains" {
		return has(list, pair[1]), nil
	}
	allowed, ok := pair[1].([]any)
	if function == "Fn::EachMemberEquals" {
		allowed, ok = pair[1:], true
	}
	if !ok {
		return false, bad
	}
	return !slices.ContainsFunc(list, func(item any) bool { return !has(allowed, item) }), nil
}

// Causes lists the references that make a value unknown, sorted. It is empty for a known value.
func Causes(value any) []string {
	found := map[string]bool{}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case Unknown:
			for _, cause := range v.Causes {
				found[cause] = true
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return sortedKeys(found)
}

// Equal compares evaluated values as CloudFormation does: scalars by their text, so that "3" is 3.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, item := range x {
			other, found := y[key]
			if !found || !Equal(item, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case nil:
		return b == nil
	case Unknown:
		return false
	default:
		return isScalar(a) && isScalar(b) && Text(a) == Text(b)
	}
}
