package main

// What starts drover: events of S3, CloudFormation and Auto Scaling by rule, and the sweep by schedule. EventBridge delivers at
// least once and drops what it could not deliver within the policy, so every target has the dead-letter queue.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// terminal are the stack statuses at which CloudFormation stops and a waiting execution goes on.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html#cfn-console-view-stack-data-resources-status-codes
var terminal = []any{
	"CREATE_COMPLETE", "CREATE_FAILED",
	"ROLLBACK_COMPLETE", "ROLLBACK_FAILED",
	"UPDATE_COMPLETE", "UPDATE_FAILED",
	"UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED",
	"DELETE_COMPLETE", "DELETE_FAILED",
	"IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_FAILED",
}

// progress are the stack statuses during an operation. REVIEW_IN_PROGRESS is none: there is only a change set.
var progress = []any{
	"CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS",
	"UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
	"UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
	"DELETE_IN_PROGRESS",
	"IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS",
}

// Delivery is tried for a day: events are what makes drover quick, and the sweep makes up for those that come too late.
func maxEventAge() awscdk.Duration { return awscdk.Duration_Hours(jsii.Number(24)) }

const deliveryAttempts = 185

func newEvents(scope constructs.Construct, f functions, m machines, n notices) {
	// Also of keys that nothing reads: admit reports them. Those of releases are publish's.
	newRule(scope, "SpecChanged", "A cluster's spec, or something that nothing reads, was uploaded or deleted", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.s3"),
		DetailType: jsii.Strings("Object Created", "Object Deleted"),
		Detail: &map[string]any{
			"bucket": map[string]any{"name": []any{sub(specsBucket)}},
			"object": map[string]any{"key": []any{map[string]any{"anything-but": map[string]any{"prefix": names.ReleaseSpecs}}}},
		},
	}, toFunction(f["admit"], n))

	// Clusters may wait for it: the audit finds them.
	newRule(scope, "ReleaseUploaded", "A release was uploaded", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.s3"),
		DetailType: jsii.Strings("Object Created"),
		Detail: &map[string]any{
			"bucket": map[string]any{"name": []any{sub(specsBucket)}},
			"object": map[string]any{"key": []any{map[string]any{"prefix": names.ReleaseSpecs}}},
		},
	}, awseventstargets.NewLambdaFunction(f["sweep"], &awseventstargets.LambdaFunctionProps{
		Event:           awsevents.RuleTargetInput_FromObject(map[string]any{"audit": true}),
		DeadLetterQueue: n.deadLetters,
		MaxEventAge:     maxEventAge(),
		RetryAttempts:   jsii.Number(deliveryAttempts),
	}))

	newRule(scope, "ReleaseChanged", "A release or the channels were uploaded or deleted", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.s3"),
		DetailType: jsii.Strings("Object Created", "Object Deleted"),
		Detail: &map[string]any{
			"bucket": map[string]any{"name": []any{sub(specsBucket)}},
			"object": map[string]any{"key": []any{map[string]any{"prefix": names.ReleaseSpecs}}},
		},
	}, toFunction(f["publish"], n))

	for _, rule := range []struct {
		id, description string
		statuses        []any
	}{
		{"StackDone", "An operation on a cluster's stack ended", terminal},
		{"StackProgress", "An operation on a cluster's stack began or went on", progress},
	} {
		newRule(scope, rule.id, rule.description, &awsevents.EventPattern{
			Source:     jsii.Strings("aws.cloudformation"),
			DetailType: jsii.Strings("CloudFormation Stack Status Change"),
			Detail: &map[string]any{
				"stack-id": []any{map[string]any{
					"prefix": sub("arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack/" + names.Prefix),
				}},
				"status-details": map[string]any{"status": rule.statuses},
			},
		}, toFunction(f["stackevent"], n))
	}

	starter := newRole(scope, "InstanceLaunchedRole", roleProps{
		step:        "events",
		service:     "events.amazonaws.com",
		description: "drover: starts join-node and drain-node for instances that come and go",
		grants:      []grant{{actions: []string{"states:StartExecution"}, on: []string{joinARN, drainARN}}},
	})
	newRule(scope, "InstanceLaunched", "A pool's instance waits to become a node", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.autoscaling"),
		DetailType: jsii.Strings("EC2 Instance-launch Lifecycle Action"),
		Detail: &map[string]any{
			"AutoScalingGroupName": []any{map[string]any{"prefix": names.Prefix}},
			// An instance that goes to a warm pool is no node yet.
			"Destination": []any{"AutoScalingGroup"},
		},
	}, toMachine(m.joinNode, starter, n))
	newRule(scope, "InstanceTerminating", "A pool's instance waits to be drained", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.autoscaling"),
		DetailType: jsii.Strings("EC2 Instance-terminate Lifecycle Action"),
		Detail: &map[string]any{
			"AutoScalingGroupName": []any{map[string]any{"prefix": names.Prefix}},
			// One that returns to a warm pool does not end.
			"Destination": []any{"EC2"},
		},
	}, toMachine(m.drainNode, starter, n))
	// These tell of every instance of the account; only their groups say whose they are, and that the function finds out.
	newRule(scope, "SpotInstanceEnding", "EC2 takes a spot instance back, or is about to", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.ec2"),
		DetailType: jsii.Strings("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"),
	}, toMachine(m.drainNode, starter, n))

	newSweep(scope, f, n)
}

func newRule(scope constructs.Construct, id, description string, pattern *awsevents.EventPattern, target awsevents.IRuleTarget) {
	awsevents.NewRule(scope, jsii.String(id), &awsevents.RuleProps{
		RuleName:     jsii.String(names.Prefix + kebab(id)),
		Description:  jsii.String(description),
		EventPattern: pattern,
		Targets:      &[]awsevents.IRuleTarget{target},
	})
}

// toMachine starts an execution on an event's detail.
func toMachine(machine awsstepfunctions.IStateMachine, role awsiam.IRole, n notices) awsevents.IRuleTarget {
	return awseventstargets.NewSfnStateMachine(machine, &awseventstargets.SfnStateMachineProps{
		Input:           awsevents.RuleTargetInput_FromEventPath(jsii.String("$.detail")),
		Role:            role,
		DeadLetterQueue: n.deadLetters,
		MaxEventAge:     maxEventAge(),
		RetryAttempts:   jsii.Number(deliveryAttempts),
	})
}

func toFunction(fn awslambda.IFunction, n notices) awsevents.IRuleTarget {
	return awseventstargets.NewLambdaFunction(fn, &awseventstargets.LambdaFunctionProps{
		DeadLetterQueue: n.deadLetters,
		MaxEventAge:     maxEventAge(),
		RetryAttempts:   jsii.Number(deliveryAttempts),
	})
}

// newSweep schedules the sweep: every five minutes is the longest that a lost event can hold anything up.
func newSweep(scope constructs.Construct, f functions, n notices) {
	group := awsscheduler.NewCfnScheduleGroup(scope, jsii.String("Schedules"), &awsscheduler.CfnScheduleGroupProps{
		Name: jsii.String("drover"),
	})
	role := newRole(scope, "SweepScheduleRole", roleProps{
		step:        "scheduler",
		service:     "scheduler.amazonaws.com",
		description: "drover: invokes the sweep on schedule",
		grants: []grant{
			{actions: []string{"lambda:InvokeFunction"}, on: []string{functionARN("sweep")}},
			{why: "What could not be delivered.", actions: []string{"sqs:SendMessage"}, on: []string{deadLettersARN}},
		},
	})
	for _, schedule := range []struct{ id, name, description, rate, input string }{
		{"SweepSchedule", names.Function("sweep"), "Finds what an event missed", "rate(5 minutes)",
			`{"scheduledTime":"<aws.scheduler.scheduled-time>"}`},
		// What it finds is not urgent, and it reads something of every cluster.
		{"AuditSchedule", names.Function("audit"), "Compares every cluster with its spec", "rate(15 minutes)",
			`{"scheduledTime":"<aws.scheduler.scheduled-time>","audit":true}`},
	} {
		awsscheduler.NewCfnSchedule(scope, jsii.String(schedule.id), &awsscheduler.CfnScheduleProps{
			Name:               jsii.String(schedule.name),
			GroupName:          group.Ref(),
			Description:        jsii.String(schedule.description),
			ScheduleExpression: jsii.String(schedule.rate),
			FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
			Target: &awsscheduler.CfnSchedule_TargetProperty{
				Arn:     f["sweep"].FunctionArn(),
				RoleArn: role.RoleArn(),
				// Without it the function would get an event whose detail is a JSON string.
				Input:            jsii.String(schedule.input),
				DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: n.deadLetters.QueueArn()},
				// The next one comes in five minutes: an older one is of no use.
				RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
					MaximumEventAgeInSeconds: jsii.Number(300),
					MaximumRetryAttempts:     jsii.Number(3),
				},
			},
		})
	}
}
