package main

// The role that removes what Kubernetes created in the account. The tags of such resources contain the cluster's name, so no static
// policy can name them. The clean function assumes this role with a session policy for one cluster's tags; its own role may remove
// nothing. Resources of clusters' stacks are outside this role's permissions: CloudFormation removes those.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// leftoversRole ends the role's name.
const leftoversRole = "leftovers"

// leftoversGrants exclude resources with the tag that all resources of a cluster's stacks have.
func leftoversGrants() []grant {
	untagged := map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "true"}}
	return []grant{
		{actions: ec2("DeleteNetworkInterface"), resources: []string{ec2ARN("network-interface")}, when: untagged},
		{actions: ec2("DeleteSecurityGroup"), resources: []string{ec2ARN("security-group")}, when: untagged},
		{actions: ec2("DeleteVolume"), resources: []string{ec2ARN("volume")}, when: untagged},
		{actions: []string{"elasticloadbalancing:DeleteLoadBalancer"}, resources: []string{elbARN("loadbalancer")}, when: untagged},
		{actions: []string{"elasticloadbalancing:DeleteTargetGroup"}, resources: []string{elbARN("targetgroup")}, when: untagged},
	}
}

func elbARN(kind string) string {
	return "arn:${AWS::Partition}:elasticloadbalancing:${AWS::Region}:${AWS::AccountId}:" + kind + "/*"
}

func newLeftoversRole(scope constructs.Construct, f functions) {
	role := awsiam.NewRole(scope, jsii.String("LeftoversRole"), &awsiam.RoleProps{
		RoleName:    sub(roleName(leftoversRole)),
		Description: jsii.String("drover: removes what Kubernetes created for a cluster, by the tags that a session names"),
		// A principal that the trust policy of a role in the same account names needs no further permission.
		AssumedBy:      awsiam.NewArnPrincipal(sub(roleARN("clean"))),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"drover": policy(leftoversGrants())},
	})
	// IAM rejects a principal that does not exist.
	role.Node().AddDependency(f["clean"])
}
