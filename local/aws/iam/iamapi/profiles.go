package iamapi

// AWS::IAM::InstanceProfile and AWS::IAM::OIDCProvider.

import (
	"context"
	"errors"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
)

type profiles struct{ identities *iam.Service }

func (profiles) Schema() resource.Schema {
	return resource.Schema{
		Properties: map[string]resource.UpdateBehavior{
			"InstanceProfileName": resource.Replaces, "Path": resource.Replaces, "Roles": resource.InPlace,
		},
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
	created, err := p.identities.CreateInstanceProfile(want)
	if err != nil {
		return resource.Result{}, err
	}
	if err := p.setRole(r, created, in.Roles[0]); err != nil {
		return resource.Result{}, errors.Join(err, p.identities.DeleteInstanceProfile(created.Name))
	}
	return resource.Result{PhysicalID: created.Name, Attributes: map[string]any{"Arn": p.identities.ProfileARN(created)}}, nil
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
	if isNotFound(err) {
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
		Properties: map[string]resource.UpdateBehavior{
			"Url": resource.Replaces, "ClientIdList": resource.InPlace, "ThumbprintList": resource.InPlace, "Tags": resource.InPlace,
		},
		Required:   []string{"Url"},
		Attributes: []string{"Arn"},
	}
}

func (oidcProviders) wantedProvider(r resource.Request) (iam.OIDCProvider, error) {
	var in struct {
		Url                          string // the property's name
		ClientIdList, ThumbprintList []string
		Tags                         []resource.Tag
	}
	if err := resource.Decode(r.Properties, &in); err != nil {
		return iam.OIDCProvider{}, err
	}
	return iam.OIDCProvider{URL: in.Url, ClientIDs: in.ClientIdList, Thumbprints: in.ThumbprintList, Tags: tagging.Merge(r.Tags, in.Tags)}, nil
}

func (p oidcProviders) Create(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wantedProvider(r)
	if err != nil {
		return resource.Result{}, err
	}
	if err := authorize(r, p.identities.OIDCProviderARN(want.URL), "CreateOpenIDConnectProvider", "TagOpenIDConnectProvider"); err != nil {
		return resource.Result{}, err
	}
	created, err := p.identities.CreateOIDCProvider(want)
	return resource.Result{PhysicalID: created.ARN, Attributes: map[string]any{"Arn": created.ARN}}, err
}

func (p oidcProviders) Update(_ context.Context, r resource.Request) (resource.Result, error) {
	want, err := p.wantedProvider(r)
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
