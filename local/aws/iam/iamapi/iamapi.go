// Package iamapi serves the account's identities through the APIs of IAM and STS, and to CloudFormation as the resource
// types AWS::IAM::{Role,Policy,ManagedPolicy,InstanceProfile,OIDCProvider}.
//
// IAM supports GetRole, GetUser, ListRoles, GetRolePolicy, ListRolePolicies, ListAttachedRolePolicies, GetPolicy,
// GetPolicyVersion, ListPolicies, GetInstanceProfile, ListInstanceProfiles, ListOpenIDConnectProviders,
// GetOpenIDConnectProvider, and GetAccountSummary with the number of roles and its quota. Only CloudFormation changes
// identities. STS supports GetCallerIdentity and AssumeRole.
//
// Permissions boundaries of roles and session policies are enforced. The only user is the administrator. There are no
// groups, service control policies, policy versions or sessions of web identities. AWS managed policies are those that
// drover's templates attach. Changes take effect immediately; on AWS they take seconds.
package iamapi

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/engine/wire"
)

// API serves the identities of an account.
type API struct{ identities *iam.Service }

// New returns the APIs of an account's identities.
func New(identities *iam.Service) *API { return &API{identities: identities} }

// Created lists the roles, policies, instance profiles and OpenID Connect providers that users and stacks created. It is
// no source of the tagging API, whose index does not include IAM roles.
func (a *API) Created(context.Context) (list []tagging.Tagged) {
	s := a.identities
	for _, r := range s.Roles() {
		if !r.ServiceLinked { // AWS creates these
			list = append(list, tagging.Tagged{ARN: s.RoleARN(r), Tags: maps.Clone(r.Tags)})
		}
	}
	for _, p := range s.ManagedPolicies() {
		if strings.Contains(p.ARN, "::"+s.Account+":") { // the others are AWS's
			list = append(list, tagging.Tagged{ARN: p.ARN, Tags: maps.Clone(p.Tags)})
		}
	}
	for _, p := range s.InstanceProfiles() {
		list = append(list, tagging.Tagged{ARN: s.ProfileARN(p), Tags: maps.Clone(p.Tags)})
	}
	for _, p := range s.OIDCProviders() {
		list = append(list, tagging.Tagged{ARN: p.ARN, Tags: maps.Clone(p.Tags)})
	}
	return list
}

// STS returns the API of the Security Token Service. https://docs.aws.amazon.com/STS/latest/APIReference/welcome.html
func (a *API) STS() *wire.Service {
	return &wire.Service{
		Name: "sts", Protocol: wire.Query, Version: "2011-06-15",
		Operations: map[string]wire.Operation{"GetCallerIdentity": a.getCallerIdentity, "AssumeRole": a.assumeRole},
	}
}

// getCallerIdentity needs no permission, and an explicit deny has no effect.
func (a *API) getCallerIdentity(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return struct {
		UserID  string `xml:"UserId"`
		Account string
		ARN     string `xml:"Arn"`
	}{c.Caller.UserID(), c.Caller.Account(), c.Caller.ARN()}, nil
}

func (a *API) assumeRole(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		RoleArn, RoleSessionName string
		DurationSeconds          *int
		ExternalID               string `json:"ExternalId"`
		Policy                   string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = in.RoleArn
	duration := time.Hour
	if in.DurationSeconds != nil {
		duration = time.Duration(*in.DurationSeconds) * time.Second
	}
	if duration < 15*time.Minute || duration > 12*time.Hour {
		return nil, wire.Errorf("ValidationError", "1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy constraint: "+
			"Member must have value between 900 and 43200", *in.DurationSeconds)
	}
	if c.Caller.RoleARN() != "" && duration > time.Hour {
		return nil, wire.Errorf("ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed "+
			"by role chaining")
	}
	context := map[string]string{"sts:RoleSessionName": in.RoleSessionName}
	if in.ExternalID != "" {
		context["sts:ExternalId"] = in.ExternalID
	}
	var policy *iam.Policy
	if in.Policy != "" {
		if len(in.Policy) > 2048 {
			return nil, wire.Errorf("ValidationError", "1 validation error detected: Value at 'policy' failed to satisfy constraint: Member must "+
				"have length less than or equal to 2048")
		}
		var err error
		if policy, err = iam.ParsePolicy(in.Policy, false); err != nil {
			return nil, err
		}
	}
	caller, credentials, err := a.identities.AssumeRole(c.Caller, in.RoleArn, in.RoleSessionName, duration, context, policy)
	if err != nil {
		return nil, err
	}
	type user struct {
		ID  string `xml:"AssumedRoleId"`
		ARN string `xml:"Arn"`
	}
	type keys struct {
		AccessKeyID                   string `xml:"AccessKeyId"`
		SecretAccessKey, SessionToken string
		Expiration                    time.Time
	}
	return struct {
		AssumedRoleUser user
		Credentials     keys
	}{user{caller.UserID(), caller.ARN()}, keys{
		credentials.AccessKeyID, credentials.SecretAccessKey, credentials.SessionToken, credentials.Expires,
	}}, nil
}

// IAM returns the API of Identity and Access Management.
// https://docs.aws.amazon.com/IAM/latest/APIReference/welcome.html
func (a *API) IAM() *wire.Service {
	return &wire.Service{
		Name: "iam", Protocol: wire.Query, Version: "2010-05-08",
		Operations: map[string]wire.Operation{
			"GetRole":                    a.getRole,
			"GetUser":                    a.getUser,
			"ListRoles":                  a.listRoles,
			"GetRolePolicy":              a.getRolePolicy,
			"ListRolePolicies":           a.listRolePolicies,
			"ListAttachedRolePolicies":   a.listAttachedRolePolicies,
			"GetPolicy":                  a.getPolicy,
			"GetPolicyVersion":           a.getPolicyVersion,
			"ListPolicies":               a.listPolicies,
			"GetInstanceProfile":         a.getInstanceProfile,
			"ListInstanceProfiles":       a.listInstanceProfiles,
			"GetOpenIDConnectProvider":   a.getOIDCProvider,
			"ListOpenIDConnectProviders": a.listOIDCProviders,
			"GetAccountSummary":          a.getAccountSummary,
		},
	}
}

// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccountSummary.html
func (a *API) getAccountSummary(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	return struct{ SummaryMap map[string]int }{map[string]int{
		"Roles": len(a.identities.Roles()), "RolesQuota": a.identities.RolesQuota(),
	}}, nil
}

type role struct {
	Path, RoleName           string
	RoleID                   string `xml:"RoleId"`
	ARN                      string `xml:"Arn"`
	CreateDate               time.Time
	AssumeRolePolicyDocument string
	Description              string `xml:",omitempty"`
	MaxSessionDuration       int
	PermissionsBoundary      *boundary      `xml:",omitempty"`
	Tags                     []resource.Tag `xml:",omitempty"`
}

type boundary struct{ PermissionsBoundaryType, PermissionsBoundaryArn string }

func (a *API) role(r iam.Role) role {
	var bounded *boundary
	if r.Boundary != "" {
		bounded = &boundary{"Policy", r.Boundary}
	}
	return role{
		PermissionsBoundary: bounded,
		Path:                r.Path, RoleName: r.Name, RoleID: r.ID, ARN: a.identities.RoleARN(r), CreateDate: r.Created,
		AssumeRolePolicyDocument: url.QueryEscape(r.TrustDocument), Description: r.Description,
		MaxSessionDuration: int(r.MaxSession.Seconds()), Tags: tagging.List(r.Tags),
	}
}

// authorizedRole decodes the parameters, authorizes the caller and returns the role.
func (a *API) authorizedRole(c *wire.Call, in any, name *string) (iam.Role, error) {
	if err := c.Decode(in); err != nil {
		return iam.Role{}, err
	}
	r, err := a.identities.Role(*name)
	arn := a.identities.RoleARN(iam.Role{Name: *name, Path: "/"})
	if err == nil {
		arn = a.identities.RoleARN(r)
	}
	if denied := c.Authorize(arn); denied != nil {
		return iam.Role{}, denied
	}
	return r, err
}

func (a *API) getRole(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ RoleName string }
	r, err := a.authorizedRole(c, &in, &in.RoleName)
	if err != nil {
		return nil, err
	}
	return struct{ Role role }{a.role(r)}, nil
}

// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetUser.html
func (a *API) getUser(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ UserName string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.UserName == "" {
		return nil, wire.Unsupported("iam", "GetUser without a UserName")
	}
	admin, _ := a.identities.Admin()
	arn := admin.ARN()[:strings.LastIndex(admin.ARN(), "/")+1] + in.UserName
	if err := c.Authorize(arn); err != nil {
		return nil, err
	}
	if !a.identities.UserByARN(arn) {
		return nil, &wire.Error{Code: "NoSuchEntity", Message: "The user with name " + in.UserName + " cannot be found.", Status: 404}
	}
	type user struct {
		Path, UserName string
		UserID         string `xml:"UserId"`
		ARN            string `xml:"Arn"`
		CreateDate     time.Time
	}
	return struct{ User user }{user{"/", in.UserName, admin.UserID(), arn, time.Unix(0, 0)}}, nil
}

// page is the answer of a list without pagination.
type page struct{ IsTruncated bool }

// listing decodes and authorizes the parameters of a list operation. It returns the path prefix.
func listing(c *wire.Call) (path string, err error) {
	var in struct {
		PathPrefix, Marker, Scope string
		MaxItems                  *int
		OnlyAttached              bool
	}
	if err := c.Decode(&in); err != nil {
		return "", err
	}
	if in.Marker != "" || in.OnlyAttached || in.Scope != "" && in.Scope != "Local" && in.Scope != "All" {
		return "", wire.Unsupported("iam", "listing by marker, scope or attachment")
	}
	return in.PathPrefix, c.Authorize("*")
}

// wholeListing decodes and authorizes a list operation that has no path prefix.
func wholeListing(c *wire.Call) error {
	path, err := listing(c)
	if err == nil && path != "" && path != "/" {
		return wire.Unsupported("iam", "listing anything but roles by path prefix")
	}
	return err
}

func (a *API) listRoles(_ context.Context, c *wire.Call) (any, error) {
	path, err := listing(c)
	if err != nil {
		return nil, err
	}
	out := struct {
		Roles []role
		page
	}{}
	for _, r := range a.identities.Roles() {
		if !strings.HasPrefix(r.Path, path) {
			continue
		}
		listed := a.role(r)
		listed.Tags, listed.PermissionsBoundary = nil, nil // lists have neither
		out.Roles = append(out.Roles, listed)
	}
	return out, nil
}

func (a *API) getRolePolicy(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ RoleName, PolicyName string }
	r, err := a.authorizedRole(c, &in, &in.RoleName)
	if err != nil {
		return nil, err
	}
	document, ok := r.Inline[in.PolicyName]
	if !ok {
		return nil, &wire.Error{Code: "NoSuchEntity", Message: "The role policy with name " + in.PolicyName + " cannot be found.", Status: 404}
	}
	return struct{ RoleName, PolicyName, PolicyDocument string }{r.Name, in.PolicyName, url.QueryEscape(document)}, nil
}

func (a *API) listRolePolicies(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		RoleName string
		MaxItems *int
	}
	r, err := a.authorizedRole(c, &in, &in.RoleName)
	if err != nil {
		return nil, err
	}
	out := struct {
		PolicyNames []string
		page
	}{}
	out.PolicyNames = slices.Sorted(maps.Keys(r.Inline))
	return out, nil
}

func (a *API) listAttachedRolePolicies(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		RoleName string
		MaxItems *int
	}
	r, err := a.authorizedRole(c, &in, &in.RoleName)
	if err != nil {
		return nil, err
	}
	type attached struct{ PolicyName, PolicyArn string }
	out := struct {
		AttachedPolicies []attached
		page
	}{}
	for _, arn := range r.Attached {
		p, err := a.identities.ManagedPolicy(arn)
		if err != nil {
			return nil, err
		}
		out.AttachedPolicies = append(out.AttachedPolicies, attached{p.Name, arn})
	}
	return out, nil
}

type policy struct {
	PolicyName       string
	PolicyID         string `xml:"PolicyId"`
	ARN              string `xml:"Arn"`
	Path             string
	DefaultVersionID string `xml:"DefaultVersionId"`
	IsAttachable     bool
	Description      string `xml:",omitempty"`
	CreateDate       time.Time
	Tags             []resource.Tag `xml:",omitempty"`
}

func describePolicy(p iam.ManagedPolicy) policy {
	return policy{p.Name, p.ID, p.ARN, p.Path, "v1", true, p.Description, p.Created, tagging.List(p.Tags)}
}

func (a *API) getPolicy(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ PolicyArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(in.PolicyArn); err != nil {
		return nil, err
	}
	p, err := a.identities.ManagedPolicy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	return struct{ Policy policy }{describePolicy(p)}, nil
}

func (a *API) getPolicyVersion(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		PolicyArn string
		VersionID string `json:"VersionId"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(in.PolicyArn); err != nil {
		return nil, err
	}
	p, err := a.identities.ManagedPolicy(in.PolicyArn)
	if err != nil {
		return nil, err
	}
	if in.VersionID != "v1" {
		return nil, &wire.Error{
			Code: "NoSuchEntity", Message: "Policy " + in.PolicyArn + " version " + in.VersionID + " does not exist or is not attachable.",
			Status: 404,
		}
	}
	type version struct {
		Document         string
		VersionID        string `xml:"VersionId"`
		IsDefaultVersion bool
		CreateDate       time.Time
	}
	return struct{ PolicyVersion version }{version{url.QueryEscape(p.Document), "v1", true, p.Created}}, nil
}

func (a *API) listPolicies(_ context.Context, c *wire.Call) (any, error) {
	if err := wholeListing(c); err != nil {
		return nil, err
	}
	out := struct {
		Policies []policy
		page
	}{}
	for _, p := range a.identities.ManagedPolicies() {
		listed := describePolicy(p)
		listed.Tags = nil
		out.Policies = append(out.Policies, listed)
	}
	return out, nil
}

type instanceProfile struct {
	Path                string
	InstanceProfileName string
	InstanceProfileID   string `xml:"InstanceProfileId"`
	ARN                 string `xml:"Arn"`
	CreateDate          time.Time
	Roles               []role
}

func (a *API) instanceProfile(p iam.InstanceProfile) instanceProfile {
	out := instanceProfile{p.Path, p.Name, p.ID, a.identities.ProfileARN(p), p.Created, nil}
	if r, err := a.identities.Role(p.Role); err == nil {
		out.Roles = append(out.Roles, a.role(r))
	}
	return out
}

func (a *API) getInstanceProfile(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ InstanceProfileName string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	p, err := a.identities.InstanceProfile(in.InstanceProfileName)
	if denied := c.Authorize(a.identities.ProfileARN(iam.InstanceProfile{Path: "/", Name: in.InstanceProfileName})); denied != nil {
		return nil, denied
	}
	if err != nil {
		return nil, err
	}
	return struct{ InstanceProfile instanceProfile }{a.instanceProfile(p)}, nil
}

func (a *API) listInstanceProfiles(_ context.Context, c *wire.Call) (any, error) {
	if err := wholeListing(c); err != nil {
		return nil, err
	}
	out := struct {
		InstanceProfiles []instanceProfile
		page
	}{}
	for _, p := range a.identities.InstanceProfiles() {
		out.InstanceProfiles = append(out.InstanceProfiles, a.instanceProfile(p))
	}
	return out, nil
}

func (a *API) getOIDCProvider(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ OpenIDConnectProviderArn string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize(in.OpenIDConnectProviderArn); err != nil {
		return nil, err
	}
	p, err := a.identities.OIDCProvider(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	return struct {
		URL            string `xml:"Url"`
		ClientIDList   []string
		ThumbprintList []string
		CreateDate     time.Time
		Tags           []resource.Tag
	}{p.URL, p.ClientIDs, p.Thumbprints, p.Created, tagging.List(p.Tags)}, nil
}

func (a *API) listOIDCProviders(_ context.Context, c *wire.Call) (any, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	type entry struct {
		ARN string `xml:"Arn"`
	}
	out := struct{ OpenIDConnectProviderList []entry }{}
	for _, p := range a.identities.OIDCProviders() {
		out.OpenIDConnectProviderList = append(out.OpenIDConnectProviderList, entry{p.ARN})
	}
	return out, nil
}
