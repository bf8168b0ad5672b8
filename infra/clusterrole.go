package main

// The role that CloudFormation uses on the stacks of clusters: making, changing and deleting what templates/v1 declares, and
// nothing of anybody else's. Four things keep it to clusters: names that start with drover-, the tag drover:cluster where
// names are AWS's, a path for roles that drover's own have not, and the permissions boundary that each role must carry.
//
// The actions are those that the handlers of the resource types call, as the types' schemas say, less those of properties that no template
// has; and what update policies do by themselves. local/testkit/harness shows of each that it is used, or which type's handlers call it.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html#schema-properties-handlers
// https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// clusterRole ends the role's name.
const clusterRole = "cloudformation"

// clusterPolicy is a managed policy of the role: in the role itself they would be too long together.
type clusterPolicy struct {
	name   string
	grants []grant
}

func newClusterRole(scope constructs.Construct) {
	var policies []awsiam.IManagedPolicy
	for _, p := range clusterPolicies() {
		policies = append(policies, awsiam.NewManagedPolicy(scope, jsii.String("ClusterRole"+constructID(p.name)), &awsiam.ManagedPolicyProps{
			ManagedPolicyName: sub(roleName(clusterRole + "-" + p.name)),
			Description:       jsii.String("drover: what CloudFormation does with clusters: " + p.name),
			Document:          policy(p.grants),
		}))
	}
	newRole(scope, "ClusterRole", roleProps{
		step:    clusterRole,
		service: "cloudformation.amazonaws.com",
		// CloudFormation does not document for whom it says it acts. A role cannot be passed to a service of another account,
		// and passing this one is the change function's permission alone.
		anyAccount:  true,
		description: "drover: makes, changes and deletes the resources of clusters for CloudFormation",
		policies:    policies,
	})
}

func clusterPolicies() []clusterPolicy {
	return []clusterPolicy{
		{name: "network", grants: networkGrants()},
		{name: "tags", grants: tagGrants()},
		{name: "cluster", grants: append(append([]grant{}, eksGrants...), keyGrants...)},
		{name: "identity", grants: identityGrants},
		{name: "pools", grants: poolGrants},
		{name: "reads", grants: clusterReads},
	}
}

// Conditions by which the resources of clusters are told from others.
var (
	// tagged resources belong to a cluster.
	tagged = map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "false"}}
	// tagging requests make what belongs to a cluster.
	tagging = map[string]map[string]any{"Null": {"aws:RequestTag/" + names.TagCluster: "false"}}
)

// network is a kind of EC2 resource.
type network struct {
	// kind as ARNs spell it.
	kind string
	// made by this action, which must tag it.
	made string
	// changes are what may be done with one of a cluster, and what may be made within it.
	changes []string
}

var networkTable = []network{
	{"vpc", "CreateVpc", []string{
		"ModifyVpcAttribute", "AssociateVpcCidrBlock", "DisassociateVpcCidrBlock", "AttachInternetGateway", "DetachInternetGateway", "DeleteVpc",
		"CreateSubnet", "CreateRouteTable", "CreateSecurityGroup", "CreateVpcEndpoint",
	}},
	{"subnet", "CreateSubnet", []string{
		"ModifySubnetAttribute", "AssociateRouteTable", "DisassociateRouteTable", "ReplaceRouteTableAssociation", "DeleteSubnet",
		"CreateNatGateway", "CreateVpcEndpoint", "ModifyVpcEndpoint",
	}},
	{"internet-gateway", "CreateInternetGateway", []string{"AttachInternetGateway", "DetachInternetGateway", "DeleteInternetGateway"}},
	{"elastic-ip", "AllocateAddress", []string{"CreateNatGateway", "DisassociateAddress", "ReleaseAddress"}},
	{"natgateway", "CreateNatGateway", []string{"DeleteNatGateway"}},
	{"route-table", "CreateRouteTable", []string{
		"CreateRoute", "ReplaceRoute", "DeleteRoute", "AssociateRouteTable", "DisassociateRouteTable", "ReplaceRouteTableAssociation",
		"DeleteRouteTable", "CreateVpcEndpoint", "ModifyVpcEndpoint",
	}},
	{"vpc-endpoint", "CreateVpcEndpoint", []string{"ModifyVpcEndpoint", "DeleteVpcEndpoints"}},
	{"security-group", "CreateSecurityGroup", []string{
		"AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress",
		"DeleteSecurityGroup", "CreateVpcEndpoint", "ModifyVpcEndpoint",
	}},
	{"launch-template", "CreateLaunchTemplate", []string{
		"CreateLaunchTemplateVersion", "DeleteLaunchTemplate", "RunInstances",
	}},
}

func networkGrants() []grant {
	var out []grant
	for _, n := range networkTable {
		on := []string{ec2ARN(n.kind)}
		out = append(out,
			grant{actions: ec2(n.made), on: on, when: tagging},
			grant{actions: ec2(n.changes...), on: on, when: tagged},
		)
	}
	return append(out, grant{
		why:     "Rules are checked as resources of their own, beside their group.",
		actions: ec2("AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress"),
		on:      []string{ec2ARN("security-group-rule")},
	})
}

// tagGrants: what is made is tagged in the same request, and what is a cluster's may get other tags.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/supported-iam-actions-tagging.html
func tagGrants() []grant {
	launched := []string{ec2ARN("instance"), ec2ARN("volume"), ec2ARN("network-interface")}
	var makers, kinds []string
	for _, n := range networkTable {
		makers, kinds = append(makers, n.made), append(kinds, ec2ARN(n.kind))
	}
	by := func(actions ...string) map[string]map[string]any {
		return map[string]map[string]any{"StringEquals": {"ec2:CreateAction": actions}}
	}
	return []grant{
		{actions: ec2("CreateTags"), on: kinds, when: by(makers...)},
		{actions: ec2("CreateTags"), on: launched, when: by("RunInstances")},
		{actions: ec2("CreateTags", "DeleteTags"), on: kinds, when: tagged},
	}
}

func ec2(actions ...string) []string {
	out := make([]string, len(actions))
	for i, a := range actions {
		out[i] = "ec2:" + a
	}
	return out
}

func ec2ARN(kind string) string {
	return "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:" + kind + "/*"
}

// poolGrants: Auto Scaling checks that whoever makes a group could launch its instances.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-launch-template-permissions.html
var poolGrants = []grant{
	{
		actions: []string{
			"autoscaling:CreateAutoScalingGroup", "autoscaling:UpdateAutoScalingGroup", "autoscaling:DeleteAutoScalingGroup",
			"autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook",
			"autoscaling:EnableMetricsCollection", "autoscaling:DisableMetricsCollection",
			"autoscaling:SuspendProcesses", "autoscaling:ResumeProcesses",
			"autoscaling:TerminateInstanceInAutoScalingGroup", "autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags",
			"autoscaling:StartInstanceRefresh", "autoscaling:CancelInstanceRefresh",
		},
		on: []string{groupsARN},
	},
	{
		why:     "Only from launch templates; whose must be a cluster's, see the network policy.",
		actions: ec2("RunInstances"),
		on: []string{
			ec2ARN("instance"), ec2ARN("volume"), ec2ARN("network-interface"), "arn:${AWS::Partition}:ec2:${AWS::Region}::image/*",
		},
		when: map[string]map[string]any{"ArnLike": {"ec2:LaunchTemplate": ec2ARN("launch-template")}},
	},
	{
		why:     "Networks may be somebody else's, and EKS makes the group of the nodes.",
		actions: ec2("RunInstances"),
		on:      []string{ec2ARN("subnet"), ec2ARN("security-group")},
	},
}

var eksGrants = []grant{
	{
		actions: []string{
			"eks:CreateCluster", "eks:UpdateClusterConfig", "eks:UpdateClusterVersion", "eks:DeleteCluster",
			"eks:CreateAccessEntry", "eks:CreateAddon", "eks:CreatePodIdentityAssociation", "eks:TagResource", "eks:UntagResource",
			"eks:DescribeCluster", "eks:DescribeUpdate",
		},
		on: []string{eksClustersARN},
	},
	{
		actions: []string{
			"eks:UpdateAccessEntry", "eks:DeleteAccessEntry", "eks:AssociateAccessPolicy", "eks:DisassociateAccessPolicy",
			"eks:TagResource", "eks:UntagResource", "eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies",
		},
		on: []string{eksARN("access-entry")},
	},
	{
		actions: []string{
			"eks:UpdateAddon", "eks:DeleteAddon", "eks:TagResource", "eks:UntagResource", "eks:DescribeAddon", "eks:DescribeUpdate",
		},
		on: []string{eksARN("addon")},
	},
	{
		actions: []string{
			"eks:UpdatePodIdentityAssociation", "eks:DeletePodIdentityAssociation",
			"eks:TagResource", "eks:UntagResource",
		},
		on: []string{eksARN("podidentityassociation")},
	},
	{
		why: "EKS would make the group with logs kept for ever.",
		actions: []string{
			"logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteRetentionPolicy", "logs:DeleteLogGroup",
			"logs:TagResource", "logs:UntagResource", "logs:ListTagsForResource", "logs:GetDataProtectionPolicy",
			"logs:DeleteDataProtectionPolicy",
		},
		on: []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/eks/" + names.Prefix + "*"},
	},
}

func eksARN(kind string) string {
	return "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:" + kind + "/" + names.Prefix + "*"
}

const (
	keysARN    = "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"
	aliasesARN = "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:alias/" + names.Prefix + "*"
)

var keyGrants = []grant{
	{
		why:     "A key that does not exist yet has no ARN.",
		actions: []string{"kms:CreateKey"},
		on:      []string{"*"},
		when:    tagging,
	},
	{actions: []string{"kms:TagResource"}, on: []string{keysARN}, when: tagging},
	{
		actions: []string{
			"kms:PutKeyPolicy", "kms:UpdateKeyDescription", "kms:EnableKeyRotation",
			"kms:ScheduleKeyDeletion", "kms:UntagResource", "kms:CreateAlias", "kms:UpdateAlias", "kms:DeleteAlias",
			"kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags",
		},
		on:   []string{keysARN},
		when: tagged,
	},
	{actions: []string{"kms:CreateAlias", "kms:UpdateAlias", "kms:DeleteAlias"}, on: []string{aliasesARN}},
	{
		why:     "A spec may name a key of its own, of another account too; that account's key policy has the last word.",
		actions: []string{"kms:DescribeKey"},
		on:      []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
	},
	{
		why:     "EKS uses the key by a grant, made with the permissions of who makes the cluster.",
		actions: []string{"kms:CreateGrant"},
		on:      []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
		when:    map[string]map[string]any{"Bool": {"kms:GrantIsForAWSResource": "true"}},
	},
}

const (
	clusterRolesARN    = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role" + names.ClusterRoles + names.Prefix + "*"
	clusterProfilesARN = "arn:${AWS::Partition}:iam::${AWS::AccountId}:instance-profile" + names.ClusterRoles + names.Prefix + "*"
	serviceRolesARN    = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/"
	managedPolicyARN   = "arn:${AWS::Partition}:iam::aws:policy/"
)

// linkedServices have service-linked roles that their first use makes.
var linkedServices = []string{"eks.amazonaws.com", "autoscaling.amazonaws.com", "spot.amazonaws.com", "natgateway.amazonaws.com"}

// bounded roles cannot exceed the boundary, so that a template can make no role that is mightier than a cluster needs. There is no
// permission to remove a boundary.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_iam-condition-keys.html#ck_PermissionsBoundary
func bounded(when map[string]map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{"StringEquals": {
		"iam:PermissionsBoundary": names.BoundaryARN("${AWS::Partition}", "${AWS::AccountId}", "${AWS::Region}"),
	}}
	maps.Copy(out, when)
	return out
}

var identityGrants = []grant{
	{
		actions: []string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy", "iam:DeleteRolePolicy"},
		on:      []string{clusterRolesARN},
		when:    bounded(nil),
	},
	{
		actions: []string{
			"iam:UpdateRole", "iam:UpdateRoleDescription", "iam:UpdateAssumeRolePolicy", "iam:DeleteRole", "iam:TagRole", "iam:UntagRole",
			"iam:GetRole", "iam:GetRolePolicy", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:ListRoleTags",
		},
		on: []string{clusterRolesARN},
	},
	{
		why:     "What templates attach, and nothing that would make a role mightier.",
		actions: []string{"iam:AttachRolePolicy", "iam:DetachRolePolicy"},
		on:      []string{clusterRolesARN},
		when: bounded(map[string]map[string]any{"ArnLike": {"iam:PolicyARN": []string{
			managedPolicyARN + "AmazonEKS*",
			managedPolicyARN + "AmazonEC2ContainerRegistryPullOnly",
			managedPolicyARN + "AmazonSSMManagedInstanceCore",
			managedPolicyARN + "AmazonEBSCSIDriverPolicyV2",
		}}}),
	},
	{
		actions: []string{"iam:PassRole"},
		on:      []string{clusterRolesARN},
		when: map[string]map[string]any{"StringEquals": {"iam:PassedToService": []string{
			"eks.amazonaws.com", "ec2.${AWS::URLSuffix}", "pods.eks.amazonaws.com",
		}}},
	},
	{
		actions: []string{
			"iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile",
			"iam:GetInstanceProfile",
		},
		on: []string{clusterProfilesARN},
	},
	{
		actions: []string{
			"iam:CreateOpenIDConnectProvider", "iam:UpdateOpenIDConnectProviderThumbprint", "iam:DeleteOpenIDConnectProvider",
			"iam:TagOpenIDConnectProvider", "iam:UntagOpenIDConnectProvider", "iam:GetOpenIDConnectProvider", "iam:ListOpenIDConnectProviderTags",
		},
		on: []string{"arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/oidc.eks.${AWS::Region}.${AWS::URLSuffix}/id/*"},
	},
	{
		actions: []string{"iam:CreateServiceLinkedRole"},
		on:      serviceRoles(),
		when:    map[string]map[string]any{"StringEquals": {"iam:AWSServiceName": linkedServices}},
	},
	{actions: []string{"iam:GetRole"}, on: serviceRoles()},
}

func serviceRoles() []string {
	out := make([]string, len(linkedServices))
	for i, service := range linkedServices {
		out[i] = serviceRolesARN + service + "/*"
	}
	return out
}

// clusterReads are what handlers look at; the actions know no resources, or none that is known beforehand.
var clusterReads = []grant{{
	actions: append(ec2(
		"DescribeAccountAttributes", "DescribeAddresses", "DescribeAddressesAttribute", "DescribeAvailabilityZones", "DescribeImages",
		"DescribeInstances", "DescribeInstanceTypes", "DescribeInternetGateways", "DescribeKeyPairs", "DescribeLaunchTemplates",
		"DescribeLaunchTemplateVersions", "DescribeNatGateways", "DescribeNetworkAcls", "DescribeNetworkInterfaces", "DescribePrefixLists",
		"DescribeRouteTables", "DescribeSecurityGroupRules", "DescribeSecurityGroups", "DescribeSubnets", "DescribeTags",
		"DescribeVolumes", "DescribeVpcAttribute", "DescribeVpcEndpoints", "DescribeVpcEndpointServices", "DescribeVpcEncryptionControls",
		"DescribeVpcs", "DescribeVpnGateways",
		"GetLaunchTemplateData",
	),
		"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLifecycleHooks",
		"autoscaling:DescribeInstanceRefreshes", "autoscaling:DescribeMetricCollectionTypes", "autoscaling:DescribeNotificationConfigurations",
		"autoscaling:DescribeScalingActivities",
		"autoscaling:DescribeTags", "autoscaling:DescribeTrafficSources",
		"kms:ListAliases", "logs:DescribeLogGroups", "logs:DescribeIndexPolicies", "logs:DescribeResourcePolicies",
	),
	on: []string{"*"},
}}
