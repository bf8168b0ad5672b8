package main

// The permissions boundary of the roles that clusters' stacks create. CloudFormation's role creates roles and writes their policies.
// Without a boundary, a template could grant itself any permission in the account. A boundary grants nothing.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
//
// The boundary allows what the AWS managed policies of the templates are used for. It is narrower where those policies do not
// distinguish clusters: ownership tags, instances and routes of other owners, and the account's parameters.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

func newBoundary(scope constructs.Construct) {
	awsiam.NewManagedPolicy(scope, jsii.String("Boundary"), &awsiam.ManagedPolicyProps{
		ManagedPolicyName: sub(names.Boundary("${AWS::Region}")),
		Description:       jsii.String("drover: what the roles of clusters cannot exceed"),
		Document:          policy(boundaryGrants),
	})
}

const (
	// efsTag is the tag that the EFS driver sets on access points.
	// https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonEFSCSIDriverPolicy.html
	efsTag         = "efs.csi.aws.com/cluster"
	logGroupPrefix = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:"
)

// efsTagged selects requests that create an access point with the driver's tag, and no other.
var efsTagged = map[string]map[string]any{
	"Null": {"aws:RequestTag/" + efsTag: "false"}, "ForAllValues:StringEquals": {"aws:TagKeys": efsTag},
}

var boundaryGrants = []grant{
	{
		why: "The control plane (AmazonEKSClusterPolicy), nodes (AmazonEKSWorkerNodePolicy), the CNI (AmazonEKS_CNI_Policy) and the EBS driver " +
			"(AmazonEBSCSIDriverPolicyV2). Kubernetes chooses the names of what it creates, so a name cannot limit the grant.",
		actions: append(ec2(
			"Describe*",
			"AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "AssignIpv6Addresses", "UnassignIpv6Addresses",
			"CreateNetworkInterface", "AttachNetworkInterface", "DetachNetworkInterface", "DeleteNetworkInterface",
			"ModifyNetworkInterfaceAttribute",
			"CreateVolume", "CopyVolumes", "AttachVolume", "DetachVolume", "ModifyVolume", "DeleteVolume",
			"CreateSnapshot", "DeleteSnapshot", "LockSnapshot", "EnableFastSnapshotRestores",
			"GetSecurityGroupsForVpc", "CreateSecurityGroup", "DeleteSecurityGroup", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress",
		), "elasticloadbalancing:*", "autoscaling:Describe*", "kms:DescribeKey"),
		resources: []string{"*"},
	},
	{
		why: "Only resources that belong to a cluster: also the groups that the Cluster Autoscaler scales.",
		actions: append(ec2("ModifyInstanceAttribute", "CreateRoute", "DeleteRoute"), "autoscaling:UpdateAutoScalingGroup",
			"autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"),
		resources: []string{ec2ARN("instance"), ec2ARN("route-table"), groupsARN},
		when:      ofCluster,
	},
	{
		why:     "drover's tag marks ownership, and the role of CloudFormation depends on it: no cluster may add or remove it.",
		actions: ec2("CreateTags", "DeleteTags"),
		resources: []string{
			ec2ARN("network-interface"), ec2ARN("volume"), ec2ARN("security-group"), "arn:${AWS::Partition}:ec2:${AWS::Region}::snapshot/*",
		},
		when: map[string]map[string]any{"ForAllValues:StringNotEquals": {"aws:TagKeys": []string{names.TagCluster}}},
	},
	{
		why:       "Nodes and pods with an identity.",
		actions:   []string{"eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"},
		resources: []string{eksClustersARN},
	},
	{
		why: "Images come from AWS's accounts and from users' (AmazonEC2ContainerRegistryPullOnly). " +
			"Sessions on nodes (AmazonSSMManagedInstanceCore).",
		actions: []string{
			"ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage",
			"ecr:BatchImportUpstreamImage",
			"ssm:DescribeAssociation", "ssm:GetDeployablePatchSnapshotForInstance", "ssm:GetDocument", "ssm:DescribeDocument", "ssm:GetManifest",
			"ssm:ListAssociations", "ssm:ListInstanceAssociations", "ssm:PutInventory", "ssm:PutComplianceItems", "ssm:PutConfigurePackageResult",
			"ssm:UpdateAssociationStatus", "ssm:UpdateInstanceAssociationStatus", "ssm:UpdateInstanceInformation",
			"ssmmessages:*", "ec2messages:*",
		},
		resources: []string{"*"},
	},
	{
		why:       "AWS's public parameters. AmazonSSMManagedInstanceCore also allows the account's, which may be secrets.",
		actions:   []string{"ssm:GetParameter", "ssm:GetParameters"},
		resources: []string{"arn:${AWS::Partition}:ssm:${AWS::Region}::parameter/aws/*"},
	},
	state(s3Read, "userdata/"),
	{
		why:       "Relays write their logs.",
		actions:   []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []string{relayLogsARN + ":*"},
	},
	{
		why: "The EFS driver (AmazonEFSCSIDriverPolicy) reads file systems, and has access points with its tag.",
		actions: []string{
			"elasticfilesystem:DescribeAccessPoints", "elasticfilesystem:DescribeFileSystems", "elasticfilesystem:DescribeMountTargets",
		},
		resources: []string{"*"},
	},
	{
		actions:   []string{"elasticfilesystem:CreateAccessPoint"},
		resources: []string{"*"},
		when:      efsTagged,
	},
	{
		actions:   []string{"elasticfilesystem:TagResource"},
		resources: []string{"*"},
		when: map[string]map[string]any{
			"Null": efsTagged["Null"], "ForAllValues:StringEquals": efsTagged["ForAllValues:StringEquals"],
			"StringEquals": {"elasticfilesystem:CreateAction": "CreateAccessPoint"},
		},
	},
	{
		actions:   []string{"elasticfilesystem:DeleteAccessPoint"},
		resources: []string{"*"},
		when:      map[string]map[string]any{"Null": {"aws:ResourceTag/" + efsTag: "false"}},
	},
	{
		why: "The CloudWatch agent (CloudWatchAgentServerPolicy, AWSXrayWriteOnlyAccess). Metrics and traces support no resource-level " +
			"permissions for these actions.",
		actions: []string{
			"cloudwatch:PutMetricData", "logs:DescribeLogGroups", "xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules",
			"xray:GetSamplingTargets", "xray:GetSamplingStatisticSummaries",
		},
		resources: []string{"*"},
	},
	{
		why: "Its logs are in groups with the name of the cluster, and Application Signals has one of its own: " +
			"https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-view-metrics.html",
		actions: []string{
			"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:PutRetentionPolicy", "logs:DescribeLogStreams",
		},
		resources: []string{
			logGroupPrefix + "/aws/containerinsights/" + names.Prefix + "*", logGroupPrefix + "/aws/application-signals/data:*",
		},
	},
	{
		why:       "The first load balancer of an account.",
		actions:   []string{"iam:CreateServiceLinkedRole"},
		resources: []string{serviceRolesARN + "elasticloadbalancing.amazonaws.com/*"},
	},
}
