package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/names"
)

// attachedPolicies are the AWS managed policies that templates attach, each with an action that the boundary must allow.
// https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html
var attachedPolicies = map[string]string{
	"AmazonEKSClusterPolicy":             "elasticloadbalancing:CreateLoadBalancer",
	"AmazonEKSWorkerNodePolicy":          "ec2:DescribeInstances",
	"AmazonEKS_CNI_Policy":               "ec2:AssignPrivateIpAddresses",
	"AmazonEC2ContainerRegistryPullOnly": "ecr:BatchGetImage",
	"AmazonSSMManagedInstanceCore":       "ssmmessages:OpenControlChannel",
	"AmazonEBSCSIDriverPolicyV2":         "ec2:CreateVolume",
	// A release or a spec names these for add-ons.
	"service-role/AmazonEFSCSIDriverPolicy": "elasticfilesystem:DescribeFileSystems",
	"CloudWatchAgentServerPolicy":           "cloudwatch:PutMetricData",
	"AWSXrayWriteOnlyAccess":                "xray:PutTraceSegments",
}

// Every role of every rendered template has the boundary and the path of clusters' roles. CloudFormation may create no other role.
func TestEveryRoleOfAClusterIsBounded(t *testing.T) {
	goldens, err := filepath.Glob("../shared/render/testdata/golden/*/*/*.yaml")
	require.NoError(t, err)
	roles := 0
	for _, golden := range goldens {
		body, err := os.ReadFile(golden)
		require.NoError(t, err)
		resources := regexp.MustCompile(`(?m)^  \w+:\n    Type: `).Split(string(body), -1)
		for _, r := range resources {
			if !strings.HasPrefix(r, "AWS::IAM::Role\n") {
				continue
			}
			roles++
			require.Regexp(t, `\n      Path: "?/drover/"?\n`, r, golden)
			if strings.Contains(r, "\n      PermissionsBoundary: {Ref: WorkloadBoundary}\n") {
				require.NotContains(t, r, "\n      Policies:", "only CloudFormation's role limits the policies of these roles")
				continue
			}
			require.Regexp(t, `\n      PermissionsBoundary: "?arn:[a-z-]+:iam::[0-9]{12}:policy/drover-[a-z0-9-]+-boundary"?\n`, r, golden)
		}
		own := regexp.MustCompile(`(?s)PermissionsBoundary: \{Ref: WorkloadBoundary\}.*?ManagedPolicyArns: .*?\n`).ReplaceAll(body, nil)
		for _, policy := range regexp.MustCompile(`:iam::aws:policy/([\w/+=,.@-]+)`).FindAllStringSubmatch(string(own), -1) {
			require.Contains(t, attachedPolicies, policy[1], "the boundary must allow what the policy is used for")
		}
	}
	require.Positive(t, roles)
}

// A cluster's role with a policy that allows everything can do only what its boundary allows.
func TestBoundedRole(t *testing.T) {
	const (
		ec2 = "arn:aws:ec2:eu-central-1:111122223333:"
		eks = "arn:aws:eks:eu-central-1:111122223333:cluster/"
	)
	s := account(t)
	boundary := names.BoundaryARN(testPartition, testAccount, testRegion)
	made, err := s.CreateRole(iam.Role{Name: "drover-demo-any", Path: names.ClusterRoles, Boundary: boundary,
		TrustDocument: `{"Version": "2012-10-17",
		"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`})
	require.NoError(t, err)
	require.NoError(t, s.PutRolePolicy(made.Name, "all",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`))
	caller, _, err := s.AssumeRoleAs(s.RoleARN(made), "i-1", "ec2.amazonaws.com")
	require.NoError(t, err)

	for policy, action := range attachedPolicies {
		require.NoError(t, caller.Authorize(action, "*", nil), policy)
	}
	keys := func(keys ...string) map[string]string { return map[string]string{"aws:TagKeys": iam.Values(keys...)} }
	ofCluster := map[string]string{"aws:ResourceTag/drover:cluster": "demo"}
	decides(t, caller, map[string]decision{
		"fetches the configuration of nodes": {"s3:GetObject", "arn:aws:s3:::drover-state-111122223333-eu-central-1/userdata/1", nil, true},
		"reads no templates": {
			"s3:GetObject", "arn:aws:s3:::drover-state-111122223333-eu-central-1/templates/1", nil, false,
		},
		"lists no configuration": {"s3:ListBucket", "arn:aws:s3:::drover-state-111122223333-eu-central-1", nil, false},
		"writes no configuration": {
			"s3:PutObject", "arn:aws:s3:::drover-state-111122223333-eu-central-1/userdata/1", nil, false,
		},
		"writes no spec": {
			"s3:PutObject", "arn:aws:s3:::drover-specs-111122223333-eu-central-1/clusters/demo.yaml", nil, false,
		},
		"reads no other bucket": {"s3:GetObject", "arn:aws:s3:::payroll/1", nil, false},
		"makes no role": {
			"iam:CreateRole", "arn:aws:iam::111122223333:role/drover/drover-x", map[string]string{"iam:PermissionsBoundary": boundary}, false,
		},
		"removes not its boundary": {
			"iam:DeleteRolePermissionsBoundary", s.RoleARN(made), map[string]string{"iam:PermissionsBoundary": boundary}, false,
		},
		"passes no role": {
			"iam:PassRole", "arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation", map[string]string{
				"iam:PassedToService": "cloudformation.amazonaws.com",
			}, false,
		},
		"assumes no role": {"sts:AssumeRole", "arn:aws:iam::111122223333:role/admin", nil, false},
		"changes no stack": {
			"cloudformation:CreateChangeSet", "arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-demo-network/1", nil, false,
		},
		"starts no machine": {
			"states:StartExecution", "arn:aws:states:eu-central-1:111122223333:stateMachine:drover-converge", nil, false,
		},
		"completes no hook": {
			"autoscaling:CompleteLifecycleAction",
			"arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:1:autoScalingGroupName/drover-demo-pool-a", nil, false,
		},
		"scales a group of a cluster": {
			"autoscaling:SetDesiredCapacity",
			"arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:1:autoScalingGroupName/drover-demo-pool-a", ofCluster, true,
		},
		"scales no group of others": {
			"autoscaling:SetDesiredCapacity", "arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:1:autoScalingGroupName/web",
			ofCluster, false,
		},
		"scales no group without a cluster's tag": {
			"autoscaling:TerminateInstanceInAutoScalingGroup",
			"arn:aws:autoscaling:eu-central-1:111122223333:autoScalingGroup:1:autoScalingGroupName/drover-demo-pool-a", nil, false,
		},
		"makes an access point with the driver's tag": {
			"elasticfilesystem:CreateAccessPoint", "arn:aws:elasticfilesystem:eu-central-1:111122223333:file-system/fs-1",
			map[string]string{"aws:RequestTag/efs.csi.aws.com/cluster": "true"}, true,
		},
		"tags one while it creates it": {
			"elasticfilesystem:TagResource", "arn:aws:elasticfilesystem:eu-central-1:111122223333:access-point/fsap-1", map[string]string{
				"aws:RequestTag/efs.csi.aws.com/cluster": "true", "aws:TagKeys": "efs.csi.aws.com/cluster",
				"elasticfilesystem:CreateAction": "CreateAccessPoint",
			}, true,
		},
		"tags none that exists": {
			"elasticfilesystem:TagResource", "arn:aws:elasticfilesystem:eu-central-1:111122223333:file-system/fs-1",
			map[string]string{"aws:RequestTag/efs.csi.aws.com/cluster": "true", "aws:TagKeys": "efs.csi.aws.com/cluster"}, false,
		},
		"gives it no other tag": {
			"elasticfilesystem:CreateAccessPoint", "arn:aws:elasticfilesystem:eu-central-1:111122223333:file-system/fs-1",
			map[string]string{"aws:RequestTag/efs.csi.aws.com/cluster": "true", "aws:TagKeys": "owner"}, false,
		},
		"deletes none of others": {
			"elasticfilesystem:DeleteAccessPoint", "arn:aws:elasticfilesystem:eu-central-1:111122223333:access-point/fsap-1", nil, false,
		},
		"deletes no file system": {
			"elasticfilesystem:DeleteFileSystem", "arn:aws:elasticfilesystem:eu-central-1:111122223333:file-system/fs-1", nil, false,
		},
		"writes the logs of a cluster": {
			"logs:PutLogEvents", "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/containerinsights/drover-demo/performance:log-stream:x",
			nil, true,
		},
		"writes no other logs": {
			"logs:PutLogEvents", "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/drover-plan:log-stream:x", nil, false,
		},
		"runs no instances":                {"ec2:RunInstances", ec2 + "instance/*", nil, false},
		"terminates none":                  {"ec2:TerminateInstances", ec2 + "instance/i-1", ofCluster, false},
		"changes an instance of a cluster": {"ec2:ModifyInstanceAttribute", ec2 + "instance/i-1", ofCluster, true},
		"changes no instance of others":    {"ec2:ModifyInstanceAttribute", ec2 + "instance/i-1", nil, false},
		"no route of others":               {"ec2:CreateRoute", ec2 + "route-table/rtb-1", nil, false},
		"tags a volume":                    {"ec2:CreateTags", ec2 + "volume/*", keys("kubernetes.io/cluster/demo"), true},
		"but not with drover's tag":        {"ec2:CreateTags", ec2 + "volume/vol-1", keys("a", "drover:cluster"), false},
		"and takes it from none":           {"ec2:DeleteTags", ec2 + "volume/vol-1", keys("drover:cluster"), false},
		"tags no VPC":                      {"ec2:CreateTags", ec2 + "vpc/vpc-1", keys("a"), false},
		"finds its cluster":                {"eks:DescribeCluster", eks + "drover-demo", nil, true},
		"finds no cluster of others":       {"eks:DescribeCluster", eks + "demo", nil, false},
		"grants no access to a cluster":    {"eks:CreateAccessEntry", eks + "drover-demo", nil, false},
		"reads public parameters":          {"ssm:GetParameter", "arn:aws:ssm:eu-central-1::parameter/aws/service/eks/1", nil, true},
		"reads no parameters of the account": {
			"ssm:GetParameter", "arn:aws:ssm:eu-central-1:111122223333:parameter/database/password", nil, false,
		},
		"reads no secrets": {
			"secretsmanager:GetSecretValue", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:s", nil, false,
		},
		"runs nothing on other nodes":        {"ssm:SendCommand", ec2 + "instance/i-2", nil, false},
		"decrypts nothing":                   {"kms:Decrypt", "arn:aws:kms:eu-central-1:111122223333:key/1", nil, false},
		"publishes nothing in drover's name": {"sns:Publish", "arn:aws:sns:eu-central-1:111122223333:drover-notices", nil, false},
		"makes the first load balancer's own role": {
			"iam:CreateServiceLinkedRole",
			"arn:aws:iam::111122223333:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing", nil, true,
		},
	})
}

// The change function can make CloudFormation use only templates that plan rendered, and only with CloudFormation's role.
func TestChangesComeFromRenderedTemplates(t *testing.T) {
	s := account(t)
	caller, _, err := s.AssumeRoleAs("arn:aws:iam::111122223333:role/drover-eu-central-1-change", "test", "lambda.amazonaws.com")
	require.NoError(t, err)
	const (
		stack = "arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-demo-network/1"
		role  = "arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation"
		state = "https://drover-state-111122223333-eu-central-1.s3.eu-central-1.amazonaws.com/"
	)
	for name, c := range map[string]struct {
		template, role string
		allowed        bool
	}{
		"a rendered template":                  {state + "templates/1.yaml", role, true},
		"another object of the state bucket":   {state + "plans/1.json", role, false},
		"an object of another bucket":          {"https://specs.s3.eu-central-1.amazonaws.com/templates/1.yaml", role, false},
		"a template in the call":               {"", role, false},
		"the function's own permissions":       {state + "templates/1.yaml", "", false},
		"another role that CloudFormation may": {state + "templates/1.yaml", "arn:aws:iam::111122223333:role/admin", false},
		"a bucket whose name starts with ours": {
			"https://drover-state-111122223333-eu-central-1.evil.s3.eu-central-1.amazonaws.com/templates/1.yaml", role, false,
		},
		"a key that goes up is a key like any": {state + "templates/../plans/1.json", role, true}, // S3 knows no folders: there is no such object
	} {
		t.Run(name, func(t *testing.T) {
			context := map[string]string{}
			if c.template != "" {
				context["cloudformation:TemplateUrl"] = c.template
			}
			if c.role != "" {
				context["cloudformation:RoleArn"] = c.role
			}
			require.Equal(t, c.allowed, caller.Authorize("cloudformation:CreateChangeSet", stack, context) == nil)
		})
	}
	require.Error(t, caller.Authorize("cloudformation:CreateChangeSet", "arn:aws:cloudformation:eu-central-1:111122223333:stack/drover/1",
		map[string]string{"cloudformation:TemplateUrl": state + "templates/1.yaml", "cloudformation:RoleArn": role}), "drover's own stack")
	require.Error(t, caller.Authorize("cloudformation:DeleteStack", stack, nil), "deleting as itself")
	require.Error(t, caller.Authorize("iam:PassRole", role, map[string]string{"iam:PassedToService": "lambda.amazonaws.com"}))
}
