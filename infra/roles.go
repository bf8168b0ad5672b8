package main

// IAM roles: a name, the service that assumes it, and a table of grants. The policy is part of the role, so that a role is complete when
// it is created. No construct adds permissions to it.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// grant allows actions on resources. Actions have no wildcard. A resource has one only where its full name is not known in advance.
type grant struct {
	// why, unless the actions make it obvious.
	why     string
	actions []string
	// resources are ARNs; ${AWS::…} stands for the pseudo parameters.
	resources []string
	// when are the conditions: operator, key, value or values.
	when map[string]map[string]any
}

// roleProps of a role.
type roleProps struct {
	// suffix ends the role's name.
	suffix string
	// service may assume it on behalf of this account.
	service string
	// anyAccount omits the condition on the account, for services that send no source account.
	anyAccount  bool
	description string
	grants      []grant
	// policies are managed policies, for grants that exceed the limit of inline policies.
	policies []awsiam.IManagedPolicy
}

func newRole(scope constructs.Construct, id string, p roleProps) awsiam.IRole {
	principal := awsiam.NewServicePrincipal(jsii.String(p.service), nil)
	var trust awsiam.IPrincipal = principal
	if !p.anyAccount {
		trust = principal.WithConditions(&map[string]any{
			"StringEquals": map[string]any{"aws:SourceAccount": sub("${AWS::AccountId}")},
		})
	}
	props := &awsiam.RoleProps{
		RoleName:    sub(roleName(p.suffix)),
		Description: jsii.String(p.description),
		AssumedBy:   trust,
	}
	if p.grants != nil {
		props.InlinePolicies = &map[string]awsiam.PolicyDocument{"drover": policy(p.grants)}
	}
	if p.policies != nil {
		props.ManagedPolicies = &p.policies
	}
	return awsiam.NewRole(scope, jsii.String(id), props).WithoutPolicyUpdates(nil)
}

// policy returns a document with one statement for each grant, in order.
func policy(grants []grant) awsiam.PolicyDocument {
	document := awsiam.NewPolicyDocument(nil)
	for _, g := range grants {
		document.AddStatements(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:    jsii.Strings(g.actions...),
			Resources:  subs(g.resources),
			Conditions: conditions(g.when),
		}))
	}
	return document
}

// subs applies sub to each string.
func subs(list []string) *[]*string {
	out := make([]*string, len(list))
	for i, s := range list {
		out[i] = sub(s)
	}
	return &out
}

func conditions(when map[string]map[string]any) *map[string]any {
	if when == nil {
		return nil
	}
	out := make(map[string]any, len(when))
	for operator, keys := range when {
		resolved := make(map[string]any, len(keys))
		for key, value := range keys {
			switch value := value.(type) {
			case string:
				resolved[key] = sub(value)
			case []string:
				resolved[key] = subs(value)
			default:
				resolved[key] = value
			}
		}
		out[operator] = resolved
	}
	return &out
}
