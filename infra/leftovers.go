package main

// The role that removes what Kubernetes made in the account. A cluster is known by tags whose key or value holds its name, so no
// policy can name them beforehand: the clean function assumes this role with a session policy for one cluster's tags, and may do nothing
// itself. What the stacks of clusters made is out of its reach whatever the session says: CloudFormation removes that.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// leftoversRole ends the role's name.
const leftoversRole = "leftovers"

// leftoversGrants are of what has not the tag that everything in a cluster's stacks has.
func leftoversGrants() []grant {
	foreign := map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "true"}}
	return []grant{
		{actions: ec2("DeleteNetworkInterface"), on: []string{ec2ARN("network-interface")}, when: foreign},
		{actions: ec2("DeleteSecurityGroup"), on: []string{ec2ARN("security-group")}, when: foreign},
		{actions: ec2("DeleteVolume"), on: []string{ec2ARN("volume")}, when: foreign},
		{actions: []string{"elasticloadbalancing:DeleteLoadBalancer"}, on: []string{elbARN("loadbalancer")}, when: foreign},
		{actions: []string{"elasticloadbalancing:DeleteTargetGroup"}, on: []string{elbARN("targetgroup")}, when: foreign},
	}
}

func elbARN(kind string) string {
	return "arn:${AWS::Partition}:elasticloadbalancing:${AWS::Region}:${AWS::AccountId}:" + kind + "/*"
}

func newLeftoversRole(scope constructs.Construct, f functions) {
	role := awsiam.NewRole(scope, jsii.String("LeftoversRole"), &awsiam.RoleProps{
		RoleName:    sub(roleName(leftoversRole)),
		Description: jsii.String("drover: removes what Kubernetes made for a cluster, by the tags that a session names"),
		// Whom a role of the same account names needs no permission of its own.
		AssumedBy:      awsiam.NewArnPrincipal(sub(roleARN("clean"))),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"drover": policy(leftoversGrants())},
	})
	// IAM takes no principal that does not exist.
	role.Node().AddDependency(f["clean"])
}
