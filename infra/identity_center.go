package main

// What EKS does in IAM Identity Center for Argo CD with the permissions of its caller, as the schema of the resource type lists it.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-capability.html
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsiamidentitycenter.html

import "strings"

// identityCenterGrants are the permissions for the applications of one instance.
func identityCenterGrants(instance string) []grant {
	_, id, _ := strings.Cut(instance, ":instance/")
	applications := "arn:${AWS::Partition}:sso::*:application/" + id + "/*"
	return []grant{
		{
			why:       "EKS does not document which provider its applications have.",
			actions:   []string{"sso:CreateApplication"},
			resources: []string{instance, applications, "arn:${AWS::Partition}:sso::aws:applicationProvider/*"},
		},
		{actions: []string{"sso:DescribeInstance"}, resources: []string{instance}},
		{
			why: "An instance of the organization belongs to another account, and its applications have that in their ARN.",
			actions: []string{
				"sso:PutApplicationAccessScope", "sso:PutApplicationAuthenticationMethod", "sso:PutApplicationGrant",
				"sso:PutApplicationAssignmentConfiguration", "sso:CreateApplicationAssignment", "sso:ListApplicationAssignments",
				"sso:DeleteApplication", "sso:DeleteApplicationAccessScope", "sso:DeleteApplicationAuthenticationMethod",
				"sso:DeleteApplicationGrant", "sso:DeleteApplicationAssignment",
			},
			resources: []string{applications},
		},
		{
			why: "They read, and the store has another ID than its instance.",
			actions: []string{
				"sso:DescribeRegisteredRegions", "identitystore:DescribeGroup", "identitystore:ListGroups", "identitystore:ListUsers",
			},
			resources: []string{"*"},
		},
	}
}
