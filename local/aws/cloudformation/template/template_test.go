package template

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// evaluate parses a template with one resource that has a property V, and evaluates the property.
func evaluate(t *testing.T, body string, parameters map[string]string) (any, error) {
	t.Helper()
	parsed, err := Parse([]byte(body))
	if err != nil {
		return nil, err
	}
	values, err := parsed.ParameterValues(parameters, func(name string) (string, error) { return "ssm:" + name, nil })
	if err != nil {
		return nil, err
	}
	scope := &Scope{
		Template: parsed, Parameters: values,
		Pseudo: map[string]any{
			"AWS::Region": "eu-west-1", "AWS::AccountId": "111122223333", "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
			"AWS::StackName": "s", "AWS::StackId": "arn:s", "AWS::NotificationARNs": []any{},
		},
		Zones: func(region string) ([]string, error) { return []string{region + "a", region + "b"}, nil },
		Ref: func(name string) (any, error) {
			if name == "New" {
				return Unknown{Causes: []string{name}}, nil
			}
			return "id-" + name, nil
		},
		GetAtt: func(name, attribute string) (any, error) { return name + ":" + attribute, nil },
		Import: func(name string) (any, error) { return "imported-" + name, nil },
	}
	for _, check := range []func() error{scope.EvaluateConditions, scope.CheckRules, scope.CheckActive} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	properties, err := scope.Object(parsed.Resources["R"].Properties)
	return properties["V"], err
}

const frame = `
Parameters:
  Name: {Type: String, Default: demo}
  Count: {Type: Number, Default: 3}
  List: {Type: CommaDelimitedList, Default: "a, b,c"}
  Secret: {Type: "AWS::SSM::Parameter::Value<String>", Default: /some/name}
Mappings:
  Map: {eu-west-1: {ami: ami-1, list: [x, y]}}
Conditions:
  IsDemo: !Equals [!Ref Name, demo]
  IsNot: {"Fn::Not": [{Condition: IsDemo}]}
  Both: !And [!Condition IsDemo, !Not [!Condition IsNot]]
  Any: !Or [!Condition IsNot, !Equals [!Ref "AWS::Region", eu-west-1]]
Resources:
  Other: {Type: T}
  New: {Type: T}
  R:
    Type: T
    Properties:
      V: `

func TestIntrinsicFunctionsEvaluate(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  any
	}{
		"a plain number stays a number":             {`3`, 3.0},
		"a date stays text":                         {`2012-10-17`, "2012-10-17"},
		"a quoted number stays text":                {`"1.30"`, "1.30"},
		"a boolean stays a boolean":                 {`true`, true},
		"Ref of a parameter":                        {`!Ref Name`, "demo"},
		"Ref of a number parameter is text":         {`!Ref Count`, "3"},
		"Ref of a list parameter is a trimmed list": {`!Ref List`, []any{"a", "b", "c"}},
		"Ref of a parameter of Systems Manager":     {`!Ref Secret`, "ssm:/some/name"},
		"Ref of a pseudo parameter":                 {`{Ref: "AWS::Region"}`, "eu-west-1"},
		"Ref of a resource":                         {`!Ref Other`, "id-Other"},
		"GetAtt with a dot":                         {`!GetAtt Other.Arn`, "Other:Arn"},
		"GetAtt with dots in the attribute":         {`!GetAtt Other.Endpoint.Address`, "Other:Endpoint.Address"},
		"GetAtt as a list":                          {`{"Fn::GetAtt": [Other, Arn]}`, "Other:Arn"},
		"GetAtt with a Ref as attribute":            {`{"Fn::GetAtt": [Other, !Ref Name]}`, "Other:demo"},
		"Sub of one string": {
			`!Sub "${Name}-${Other}-${Other.Arn}-${AWS::Region}"`, "demo-id-Other-Other:Arn-eu-west-1",
		},
		"Sub keeps literals":                      {`!Sub "${!Name} $Name ${!AWS::Region}"`, "${Name} $Name ${AWS::Region}"},
		"Sub with variables, which win":           {`!Sub ["${Name}/${x}", {Name: other, x: !Ref Count}]`, "other/3"},
		"Sub does not look into what it puts in":  {`!Sub ["${x}", {x: "$\u007bName}"}]`, "${Name}"},
		"Join of mixed scalars":                   {`!Join ["-", [a, !Ref Name, 1, true]]`, "a-demo-1-true"},
		"Join of a list parameter":                {`!Join [",", !Ref List]`, "a,b,c"},
		"Select by number and by text":            {`[!Select [1, !Ref List], !Select ["0", [x, y]]]`, []any{"b", "x"}},
		"Split and Select":                        {`!Select [1, !Split ["|", "a|b|c"]]`, "b"},
		"If takes one branch only":                {`!If [IsDemo, yes, !Select [9, []]]`, "yes"},
		"If in short and long form":               {`{"Fn::If": [IsNot, a, !If [Both, b, c]]}`, "b"},
		"If with Or":                              {`!If [Any, b, c]`, "b"},
		"NoValue removes a property":              {`{a: 1, b: !Ref "AWS::NoValue"}`, map[string]any{"a": 1.0}},
		"NoValue in a branch removes a list item": {`[a, !If [IsNot, b, !Ref "AWS::NoValue"]]`, []any{"a"}},
		"FindInMap":                               {`!FindInMap [Map, !Ref "AWS::Region", ami]`, "ami-1"},
		"FindInMap of a list":                     {`!FindInMap [Map, eu-west-1, list]`, []any{"x", "y"}},
		"Base64":                                  {`!Base64 hello`, "aGVsbG8="},
		"Base64 of a function in the long form":   {`{"Fn::Base64": !Join ["", [a, b]]}`, "YWI="},
		"GetAZs of the stack's region":            {`!GetAZs ""`, []any{"eu-west-1a", "eu-west-1b"}},
		"GetAZs of a named region":                {`!Select [0, {"Fn::GetAZs": us-east-1}]`, "us-east-1a"},
		"ImportValue":                             {`!ImportValue {"Fn::Sub": "${Name}-vpc"}`, "imported-demo-vpc"},
		"Cidr of /24s in a /16":                   {`!Cidr [10.0.0.0/16, 3, 8]`, []any{"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"}},
		"Cidr where the octet overflows":          {`!Select [2, !Cidr [10.0.255.0/20, 3, "10"]]`, "10.0.248.0/22"},
		"Cidr of IPv6":                            {`!Select [1, !Cidr ["2001:db8::/56", 2, 64]]`, "2001:db8:0:1::/64"},
		"an IAM policy's Condition is no function": {
			`{Condition: {StringEquals: {a: b}}}`, map[string]any{"Condition": map[string]any{"StringEquals": map[string]any{"a": "b"}}},
		},
		"what is unknown makes all around it unknown": {`!Join ["", [a, !Sub "${New}"]]`, Unknown{Causes: []string{"New"}}},
		"an unknown item leaves its list a list":      {`[a, !Ref New]`, []any{"a", Unknown{Causes: []string{"New"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, frame+test.value, nil)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(test.want, got))
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"Ref of nothing": {
			`!Ref Nothing`, "Template format error: Unresolved resource dependencies [Nothing] in the Resources block of the template",
		},
		"Ref of an unknown pseudo parameter": {`!Ref "AWS::Nothing"`, "Unresolved resource dependencies [AWS::Nothing]"},
		"Ref of a list":                      {`{Ref: [a]}`, "every Ref object must have a single String value"},
		"Sub of nothing":                     {`!Sub "${Nothing}"`, "Unresolved resource dependencies [Nothing]"},
		"Sub with odd characters":            {`!Sub "${a-b}"`, "Unresolved resource dependencies [a-b]"},
		"Sub of a list parameter":            {`!Sub "${List}"`, "does not resolve to a string"},
		"Sub with three arguments": {
			`!Sub [a, {}, b]`, "One or more Fn::Sub intrinsic functions don't specify expected arguments",
		},
		"GetAtt of nothing": {
			`!GetAtt Nothing.Arn`, "Template error: instance of Fn::GetAtt references undefined resource Nothing",
		},
		"GetAtt without attribute":                  {`!GetAtt Other`, "every Fn::GetAtt object requires two non-empty parameters"},
		"Join without a list":                       {`!Join ["", a]`, "every Fn::Join object requires two parameters"},
		"Join of lists":                             {`!Join ["", [[a]]]`, "every Fn::Join object requires two parameters"},
		"Select beyond the end":                     {`!Select [3, !Ref List]`, "Fn::Select cannot select nonexistent value at index 3"},
		"Select of no number":                       {`!Select [x, !Ref List]`, "every Fn::Select object requires two non-null parameters"},
		"Split by nothing":                          {`!Split ["", abc]`, "every Fn::Split object requires two parameters"},
		"If of an unknown condition":                {`!If [Nothing, a, b]`, "Unresolved condition dependency Nothing"},
		"If with two arguments":                     {`!If [IsDemo, a]`, "Fn::If requires a list argument"},
		"FindInMap of an unknown map":               {`!FindInMap [Nothing, a, b]`, "Mapping named 'Nothing' is not present"},
		"FindInMap of an unknown key":               {`!FindInMap [Map, a, b]`, "Unable to get mapping for Map::a::b"},
		"Cidr that does not fit":                    {`!Cidr [10.0.0.0/24, 3, 7]`, "cannot fit 3 blocks"},
		"Cidr of no block":                          {`!Cidr [10.0.0.0, 3, 7]`, "is not a valid CIDR block"},
		"a function next to other keys":             {`{"Fn::Join": ["", [a]], b: c}`, "Fn::Join must be the only key"},
		"a null":                                    {`null`, "[/Resources/R/Properties/V] Null values are not allowed in templates"},
		"an alias":                                  {"[&a b, *a]", "YAML aliases are not allowed"},
		"an unknown tag":                            {`!Nope a`, "unsupported tag !Nope"},
		"a binary":                                  {`!!binary aGk=`, "unsupported tag !!binary"},
		"the same key twice":                        {`{a: 1, a: 2}`, "duplicate key a"},
		"a merge key":                               {`{<<: {a: 1}}`, "a key must be a plain name"},
		"Condition functions outside of conditions": {`!Equals [a, b]`, "does not support Fn::Equals"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, frame+test.value, nil)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestUnsupportedPartsAreNamed(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"a transform":            {"Transform: AWS::Serverless-2016-10-31\nResources: {R: {Type: T}}", "the template section Transform"},
		"hooks":                  {"Hooks: {}\nResources: {R: {Type: T}}", "the template section Hooks"},
		"Fn::Transform":          {frame + `!Transform {Name: x}`, "Fn::Transform"},
		"Fn::ForEach":            {"Resources: {\"Fn::ForEach::x\": []}", "Fn::ForEach::x in Resources"},
		"Fn::ToJsonString":       {frame + `!ToJsonString {}`, "Fn::ToJsonString"},
		"an unknown function":    {frame + `{"Fn::Nope": 1}`, "Fn::Nope"},
		"a dynamic reference":    {frame + `"{{resolve:ssm:/a}}"`, "the dynamic reference {{resolve:ssm:/a}}"},
		"snapshots":              {"Resources: {R: {Type: T, DeletionPolicy: Snapshot}}", "DeletionPolicy Snapshot of resource R"},
		"a default of FindInMap": {frame + `!FindInMap [Map, a, b, {DefaultValue: c}]`, "Fn::FindInMap with a default value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, test.body, nil)
			var lacking *UnsupportedError
			require.True(t, errors.As(err, &lacking), "%v", err)
			require.Equal(t, test.want, lacking.What)
		})
	}
}

func TestStructureIsChecked(t *testing.T) {
	many := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(line, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	for name, test := range map[string]struct{ body, want string }{
		"nothing":            {"", "unsupported structure"},
		"a list":             {"[]", "unsupported structure"},
		"text":               {"hello", "unsupported structure"},
		"broken YAML":        {"a: [", "YAML not well-formed"},
		"broken JSON":        {`{"Resources": {`, "not well-formed"},
		"two documents":      {"Resources: {R: {Type: T}}\n---\na: 1", "more than one document"},
		"an unknown section": {"Resource: {}", "Invalid template property or properties [Resource]"},
		"another version": {
			"AWSTemplateFormatVersion: 2011-01-01\nResources: {R: {Type: T}}", "2011-01-01 is not a supported value",
		},
		"no resources":                      {"Description: x", "At least one Resources member must be defined"},
		"a resource without type":           {"Resources: {R: {}}", "Every Resources object must contain a Type member"},
		"a resource with an unknown member": {"Resources: {R: {Type: T, Property: {}}}", "Invalid template resource property 'Property'"},
		"an odd logical id":                 {"Resources: {R-1: {Type: T}}", "Resource name R-1 is non alphanumeric"},
		"an unknown deletion policy":        {"Resources: {R: {Type: T, DeletionPolicy: Keep}}", "Unrecognized DeletionPolicy Keep"},
		"an update policy that creates": {
			"Resources: {R: {Type: T, UpdateReplacePolicy: RetainExceptOnCreate}}", "Unrecognized UpdateReplacePolicy",
		},
		"DependsOn of nothing": {"Resources: {R: {Type: T, DependsOn: X}}", "Unresolved resource dependencies [X]"},
		"an undefined condition": {
			"Resources: {R: {Type: T, Condition: X}}", "Unresolved condition dependency X in the Resources block",
		},
		"an output without value": {"Resources: {R: {Type: T}}\nOutputs: {O: {}}", "Every Outputs member must contain a Value"},
		"an output of nothing": {
			"Resources: {R: {Type: T}}\nOutputs: {O: {Value: !Ref X}}", "Unresolved resource dependencies [X] in the Outputs block",
		},
		"a circle": {
			"Resources: {A: {Type: T, DependsOn: B}, B: {Type: T, Properties: {x: !GetAtt A.Arn}}}", "Circular dependency between resources: [A, B]",
		},
		"a resource that needs itself": {"Resources: {A: {Type: T, Properties: {x: !Ref A}}}", "Circular dependency between resources: [A]"},
		"a circle of conditions": {
			"Conditions: {A: !Not [!Condition B], B: !Not [!Condition A]}\nResources: {R: {Type: T}}", "Circular dependency between conditions",
		},
		"a condition on a resource": {
			"Conditions: {A: !Equals [!Ref R, x]}\nResources: {R: {Type: T}}", "Cannot reference resources in the Conditions block",
		},
		"a reference to what is not made": {
			"Conditions: {No: !Equals [a, b]}\nResources: {A: {Type: T, Condition: No}, R: {Type: T, Properties: {V: !Ref A}}}",
			"Unresolved resource dependencies [A]",
		},
		"501 resources": {"Resources:\n" + many(501, "  R#: {Type: T}\n"), "Number of resources, 501, is greater than maximum allowed, 500"},
		"201 parameters": {
			"Parameters:\n" + many(201, "  P#: {Type: String}\n") + "Resources: {R: {Type: T}}", "Number of parameters, 201, is greater",
		},
		"a rule that fails": {
			"Parameters: {P: {Type: String, Default: x}}\nRules: {Check: {Assertions: [{Assert: {\"Fn::Contains\": [[a, b], !Ref P]}, " +
				"AssertDescription: P is odd}]}}\nResources: {R: {Type: T}}", "Rule Check failed: P is odd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, test.body, nil)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestParametersAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		declaration string
		given       map[string]string
		want        string
	}{
		"a value that is missing": {"{Type: String}", nil, "Parameters: [P] must have values"},
		"an undeclared parameter": {
			"{Type: String, Default: x}", map[string]string{"Q": "x"}, "Parameters: [Q] do not exist in the template",
		},
		"a value that is not allowed": {
			"{Type: String, AllowedValues: [a, b]}", map[string]string{"P": "c"}, "Parameter 'P' must be one of AllowedValues",
		},
		"a list with a value not allowed": {
			"{Type: CommaDelimitedList, AllowedValues: [a, b]}", map[string]string{"P": "a,c"}, "must be one of AllowedValues",
		},
		"a value that fits no pattern": {
			`{Type: String, AllowedPattern: "[a-z]+"}`, map[string]string{"P": "ab1"}, "must match pattern [a-z]+",
		},
		"a constraint's description": {
			`{Type: String, AllowedPattern: "[a-z]+", ConstraintDescription: letters only}`, map[string]string{
				"P": "1",
			}, "Parameter 'P' failed to satisfy constraint: letters only",
		},
		"too short": {
			"{Type: String, MinLength: 3}", map[string]string{"P": "ab"}, "must contain at least 3 characters",
		},
		"too long": {
			"{Type: String, MaxLength: '3'}", map[string]string{"P": "abcd"}, "must contain at most 3 characters",
		},
		"no number":                          {"{Type: Number}", map[string]string{"P": "x"}, "Parameter 'P' must be a number."},
		"a list with no number":              {"{Type: List<Number>}", map[string]string{"P": "1,x"}, "Parameter 'P' must be a number."},
		"too small":                          {"{Type: Number, MinValue: 3}", map[string]string{"P": "2"}, "must be a number not less than 3"},
		"too great":                          {"{Type: Number, MaxValue: 3}", map[string]string{"P": "4"}, "must be a number not greater than 3"},
		"a default that breaks a constraint": {"{Type: Number, MaxValue: 3, Default: 5}", nil, "must be a number not greater than 3"},
		"an unknown type":                    {"{Type: Text}", nil, "Unrecognized parameter type: Text"},
		"an unknown member":                  {"{Type: String, Defaults: x}", nil, "Invalid property 'Defaults'"},
		"a default that is a list":           {"{Type: String, Default: [a]}", nil, "Every Default member must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, "Parameters: {P: "+test.declaration+"}\nResources: {R: {Type: T}}", test.given)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestJSONAndYAMLMeanTheSame(t *testing.T) {
	fromYAML, err := Parse([]byte("Resources: {R: {Type: T, Properties: {a: !GetAtt O.x, b: 1, c: !Sub '${O}'}}, O: {Type: T}}"))
	require.NoError(t, err)
	fromJSON, err :=
		Parse([]byte(
			`{"Resources": {"R": {"Type": "T", "Properties": {"a": {"Fn::GetAtt": ["O", "x"]}, "b": 1, "c": {"Fn::Sub": "${O}"}}},
				"O": {"Type": "T"}}}`))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(fromYAML, fromJSON))
}

func TestDependenciesFollowOnlyTheBranchThatHolds(t *testing.T) {
	parsed, err := Parse([]byte(`
Conditions: {Yes: !Equals [a, a], No: !Equals [a, b]}
Resources:
  A: {Type: T}
  B: {Type: T}
  C: {Type: T, Condition: No}
  R: {Type: T, DependsOn: [C], Properties: {x: !If [Yes, !Ref A, !Ref B], y: !Sub ["${z}", {z: !If [No, !Ref B, plain]}]}}
`))
	require.NoError(t, err)
	scope := &Scope{Template: parsed}
	require.NoError(t, scope.EvaluateConditions())
	require.Equal(t, []string{"A", "B", "R"}, scope.Active())
	require.Equal(t, []string{"A"}, scope.Dependencies("R"))
}

func TestEqualComparesScalarsByTheirText(t *testing.T) {
	require.True(t, Equal(map[string]any{"a": []any{"3", true}}, map[string]any{"a": []any{3.0, "true"}}))
	require.False(t, Equal(map[string]any{"a": "1"}, map[string]any{"a": "1", "b": "2"}))
	require.False(t, Equal("a", []any{"a"}))
	require.False(t, Equal("[a]", []any{"a"}))
}

func FuzzParse(f *testing.F) {
	f.Add(frame + `!Sub "${Name}"`)
	f.Add(`{"Resources": {"R": {"Type": "T", "Properties": {"V": {"Fn::If": []}}}}}`)
	f.Add("Resources: {R: {Type: T, Properties: {V: !Cidr [10.0.0.0/8, 256, 3]}}}")
	f.Fuzz(func(t *testing.T, body string) {
		_, err := evaluate(t, body, nil)
		if err == nil {
			return
		}
		var refused *Error
		var lacking *UnsupportedError
		if !errors.As(err, &refused) && !errors.As(err, &lacking) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}
