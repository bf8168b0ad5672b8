package main

// The role that CloudFormation uses on the stacks of clusters. It creates, changes and deletes what templates/v1 declares, and cannot
// touch other owners' resources. Four conditions limit it:
//   - names start with drover-,
//   - resources whose names AWS chooses have the tag drover:cluster,
//   - roles have a path that drover's own roles do not have,
//   - roles have the permissions boundary.
//
// The actions are those of the resource types' handlers, as the schemas list them, less those of properties that no template sets. The
// actions of update policies are added. A test of the local account shows that each action is used, or names the handler that calls it.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html#schema-properties-handlers
// https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
)

// clusterRole ends the role's name.
const clusterRole = "cloudformation"

// clusterPolicy is a managed policy of the role. Together the policies exceed the limit of inline policies.
type clusterPolicy struct {
	name   string
	grants []grant
}

// newClusterRole declares the role. accessRoles are ARNs of the roles that specs may give access to clusters. settings are what specs may
// give to pods.
func newClusterRole(scope constructs.Construct, accessRoles []string, settings api.CellSettings) {
	var policies []awsiam.IManagedPolicy
	for _, p := range clusterPolicies(accessRoles, settings) {
		policies = append(policies, awsiam.NewManagedPolicy(scope, jsii.String("ClusterRole"+constructID(p.name)), &awsiam.ManagedPolicyProps{
			ManagedPolicyName: sub(roleName(clusterRole + "-" + p.name)),
			Description:       jsii.String("drover: what CloudFormation may do with clusters: " + p.name),
			Document:          policy(p.grants),
		}))
	}
	newRole(scope, "ClusterRole", roleProps{
		suffix:  clusterRole,
		service: "cloudformation.amazonaws.com",
		// CloudFormation does not document which source account it sends. A role cannot be passed to a service of another account,
		// and only the change function may pass this one.
		anyAccount:  true,
		description: "drover: creates, changes and deletes the resources of clusters for CloudFormation",
		policies:    policies,
	})
}

func clusterPolicies(accessRoles []string, settings api.CellSettings) []clusterPolicy {
	policies := []clusterPolicy{
		{name: "network", grants: networkGrants()},
		{name: "tags", grants: tagGrants()},
		{name: "cluster", grants: append(append([]grant{}, eksGrants...), keyGrants...)},
		{name: "identity", grants: identityGrants},
		{name: "pools", grants: poolGrants},
		{name: "relays", grants: relayGrants},
		{name: "access", grants: entryGrants(accessRoles)},
		{name: "reads", grants: clusterReads},
	}
	if grants := workloadGrants(settings); grants != nil {
		policies = append(policies, clusterPolicy{name: "workloads", grants: grants})
	}
	return policies
}

// Conditions that select the resources of clusters.
var (
	// ofCluster selects resources that belong to a cluster.
	ofCluster = map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "false"}}
	// tagging selects requests that create a resource with a cluster's tag.
	tagging = map[string]map[string]any{"Null": {"aws:RequestTag/" + names.TagCluster: "false"}}
)

// network is a kind of EC2 resource.
type network struct {
	// kind as ARNs spell it.
	kind string
	// made is the action that creates and tags it.
	made string
	// changes are the actions on a cluster's resource, and those that create other resources in it.
	changes []string
}

var networkTable = []network{
	{"vpc", "CreateVpc", []string{
		"ModifyVpcAttribute", "AssociateVpcCidrBlock", "DisassociateVpcCidrBlock", "AttachInternetGateway", "DetachInternetGateway", "DeleteVpc",
		"CreateSubnet", "CreateRouteTable", "CreateVpcEndpoint", "CreateFlowLogs",
	}},
	{"subnet", "CreateSubnet", []string{
		"ModifySubnetAttribute", "AssociateRouteTable", "DisassociateRouteTable", "ReplaceRouteTableAssociation", "DeleteSubnet",
		"CreateNatGateway", "CreateVpcEndpoint", "ModifyVpcEndpoint",
	}},
	{"internet-gateway", "CreateInternetGateway", []string{"AttachInternetGateway", "DetachInternetGateway", "DeleteInternetGateway"}},
	{"elastic-ip", "AllocateAddress", []string{"DisassociateAddress", "ReleaseAddress"}},
	{"natgateway", "CreateNatGateway", []string{"DeleteNatGateway"}},
	{"route-table", "CreateRouteTable", []string{
		"CreateRoute", "ReplaceRoute", "DeleteRoute", "AssociateRouteTable", "DisassociateRouteTable", "ReplaceRouteTableAssociation",
		"DeleteRouteTable", "CreateVpcEndpoint", "ModifyVpcEndpoint",
	}},
	{"vpc-flow-log", "CreateFlowLogs", []string{"DeleteFlowLogs"}},
	{"vpc-endpoint", "CreateVpcEndpoint", []string{"ModifyVpcEndpoint", "DeleteVpcEndpoints"}},
	{"security-group", "CreateSecurityGroup", []string{
		"AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupEgress",
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
			grant{actions: ec2(n.made), resources: on, when: tagging},
			grant{actions: ec2(n.changes...), resources: on, when: ofCluster},
		)
	}
	return append(out, grant{
		why:       "A spec may name addresses of its owner for NAT gateways. They are not released, and have no tag of a cluster.",
		actions:   ec2("CreateNatGateway"),
		resources: []string{ec2ARN("elastic-ip")},
	}, grant{
		why: "The delivery of flow logs to a bucket supports no resource-level permissions: " +
			"https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-s3-permissions.html",
		actions:   []string{"logs:CreateLogDelivery", "logs:DeleteLogDelivery"},
		resources: []string{"*"},
	}, grant{
		why: "IAM checks rules as separate resources, in addition to their group.",
		actions: ec2("AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupIngress",
			"RevokeSecurityGroupEgress"),
		resources: []string{ec2ARN("security-group-rule")},
	})
}

// tagGrants allow tags in the request that creates a resource, and other tags on resources of a cluster.
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
		{actions: ec2("CreateTags"), resources: kinds, when: by(makers...)},
		{actions: ec2("CreateTags"), resources: launched, when: by("RunInstances")},
		{actions: ec2("CreateTags", "DeleteTags"), resources: kinds, when: ofCluster},
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

// poolGrants include ec2:RunInstances: Auto Scaling checks that the caller could launch the instances of a group.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-launch-template-permissions.html
var poolGrants = []grant{
	{
		actions: []string{
			"autoscaling:CreateAutoScalingGroup", "autoscaling:UpdateAutoScalingGroup", "autoscaling:DeleteAutoScalingGroup",
			"autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook",
			"autoscaling:EnableMetricsCollection", "autoscaling:DisableMetricsCollection",
			"autoscaling:SuspendProcesses", "autoscaling:ResumeProcesses",
			"autoscaling:TerminateInstanceInAutoScalingGroup", "autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags",
			"autoscaling:StartInstanceRefresh", "autoscaling:CancelInstanceRefresh", "autoscaling:RollbackInstanceRefresh",
		},
		resources: []string{groupsARN},
	},
	{
		why:     "Only from launch templates. The network policy limits those to a cluster's.",
		actions: ec2("RunInstances"),
		resources: []string{
			ec2ARN("instance"), ec2ARN("volume"), ec2ARN("network-interface"), "arn:${AWS::Partition}:ec2:${AWS::Region}::image/*",
			"arn:${AWS::Partition}:ec2:${AWS::Region}::snapshot/*",
		},
		when: map[string]map[string]any{"ArnLike": {"ec2:LaunchTemplate": ec2ARN("launch-template")}},
	},
	{
		why:       "A network may belong to another owner, and EKS creates the security group of the nodes.",
		actions:   ec2("RunInstances"),
		resources: []string{ec2ARN("subnet"), ec2ARN("security-group")},
	},
}

const (
	relaysARN    = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:" + names.Prefix + "*-relay"
	relayLogsARN = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/" + names.Prefix + "*-relay"
)

// relayGrants are for the functions in private clusters' networks.
var relayGrants = []grant{
	{
		why:       "A network may belong to another owner, without the tag of a cluster. IAM checks the group of the relay too, which has it.",
		actions:   ec2("CreateSecurityGroup"),
		resources: []string{ec2ARN("vpc")},
	},
	{
		actions: []string{
			"lambda:CreateFunction", "lambda:GetFunction", "lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration",
			"lambda:DeleteFunction", "lambda:TagResource", "lambda:UntagResource", "lambda:ListTags",
			"lambda:GetFunctionCodeSigningConfig", "lambda:GetFunctionRecursionConfig", "lambda:GetRuntimeManagementConfig",
		},
		resources: []string{relaysARN},
	},
	{
		why:       "Lambda reads the code with the caller's permissions.",
		actions:   []string{"s3:GetObject"},
		resources: keys(stateARN, []string{names.RelayCodes}),
	},
	{
		why:       "CloudWatch Logs checks some actions on the group, others on its streams.",
		actions:   logGroupActions,
		resources: []string{relayLogsARN + "*"},
	},
	{
		why: "EKS creates the security group of the API server, with this tag, and drover lets the relay in. Users cannot set tags that start " +
			"with aws: https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html",
		actions:   ec2("AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"),
		resources: []string{ec2ARN("security-group")},
		when:      map[string]map[string]any{"StringLike": {"aws:ResourceTag/aws:eks:cluster-name": names.Prefix + "*"}},
	},
}

// logGroupActions are the actions of the handlers of log groups.
var logGroupActions = []string{
	"logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteRetentionPolicy", "logs:DeleteLogGroup",
	"logs:TagResource", "logs:UntagResource", "logs:ListTagsForResource", "logs:GetDataProtectionPolicy",
	"logs:DeleteDataProtectionPolicy",
}

var eksGrants = []grant{
	{
		actions: []string{
			"eks:CreateCluster", "eks:UpdateClusterConfig", "eks:UpdateClusterVersion", "eks:DeleteCluster",
			"eks:CreateAccessEntry", "eks:CreateAddon", "eks:CreatePodIdentityAssociation", "eks:TagResource", "eks:UntagResource",
			"eks:DescribeCluster", "eks:DescribeUpdate", "eks:AssociateIdentityProviderConfig",
		},
		resources: []string{eksClustersARN},
	},
	{
		actions: []string{
			"eks:DescribeIdentityProviderConfig", "eks:DisassociateIdentityProviderConfig", "eks:TagResource", "eks:UntagResource",
		},
		resources: []string{eksARN("identityproviderconfig")},
	},
	{
		actions: []string{
			"eks:UpdateAccessEntry", "eks:DeleteAccessEntry", "eks:AssociateAccessPolicy", "eks:DisassociateAccessPolicy",
			"eks:TagResource", "eks:UntagResource", "eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies",
		},
		resources: []string{eksARN("access-entry")},
	},
	{
		actions: []string{
			"eks:UpdateAddon", "eks:DeleteAddon", "eks:TagResource", "eks:UntagResource", "eks:DescribeAddon", "eks:DescribeUpdate",
		},
		resources: []string{eksARN("addon")},
	},
	{
		actions: []string{
			"eks:DescribePodIdentityAssociation", "eks:UpdatePodIdentityAssociation", "eks:DeletePodIdentityAssociation",
			"eks:TagResource", "eks:UntagResource",
		},
		resources: []string{eksARN("podidentityassociation")},
	},
	{
		why:       "The service authorization reference lists associations as resources of these actions too.",
		actions:   []string{"eks:CreateAddon", "eks:UpdateAddon", "eks:DeleteAddon"},
		resources: []string{eksARN("podidentityassociation")},
	},
	{
		why:       "If EKS creates the log group, its logs never expire. The spec may name a key for them.",
		actions:   append([]string{"logs:AssociateKmsKey", "logs:DisassociateKmsKey"}, logGroupActions...),
		resources: []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/eks/" + names.Prefix + "*"},
	},
}

func eksARN(kind string) string {
	return "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:" + kind + "/" + names.Prefix + "*"
}

const (
	keysARN    = "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"
	aliasesARN = "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:alias/" + names.Prefix + "*"
)

// keyGrants are what key policies cannot allow. The policy of a cluster's key names this role, because the key's tags may take five minutes
// to count: see control-plane.yaml.tmpl.
var keyGrants = []grant{
	{
		why:       "A key that does not exist yet has no ARN.",
		actions:   []string{"kms:CreateKey"},
		resources: []string{"*"},
		when:      tagging,
	},
	{actions: []string{"kms:TagResource"}, resources: []string{keysARN}, when: tagging},
	{actions: []string{"kms:CreateAlias", "kms:UpdateAlias", "kms:DeleteAlias"}, resources: []string{aliasesARN}},
	{
		why:       "A spec may name its own key, also of another account. The key policy there decides.",
		actions:   []string{"kms:DescribeKey"},
		resources: []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
	},
	{
		why: "EKS uses the key of a spec through a grant, which it creates with the permissions of the caller of CreateCluster. According to " +
			"an older guide EKS does not support this condition. A key policy that names this role does not need it.",
		actions:   []string{"kms:CreateGrant"},
		resources: []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
		when:      map[string]map[string]any{"Bool": {"kms:GrantIsForAWSResource": "true"}},
	},
	{
		why:       "A key of another account needs permission here and in its key policy, which decides.",
		actions:   []string{"kms:CreateGrant"},
		resources: []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
		when:      map[string]map[string]any{"StringNotEquals": {"aws:ResourceAccount": "${AWS::AccountId}"}},
	},
}

const (
	clusterRolesARN    = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role" + names.ClusterRoles + names.Prefix + "*"
	clusterProfilesARN = "arn:${AWS::Partition}:iam::${AWS::AccountId}:instance-profile" + names.ClusterRoles + names.Prefix + "*"
	serviceRolesARN    = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/"
	managedPolicyARN   = "arn:${AWS::Partition}:iam::aws:policy/"
)

// linkedServices have service-linked roles that are created on first use. That of NAT gateways serves regional ones. Those of drover are
// zonal, but the handler of their resource type may request the role.
// https://docs.aws.amazon.com/vpc/latest/userguide/using-service-linked-roles.html
var linkedServices = []string{"eks.amazonaws.com", "autoscaling.amazonaws.com", "spot.amazonaws.com", "ec2-nat-gateway.amazonaws.com"}

// withBoundary requires the permissions boundary, so that a template cannot create a role with more permissions than a cluster needs. No
// grant allows removing a boundary.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_iam-condition-keys.html#ck_PermissionsBoundary
func withBoundary(when map[string]map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{"StringEquals": {
		"iam:PermissionsBoundary": names.BoundaryARN("${AWS::Partition}", "${AWS::AccountId}", "${AWS::Region}"),
	}}
	maps.Copy(out, when)
	return out
}

var identityGrants = []grant{
	{
		actions:   []string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy", "iam:DeleteRolePolicy"},
		resources: []string{clusterRolesARN},
		when:      withBoundary(nil),
	},
	{
		actions: []string{
			"iam:UpdateRole", "iam:UpdateRoleDescription", "iam:UpdateAssumeRolePolicy", "iam:DeleteRole", "iam:TagRole", "iam:UntagRole",
			"iam:GetRole", "iam:GetRolePolicy", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:ListRoleTags",
		},
		resources: []string{clusterRolesARN},
	},
	{
		why: "Detaching takes rights. A condition would keep roles from being deleted whose policy or boundary is no longer in the settings of " +
			"the cell.",
		actions:   []string{"iam:DetachRolePolicy"},
		resources: []string{clusterRolesARN},
	},
	{
		why:       "Only the policies that templates attach.",
		actions:   []string{"iam:AttachRolePolicy"},
		resources: []string{clusterRolesARN},
		when: withBoundary(map[string]map[string]any{"ArnLike": {"iam:PolicyARN": []string{
			managedPolicyARN + "AmazonEKS*",
			managedPolicyARN + "AmazonEC2ContainerRegistryPullOnly",
			managedPolicyARN + "AmazonSSMManagedInstanceCore",
			managedPolicyARN + "AmazonEBSCSIDriverPolicyV2",
			managedPolicyARN + "service-role/AmazonEFSCSIDriverPolicy",
			managedPolicyARN + "CloudWatchAgentServerPolicy",
			managedPolicyARN + "AWSXrayWriteOnlyAccess",
		}}}),
	},
	{
		actions:   []string{"iam:PassRole"},
		resources: []string{clusterRolesARN},
		when: map[string]map[string]any{"StringEquals": {"iam:PassedToService": []string{
			"eks.amazonaws.com", "ec2.${AWS::URLSuffix}", "pods.eks.amazonaws.com", "lambda.amazonaws.com",
		}}},
	},
	{
		actions: []string{
			"iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile",
			"iam:GetInstanceProfile",
		},
		resources: []string{clusterProfilesARN},
	},
	{
		actions: []string{
			"iam:CreateOpenIDConnectProvider", "iam:UpdateOpenIDConnectProviderThumbprint", "iam:DeleteOpenIDConnectProvider",
			"iam:TagOpenIDConnectProvider", "iam:UntagOpenIDConnectProvider", "iam:GetOpenIDConnectProvider", "iam:ListOpenIDConnectProviderTags",
		},
		resources: []string{"arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/oidc.eks.${AWS::Region}.${AWS::URLSuffix}/id/*"},
	},
	{
		actions:   []string{"iam:CreateServiceLinkedRole"},
		resources: serviceRoles(),
		when:      map[string]map[string]any{"StringEquals": {"iam:AWSServiceName": linkedServices}},
	},
	{actions: []string{"iam:GetRole"}, resources: serviceRoles()},
}

func serviceRoles() []string {
	out := make([]string, len(linkedServices))
	for i, service := range linkedServices {
		out[i] = serviceRolesARN + service + "/*"
	}
	return out
}

// clusterReads are the reads of the handlers. The actions support no resource-level permissions, or the resource is not known in advance.
var clusterReads = []grant{{
	actions: append(ec2(
		"DescribeAccountAttributes", "DescribeAddresses", "DescribeAddressesAttribute", "DescribeAvailabilityZones", "DescribeFlowLogs",
		"DescribeImages",
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
	resources: []string{"*"},
}}
