package leftovers

// The calls that remove resources. Each is signed by the session of the resource's cluster.

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

func (l *Leftovers) deleteLoadBalancer(ctx context.Context, session aws.CredentialsProvider, arn string) error {
	_, err := l.elbv2.DeleteLoadBalancer(ctx, &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: &arn},
		func(o *elasticloadbalancingv2.Options) { o.Credentials = session })
	return err
}

func (l *Leftovers) deleteTargetGroup(ctx context.Context, session aws.CredentialsProvider, arn string) error {
	_, err := l.elbv2.DeleteTargetGroup(ctx, &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: &arn},
		func(o *elasticloadbalancingv2.Options) { o.Credentials = session })
	return err
}

func (l *Leftovers) deleteClassicLoadBalancer(ctx context.Context, session aws.CredentialsProvider, name string) error {
	_, err := l.elb.DeleteLoadBalancer(ctx, &elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: &name},
		func(o *elasticloadbalancing.Options) { o.Credentials = session })
	return err
}

func (l *Leftovers) deleteNetworkInterface(ctx context.Context, session aws.CredentialsProvider, id string) error {
	_, err := l.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id},
		func(o *ec2.Options) { o.Credentials = session })
	return err
}

func (l *Leftovers) deleteSecurityGroup(ctx context.Context, session aws.CredentialsProvider, id string) error {
	_, err := l.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id},
		func(o *ec2.Options) { o.Credentials = session })
	return err
}

func (l *Leftovers) deleteVolume(ctx context.Context, session aws.CredentialsProvider, id string) error {
	_, err := l.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id}, func(o *ec2.Options) { o.Credentials = session })
	return err
}
