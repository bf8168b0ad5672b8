package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
)

// decision is one check that AWS makes for a call: an action on a resource with its condition keys.
type decision struct {
	action, on string
	context    map[string]string
	allowed    bool
}

// decides compares IAM's decisions on a caller's requests with the expected ones.
func decides(t *testing.T, caller iam.Caller, requests map[string]decision) {
	t.Helper()
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			err := caller.Authorize(c.action, c.on, c.context)
			if c.allowed {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "not authorized")
			}
		})
	}
}

// TestClusterRole evaluates the role of clusters with the local account's IAM.
func TestClusterRole(t *testing.T) {
	const (
		ec2Prefix = "arn:aws:ec2:eu-central-1:111122223333:"
		role      = "arn:aws:iam::111122223333:role/"
		clusters  = role + "drover/"
		boundary  = "arn:aws:iam::111122223333:policy/drover-eu-central-1-boundary"
		function  = "arn:aws:lambda:eu-central-1:111122223333:function:"
		key       = "arn:aws:kms:eu-central-1:111122223333:key/1234"
	)
	ofCluster := map[string]string{"aws:ResourceTag/drover:cluster": "demo"}
	forCluster := map[string]string{"aws:RequestTag/drover:cluster": "demo"}
	passedTo := func(service string) map[string]string { return map[string]string{"iam:PassedToService": service} }
	bounded := map[string]string{"iam:PermissionsBoundary": boundary}
	attaching := func(policy string) map[string]string {
		return map[string]string{"iam:PolicyARN": "arn:aws:iam::aws:policy/" + policy, "iam:PermissionsBoundary": boundary}
	}

	caller, _, err := account(t).AssumeRoleAs(role+"drover-eu-central-1-cloudformation", "AWSCloudFormation", "cloudformation.amazonaws.com")
	require.NoError(t, err)

	decides(t, caller, map[string]decision{
		"makes a VPC with the cluster's tag": {"ec2:CreateVpc", ec2Prefix + "vpc/*", forCluster, true},
		"makes no VPC without":               {"ec2:CreateVpc", ec2Prefix + "vpc/*", nil, false},
		"tags the VPC while making it": {
			"ec2:CreateTags", ec2Prefix + "vpc/*", map[string]string{"ec2:CreateAction": "CreateVpc"}, true,
		},
		"tags no VPC of others":              {"ec2:CreateTags", ec2Prefix + "vpc/vpc-1", forCluster, false},
		"tags a VPC of a cluster":            {"ec2:CreateTags", ec2Prefix + "vpc/vpc-1", ofCluster, true},
		"deletes a VPC of a cluster":         {"ec2:DeleteVpc", ec2Prefix + "vpc/vpc-1", ofCluster, true},
		"deletes no VPC of others":           {"ec2:DeleteVpc", ec2Prefix + "vpc/vpc-1", nil, false},
		"makes a subnet":                     {"ec2:CreateSubnet", ec2Prefix + "subnet/*", forCluster, true},
		"makes it in a VPC of a cluster":     {"ec2:CreateSubnet", ec2Prefix + "vpc/vpc-1", ofCluster, true},
		"makes none in a VPC of others":      {"ec2:CreateSubnet", ec2Prefix + "vpc/vpc-1", nil, false},
		"makes a NAT gateway":                {"ec2:CreateNatGateway", ec2Prefix + "natgateway/*", forCluster, true},
		"with an address of a cluster":       {"ec2:CreateNatGateway", ec2Prefix + "elastic-ip/eipalloc-1", ofCluster, true},
		"with an address of the user":        {"ec2:CreateNatGateway", ec2Prefix + "elastic-ip/eipalloc-1", nil, true},
		"releases no address of others":      {"ec2:ReleaseAddress", ec2Prefix + "elastic-ip/eipalloc-1", nil, false},
		"makes none in a subnet of others":   {"ec2:CreateNatGateway", ec2Prefix + "subnet/subnet-1", nil, false},
		"makes flow logs of a VPC":           {"ec2:CreateFlowLogs", ec2Prefix + "vpc/vpc-1", ofCluster, true},
		"makes none of a VPC of others":      {"ec2:CreateFlowLogs", ec2Prefix + "vpc/vpc-1", nil, false},
		"deletes no flow logs of others":     {"ec2:DeleteFlowLogs", ec2Prefix + "vpc-flow-log/fl-1", nil, false},
		"writes routes of a cluster":         {"ec2:CreateRoute", ec2Prefix + "route-table/rtb-1", ofCluster, true},
		"writes no routes of others":         {"ec2:CreateRoute", ec2Prefix + "route-table/rtb-1", nil, false},
		"opens a group of a cluster":         {"ec2:AuthorizeSecurityGroupIngress", ec2Prefix + "security-group/sg-1", ofCluster, true},
		"opens no group of others":           {"ec2:AuthorizeSecurityGroupIngress", ec2Prefix + "security-group/sg-1", nil, false},
		"makes a launch template":            {"ec2:CreateLaunchTemplate", ec2Prefix + "launch-template/*", forCluster, true},
		"adds a version to one of a cluster": {"ec2:CreateLaunchTemplateVersion", ec2Prefix + "launch-template/lt-1", ofCluster, true},
		"adds none to one of others":         {"ec2:CreateLaunchTemplateVersion", ec2Prefix + "launch-template/lt-1", nil, false},
		"could run instances from a template": {
			"ec2:RunInstances", ec2Prefix + "instance/*", map[string]string{"ec2:LaunchTemplate": ec2Prefix + "launch-template/lt-1"}, true,
		},
		"could begin their disks with a snapshot": {
			"ec2:RunInstances", "arn:aws:ec2:eu-central-1::snapshot/snap-1",
			map[string]string{"ec2:LaunchTemplate": ec2Prefix + "launch-template/lt-1"}, true,
		},
		"reads no snapshot without a template":     {"ec2:RunInstances", "arn:aws:ec2:eu-central-1::snapshot/snap-1", nil, false},
		"could run none without":                   {"ec2:RunInstances", ec2Prefix + "instance/*", nil, false},
		"could run none from a template of others": {"ec2:RunInstances", ec2Prefix + "launch-template/lt-1", nil, false},
		"terminates nothing itself":                {"ec2:TerminateInstances", ec2Prefix + "instance/i-1", ofCluster, false},
		"makes a group of a pool": {
			"autoscaling:CreateAutoScalingGroup",
			"arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:*:autoScalingGroupName/drover-demo-pool-a", nil, true,
		},
		"touches no other group": {
			"autoscaling:DeleteAutoScalingGroup", "arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:*:autoScalingGroupName/web",
			nil, false,
		},
		"makes a cluster": {
			"eks:CreateCluster", "arn:aws:eks:eu-central-1:111122223333:cluster/drover-demo", nil, true,
		},
		"deletes no other cluster": {"eks:DeleteCluster", "arn:aws:eks:eu-central-1:111122223333:cluster/demo", nil, false},
		"changes an add-on": {
			"eks:UpdateAddon", "arn:aws:eks:eu-central-1:111122223333:addon/drover-demo/vpc-cni/1", nil, true,
		},
		"changes no add-on of others": {
			"eks:UpdateAddon", "arn:aws:eks:eu-central-1:111122223333:addon/demo/vpc-cni/1", nil, false,
		},
		"gives access": {
			"eks:AssociateAccessPolicy", "arn:aws:eks:eu-central-1:111122223333:access-entry/drover-demo/role/111122223333/admin/1", nil, true,
		},
		"makes a role of a cluster":     {"iam:CreateRole", clusters + "drover-demo-control-plane-NodeRole-1", bounded, true},
		"makes none without a boundary": {"iam:CreateRole", clusters + "drover-demo-control-plane-NodeRole-1", nil, false},
		"makes none with another boundary": {
			"iam:CreateRole", clusters + "drover-demo-control-plane-NodeRole-1", map[string]string{
				"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
			}, false,
		},
		"makes no other role":                      {"iam:CreateRole", role + "admin", bounded, false},
		"makes none where drover's own are":        {"iam:CreateRole", role + "drover-demo-control-plane-NodeRole-1", bounded, false},
		"writes the policy of a role of a cluster": {"iam:PutRolePolicy", clusters + "drover-demo-control-plane-NodeRole-1", bounded, true},
		"writes none that nothing bounds":          {"iam:PutRolePolicy", clusters + "drover-demo-control-plane-NodeRole-1", nil, false},
		"attaches none where nothing bounds": {
			"iam:AttachRolePolicy", clusters + "drover-demo-control-plane-NodeRole-1", map[string]string{
				"iam:PolicyARN": "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
			}, false,
		},
		"sets the boundary": {
			"iam:PutRolePermissionsBoundary", clusters + "drover-demo-control-plane-NodeRole-1", bounded, true,
		},
		"sets no other": {
			"iam:PutRolePermissionsBoundary", clusters + "drover-demo-control-plane-NodeRole-1", map[string]string{
				"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
			}, false,
		},
		"removes none": {
			"iam:DeleteRolePermissionsBoundary", clusters + "drover-demo-control-plane-NodeRole-1", bounded, false,
		},
		"changes not the boundary itself":   {"iam:CreatePolicyVersion", boundary, nil, false},
		"changes no trust policy of others": {"iam:UpdateAssumeRolePolicy", role + "drover-deployment", nil, false},
		"attaches what nodes need": {
			"iam:AttachRolePolicy", clusters + "drover-demo-control-plane-NodeRole-1", attaching("AmazonEKSWorkerNodePolicy"), true,
		},
		"attaches what a driver needs": {
			"iam:AttachRolePolicy", clusters + "drover-demo-addons-Ebs-1", attaching("AmazonEBSCSIDriverPolicyV2"), true,
		},
		"attaches nothing mighty": {
			"iam:AttachRolePolicy", clusters + "drover-demo-control-plane-NodeRole-1", attaching("AdministratorAccess"), false,
		},
		"passes the cluster's role to EKS": {
			"iam:PassRole", clusters + "drover-demo-control-plane-ClusterRole-1", passedTo("eks.amazonaws.com"), true,
		},
		"passes the nodes' role to EC2": {
			"iam:PassRole", clusters + "drover-demo-control-plane-NodeRole-1", passedTo("ec2.amazonaws.com"), true,
		},
		"passes a cluster's role to Lambda": {
			"iam:PassRole", clusters + "drover-demo-control-plane-RelayRole-1", passedTo("lambda.amazonaws.com"), true,
		},
		"passes no role to Step Functions": {
			"iam:PassRole", clusters + "drover-demo-control-plane-NodeRole-1", passedTo("states.amazonaws.com"), false,
		},
		"makes a relay":                 {"lambda:CreateFunction", function + "drover-demo-relay", nil, true},
		"changes no function of drover": {"lambda:UpdateFunctionCode", function + "drover-plan", nil, false},
		"changes no other function":     {"lambda:UpdateFunctionCode", function + "relay", nil, false},
		"reads the code of relays":      {"s3:GetObject", "arn:aws:s3:::drover-state-111122223333-eu-central-1/relay/1.zip", nil, true},
		"makes a relay's log group": {
			"logs:CreateLogGroup", "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/drover-demo-relay", nil, true,
		},
		"opens the group of a cluster's API": {
			"ec2:AuthorizeSecurityGroupIngress", ec2Prefix + "security-group/sg-1",
			map[string]string{"aws:ResourceTag/aws:eks:cluster-name": "drover-demo"}, true,
		},
		"opens no group of other clusters' APIs": {
			"ec2:AuthorizeSecurityGroupIngress", ec2Prefix + "security-group/sg-1",
			map[string]string{"aws:ResourceTag/aws:eks:cluster-name": "demo"}, false,
		},
		"deletes no group of a cluster's API": {
			"ec2:DeleteSecurityGroup", ec2Prefix + "security-group/sg-1",
			map[string]string{"aws:ResourceTag/aws:eks:cluster-name": "drover-demo"}, false,
		},
		"passes none of drover's own roles": {"iam:PassRole", role + "drover-eu-central-1-change", passedTo("ec2.amazonaws.com"), false},
		"passes one that entries name":      {"iam:PassRole", role + "drover-eu-central-1-join", passedTo("ec2.amazonaws.com"), true},
		"passes it to no other service":     {"iam:PassRole", role + "drover-eu-central-1-join", passedTo("lambda.amazonaws.com"), false},
		"passes a role of accessRoles":      {"iam:PassRole", role + "admins", passedTo("ec2.amazonaws.com"), true},
		"passes no other role of the account": {
			"iam:PassRole", role + "deployers", passedTo("ec2.amazonaws.com"), false,
		},
		"changes none of drover's own roles": {"iam:PutRolePolicy", role + "drover-eu-central-1-change", bounded, false},
		"changes not itself": {
			"iam:AttachRolePolicy", role + "drover-eu-central-1-cloudformation", attaching("AmazonEKSClusterPolicy"), false,
		},
		"makes a security group in a network of others": {"ec2:CreateSecurityGroup", ec2Prefix + "vpc/vpc-1", nil, true},
		"makes no security group without a cluster's tag": {
			"ec2:CreateSecurityGroup", ec2Prefix + "security-group/*", nil, false,
		},
		"makes a subnet in no network of others": {"ec2:CreateSubnet", ec2Prefix + "vpc/vpc-1", nil, false},
		"makes the service-linked role of EKS": {
			"iam:CreateServiceLinkedRole", role + "aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS", map[string]string{
				"iam:AWSServiceName": "eks.amazonaws.com",
			}, true,
		},
		"makes no service-linked role of others": {
			"iam:CreateServiceLinkedRole", role + "aws-service-role/rds.amazonaws.com/AWSServiceRoleForRDS", map[string]string{
				"iam:AWSServiceName": "rds.amazonaws.com",
			}, false,
		},
		"makes a provider of an EKS issuer": {
			"iam:CreateOpenIDConnectProvider", "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-central-1.amazonaws.com/id/ABC", nil, true,
		},
		"makes no provider of others": {
			"iam:CreateOpenIDConnectProvider", "arn:aws:iam::111122223333:oidc-provider/example.com", nil, false,
		},
		"makes a key with the cluster's tag": {"kms:CreateKey", "*", forCluster, true},
		"makes no key without":               {"kms:CreateKey", "*", nil, false},
		"deletes no key without its policy":  {"kms:ScheduleKeyDeletion", key, ofCluster, false},
		"lets EKS use any key":               {"kms:CreateGrant", key, map[string]string{"kms:GrantIsForAWSResource": "true"}, true},
		"lets no other service use one":      {"kms:CreateGrant", key, nil, false},
		"leaves a key of another account to its policy": {
			"kms:CreateGrant", "arn:aws:kms:eu-central-1:999999999999:key/1234", nil, true,
		},
		"decrypts nothing": {"kms:Decrypt", key, ofCluster, false},
		"makes the log group": {
			"logs:CreateLogGroup", "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/eks/drover-demo/cluster", nil, true,
		},
		"deletes no log group of drover's functions": {
			"logs:DeleteLogGroup", "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/drover-plan", nil, false,
		},
		"reads no state": {"s3:GetObject", "arn:aws:s3:::drover-state-111122223333-eu-central-1/plans/1", nil, false},
	})
}

// Every policy that a rendered template attaches is one that the role may attach.
func TestClusterRoleAttachesWhatTemplatesAttach(t *testing.T) {
	caller, _, err := account(t).AssumeRoleAs("arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation", "test",
		"cloudformation.amazonaws.com")
	require.NoError(t, err)
	goldens, err := filepath.Glob("../shared/render/testdata/golden/*/*/*.yaml")
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, golden := range goldens {
		body, err := os.ReadFile(golden)
		require.NoError(t, err)
		// The settings of the cell allow the policies of roles with the workloads' boundary: see TestCellSettings.
		own := regexp.MustCompile(`(?s)PermissionsBoundary: \{Ref: WorkloadBoundary\}.*?ManagedPolicyArns: .*?\n`).ReplaceAll(body, nil)
		for _, policy := range regexp.MustCompile(`arn:aws:iam::aws:policy/[\w/+=,.@-]+`).FindAllString(string(own), -1) {
			found[policy] = true
		}
	}
	require.NotEmpty(t, found)
	for policy := range found {
		require.NoError(t, caller.Authorize("iam:AttachRolePolicy", "arn:aws:iam::111122223333:role/drover/drover-demo-addons-Role-1",
			map[string]string{
				"iam:PolicyARN": policy, "iam:PermissionsBoundary": "arn:aws:iam::111122223333:policy/drover-eu-central-1-boundary",
			}))
	}
}

// EC2 cannot assume the roles of drover that CloudFormation's role may pass to it.
func TestPassedRolesAreNotForInstances(t *testing.T) {
	for _, step := range clusterCallers {
		_, _, err := account(t).AssumeRoleAs("arn:aws:iam::111122223333:role/drover-eu-central-1-"+step, "i-1", "ec2.amazonaws.com")
		require.Error(t, err, step)
	}
}

func TestAccessRoles(t *testing.T) {
	const prefix = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/"
	for name, c := range map[string]struct {
		context any
		want    []string
	}{
		"none":                  {},
		"of cdk.json":           {[]any{"admins", "teams/*"}, []string{prefix + "admins", prefix + "teams/*"}},
		"of the command line":   {"admins,teams/*", []string{prefix + "admins", prefix + "teams/*"}},
		"none is every role":    {[]any{"*"}, nil},
		"an ARN is no name":     {[]any{"arn:aws:iam::1:role/x"}, nil},
		"an empty name":         {"", nil},
		"a number is no name":   {7.0, nil},
		"a path with no name":   {[]any{"/"}, nil},
		"a variable is no name": {[]any{"${aws:username}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findAccessRoles(c.context)
			if c.want == nil && c.context != nil {
				require.ErrorContains(t, err, "accessRoles")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
