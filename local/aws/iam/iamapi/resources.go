package iamapi

// CloudFormation resource types. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_IAM.html

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

// Resources returns the providers by resource type.
func (a *API) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::IAM::Role":            roles{a.identities},
		"AWS::IAM::Policy":          inlinePolicies{a.identities},
		"AWS::IAM::ManagedPolicy":   managedPolicies{a.identities},
		"AWS::IAM::InstanceProfile": profiles{a.identities},
		"AWS::IAM::OIDCProvider":    oidcProviders{a.identities},
	}
}

// isNotFound reports whether an entity does not exist. A deletion then succeeds.
func isNotFound(err error) bool {
	var e *iam.Error
	return errors.As(err, &e) && e.Code == "NoSuchEntity"
}

// authorize authorizes several actions on one resource.
func authorize(r resource.Request, arn string, actions ...string) error {
	for _, action := range actions {
		if err := r.Caller.Authorize("iam:"+action, arn, nil); err != nil {
			return err
		}
	}
	return nil
}

type roles struct{ identities *iam.Service }

func (roles) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"RoleName": resource.Replaces, "Path": resource.Replaces, "AssumeRolePolicyDocument": resource.InPlace, "Description": resource.InPlace,
			"ManagedPolicyArns": resource.InPlace, "MaxSessionDuration": resource.InPlace, "Policies": resource.InPlace, "Tags": resource.InPlace,
			"PermissionsBoundary": resource.InPlace,
		},
		Required:   []string{"AssumeRolePolicyDocument"},
		Attributes: []string{"Arn", "RoleId"},
	}
}

type roleProperties struct {
	RoleName, Path, Description string
	PermissionsBoundary         string
	AssumeRolePolicyDocument    any
	ManagedPolicyArns           []string
	MaxSessionDuration          int
	Policies                    []struct {
		PolicyName     string
		PolicyDocument any
	}
	Tags []resource.Tag
}

// wantedRole returns the role with its inline policies that the properties describe.
func (p roles) wantedRole(r resource.Request, properties map[string]any) (iam.Role, error) {
	var in roleProperties
	if err := resource.Decode(properties, &in); err != nil {
		return iam.Role{}, err
	}
	_, trust, err := iam.ParsePolicyValue(in.AssumeRolePolicyDocument, true)
	if err != nil {
		return iam.Role{}, err
	}
	role := iam.Role{
		Name: in.RoleName, Path: in.Path, Description: in.Description, TrustDocument: trust, Tags: tagging.Merge(r.Tags, in.Tags),
		MaxSession: time.Duration(in.MaxSessionDuration) * time.Second, Attached: in.ManagedPolicyArns, Inline: map[string]string{},
		Boundary: in.PermissionsBoundary,
	}
	if role.MaxSession == 0 {
		role.MaxSession = time.Hour
	}
	if r.PhysicalID != "" {
		role.Name = r.PhysicalID
	} else if role.Name == "" {
		role.Name = r.GeneratedName(64)
	}
	if role.Path == "" {
		role.Path = "/"
	}
	for _, policy := range in.Policies {
		_, document, err := iam.ParsePolicyValue(policy.PolicyDocument, false)
		if err != nil {
			return iam.Role{}, err
		}
		role.Inline[policy.PolicyName] = document
	}
	return role, nil
}

func (p roles) result(role iam.Role) resource.Result {
	return resource.Result{PhysicalID: role.Name, Attributes: map[string]any{"Arn": p.identities.RoleARN(role), "RoleId": role.ID}}
}

func (p roles) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wantedRole(r, r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	arn := p.identities.RoleARN(want)
	if err := r.Caller.Authorize("iam:CreateRole", arn, boundaryCondition(want)); err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, arn, "TagRole"); err != nil {
		return resource.Result{}, err
	}
	created, err := p.identities.CreateRole(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.setPolicies(r, created, want); err != nil {
		return resource.Result{}, errors.Join(err, p.remove(r, created.Name, want))
	}
	return p.result(created), nil
}

// boundaryCondition returns the condition key of actions that depend on a role's permissions boundary.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_iam-condition-keys.html#ck_PermissionsBoundary
func boundaryCondition(role iam.Role) map[string]string {
	if role.Boundary == "" {
		return nil
	}
	return map[string]string{"iam:PermissionsBoundary": role.Boundary}
}

// setBoundary changes a role's permissions boundary to the wanted one.
func (p roles) setBoundary(r resource.Request, want iam.Role) error {
	current, err := p.identities.Role(want.Name)
	if err != nil || current.Boundary == want.Boundary {
		return err
	}
	action, conditions := "iam:PutRolePermissionsBoundary", boundaryCondition(want)
	if want.Boundary == "" {
		action, conditions = "iam:DeleteRolePermissionsBoundary", boundaryCondition(current)
	}
	if err := r.Caller.Authorize(action, p.identities.RoleARN(want), conditions); err != nil {
		return err
	}
	return p.identities.SetBoundary(want.Name, want.Boundary)
}

// setPolicies changes a role's policies from have to want. It ignores policies that are in neither.
func (p roles) setPolicies(r resource.Request, have, want iam.Role) error {
	arn := p.identities.RoleARN(want)
	current, err := p.identities.Role(want.Name)
	if err != nil {
		return err
	}
	may := func(action, policyARN string) error {
		context := map[string]string{}
		maps.Copy(context, boundaryCondition(current))
		if policyARN != "" {
			context["iam:PolicyARN"] = policyARN
		}
		return r.Caller.Authorize("iam:"+action, arn, context)
	}
	for name, document := range want.Inline {
		if have.Inline[name] == document {
			continue
		}
		if err := may("PutRolePolicy", ""); err != nil {
			return err
		}
		if err := p.identities.PutRolePolicy(want.Name, name, document); err != nil {
			return err
		}
	}
	for name := range have.Inline {
		if _, ok := want.Inline[name]; ok {
			continue
		}
		if err := may("DeleteRolePolicy", ""); err != nil {
			return err
		}
		if err := p.identities.DeleteRolePolicy(want.Name, name); err != nil && !isNotFound(err) {
			return err
		}
	}
	for _, policy := range want.Attached {
		if slices.Contains(have.Attached, policy) {
			continue
		}
		if err := may("AttachRolePolicy", policy); err != nil {
			return err
		}
		if err := p.identities.AttachRolePolicy(want.Name, policy); err != nil {
			return err
		}
	}
	for _, policy := range have.Attached {
		if slices.Contains(want.Attached, policy) {
			continue
		}
		if err := may("DetachRolePolicy", policy); err != nil {
			return err
		}
		if err := p.identities.DetachRolePolicy(want.Name, policy); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

func (p roles) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wantedRole(r, r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	old, err := p.wantedRole(r, r.Old)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, p.identities.RoleARN(want), "UpdateRole", "UpdateAssumeRolePolicy", "TagRole"); err != nil {
		return resource.Result{}, err
	}
	if err := p.identities.ChangeRole(want.Name, func(role *iam.Role) {
		role.TrustDocument, role.Description, role.MaxSession, role.Tags = want.TrustDocument, want.Description, want.MaxSession, want.Tags
	}); err != nil {
		return resource.Result{}, err
	}
	if err := p.setBoundary(r, want); err != nil {
		return resource.Result{}, err
	}
	if err := p.setPolicies(r, old, want); err != nil {
		return resource.Result{}, err
	}
	created, err := p.identities.Role(want.Name)
	if err != nil {
		return resource.Result{}, err
	}
	return p.result(created), nil
}

func (p roles) Delete(_ context.Context, r resource.Request) error {
	own, err := p.wantedRole(r, r.Properties)
	if err != nil {
		return err
	}
	return p.remove(r, r.PhysicalID, own)
}

// remove deletes a role and its own policies.
func (p roles) remove(r resource.Request, name string, own iam.Role) error {
	have, err := p.identities.Role(name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.setPolicies(r, own, iam.Role{Name: name, Path: have.Path}); err != nil {
		return err
	}
	if err := authorize(r, p.identities.RoleARN(have), "DeleteRole"); err != nil {
		return err
	}
	return p.identities.DeleteRole(name)
}
