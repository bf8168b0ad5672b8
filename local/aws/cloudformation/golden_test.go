package cloudformation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/engine/resource"
)

// The whole life of stacks with drover's own templates, with a provider that records.

// recorder provides one resource type of a template.
type recorder struct {
	schema resource.Schema

	mu         sync.Mutex
	properties map[string]map[string]any
}

func (r *recorder) Schema() resource.Schema { return r.schema }

func (r *recorder) Create(_ context.Context, request resource.Request) (resource.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.properties[request.LogicalID] = request.Properties
	result := resource.Result{PhysicalID: "id-of-" + request.LogicalID, Attributes: map[string]any{}}
	for _, attribute := range r.schema.Attributes {
		result.Attributes[attribute] = request.LogicalID + ":" + attribute
	}
	return result, nil
}

func (r *recorder) Update(ctx context.Context, request resource.Request) (resource.Result, error) {
	return r.Create(ctx, request)
}

func (r *recorder) Delete(_ context.Context, request resource.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.properties, request.LogicalID)
	return nil
}

// recorders returns a provider for each type of a template.
func recorders(parsed *template.Template) map[string]*recorder {
	byType := map[string]*recorder{}
	for _, r := range parsed.Resources {
		if byType[r.Type] == nil {
			byType[r.Type] = &recorder{
				schema:     resource.Schema{Properties: map[string]resource.UpdateBehavior{"Tags": resource.InPlace}},
				properties: map[string]map[string]any{},
			}
		}
		for property := range r.Properties {
			byType[r.Type].schema.Properties[property] = resource.InPlace
		}
	}
	note := func(value any) {
		for _, reference := range template.References(value, nil) {
			if reference.Attribute != "" {
				provider := byType[parsed.Resources[reference.Name].Type]
				provider.schema.Attributes = append(provider.schema.Attributes, reference.Attribute)
			}
		}
	}
	for _, r := range parsed.Resources {
		note(r.Properties)
	}
	for _, output := range parsed.Outputs {
		note(output.Value)
	}
	return byType
}

func TestDroversTemplatesLiveAndDie(t *testing.T) {
	files, err := filepath.Glob("../../../shared/render/testdata/golden/v1/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			inAccount(t, func(t *testing.T, a *account) { live(t, a, body) })
		})
	}
}

// live creates, changes and deletes a stack of a template.
func live(t *testing.T, a *account, body []byte) {
	parsed, err := template.Parse(body)
	require.NoError(t, err)
	providers := map[string]resource.Provider{}
	byType := recorders(parsed)
	for name, provider := range byType {
		if name != "AWS::IAM::Role" { // the account has a provider of roles
			providers[name] = provider
		}
	}
	a.mu.Lock()
	delete(a.providers, "AWS::IAM::Role")
	a.mu.Unlock()
	if role := byType["AWS::IAM::Role"]; role != nil {
		providers["AWS::IAM::Role"] = role
	}
	a.Register(providers)
	a.objects["b/k"] = string(body)
	var parameters []Parameter
	for name, declared := range parsed.Parameters {
		if declared.Default == nil {
			value := "a-" + name
			switch {
			case len(declared.AllowedValues) > 0:
				value = declared.AllowedValues[0]
			case declared.Type == "Number":
				value = "4"
			}
			parameters = append(parameters, Parameter{ParameterKey: name, ParameterValue: value})
		}
	}
	const location = "https://b.s3.eu-west-1.amazonaws.com/k"
	capabilities := []string{capabilityNamedIAM}
	st := a.createWith(&CreateStackInput{StackName: "s", TemplateURL: location, Parameters: parameters, Capabilities: capabilities})
	require.Equal(t, createComplete, st.StackStatus, a.trail(st.StackId))
	made := 0
	for _, provider := range byType {
		made += len(provider.properties)
		for name, properties := range provider.properties {
			requireResolved(t, name, properties)
		}
	}
	require.Len(t, a.describeResources("s"), made)
	require.Len(t, st.Outputs, len(parsed.Outputs))

	_, err = a.UpdateStack(a.ctx, a.admin, &UpdateStackInput{
		StackName: "s", TemplateURL: location, Parameters: parameters, Capabilities: capabilities,
	})
	a.requireRefused(err, "ValidationError", "No updates are to be performed.")
	st = a.updateWith(&UpdateStackInput{
		StackName: "s", TemplateURL: location, Parameters: parameters, Capabilities: capabilities, Tags: []Tag{{"drover:checksum", "2"}},
	})
	require.Equal(t, updateComplete, st.StackStatus)
	require.Equal(t, deleteComplete, a.delete(&DeleteStackInput{StackName: "s"}).StackStatus)
	for _, r := range a.describeResources(st.StackId) {
		if policy := parsed.Resources[r.LogicalResourceId].DeletionPolicy; policy == "Retain" || policy == "RetainExceptOnCreate" {
			require.Equal(t, deleteSkipped, r.ResourceStatus, r.LogicalResourceId)
		} else {
			require.Equal(t, deleteComplete, r.ResourceStatus, r.LogicalResourceId)
		}
	}
}

func (a *account) describeResources(name string) []StackResource {
	a.t.Helper()
	out, err := a.DescribeStackResources(a.ctx, a.admin, &DescribeStackResourcesInput{StackName: name})
	require.NoError(a.t, err)
	return out.StackResources
}

// requireResolved fails if a value contains a function.
func requireResolved(t *testing.T, path string, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			require.NotContains(t, key, "Fn::", path)
			require.NotEqual(t, "Ref", key, path)
			requireResolved(t, path+"/"+key, item)
		}
	case []any:
		for i, item := range v {
			requireResolved(t, fmt.Sprint(path, "/", i), item)
		}
	case nil, template.Unknown:
		t.Fatalf("%s is not resolved", path)
	}
}
