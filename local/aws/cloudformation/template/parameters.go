package template

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The Parameters section: declarations, and the values that a stack gets for them.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html

// Parameter declared by a template.
type Parameter struct {
	Type                  string
	Description           string
	NoEcho                bool
	Default               *string
	AllowedValues         []string
	AllowedPattern        string
	ConstraintDescription string
	MinLength, MaxLength  *int
	MinValue, MaxValue    *float64
}

const ssmParameter = "AWS::SSM::Parameter::Value<"

var parameterType = regexp.MustCompile(`^(String|Number|List<Number>|CommaDelimitedList` +
	`|(List<)?AWS::EC2::(AvailabilityZone::Name|Image::Id|Instance::Id|KeyPair::KeyName` +
	`|SecurityGroup::GroupName|SecurityGroup::Id|Subnet::Id|Volume::Id|VPC::Id)>?` +
	`|(List<)?AWS::Route53::HostedZone::Id>?|AWS::SSM::Parameter::Name|AWS::SSM::Parameter::Value<.+>)$`)

// IsList reports whether the parameter's Ref is a list.
func (p Parameter) IsList() bool {
	return p.Type == "CommaDelimitedList" || strings.HasPrefix(p.Type, "List<") ||
		p.Type == ssmParameter+"CommaDelimitedList>" || strings.HasPrefix(p.Type, ssmParameter+"List<")
}

// FromSSM reports whether the parameter's value names a parameter of Systems Manager.
func (p Parameter) FromSSM() bool { return strings.HasPrefix(p.Type, ssmParameter) }

func (t *Template) readParameters(root map[string]any) error {
	parameters, err := section(root, "Parameters", maxParameters)
	if err != nil {
		return err
	}
	t.Parameters = make(map[string]Parameter, len(parameters))
	for _, name := range sortedKeys(parameters) {
		if !logicalName.MatchString(name) {
			return errorf("Template format error: Parameter name %s is non alphanumeric.", name)
		}
		body, err := object(parameters[name], "Parameters/"+name, "Type", "Description", "NoEcho", "Default", "AllowedValues",
			"AllowedPattern", "ConstraintDescription", "MinLength", "MaxLength", "MinValue", "MaxValue")
		if err != nil {
			return err
		}
		parameter, err := readParameter(name, body)
		if err != nil {
			return err
		}
		t.Parameters[name] = parameter
	}
	return nil
}

func readParameter(name string, body map[string]any) (Parameter, error) {
	var p Parameter
	where := "Template format error: [/Parameters/" + name + "] "
	var err error
	for member, into := range map[string]*string{
		"Type": &p.Type, "Description": &p.Description, "AllowedPattern": &p.AllowedPattern, "ConstraintDescription": &p.ConstraintDescription,
	} {
		if *into, err = text(body, member, where); err != nil {
			return p, err
		}
	}
	switch {
	case p.Type == "":
		return p, errorf("Template format error: Every Parameters object must contain a Type member.")
	case !parameterType.MatchString(p.Type):
		return p, errorf("Template format error: Unrecognized parameter type: %s", p.Type)
	}
	if _, err := regexp.Compile(p.AllowedPattern); err != nil {
		return p, errorf("%sInvalid AllowedPattern: %v", where, err)
	}
	switch echo := body["NoEcho"].(type) {
	case nil:
	case bool:
		p.NoEcho = echo
	case string:
		if p.NoEcho, err = strconv.ParseBool(echo); err != nil {
			return p, errorf("%sNoEcho must be a boolean.", where)
		}
	default:
		return p, errorf("%sNoEcho must be a boolean.", where)
	}
	for member, into := range map[string]**float64{"MinValue": &p.MinValue, "MaxValue": &p.MaxValue} {
		if value, found := body[member]; found {
			f, err := strconv.ParseFloat(Text(value), 64)
			if err != nil {
				return p, errorf("%s%s must be a number.", where, member)
			}
			*into = &f
		}
	}
	for member, into := range map[string]**int{"MinLength": &p.MinLength, "MaxLength": &p.MaxLength} {
		if value, found := body[member]; found {
			n, err := strconv.Atoi(Text(value))
			if err != nil {
				return p, errorf("%s%s must be an integer.", where, member)
			}
			*into = &n
		}
	}
	if allowed, found := body["AllowedValues"]; found {
		list, ok := allowed.([]any)
		if !ok {
			return p, errorf("%sAllowedValues must be a list.", where)
		}
		for _, item := range list {
			if !isScalar(item) {
				return p, errorf("%sAllowedValues must be a list of strings.", where)
			}
			p.AllowedValues = append(p.AllowedValues, Text(item))
		}
	}
	if value, found := body["Default"]; found {
		if !isScalar(value) {
			return p, errorf("Template format error: Every Default member must be a string.")
		}
		text := Text(value)
		p.Default = &text
	}
	return p, nil
}

// ParameterValues applies defaults, splits lists and checks constraints. given has the values of the request. ssm looks up parameters of
// Systems Manager and may be nil. The results are the values of Ref.
func (t *Template) ParameterValues(given map[string]string, ssm func(name string) (string, error)) (map[string]any, error) {
	if unknown := slices.DeleteFunc(sortedKeys(given), func(name string) bool {
		_, declared := t.Parameters[name]
		return declared
	}); len(unknown) > 0 {
		return nil, errorf("Parameters: [%s] do not exist in the template", strings.Join(unknown, ", "))
	}
	result := make(map[string]any, len(t.Parameters))
	var missing []string
	for _, name := range sortedKeys(t.Parameters) {
		parameter := t.Parameters[name]
		value, found := given[name]
		if !found {
			if parameter.Default == nil {
				missing = append(missing, name)
				continue
			}
			value = *parameter.Default
		}
		if err := parameter.check(name, value); err != nil {
			return nil, err
		}
		if parameter.FromSSM() {
			if ssm == nil {
				return nil, &UnsupportedError{What: "parameter " + name + " of type " + parameter.Type}
			}
			looked, err := ssm(value)
			if err != nil {
				return nil, err
			}
			value = looked
		}
		if !parameter.IsList() {
			result[name] = value
			continue
		}
		list := []any{}
		if value != "" {
			for _, item := range strings.Split(value, ",") {
				list = append(list, strings.TrimSpace(item))
			}
		}
		result[name] = list
	}
	if len(missing) > 0 {
		return nil, errorf("Parameters: [%s] must have values", strings.Join(missing, ", "))
	}
	return result, nil
}

func (p Parameter) check(name, value string) error {
	fail := func(format string, args ...any) error {
		if p.ConstraintDescription != "" {
			return errorf("Parameter '%s' failed to satisfy constraint: %s", name, p.ConstraintDescription)
		}
		return errorf("Parameter '%s' %s", name, fmt.Sprintf(format, args...))
	}
	items := []string{value}
	if p.IsList() && !p.FromSSM() {
		items = nil
		for _, item := range strings.Split(value, ",") {
			items = append(items, strings.TrimSpace(item))
		}
	}
	if p.MinLength != nil && len([]rune(value)) < *p.MinLength {
		return fail("must contain at least %d characters", *p.MinLength)
	}
	if p.MaxLength != nil && len([]rune(value)) > *p.MaxLength {
		return fail("must contain at most %d characters", *p.MaxLength)
	}
	for _, item := range items {
		if len(p.AllowedValues) > 0 && !slices.Contains(p.AllowedValues, item) {
			return fail("must be one of AllowedValues")
		}
		if p.AllowedPattern != "" && !regexp.MustCompile(`^(?:`+p.AllowedPattern+`)$`).MatchString(item) {
			return fail("must match pattern %s", p.AllowedPattern)
		}
		if p.Type != "Number" && p.Type != "List<Number>" {
			continue
		}
		number, err := strconv.ParseFloat(item, 64)
		if err != nil {
			return errorf("Parameter '%s' must be a number.", name)
		}
		if p.MinValue != nil && number < *p.MinValue {
			return fail("must be a number not less than %s", Text(*p.MinValue))
		}
		if p.MaxValue != nil && number > *p.MaxValue {
			return fail("must be a number not greater than %s", Text(*p.MaxValue))
		}
	}
	return nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, bool, float64:
		return true
	}
	return false
}

// Text returns a scalar as CloudFormation writes it in strings.
func Text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
