package leftovers

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/drover-run/drover/shared/aws/internal/call"
)

// clients has the operations that this package needs: see call.Operation.
type clients struct {
	sts struct {
		AssumeRole call.Operation[sts.AssumeRoleInput, sts.AssumeRoleOutput, sts.Options]
	}
	keys struct {
		DescribeKey call.Operation[kms.DescribeKeyInput, kms.DescribeKeyOutput, kms.Options]
	}
	logs struct {
		DescribeLogGroups call.Operation[cloudwatchlogs.DescribeLogGroupsInput, cloudwatchlogs.DescribeLogGroupsOutput, cloudwatchlogs.Options]
	}
	ec2 struct {
		DeleteNetworkInterface call.Operation[ec2.DeleteNetworkInterfaceInput, ec2.DeleteNetworkInterfaceOutput, ec2.Options]
		DeleteSecurityGroup    call.Operation[ec2.DeleteSecurityGroupInput, ec2.DeleteSecurityGroupOutput, ec2.Options]
		DeleteVolume           call.Operation[ec2.DeleteVolumeInput, ec2.DeleteVolumeOutput, ec2.Options]
		DescribeVpcs           call.Operation[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput, ec2.Options]
	}
	elb struct {
		DeleteLoadBalancer call.Operation[elb.DeleteLoadBalancerInput, elb.DeleteLoadBalancerOutput, elb.Options]
	}
	elbv2 struct {
		DeleteLoadBalancer call.Operation[elbv2.DeleteLoadBalancerInput, elbv2.DeleteLoadBalancerOutput, elbv2.Options]
		DeleteTargetGroup  call.Operation[elbv2.DeleteTargetGroupInput, elbv2.DeleteTargetGroupOutput, elbv2.Options]
	}
	iam struct {
		ListRoles call.Operation[iam.ListRolesInput, iam.ListRolesOutput, iam.Options]
		GetRole   call.Operation[iam.GetRoleInput, iam.GetRoleOutput, iam.Options]
	}
}

func newClients(config aws.Config) (c clients) {
	c.sts.AssumeRole = sts.NewFromConfig(config).AssumeRole
	c.keys.DescribeKey = kms.NewFromConfig(config).DescribeKey
	c.logs.DescribeLogGroups = cloudwatchlogs.NewFromConfig(config).DescribeLogGroups
	// The following clients do not retry: the state machine does.
	once := call.Once(config)
	network := ec2.NewFromConfig(once)
	c.ec2.DeleteNetworkInterface, c.ec2.DeleteSecurityGroup = network.DeleteNetworkInterface, network.DeleteSecurityGroup
	c.ec2.DeleteVolume, c.ec2.DescribeVpcs = network.DeleteVolume, network.DescribeVpcs
	c.elb.DeleteLoadBalancer = elb.NewFromConfig(once).DeleteLoadBalancer
	balancers := elbv2.NewFromConfig(once)
	c.elbv2.DeleteLoadBalancer, c.elbv2.DeleteTargetGroup = balancers.DeleteLoadBalancer, balancers.DeleteTargetGroup
	roles := iam.NewFromConfig(once)
	c.iam.ListRoles, c.iam.GetRole = roles.ListRoles, roles.GetRole
	return c
}
