package permissions_test

// Permissions of CloudFormation's role for AWS's resource handlers, which the simulated handlers do not use.

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// handlers are the permissions of CloudFormation's role that no test uses, each with the resource type whose handlers need
// it. The type's schema documents that (aws cloudformation describe-type --type RESOURCE --type-name TYPE: handlers,
// permissions); that of groups has ec2:Describe*, ec2:Get* and autoscaling:Describe*. If tests use a permission on some
// resources, the entry has the kind of the others.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html#schema-properties-handlers
var handlers = map[string]string{
	"autoscaling:CancelInstanceRefresh":                         "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:RollbackInstanceRefresh":                       "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DeleteLifecycleHook":                           "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeAutoScalingInstances":                  "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeLifecycleHooks":                        "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeMetricCollectionTypes":                 "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeNotificationConfigurations":            "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeTags":                                  "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DescribeTrafficSources":                        "AWS::AutoScaling::AutoScalingGroup",
	"autoscaling:DisableMetricsCollection":                      "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeAccountAttributes":                             "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeAddressesAttribute":                            "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeAvailabilityZones":                             "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeImages":                                        "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeInstanceTypes":                                 "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeInstances":                                     "AWS::EC2::SecurityGroup",
	"ec2:DescribeKeyPairs":                                      "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeLaunchTemplateVersions":                        "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeNetworkAcls":                                   "AWS::EC2::Subnet",
	"ec2:DescribePrefixLists":                                   "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeTags":                                          "AWS::EC2::EIP",
	"ec2:DescribeVolumes":                                       "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeVpcAttribute":                                  "AWS::EC2::VPC",
	"ec2:DescribeVpcEncryptionControls":                         "AWS::EC2::VPC",
	"ec2:DescribeVpcEndpointServices":                           "AWS::AutoScaling::AutoScalingGroup",
	"ec2:DescribeVpnGateways":                                   "AWS::EC2::VPCGatewayAttachment",
	"ec2:DisassociateAddress":                                   "AWS::EC2::EIP",
	"ec2:DisassociateRouteTable subnet":                         "AWS::EC2::SubnetRouteTableAssociation",
	"ec2:GetLaunchTemplateData":                                 "AWS::AutoScaling::AutoScalingGroup",
	"ec2:ModifyVpcEndpoint route-table":                         "AWS::EC2::VPCEndpoint",
	"ec2:ModifyVpcEndpoint security-group":                      "AWS::EC2::VPCEndpoint",
	"ec2:ModifyVpcEndpoint subnet":                              "AWS::EC2::VPCEndpoint",
	"ec2:ReplaceRouteTableAssociation":                          "AWS::EC2::SubnetRouteTableAssociation",
	"eks:DescribeUpdate":                                        "AWS::EKS::Addon",
	"eks:UntagResource podidentityassociation":                  "AWS::EKS::Addon",
	"iam:CreateServiceLinkedRole ec2-nat-gateway.amazonaws.com": "AWS::EC2::NatGateway",
	"iam:CreateServiceLinkedRole spot.amazonaws.com":            "AWS::AutoScaling::AutoScalingGroup",
	"iam:GetInstanceProfile":                                    "AWS::IAM::InstanceProfile",
	"iam:GetOpenIDConnectProvider":                              "AWS::IAM::OIDCProvider",
	"iam:GetRole autoscaling.amazonaws.com":                     "AWS::EKS::Cluster",
	"iam:GetRole eks.amazonaws.com":                             "AWS::EKS::Cluster",
	"iam:GetRole ec2-nat-gateway.amazonaws.com":                 "AWS::EKS::Cluster",
	"iam:GetRole spot.amazonaws.com":                            "AWS::EKS::Cluster",
	"iam:GetRolePolicy":                                         "AWS::IAM::Role",
	"iam:ListAttachedRolePolicies":                              "AWS::IAM::Role",
	"iam:ListOpenIDConnectProviderTags":                         "AWS::IAM::OIDCProvider",
	"iam:ListRolePolicies":                                      "AWS::IAM::Role",
	"iam:ListRoleTags":                                          "AWS::IAM::Role",
	"iam:PutRolePermissionsBoundary":                            "AWS::IAM::Role",
	"iam:UntagOpenIDConnectProvider":                            "AWS::IAM::OIDCProvider",
	"iam:UntagRole":                                             "AWS::IAM::Role",
	"iam:UpdateRoleDescription":                                 "AWS::IAM::Role",
	"kms:CreateGrant":                                           "AWS::EKS::Cluster",
	"kms:ListAliases":                                           "AWS::KMS::Alias",
	"kms:UpdateAlias":                                           "AWS::KMS::Alias",
	"lambda:GetFunctionCodeSigningConfig":                       "AWS::Lambda::Function",
	"lambda:GetFunctionRecursionConfig":                         "AWS::Lambda::Function",
	"lambda:GetRuntimeManagementConfig":                         "AWS::Lambda::Function",
	"lambda:ListTags":                                           "AWS::Lambda::Function",
	"lambda:UpdateFunctionConfiguration":                        "AWS::Lambda::Function",
	"logs:DeleteDataProtectionPolicy":                           "AWS::Logs::LogGroup",
	"logs:DeleteRetentionPolicy":                                "AWS::Logs::LogGroup",
	"logs:DescribeIndexPolicies":                                "AWS::Logs::LogGroup",
	"logs:DescribeLogGroups":                                    "AWS::Logs::LogGroup",
	"logs:DescribeResourcePolicies":                             "AWS::Logs::LogGroup",
	"logs:GetDataProtectionPolicy":                              "AWS::Logs::LogGroup",
	"logs:ListTagsForResource":                                  "AWS::Logs::LogGroup",
	"logs:TagResource":                                          "AWS::Logs::LogGroup",
	"logs:UntagResource":                                        "AWS::Logs::LogGroup",
}

// Each handler belongs to a resource type of the templates.
func TestHandlersMatchTemplates(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	goldens, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../../../shared/render/testdata/golden/*/*/*.yaml"))
	require.NoError(t, err)
	used := map[string]bool{}
	for _, golden := range goldens {
		body, err := os.ReadFile(golden)
		require.NoError(t, err)
		for line := range strings.Lines(string(body)) {
			if kind, ok := strings.CutPrefix(line, "    Type: "); ok {
				used[strings.TrimSpace(kind)] = true
			}
		}
	}
	for action, kind := range handlers {
		require.True(t, used[kind], "%s: no template has a %s", action, kind)
	}
}
