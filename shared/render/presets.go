package render

// The policies of presets. They follow the policies of the controllers' own guides, and are limited to one cluster: by its groups, and by
// the tag that the AWS Load Balancer Controller sets on what it creates. The permissions boundary of clusters has the same limits.

import "github.com/drover-run/drover/shared/names"

// object is a JSON object.
type object = map[string]any

func allow(resources any, conditions object, actions ...any) object {
	out := object{"Effect": "Allow", "Action": actions, "Resource": resources}
	if conditions != nil {
		out["Condition"] = conditions
	}
	return out
}

func document(statements ...any) object {
	return object{"Version": "2012-10-17", "Statement": statements}
}

// autoscalerPolicy is the policy of the Cluster Autoscaler, without managed node groups and attribute-based instance types, which no pool
// has. https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
func autoscalerPolicy(cell Cell, cluster string) object {
	groups := "arn:" + cell.Partition + ":autoscaling:" + cell.Region + ":" + cell.Account + ":autoScalingGroup:*:autoScalingGroupName/" +
		names.Group(cluster, "*")
	return document(
		allow("*", nil,
			"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLaunchConfigurations",
			"autoscaling:DescribeScalingActivities", "autoscaling:DescribeTags",
			"ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions",
		),
		allow(groups, object{"StringEquals": object{"aws:ResourceTag/" + names.TagCluster: cluster}},
			"autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"),
	)
}

// loadBalancerTag is the tag that the AWS Load Balancer Controller sets on what it creates, with the name of its cluster.
const loadBalancerTag = "elbv2.k8s.aws/cluster"

// loadBalancerPolicy is the policy of the AWS Load Balancer Controller without certificates of ACM and IAM, Cognito, WAF, Shield and
// Outposts. https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/main/docs/install/iam_policy.json
func loadBalancerPolicy(cell Cell, eksCluster string) object {
	arn := func(service, resource string) string {
		return "arn:" + cell.Partition + ":" + service + ":" + cell.Region + ":" + cell.Account + ":" + resource
	}
	groups := arn("ec2", "security-group/*")
	balancers := []any{
		arn("elasticloadbalancing", "targetgroup/*/*"), arn("elasticloadbalancing", "loadbalancer/net/*/*"),
		arn("elasticloadbalancing", "loadbalancer/app/*/*"),
	}
	listeners := []any{
		arn("elasticloadbalancing", "listener/net/*/*/*"), arn("elasticloadbalancing", "listener/app/*/*/*"),
		arn("elasticloadbalancing", "listener-rule/net/*/*/*"), arn("elasticloadbalancing", "listener-rule/app/*/*/*"),
	}
	created := object{"StringEquals": object{"aws:RequestTag/" + loadBalancerTag: eksCluster}}
	owned := object{"StringEquals": object{"aws:ResourceTag/" + loadBalancerTag: eksCluster}}
	retagged := object{"StringEquals": owned["StringEquals"], "Null": object{"aws:RequestTag/" + loadBalancerTag: "true"}}
	return document(
		allow("arn:"+cell.Partition+":iam::"+cell.Account+":role/aws-service-role/elasticloadbalancing.amazonaws.com/*",
			object{"StringEquals": object{"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}}, "iam:CreateServiceLinkedRole"),
		allow("*", nil,
			"ec2:DescribeAccountAttributes", "ec2:DescribeAddresses", "ec2:DescribeAvailabilityZones", "ec2:DescribeInternetGateways",
			"ec2:DescribeVpcs", "ec2:DescribeVpcPeeringConnections", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups",
			"ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeTags", "ec2:DescribeIpamPools", "ec2:DescribeRouteTables",
			"ec2:GetSecurityGroupsForVpc", "elasticloadbalancing:Describe*",
		),
		allow("*", nil, "ec2:CreateSecurityGroup"),
		// It lets load balancers in, at its own groups and at those of the nodes, which have a tag of EKS. IAM checks rules as separate
		// resources. https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html
		allow(groups, owned, "ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"),
		allow(groups, object{"StringEquals": object{"aws:ResourceTag/kubernetes.io/cluster/" + eksCluster: "owned"}},
			"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"),
		allow(arn("ec2", "security-group-rule/*"), nil, "ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"),
		allow(groups, object{"StringEquals": object{
			"ec2:CreateAction": "CreateSecurityGroup", "aws:RequestTag/" + loadBalancerTag: eksCluster,
		}}, "ec2:CreateTags"),
		allow(groups, retagged, "ec2:CreateTags", "ec2:DeleteTags"),
		allow(groups, owned, "ec2:DeleteSecurityGroup"),
		allow("*", created, "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"),
		// The project's policy has no condition here. The controller tags listeners and rules like everything else.
		allow("*", owned,
			"elasticloadbalancing:CreateListener", "elasticloadbalancing:DeleteListener", "elasticloadbalancing:CreateRule",
			"elasticloadbalancing:DeleteRule", "elasticloadbalancing:ModifyListener", "elasticloadbalancing:ModifyRule",
			"elasticloadbalancing:SetRulePriorities", "elasticloadbalancing:AddListenerCertificates",
			"elasticloadbalancing:RemoveListenerCertificates", "elasticloadbalancing:SetWebAcl",
		),
		allow(balancers, retagged, "elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags"),
		allow(listeners, retagged, "elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags"),
		allow(listeners, object{"StringEquals": object{
			"elasticloadbalancing:CreateAction": []any{"CreateListener", "CreateRule"}, "aws:RequestTag/" + loadBalancerTag: eksCluster,
		}}, "elasticloadbalancing:AddTags"),
		allow(balancers, object{"StringEquals": object{
			"elasticloadbalancing:CreateAction": []any{"CreateTargetGroup", "CreateLoadBalancer"}, "aws:RequestTag/" + loadBalancerTag: eksCluster,
		}}, "elasticloadbalancing:AddTags"),
		allow("*", owned,
			"elasticloadbalancing:ModifyLoadBalancerAttributes", "elasticloadbalancing:ModifyListenerAttributes",
			"elasticloadbalancing:ModifyCapacityReservation", "elasticloadbalancing:ModifyIpPools", "elasticloadbalancing:SetIpAddressType",
			"elasticloadbalancing:SetSecurityGroups", "elasticloadbalancing:SetSubnets", "elasticloadbalancing:DeleteLoadBalancer",
			"elasticloadbalancing:ModifyTargetGroup", "elasticloadbalancing:ModifyTargetGroupAttributes",
			"elasticloadbalancing:DeleteTargetGroup",
		),
		// A TargetGroupBinding may name a target group that another tool created.
		allow(arn("elasticloadbalancing", "targetgroup/*/*"), nil,
			"elasticloadbalancing:RegisterTargets", "elasticloadbalancing:DeregisterTargets"),
	)
}
