package main

// The roles that CloudFormation's role may pass to EKS in access entries.
//
// The service authorization reference lists iam:PassRole for eks:CreateAccessEntry, with iam:PassedToService ec2.amazonaws.com. It leaves
// open whether EKS checks it for entries of users and functions, too. A principal that may pass a role to EC2 may also start an instance
// with the role. So the grant is limited to drover's own roles, which EC2 cannot assume, and to the roles that the operator lists.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html

import (
	"fmt"
	"regexp"
	"strings"
)

// accessRole is a role of the account with its path, in which * stands for any characters.
var accessRole = regexp.MustCompile(`^[\w+=,.@*/-]{1,512}$`)

// findAccessRoles returns the ARNs of the context's roles. The cdk command passes a list of cdk.json as a list, and a value of its command
// line as a string with commas.
func findAccessRoles(context any) (arns []string, err error) {
	var list []any
	switch value := context.(type) {
	case nil:
	case []any:
		list = value
	case string:
		for part := range strings.SplitSeq(value, ",") {
			list = append(list, part)
		}
	default:
		list = []any{value}
	}
	for _, element := range list {
		name, _ := element.(string)
		if !accessRole.MatchString(name) || strings.HasPrefix(name, "/") || strings.Trim(name, "*/") == "" {
			return nil, fmt.Errorf("context \"accessRoles\" has %v: must be names of roles with their paths, such as platform-admins or teams/*",
				element)
		}
		arns = append(arns, "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/"+name)
	}
	return arns, nil
}

// entryGrants allow access entries of roles.
func entryGrants(accessRoles []string) []grant {
	var own []string
	for _, function := range clusterCallers {
		own = append(own, roleARN(function))
	}
	return []grant{{
		why:       "EKS may check that the creator of an access entry may pass its role to EC2.",
		actions:   []string{"iam:PassRole"},
		resources: append(own, accessRoles...),
		when:      map[string]map[string]any{"StringEquals": {"iam:PassedToService": "ec2.${AWS::URLSuffix}"}},
	}}
}
