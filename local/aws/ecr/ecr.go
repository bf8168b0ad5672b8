// Package ecr simulates the part of Amazon ECR that `cdk bootstrap` needs: the resource type AWS::ECR::Repository. It has no
// API, no images and no registry, because drover's assets are files.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ecr-repository.html
package ecr

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// Service has the account's repositories.
type Service struct {
	identities *iam.Service

	mu           sync.Mutex
	repositories map[string]bool // by name
}

// New returns a service without repositories.
func New(identities *iam.Service) *Service {
	return &Service{identities: identities, repositories: map[string]bool{}}
}

// Resources returns the provider by resource type.
func (s *Service) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{"AWS::ECR::Repository": repositories{s}}
}

func (s *Service) arn(name string) string {
	return "arn:" + s.identities.Partition + ":ecr:" + s.identities.Region + ":" + s.identities.Account + ":repository/" + name
}

type repositories struct{ s *Service }

func (repositories) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"RepositoryName": resource.Replaces, "ImageTagMutability": resource.InPlace, "LifecyclePolicy": resource.InPlace,
			"RepositoryPolicyText": resource.InPlace,
		},
		Attributes: []string{"Arn", "RepositoryUri"},
	}
}

type properties struct {
	RepositoryName, ImageTagMutability string
	LifecyclePolicy                    struct{ LifecyclePolicyText string }
	RepositoryPolicyText               any
}

// decode reads and validates the properties.
func decode(values map[string]any) (properties, error) {
	var in properties
	if err := resource.Decode(values, &in); err != nil {
		return in, err
	}
	if m := in.ImageTagMutability; m != "" && m != "MUTABLE" && m != "IMMUTABLE" {
		return in, wire.Errorf("InvalidParameterException", "Invalid parameter at 'imageTagMutability': %q", m)
	}
	if text := in.LifecyclePolicy.LifecyclePolicyText; text != "" && !json.Valid([]byte(text)) {
		return in, wire.Errorf("InvalidParameterException", "Invalid parameter at 'LifecyclePolicyText' failed to satisfy constraint: "+
			"'Lifecycle policy validation failure: not valid JSON'")
	}
	if in.RepositoryPolicyText != nil {
		if _, _, err := iam.ParsePolicyValue(in.RepositoryPolicyText, true); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (p repositories) result(name string) resource.Result {
	i := p.s.identities
	return resource.Result{PhysicalID: name, Attributes: map[string]any{
		"Arn": p.s.arn(name), "RepositoryUri": i.Account + ".dkr.ecr." + i.Region + ".amazonaws.com/" + name,
	}}
}

// authorize checks an action and, where the properties need them, the actions that set policies.
func (p repositories) authorize(r resource.Request, action, name string, in properties) error {
	actions := []string{action}
	if in.LifecyclePolicy.LifecyclePolicyText != "" {
		actions = append(actions, "ecr:PutLifecyclePolicy")
	}
	if in.RepositoryPolicyText != nil {
		actions = append(actions, "ecr:SetRepositoryPolicy")
	}
	for _, action := range actions {
		if err := r.Caller.Authorize(action, p.s.arn(name), nil); err != nil {
			return err
		}
	}
	return nil
}

func (p repositories) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := decode(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if in.RepositoryName == "" {
		in.RepositoryName = strings.ToLower(r.GeneratedName(256))
	}
	if err := p.authorize(r, "ecr:CreateRepository", in.RepositoryName, in); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.repositories[in.RepositoryName] {
		return resource.Result{}, wire.Errorf("RepositoryAlreadyExistsException", "Resource of type 'AWS::ECR::Repository' with identifier "+
			"'%s' already exists.", in.RepositoryName)
	}
	p.s.repositories[in.RepositoryName] = true
	return p.result(in.RepositoryName), nil
}

func (p repositories) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := decode(r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.authorize(r, "ecr:PutImageTagMutability", r.PhysicalID, in); err != nil {
		return resource.Result{}, err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if !p.s.repositories[r.PhysicalID] {
		return resource.Result{}, wire.Errorf("RepositoryNotFoundException", "The repository with name '%s' does not exist in the registry "+
			"with id '%s'", r.PhysicalID, p.s.identities.Account)
	}
	return p.result(r.PhysicalID), nil
}

func (p repositories) Delete(_ context.Context, r resource.Request) error {
	if err := r.Caller.Authorize("ecr:DeleteRepository", p.s.arn(r.PhysicalID), nil); err != nil {
		return err
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.repositories, r.PhysicalID)
	return nil
}
