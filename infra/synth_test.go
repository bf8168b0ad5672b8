package main

// The templates that all tests share, because a synthesis takes seconds, and the resolution of its intrinsic functions.

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// The account of the tests.
const (
	testPartition = "aws"
	testRegion    = "eu-central-1"
	testAccount   = "111122223333"
	// testAccessRole is the role that specs of the tests may give access.
	testAccessRole = "admins"
)

// synthesizedStacks has the resources of both stacks for arm64. Their logical IDs differ.
var synthesizedStacks template

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	defer end()
	dir, err := os.MkdirTemp("", "infra")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if synthesizedStacks, err = synthesize(dir, nil); err != nil {
		fmt.Fprintln(os.Stderr, "synthesis:", err)
		return 1
	}
	return m.Run()
}

// compile writes a different file in place of each compiled function.
func compile(dir string) error {
	for _, goarch := range []string{"arm64", "amd64"} {
		for _, f := range append([]function{{name: relayFunction}}, functionTable...) {
			folder := filepath.Join(dir, goarch, f.name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(goarch+" "+f.name), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// synthesize writes a cloud assembly into dir and merges the templates of its stacks.
func synthesize(dir string, context map[string]any) (out template, err error) {
	functions := filepath.Join(dir, "functions")
	if err := compile(functions); err != nil {
		return out, err
	}
	outdir := filepath.Join(dir, "cdk.out")
	with := map[string]any{"accessRoles": testAccessRole}
	maps.Copy(with, context)
	app, err := newApp(options{functions: functions, outdir: outdir, context: with})
	if err != nil {
		return out, err
	}
	if err := synth(app); err != nil {
		return out, err
	}
	out = template{Resources: map[string]resource{}, Parameters: map[string]any{}, Rules: map[string]any{}, Outputs: map[string]any{}}
	for _, name := range []string{names.BaseStack, names.CellStack} {
		body, err := os.ReadFile(filepath.Join(outdir, name+".template.json"))
		if err != nil {
			return out, err
		}
		var one template
		if err := json.Unmarshal(body, &one); err != nil {
			return out, err
		}
		for id, r := range one.Resources {
			if _, exists := out.Resources[id]; exists {
				return out, fmt.Errorf("both stacks have a resource %s", id)
			}
			r.Stack = name
			out.Resources[id] = r
		}
		maps.Copy(out.Parameters, one.Parameters)
		maps.Copy(out.Rules, one.Rules)
		maps.Copy(out.Outputs, one.Outputs)
	}
	return out, nil
}

type template struct {
	Resources  map[string]resource
	Parameters map[string]any
	Rules      map[string]any
	Outputs    map[string]any
}

type resource struct {
	Stack               string `json:"-"`
	Type                string
	Properties          map[string]any
	DependsOn           any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// ofType lists the resources of a type with their properties resolved, by logical id.
func (t template) ofType(kind string) map[string]map[string]any {
	out := make(map[string]map[string]any)
	for id, r := range t.Resources {
		if r.Type == kind {
			out[id] = t.resolve(r.Properties).(map[string]any)
		}
	}
	return out
}

// resourceNamed is the resource of a type whose property has the value.
func (t template) resourceNamed(tb testing.TB, kind, property, value string) map[string]any {
	tb.Helper()
	for _, properties := range t.ofType(kind) {
		if properties[property] == value {
			return properties
		}
	}
	require.Failf(tb, "no such resource", "%s with %s %s", kind, property, value)
	return nil
}

// resolve replaces intrinsic functions by their values in the account of the tests.
func (t template) resolve(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 1 {
			for function, argument := range value {
				if resolved, ok := t.intrinsic(function, argument); ok {
					return resolved
				}
			}
		}
		out := make(map[string]any, len(value))
		for k, v := range value {
			out[k] = t.resolve(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = t.resolve(v)
		}
		return out
	}
	return value
}

func (t template) intrinsic(function string, argument any) (any, bool) {
	switch function {
	case "Ref":
		return t.ref(argument.(string)), true
	case "Fn::GetAtt":
		parts := argument.([]any)
		return t.attribute(parts[0].(string), parts[1].(string)), true
	case "Fn::Join":
		parts := argument.([]any)
		var words []string
		for _, word := range parts[1].([]any) {
			words = append(words, fmt.Sprint(t.resolve(word)))
		}
		return strings.Join(words, parts[0].(string)), true
	case "Fn::Sub":
		return os.Expand(argument.(string), func(name string) string {
			if id, attribute, ok := strings.Cut(name, "."); ok {
				return t.attribute(id, attribute)
			}
			return t.ref(name)
		}), true
	}
	return nil, false
}

func (t template) ref(name string) string {
	switch name {
	case "AWS::Partition":
		return testPartition
	case "AWS::Region":
		return testRegion
	case "AWS::AccountId":
		return testAccount
	case "AWS::URLSuffix":
		return "amazonaws.com"
	}
	r, ok := t.Resources[name]
	if !ok {
		panic("Ref of an unknown resource: " + name)
	}
	switch r.Type {
	case "AWS::StepFunctions::StateMachine", "AWS::SNS::Topic":
		return t.attribute(name, "Arn")
	}
	return t.physical(r)
}

// physical is the name of a resource.
func (t template) physical(r resource) string {
	for _, property := range []string{
		"BucketName", "FunctionName", "RoleName", "ManagedPolicyName", "StateMachineName", "QueueName", "TopicName", "LogGroupName",
		"Name", "AlarmName",
		"DashboardName",
	} {
		if name, ok := r.Properties[property]; ok {
			return t.resolve(name).(string)
		}
	}
	return "unnamed"
}

func (t template) attribute(id, attribute string) string {
	r, ok := t.Resources[id]
	if !ok {
		panic("attribute of an unknown resource: " + id)
	}
	name := t.physical(r)
	if attribute != "Arn" {
		return name
	}
	arn := func(service, resource string) string {
		return strings.Join([]string{"arn", testPartition, service, testRegion, testAccount, resource}, ":")
	}
	switch r.Type {
	case "AWS::S3::Bucket":
		return "arn:" + testPartition + ":s3:::" + name
	case "AWS::IAM::Role":
		return "arn:" + testPartition + ":iam::" + testAccount + ":role/" + name
	case "AWS::Lambda::Function":
		return arn("lambda", "function:"+name)
	case "AWS::StepFunctions::StateMachine":
		return arn("states", "stateMachine:"+name)
	case "AWS::SQS::Queue":
		return arn("sqs", name)
	case "AWS::SNS::Topic":
		return arn("sns", name)
	case "AWS::Logs::LogGroup":
		return arn("logs", "log-group:"+name+":*")
	case "AWS::Events::Rule":
		return arn("events", "rule/"+name)
	case "AWS::KMS::Key":
		return arn("kms", "key/"+id)
	case "AWS::CloudWatch::Alarm":
		return arn("cloudwatch", "alarm:"+name)
	}
	panic("no ARN for " + r.Type)
}
