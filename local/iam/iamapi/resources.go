package iamapi

// The identities' resource types for CloudFormation.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_IAM.html

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/tagging"
)

// Resources are the providers of this package's types.
func (a *API) Resources() map[string]resource.Provider {
	return map[string]resource.Provider{
		"AWS::IAM::Role":            roles{a.identities},
		"AWS::IAM::Policy":          inlinePolicies{a.identities},
		"AWS::IAM::ManagedPolicy":   managedPolicies{a.identities},
		"AWS::IAM::InstanceProfile": profiles{a.identities},
		"AWS::IAM::OIDCProvider":    oidcProviders{a.identities},
	}
}

// gone reports that an entity does not exist, which is what a deletion wants.
func gone(err error) bool {
	var e *iam.Error
	return errors.As(err, &e) && e.Code == "NoSuchEntity"
}

// authorize asks for several actions on one resource.
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
		Properties: map[string]resource.UpdateBehaviour{
			"RoleName": resource.Replaces, "Path": resource.Replaces, "AssumeRolePolicyDocument": resource.InPlace, "Description": resource.InPlace,
			"ManagedPolicyArns": resource.InPlace, "MaxSessionDuration": resource.InPlace, "Policies": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"AssumeRolePolicyDocument"},
		Attributes: []string{"Arn", "RoleId"},
	}
}

type roleProperties struct {
	RoleName, Path, Description string
	AssumeRolePolicyDocument    any
	ManagedPolicyArns           []string
	MaxSessionDuration          int
	Policies                    []struct {
		PolicyName     string
		PolicyDocument any
	}
	Tags []resource.Tag
}

// wanted reads the properties into a role with its inline policies.
func (p roles) wanted(r resource.Request, properties map[string]any) (iam.Role, error) {
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
	want, err := p.wanted(r, r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, p.identities.RoleARN(want), "CreateRole", "TagRole"); err != nil {
		return resource.Result{}, err
	}
	made, err := p.identities.CreateRole(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.setPolicies(r, made, want); err != nil {
		return resource.Result{}, errors.Join(err, p.remove(r, made.Name, want))
	}
	return p.result(made), nil
}

// setPolicies brings a role's policies from have to want; those that neither knows belong to others.
func (p roles) setPolicies(r resource.Request, have, want iam.Role) error {
	arn := p.identities.RoleARN(want)
	for name, document := range want.Inline {
		if have.Inline[name] == document {
			continue
		}
		if err := authorize(r, arn, "PutRolePolicy"); err != nil {
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
		if err := authorize(r, arn, "DeleteRolePolicy"); err != nil {
			return err
		}
		if err := p.identities.DeleteRolePolicy(want.Name, name); err != nil && !gone(err) {
			return err
		}
	}
	for _, policy := range want.Attached {
		if slices.Contains(have.Attached, policy) {
			continue
		}
		if err := r.Caller.Authorize("iam:AttachRolePolicy", arn, map[string]string{"iam:PolicyARN": policy}); err != nil {
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
		if err := r.Caller.Authorize("iam:DetachRolePolicy", arn, map[string]string{"iam:PolicyARN": policy}); err != nil {
			return err
		}
		if err := p.identities.DetachRolePolicy(want.Name, policy); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func (p roles) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wanted(r, r.Properties)
	if err != nil {
		return resource.Result{}, err
	}
	old, err := p.wanted(r, r.Old)
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
	if err := p.setPolicies(r, old, want); err != nil {
		return resource.Result{}, err
	}
	made, err := p.identities.Role(want.Name)
	if err != nil {
		return resource.Result{}, err
	}
	return p.result(made), nil
}

func (p roles) Delete(_ context.Context, r resource.Request) error {
	own, err := p.wanted(r, r.Properties)
	if err != nil {
		return err
	}
	return p.remove(r, r.PhysicalID, own)
}

// remove deletes a role with the policies that are its own.
func (p roles) remove(r resource.Request, name string, own iam.Role) error {
	have, err := p.identities.Role(name)
	if gone(err) {
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

type inlinePolicies struct{ identities *iam.Service }

func (inlinePolicies) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{"PolicyName": resource.InPlace, "PolicyDocument": resource.InPlace, "Roles": resource.InPlace},
		Required:   []string{"PolicyName", "PolicyDocument", "Roles"},
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

// drop removes the policy of old from the roles that keep does not hold it for.
func (p inlinePolicies) drop(r resource.Request, old map[string]any, keep map[string]any) error {
	var was, is inlineProperties
	if err := errors.Join(resource.Decode(old, &was), resource.Decode(keep, &is)); err != nil {
		return err
	}
	for _, name := range was.Roles {
		if was.PolicyName == is.PolicyName && slices.Contains(is.Roles, name) {
			continue
		}
		role, err := p.identities.Role(name)
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := authorize(r, p.identities.RoleARN(role), "DeleteRolePolicy"); err != nil {
			return err
		}
		if err := p.identities.DeleteRolePolicy(name, was.PolicyName); err != nil && !gone(err) {
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
		Properties: map[string]resource.UpdateBehaviour{
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
	made, err := p.identities.CreatePolicy(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.attach(r, made.ARN, nil, in.Roles); err != nil {
		return resource.Result{}, errors.Join(err, p.attach(r, made.ARN, in.Roles, nil), p.identities.DeletePolicy(made.ARN))
	}
	return managedResult(made), nil
}

func managedResult(p iam.ManagedPolicy) resource.Result {
	return resource.Result{PhysicalID: p.ARN, Attributes: map[string]any{"PolicyArn": p.ARN, "PolicyId": p.ID, "DefaultVersionId": "v1"}}
}

// attach brings the attachments from the roles of old to those of want.
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
		if err := change(name, "DetachRolePolicy", p.identities.DetachRolePolicy); err != nil && !gone(err) {
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
	made, err := p.identities.ManagedPolicy(r.PhysicalID)
	return managedResult(made), err
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
	if err := p.identities.DeletePolicy(r.PhysicalID); err != nil && !gone(err) {
		return err
	}
	return nil
}

type profiles struct{ identities *iam.Service }

func (profiles) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{"InstanceProfileName": resource.Replaces, "Path": resource.Replaces, "Roles": resource.InPlace},
		Required:   []string{"Roles"},
		Attributes: []string{"Arn"},
	}
}

type profileProperties struct {
	InstanceProfileName, Path string
	Roles                     []string
}

func (p profiles) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := decodeProfile(r)
	if err != nil {
		return resource.Result{}, err
	}
	if in.InstanceProfileName == "" {
		in.InstanceProfileName = r.GeneratedName(128)
	}
	if in.Path == "" {
		in.Path = "/"
	}
	want := iam.InstanceProfile{Name: in.InstanceProfileName, Path: in.Path}
	if err := authorize(r, p.identities.ProfileARN(want), "CreateInstanceProfile"); err != nil {
		return resource.Result{}, err
	}
	made, err := p.identities.CreateInstanceProfile(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.setRole(r, made, in.Roles[0]); err != nil {
		return resource.Result{}, errors.Join(err, p.identities.DeleteInstanceProfile(made.Name))
	}
	return resource.Result{PhysicalID: made.Name, Attributes: map[string]any{"Arn": p.identities.ProfileARN(made)}}, nil
}

func decodeProfile(r resource.Request) (in profileProperties, err error) {
	if err := resource.Decode(r.Properties, &in); err != nil {
		return in, err
	}
	if len(in.Roles) != 1 {
		return in, &iam.Error{Code: "ValidationError", Message: "an instance profile needs exactly one role", Status: 400}
	}
	return in, nil
}

func (p profiles) setRole(r resource.Request, profile iam.InstanceProfile, name string) error {
	role, err := p.identities.Role(name)
	if err != nil {
		return err
	}
	if err := authorize(r, p.identities.ProfileARN(profile), "AddRoleToInstanceProfile"); err != nil {
		return err
	}
	if err := r.Caller.PassRole(p.identities.RoleARN(role), "ec2.amazonaws.com"); err != nil {
		return err
	}
	return p.identities.SetProfileRole(profile.Name, name)
}

func (p profiles) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	in, err := decodeProfile(r)
	if err != nil {
		return resource.Result{}, err
	}
	profile, err := p.identities.InstanceProfile(r.PhysicalID)
	if err != nil {
		return resource.Result{}, err
	}
	if profile.Role != in.Roles[0] {
		if err := authorize(r, p.identities.ProfileARN(profile), "RemoveRoleFromInstanceProfile"); err != nil {
			return resource.Result{}, err
		}
		if err := p.identities.SetProfileRole(profile.Name, ""); err != nil {
			return resource.Result{}, err
		}
		if err := p.setRole(r, profile, in.Roles[0]); err != nil {
			return resource.Result{}, err
		}
	}
	return resource.Result{PhysicalID: profile.Name, Attributes: map[string]any{"Arn": p.identities.ProfileARN(profile)}}, nil
}

func (p profiles) Delete(_ context.Context, r resource.Request) error {
	profile, err := p.identities.InstanceProfile(r.PhysicalID)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := authorize(r, p.identities.ProfileARN(profile), "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"); err != nil {
		return err
	}
	if err := p.identities.SetProfileRole(profile.Name, ""); err != nil {
		return err
	}
	return p.identities.DeleteInstanceProfile(profile.Name)
}

type oidcProviders struct{ identities *iam.Service }

func (oidcProviders) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehaviour{
			"Url": resource.Replaces, "ClientIdList": resource.InPlace, "ThumbprintList": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"Url"},
		Attributes: []string{"Arn"},
	}
}

func (oidcProviders) wanted(r resource.Request) (iam.OIDCProvider, error) {
	var in struct {
		Url                          string //nolint:revive // the property's name
		ClientIdList, ThumbprintList []string
		Tags                         []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return iam.OIDCProvider{}, err
	}
	return iam.OIDCProvider{URL: in.Url, ClientIDs: in.ClientIdList, Thumbprints: in.ThumbprintList, Tags: tagging.Merge(r.Tags, in.Tags)}, nil
}

func (p oidcProviders) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wanted(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, p.identities.OIDCProviderARN(want.URL), "CreateOpenIDConnectProvider", "TagOpenIDConnectProvider"); err != nil {
		return resource.Result{}, err
	}
	made, err := p.identities.CreateOIDCProvider(want)
	return resource.Result{PhysicalID: made.ARN, Attributes: map[string]any{"Arn": made.ARN}}, err
}

func (p oidcProviders) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wanted(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, r.PhysicalID, "UpdateOpenIDConnectProviderThumbprint", "TagOpenIDConnectProvider"); err != nil {
		return resource.Result{}, err
	}
	err = p.identities.ChangeOIDCProvider(r.PhysicalID, func(o *iam.OIDCProvider) {
		o.ClientIDs, o.Thumbprints, o.Tags = want.ClientIDs, want.Thumbprints, want.Tags
	})
	return resource.Result{PhysicalID: r.PhysicalID, Attributes: map[string]any{"Arn": r.PhysicalID}}, err
}

func (p oidcProviders) Delete(_ context.Context, r resource.Request) error {
	if err := authorize(r, r.PhysicalID, "DeleteOpenIDConnectProvider"); err != nil {
		return err
	}
	p.identities.DeleteOIDCProvider(r.PhysicalID)
	return nil
}
