package main

// Names and ARNs of drover's resources. They are constants instead of references: roles name machines, machines name functions, and
// functions name roles. References would form a cycle.

import (
	"strings"
	"unicode"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// Names of the machines, rules and queues.
const (
	convergeMachine  = names.Prefix + "converge"
	joinMachine      = names.Prefix + "join-node"
	drainMachine     = names.Prefix + "drain-node"
	upgradeMachine   = names.Prefix + "upgrade"
	deadLettersQueue = names.Prefix + "dead-letters"
	noticesTopic     = names.Prefix + "notices"

	specsBucket = names.Prefix + "specs-${AWS::AccountId}-${AWS::Region}"
	stateBucket = names.Prefix + "state-${AWS::AccountId}-${AWS::Region}"
)

// ARNs, as CloudFormation substitutions.
const (
	specsARN    = "arn:${AWS::Partition}:s3:::" + specsBucket
	stateARN    = "arn:${AWS::Partition}:s3:::" + stateBucket
	convergeARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:" + convergeMachine
	joinARN     = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:" + joinMachine
	drainARN    = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:" + drainMachine
	upgradeARN  = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:" + upgradeMachine
	// convergeExecutionsARN matches the executions of the converge machine.
	convergeExecutionsARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:" + convergeMachine + ":*"
	// upgradeExecutionsARN matches those of the upgrade machine.
	upgradeExecutionsARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:" + upgradeMachine + ":*"
	// joinExecutionsARN and drainExecutionsARN match those of the join-node and drain-node machines.
	joinExecutionsARN  = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:" + joinMachine + ":*"
	drainExecutionsARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:" + drainMachine + ":*"
	// clusterStacksARN matches the stacks of clusters, and neither of drover's own stacks: see names.BaseStack.
	clusterStacksARN = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/" + names.Prefix + "*"
	eksClustersARN   = "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:cluster/" + names.Prefix + "*"
	groupsARN        = "arn:${AWS::Partition}:autoscaling:${AWS::Region}:${AWS::AccountId}:autoScalingGroup:*:autoScalingGroupName/" +
		names.Prefix + "*"
	eksAddonsARN = "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:addon/" + names.Prefix + "*"
	// alarmsARN matches every alarm of the account. A spec names the alarms of its cluster.
	alarmsARN      = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*"
	deadLettersARN = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:" + deadLettersQueue
	busARN         = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/" + names.Bus
	noticesARN     = "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:" + noticesTopic
)

// functionARN is the ARN of a function.
func functionARN(function string) string {
	return "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:" + names.Function(function)
}

// roleName is the name of a role of the cell: names.Role with the region still open.
func roleName(suffix string) string { return names.Role("${AWS::Region}", suffix) }

// roleARN is the ARN of a role of the cell.
func roleARN(suffix string) string {
	return names.RoleARN("${AWS::Partition}", "${AWS::AccountId}", "${AWS::Region}", suffix)
}

// constructID is a function's name as CDK ids and CloudFormation logical ids spell it.
func constructID(function string) string { return strings.ToUpper(function[:1]) + function[1:] }

// sub leaves the pseudo parameters and references in s to CloudFormation.
func sub(s string) *string {
	if !strings.Contains(s, "${") {
		return jsii.String(s)
	}
	return awscdk.Fn_Sub(jsii.String(s), nil)
}

// kebab turns a construct id into a resource name: SpecChanged into spec-changed.
func kebab(id string) string {
	var out strings.Builder
	for i, r := range id {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
