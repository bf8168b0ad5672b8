package iamapi

// AWS::IAM::Policy and AWS::IAM::ManagedPolicy.

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
)

type inlinePolicies struct{ identities *iam.Service }

func (inlinePolicies) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"PolicyName": resource.InPlace, "PolicyDocument": resource.InPlace, "Roles": resource.InPlace,
		},
		Required: []string{"PolicyName", "PolicyDocument", "Roles"},
	}
}

type inlineProperties struct {
	PolicyName     string
	PolicyDocument any
	Roles          []string
}

func (p inlinePolicies) put(r resource.Request) error {
	var in inlineProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return err
	}
	_, document, err := iam.ParsePolicyValue(in.PolicyDocument, false)
	if err != nil {
		return err
	}
	for _, name := range in.Roles {
		role, err := p.identities.Role(name)
		if err != nil {
			return err
		}
		if err := authorize(r, p.identities.RoleARN(role), "PutRolePolicy"); err != nil {
			return err
		}
		if err := p.identities.PutRolePolicy(name, in.PolicyName, document); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes the policy of old from the roles that are not in keep.
func (p inlinePolicies) drop(r resource.Request, old map[string]any, keep map[string]any) error {
	var was, kept inlineProperties
	if err := errors.Join(resource.Decode(old, &was), resource.Decode(keep, &kept)); err != nil {
		return err
	}
	for _, name := range was.Roles {
		if was.PolicyName == kept.PolicyName && slices.Contains(kept.Roles, name) {
			continue
		}
		role, err := p.identities.Role(name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := authorize(r, p.identities.RoleARN(role), "DeleteRolePolicy"); err != nil {
			return err
		}
		if err := p.identities.DeleteRolePolicy(name, was.PolicyName); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

func (p inlinePolicies) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	if err := p.put(r); err != nil {
		return resource.Result{}, errors.Join(err, p.drop(r, r.Properties, nil))
	}
	return resource.Result{PhysicalID: r.GeneratedName(128)}, nil
}

func (p inlinePolicies) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	if err := p.put(r); err != nil {
		return resource.Result{}, err
	}
	return resource.Result{PhysicalID: r.PhysicalID}, p.drop(r, r.Old, r.Properties)
}

func (p inlinePolicies) Delete(_ context.Context, r resource.Request) error {
	return p.drop(r, r.Properties, nil)
}

type managedPolicies struct{ identities *iam.Service }

func (managedPolicies) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"ManagedPolicyName": resource.Replaces, "Path": resource.Replaces, "Description": resource.Replaces,
			"PolicyDocument": resource.InPlace, "Roles": resource.InPlace,
		},
		Required:   []string{"PolicyDocument"},
		Attributes: []string{"PolicyArn", "PolicyId", "DefaultVersionId"},
	}
}

type managedProperties struct {
	ManagedPolicyName, Path, Description string
	PolicyDocument                       any
	Roles                                []string
}

func (p managedPolicies) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	var in managedProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return resource.Result{}, err
	}
	_, document, err := iam.ParsePolicyValue(in.PolicyDocument, false)
	if err != nil {
		return resource.Result{}, err
	}
	if in.ManagedPolicyName == "" {
		in.ManagedPolicyName = r.GeneratedName(128)
	}
	want := iam.ManagedPolicy{Name: in.ManagedPolicyName, Path: in.Path, Description: in.Description, Document: document}
	if err := authorize(r, p.identities.PolicyARN(want), "CreatePolicy"); err != nil {
		return resource.Result{}, err
	}
	created, err := p.identities.CreatePolicy(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.attach(r, created.ARN, nil, in.Roles); err != nil {
		return resource.Result{}, errors.Join(err, p.attach(r, created.ARN, in.Roles, nil), p.identities.DeletePolicy(created.ARN))
	}
	return managedResult(created), nil
}

func managedResult(p iam.ManagedPolicy) resource.Result {
	return resource.Result{PhysicalID: p.ARN, Attributes: map[string]any{"PolicyArn": p.ARN, "PolicyId": p.ID, "DefaultVersionId": "v1"}}
}

// attach changes the attachments from the roles in old to those in want.
func (p managedPolicies) attach(r resource.Request, arn string, old, want []string) error {
	change := func(name, action string, do func(role, policy string) error) error {
		role, err := p.identities.Role(name)
		if err != nil {
			return err
		}
		if err := r.Caller.Authorize("iam:"+action, p.identities.RoleARN(role), map[string]string{"iam:PolicyARN": arn}); err != nil {
			return err
		}
		return do(name, arn)
	}
	for _, name := range want {
		if err := change(name, "AttachRolePolicy", p.identities.AttachRolePolicy); err != nil {
			return err
		}
	}
	for _, name := range old {
		if slices.Contains(want, name) {
			continue
		}
		if err := change(name, "DetachRolePolicy", p.identities.DetachRolePolicy); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

func (p managedPolicies) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	var in, old managedProperties
	if err := errors.Join(resource.Decode(r.Properties, &in), resource.Decode(r.Old, &old)); err != nil {
		return resource.Result{}, err
	}
	_, document, err := iam.ParsePolicyValue(in.PolicyDocument, false)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, r.PhysicalID, "CreatePolicyVersion"); err != nil {
		return resource.Result{}, err
	}
	if err := p.identities.SetPolicyDocument(r.PhysicalID, document); err != nil {
		return resource.Result{}, err
	}
	if err := p.attach(r, r.PhysicalID, old.Roles, in.Roles); err != nil {
		return resource.Result{}, err
	}
	created, err := p.identities.ManagedPolicy(r.PhysicalID)
	return managedResult(created), err
}

func (p managedPolicies) Delete(_ context.Context, r resource.Request) error {
	var in managedProperties
	if err := resource.Decode(r.Properties, &in); err != nil {
		return err
	}
	if err := authorize(r, r.PhysicalID, "DeletePolicy"); err != nil {
		return err
	}
	if err := p.attach(r, r.PhysicalID, in.Roles, nil); err != nil {
		return err
	}
	if err := p.identities.DeletePolicy(r.PhysicalID); err != nil && !isNotFound(err) {
		return err
	}
	return nil
}
