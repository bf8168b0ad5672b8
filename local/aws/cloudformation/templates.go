package cloudformation

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/local/aws/cloudformation/template"
	"github.com/drover-run/drover/local/aws/iam"
)

// The API operations about templates.

// GetTemplateInput of GetTemplate.
type GetTemplateInput struct {
	StackName, ChangeSetName, TemplateStage string
}

// GetTemplateOutput of GetTemplate.
type GetTemplateOutput struct {
	TemplateBody    string
	StagesAvailable []string
}

// GetTemplate returns the submitted template of a stack or change set.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_GetTemplate.html
func (s *Service) GetTemplate(_ context.Context, caller iam.Caller, in *GetTemplateInput) (*GetTemplateOutput, error) {
	if in.TemplateStage != "" && in.TemplateStage != "Original" && in.TemplateStage != "Processed" {
		return nil, invalid("1 validation error detected: Value '%s' at 'templateStage' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [Original, Processed]", in.TemplateStage)
	}
	if in.ChangeSetName != "" {
		if err := s.authorizeChangeSet(caller, "GetTemplate", in.ChangeSetName, in.StackName); err != nil {
			return nil, err
		}
	} else if err := s.authorize(caller, "GetTemplate", in.StackName, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &GetTemplateOutput{StagesAvailable: []string{"Original", "Processed"}}
	if in.ChangeSetName != "" {
		set, err := s.findChangeSet(in.ChangeSetName, in.StackName)
		if err != nil {
			return nil, err
		}
		out.TemplateBody = set.target.body
		return out, nil
	}
	st, err := s.mustFind(in.StackName)
	if err != nil {
		return nil, err
	}
	out.TemplateBody = st.current.body
	return out, nil
}

// TemplateInput of ValidateTemplate and GetTemplateSummary.
type TemplateInput struct {
	TemplateBody, TemplateURL string
	StackName                 string
}

// TemplateParameter as ValidateTemplate returns it.
type TemplateParameter struct {
	ParameterKey string
	DefaultValue *string
	NoEcho       bool
	Description  string `xml:",omitempty"`
}

// ValidateTemplateOutput of ValidateTemplate.
type ValidateTemplateOutput struct {
	Parameters         []TemplateParameter
	Description        string `xml:",omitempty"`
	Capabilities       []string
	CapabilitiesReason string `xml:",omitempty"`
	DeclaredTransforms []string
}

// ValidateTemplate checks a template without a stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ValidateTemplate.html
func (s *Service) ValidateTemplate(ctx context.Context, caller iam.Caller, in *TemplateInput) (*ValidateTemplateOutput, error) {
	if err := caller.Authorize("cloudformation:ValidateTemplate", "*", nil); err != nil {
		return nil, err
	}
	if in.StackName != "" {
		return nil, unsupportedError("StackName in ValidateTemplate")
	}
	t, err := s.parse(ctx, caller, in)
	if err != nil {
		return nil, err
	}
	out := &ValidateTemplateOutput{Description: t.Description}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	for _, name := range sortedKeys(t.Parameters) {
		p := t.Parameters[name]
		out.Parameters = append(out.Parameters, TemplateParameter{
			ParameterKey: name, DefaultValue: p.Default, NoEcho: p.NoEcho, Description: p.Description,
		})
	}
	return out, nil
}

func (s *Service) parse(ctx context.Context, caller iam.Caller, in *TemplateInput) (*template.Template, error) {
	body, err := s.readTemplate(ctx, caller, in.TemplateBody, in.TemplateURL)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse([]byte(body))
	if err != nil {
		return nil, templateError(err)
	}
	return t, s.checkTypes(t)
}

func capabilities(t *template.Template) ([]string, string) {
	needed, because := neededCapability(t)
	if needed == "" {
		return nil, ""
	}
	encoded, _ := json.Marshal(because) // strings always marshal
	return []string{needed}, "The following resource(s) require capabilities: " + string(encoded)
}

// ParameterDeclaration as GetTemplateSummary returns it.
type ParameterDeclaration struct {
	ParameterKey         string
	ParameterType        string
	DefaultValue         *string
	NoEcho               bool
	Description          string `xml:",omitempty"`
	ParameterConstraints struct{ AllowedValues []string }
}

// GetTemplateSummaryOutput of GetTemplateSummary.
type GetTemplateSummaryOutput struct {
	Parameters         []ParameterDeclaration
	Description        string `xml:",omitempty"`
	Capabilities       []string
	CapabilitiesReason string `xml:",omitempty"`
	ResourceTypes      []string
	Version            string `xml:",omitempty"`
	Metadata           string `xml:",omitempty"`
	DeclaredTransforms []string
}

// GetTemplateSummary returns the declarations of a template, which may be a stack's.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_GetTemplateSummary.html
func (s *Service) GetTemplateSummary(ctx context.Context, caller iam.Caller, in *TemplateInput) (*GetTemplateSummaryOutput, error) {
	var t *template.Template
	var err error
	if in.StackName != "" {
		if err := s.authorize(caller, "GetTemplateSummary", in.StackName, nil); err != nil {
			return nil, err
		}
		s.mu.Lock()
		st, err := s.mustFind(in.StackName)
		if err == nil {
			t = st.current.template
		}
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	} else {
		if err := caller.Authorize("cloudformation:GetTemplateSummary", "*", nil); err != nil {
			return nil, err
		}
		if t, err = s.parse(ctx, caller, in); err != nil {
			return nil, err
		}
	}
	out := &GetTemplateSummaryOutput{Description: t.Description, Version: t.FormatVersion}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	for _, name := range sortedKeys(t.Parameters) {
		p := t.Parameters[name]
		declaration := ParameterDeclaration{
			ParameterKey: name, ParameterType: p.Type, DefaultValue: p.Default, NoEcho: p.NoEcho, Description: p.Description,
		}
		declaration.ParameterConstraints.AllowedValues = p.AllowedValues
		out.Parameters = append(out.Parameters, declaration)
	}
	found := map[string]bool{}
	for _, r := range t.Resources {
		found[r.Type] = true
	}
	out.ResourceTypes = sortedKeys(found)
	if t.Metadata != nil {
		encoded, _ := json.Marshal(t.Metadata) // decoded JSON and YAML always marshals
		out.Metadata = string(encoded)
	}
	return out, nil
}
