package main

// The permissions boundary of clusters' roles: what the roles that stacks of clusters make cannot exceed, whatever their policies
// and those of AWS say. CloudFormation's role makes roles and writes policies into them, so without a boundary whoever could
// slip it a template could do anything in the account. A boundary grants nothing.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
//
// It holds what the policies that templates attach are for, and is narrower than they are where AWS's know no cluster: tags that
// say whose a resource is, instances and routes of others, parameters of the account.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

func newBoundary(scope constructs.Construct) {
	made := awsiam.NewManagedPolicy(scope, jsii.String("Boundary"), &awsiam.ManagedPolicyProps{
		ManagedPolicyName: sub(names.Boundary("${AWS::Region}")),
		Description:       jsii.String("drover: what the roles of clusters cannot exceed"),
		Document:          policy(boundaryGrants),
	})
	// Clusters outlive drover, and their roles need it.
	made.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN)
}

var boundaryGrants = []grant{
	{
		why: "The control plane (AmazonEKSClusterPolicy), nodes (AmazonEKSWorkerNodePolicy), the CNI (AmazonEKS_CNI_Policy) and the EBS driver " +
			"(AmazonEBSCSIDriverPolicyV2). What Kubernetes makes is called by Kubernetes, so no name limits it.",
		actions: append(ec2(
			"Describe*",
			"AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "AssignIpv6Addresses", "UnassignIpv6Addresses",
			"CreateNetworkInterface", "AttachNetworkInterface", "DetachNetworkInterface", "DeleteNetworkInterface",
			"ModifyNetworkInterfaceAttribute",
			"CreateVolume", "CopyVolumes", "AttachVolume", "DetachVolume", "ModifyVolume", "DeleteVolume",
			"CreateSnapshot", "DeleteSnapshot", "LockSnapshot", "EnableFastSnapshotRestores",
			"CreateSecurityGroup", "DeleteSecurityGroup", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress",
		), "elasticloadbalancing:*", "autoscaling:Describe*", "kms:DescribeKey"),
		on: []string{"*"},
	},
	{
		why:     "They are a cluster's, or they are left alone.",
		actions: append(ec2("ModifyInstanceAttribute", "CreateRoute", "DeleteRoute"), "autoscaling:UpdateAutoScalingGroup"),
		on:      []string{ec2ARN("instance"), ec2ARN("route-table"), groupsARN},
		when:    tagged,
	},
	{
		why:     "drover's tag says whose a resource is, and CloudFormation's role goes by it: no cluster gives or takes it.",
		actions: ec2("CreateTags", "DeleteTags"),
		on: []string{
			ec2ARN("network-interface"), ec2ARN("volume"), ec2ARN("security-group"), "arn:${AWS::Partition}:ec2:${AWS::Region}::snapshot/*",
		},
		when: map[string]map[string]any{"ForAllValues:StringNotEquals": {"aws:TagKeys": []string{names.TagCluster}}},
	},
	{
		why:     "Nodes and pods with an identity.",
		actions: []string{"eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"},
		on:      []string{eksClustersARN},
	},
	{
		why: "Images (AmazonEC2ContainerRegistryPullOnly) come from AWS's account and from people's; sessions on nodes " +
			"(AmazonSSMManagedInstanceCore).",
		actions: []string{
			"ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage",
			"ecr:BatchImportUpstreamImage",
			"ssm:DescribeAssociation", "ssm:GetDeployablePatchSnapshotForInstance", "ssm:GetDocument", "ssm:DescribeDocument", "ssm:GetManifest",
			"ssm:ListAssociations", "ssm:ListInstanceAssociations", "ssm:PutInventory", "ssm:PutComplianceItems", "ssm:PutConfigurePackageResult",
			"ssm:UpdateAssociationStatus", "ssm:UpdateInstanceAssociationStatus", "ssm:UpdateInstanceInformation",
			"ssmmessages:*", "ec2messages:*",
		},
		on: []string{"*"},
	},
	{
		why:     "AWS's public parameters. AmazonSSMManagedInstanceCore allows all of the account, which may be secrets.",
		actions: []string{"ssm:GetParameter", "ssm:GetParameters"},
		on:      []string{"arn:${AWS::Partition}:ssm:${AWS::Region}::parameter/aws/*"},
	},
	state(get, "userdata/"),
	{
		why:     "The first load balancer of an account.",
		actions: []string{"iam:CreateServiceLinkedRole"},
		on:      []string{serviceRolesARN + "elasticloadbalancing.amazonaws.com/*"},
	},
}
