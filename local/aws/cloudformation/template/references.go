package template

import (
	"slices"
	"strings"
)

// References of values, for checks before evaluation and for the order of resources.

// Reference of a value to a resource, parameter or pseudo parameter.
type Reference struct {
	Name string
	// Attribute, for Fn::GetAtt.
	Attribute string
}

// check finds references to undefined names, unknown functions, and cycles.
func (t *Template) check() error {
	for _, name := range sortedKeys(t.Conditions) {
		if err := t.checkFunctions(t.Conditions[name]); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(t.Resources) {
		resource := t.Resources[name]
		for _, value := range []map[string]any{resource.Properties, resource.CreationPolicy, resource.UpdatePolicy} {
			if err := t.checkValue(value, "Resources"); err != nil {
				return err
			}
		}
		for _, on := range resource.DependsOn {
			if _, found := t.Resources[on]; !found {
				return errorf("Template format error: Unresolved resource dependencies [%s] in the Resources block of the template", on)
			}
		}
		if err := t.checkCondition(resource.Condition, "Resources"); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(t.Outputs) {
		output := t.Outputs[name]
		for _, value := range []any{output.Value, output.Export} {
			if err := t.checkValue(value, "Outputs"); err != nil {
				return err
			}
		}
		if err := t.checkCondition(output.Condition, "Outputs"); err != nil {
			return err
		}
	}
	graph := make(map[string][]string, len(t.Resources))
	for name := range t.Resources {
		graph[name] = t.Resources[name].uses(t)
	}
	if cycle := findCycle(graph); len(cycle) > 0 {
		return errorf("Circular dependency between resources: [%s]", strings.Join(cycle, ", "))
	}
	return nil
}

func (t *Template) checkCondition(name, block string) error {
	if _, found := t.Conditions[name]; name != "" && !found {
		return errorf("Template format error: Unresolved condition dependency %s in the %s block of the template", name, block)
	}
	return nil
}

func (t *Template) checkValue(value any, block string) error {
	if err := t.checkFunctions(value); err != nil {
		return err
	}
	var missing []string
	for _, reference := range References(value, nil) {
		_, isResource := t.Resources[reference.Name]
		_, isParameter := t.Parameters[reference.Name]
		switch {
		case reference.Attribute != "" && !isResource:
			return errorf("Template error: instance of Fn::GetAtt references undefined resource %s", reference.Name)
		case strings.HasPrefix(reference.Name, "AWS::"):
			if !slices.Contains(pseudoParameters, reference.Name) {
				missing = append(missing, reference.Name)
			}
		case !isResource && !isParameter:
			missing = append(missing, reference.Name)
		}
	}
	if len(missing) > 0 {
		return errorf("Template format error: Unresolved resource dependencies [%s] in the %s block of the template",
			strings.Join(missing, ", "), block)
	}
	return nil
}

var pseudoParameters = []string{
	"AWS::AccountId", "AWS::NoValue", "AWS::NotificationARNs", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName",
	"AWS::URLSuffix",
}

// checkFunctions finds unknown intrinsic functions, functions that share their map with other keys, and dynamic references, which are not
// supported.
func (t *Template) checkFunctions(value any) error {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "{{resolve:") {
			return &UnsupportedError{What: "the dynamic reference " + v}
		}
	case []any:
		for _, item := range v {
			if err := t.checkFunctions(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if strings.HasPrefix(key, "Fn::") {
				if len(v) > 1 {
					return errorf("Template error: %s must be the only key of its object", key)
				}
				if !knownFunction(key) {
					return &UnsupportedError{What: key}
				}
			}
			if key == "Fn::Sub" {
				if _, _, err := subArguments(v[key]); err != nil {
					return err
				}
			}
			if key == "Fn::GetAtt" {
				if _, _, err := getAttNames(v[key]); err != nil {
					return err
				}
			}
			if list, ok := v[key].([]any); ok && key == "Fn::If" && len(list) > 0 {
				if name, ok := list[0].(string); ok {
					if err := t.checkCondition(name, "Fn::If"); err != nil {
						return err
					}
				}
			}
			if err := t.checkFunctions(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func knownFunction(name string) bool {
	switch name {
	case "Fn::GetAtt", "Fn::Sub", "Fn::If", "Fn::Equals", "Fn::And", "Fn::Or", "Fn::Not":
		return true
	}
	_, found := functions[name]
	return found
}

// References lists the distinct references of a value, in order. With a scope whose conditions are evaluated, it follows only the branches
// that hold.
func References(value any, s *Scope) []Reference {
	var found []Reference
	add := func(r Reference) {
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			function, argument, ok := intrinsic(v)
			if !ok {
				for _, key := range sortedKeys(v) {
					walk(v[key])
				}
				return
			}
			switch function {
			case "Ref":
				if name, ok := argument.(string); ok {
					add(Reference{Name: name})
				}
			case "Fn::GetAtt":
				if resource, attribute, err := getAttNames(argument); err == nil {
					walk(attribute)
					add(Reference{Name: resource, Attribute: Text(attribute)})
				}
			case "Fn::Sub":
				source, variables, _ := subArguments(argument)
				for _, match := range subVariable.FindAllString(source, -1) {
					name := strings.TrimSpace(match[2 : len(match)-1])
					if _, local := variables[name]; local || strings.HasPrefix(name, "!") {
						continue
					}
					resource, attribute, _ := strings.Cut(name, ".")
					add(Reference{Name: resource, Attribute: attribute})
				}
				walk(map[string]any(variables))
			case "Fn::If":
				list, _ := argument.([]any)
				if name, isName := first(list).(string); isName && s != nil && len(list) == 3 {
					if s.Holds(name) {
						walk(list[1])
					} else {
						walk(list[2])
					}
					return
				}
				walk(argument)
			default:
				walk(argument)
			}
		}
	}
	walk(value)
	return found
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// uses lists the resources that a resource depends on, regardless of conditions.
func (r Resource) uses(t *Template) []string { return r.dependencies(t, nil) }

// Dependencies are the active resources that the named one depends on, sorted.
func (s *Scope) Dependencies(name string) []string {
	return slices.DeleteFunc(s.Template.Resources[name].dependencies(s.Template, s), func(on string) bool {
		return !s.Holds(s.Template.Resources[on].Condition)
	})
}

func (r Resource) dependencies(t *Template, s *Scope) []string {
	on := map[string]bool{}
	for _, name := range r.DependsOn {
		on[name] = true
	}
	for _, value := range []map[string]any{r.Properties, r.CreationPolicy, r.UpdatePolicy} {
		for _, reference := range References(value, s) {
			if _, isResource := t.Resources[reference.Name]; isResource {
				on[reference.Name] = true
			}
		}
	}
	return sortedKeys(on)
}

// CheckActive finds references of active resources and outputs to resources whose condition does not hold.
func (s *Scope) CheckActive() error {
	check := func(value any, block string) error {
		for _, reference := range References(value, s) {
			resource, isResource := s.Template.Resources[reference.Name]
			if isResource && !s.Holds(resource.Condition) {
				return errorf("Template format error: Unresolved resource dependencies [%s] in the %s block of the template", reference.Name, block)
			}
		}
		return nil
	}
	for _, name := range s.Active() {
		if err := check(s.Template.Resources[name].Properties, "Resources"); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.Template.Outputs) {
		output := s.Template.Outputs[name]
		if !s.Holds(output.Condition) {
			continue
		}
		if err := check([]any{output.Value, output.Export}, "Outputs"); err != nil {
			return err
		}
	}
	return nil
}

// findCycle returns the nodes of a cycle of a graph, if there is one.
func findCycle(graph map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(string) []string
	visit = func(name string) []string {
		if at := slices.Index(path, name); at >= 0 {
			return slices.Clone(path[at:])
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, on := range graph[name] {
			if cycle := visit(on); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, name := range sortedKeys(graph) {
		if cycle := visit(name); cycle != nil {
			slices.Sort(cycle)
			return cycle
		}
	}
	return nil
}
