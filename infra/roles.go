package main

// Roles: a name, who may assume it, and what it may do as a table of grants. The policy is part of the role, so that a role
// is complete the moment it exists, and no construct adds to it behind our back.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// grant allows actions on resources. Both are written out: an action has no wildcard, and a resource has one only where the
// rest of the name is not known beforehand.
type grant struct {
	// why, when it is not plain from the actions.
	why     string
	actions []string
	// on are resource ARNs; ${AWS::…} stands for the pseudo parameters.
	on []string
	// when are the conditions: operator, key, value or values.
	when map[string]map[string]any
}

// roleProps of a role of the cell.
type roleProps struct {
	// step ends the role's name.
	step string
	// service may assume it, on behalf of this account.
	service string
	// anyAccount leaves out the condition on the account, for services that do not say for whom they act.
	anyAccount  bool
	description string
	grants      []grant
	// policies are managed ones, where the grants would be too long for the role itself.
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
		RoleName:    sub(roleName(p.step)),
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

// policy allows the grants, in their order.
func policy(grants []grant) awsiam.PolicyDocument {
	document := awsiam.NewPolicyDocument(nil)
	for _, g := range grants {
		document.AddStatements(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:    jsii.Strings(g.actions...),
			Resources:  subs(g.on),
			Conditions: conditions(g.when),
		}))
	}
	return document
}

// subs leaves the pseudo parameters in each string to CloudFormation.
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
