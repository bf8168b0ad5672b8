package main

// The EventBridge rules that start drover on events of AWS and of its own bus, and its schedules. EventBridge delivers at least once. It
// drops an event that it cannot deliver within the retry policy, so every target has the dead-letter queue.

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// maxEventAge of a delivery. The sweep handles what an event misses, so a late event is not needed.
func maxEventAge() awscdk.Duration { return awscdk.Duration_Hours(jsii.Number(24)) }

const deliveryAttempts = 185

func newEvents(scope constructs.Construct, f functions, m machines, n notices) {
	// The pattern includes keys that drover does not read: admit reports them. publish handles the keys of releases, and rollout those of
	// rollouts, decisions and freezes.
	rollouts := []any{names.Rollouts, names.Decisions, names.Freezes}
	newRule(scope, "SpecChanged", "A cluster's spec, or an object that drover does not read, was uploaded or deleted", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.s3"),
		DetailType: jsii.Strings("Object Created", "Object Deleted"),
		Detail: &map[string]any{
			"bucket": map[string]any{"name": []any{sub(specsBucket)}},
			"object": map[string]any{"key": []any{
				map[string]any{"anything-but": map[string]any{"prefix": append([]any{names.ReleaseSpecs}, rollouts...)}},
			}},
		},
	}, toFunction(f["admit"], n))

	// A cluster may wait for a release to be uploaded. The audit finds it.
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

	// A release is the subject of rollouts. Their plans name it by content.
	var keys []any
	for _, prefix := range append([]any{names.ReleaseSpecs}, rollouts...) {
		keys = append(keys, map[string]any{"prefix": prefix})
	}
	newRule(scope, "RolloutChanged", "A rollout, a decision, a freeze or a release was uploaded or deleted", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.s3"),
		DetailType: jsii.Strings("Object Created", "Object Deleted"),
		Detail: &map[string]any{
			"bucket": map[string]any{"name": []any{sub(specsBucket)}},
			"object": map[string]any{"key": keys},
		},
	}, toFunction(f["rollout"], n))

	for _, rule := range []struct {
		id, description string
		statuses        []string
	}{
		{"StackDone", "An operation on a cluster's stack ended", stack.Terminal()},
		{"StackProgress", "An operation on a cluster's stack began or progressed", stack.Progress()},
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
		suffix:      "events",
		service:     "events.amazonaws.com",
		description: "drover: starts join-node and drain-node for instances that launch or terminate",
		grants:      []grant{{actions: []string{"states:StartExecution"}, resources: []string{joinARN, drainARN}}},
	})
	newRule(scope, "InstanceLaunched", "A pool's instance waits at the launch hook", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.autoscaling"),
		DetailType: jsii.Strings("EC2 Instance-launch Lifecycle Action"),
		Detail: &map[string]any{
			"AutoScalingGroupName": []any{map[string]any{"prefix": names.Prefix}},
			// An instance that enters a warm pool does not join the cluster yet.
			"Destination": []any{"AutoScalingGroup"},
		},
	}, toMachine(m.joinNode, starter, n))
	newRule(scope, "InstanceTerminating", "A pool's instance waits at the terminate hook", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.autoscaling"),
		DetailType: jsii.Strings("EC2 Instance-terminate Lifecycle Action"),
		Detail: &map[string]any{
			"AutoScalingGroupName": []any{map[string]any{"prefix": names.Prefix}},
			// An instance that returns to a warm pool is not terminated.
			"Destination": []any{"EC2"},
		},
	}, toMachine(m.drainNode, starter, n))
	// These events cover every instance of the account. The drain function reads the instance's group to find the owner.
	newRule(scope, "SpotInstanceEnding", "EC2 interrupts a spot instance, or may do so soon", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.ec2"),
		DetailType: jsii.Strings("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"),
	}, toMachine(m.drainNode, starter, n))

	// An execution that reported its failure causes an event, too. The function then changes nothing.
	newRule(scope, "ConvergeEnded", "An execution of drover-converge was stopped, timed out or failed", &awsevents.EventPattern{
		Source:     jsii.Strings("aws.states"),
		DetailType: jsii.Strings("Step Functions Execution Status Change"),
		Detail: &map[string]any{
			"stateMachineArn": []any{m.converge.StateMachineArn()},
			"status":          []any{events.ExecutionAborted, events.ExecutionFailed, events.ExecutionTimedOut},
		},
	}, awseventstargets.NewLambdaFunction(f["sweep"], &awseventstargets.LambdaFunctionProps{
		Event:           awsevents.RuleTargetInput_FromObject(map[string]any{"ended": awsevents.EventField_FromPath(jsii.String("$.detail"))}),
		DeadLetterQueue: n.deadLetters,
		MaxEventAge:     maxEventAge(),
		RetryAttempts:   jsii.Number(deliveryAttempts),
	}))

	newFleetEvents(scope, f, n)
	newSchedules(scope, f, n)
}

// newFleetEvents has the function fleet observe a cluster again when drover notifies of a change of it that may change a fact. The sweep
// finds lost events while a run has members in this cell.
func newFleetEvents(scope constructs.Construct, f functions, n notices) {
	awsevents.NewRule(scope, jsii.String("ClusterChanged"), &awsevents.RuleProps{
		RuleName:    jsii.String(names.Prefix + kebab("ClusterChanged")),
		Description: jsii.String("The status of a cluster or of its upgrade changed"),
		EventBus:    n.bus,
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings(events.Source),
			DetailType: jsii.Strings(events.ClusterStatusChange, events.ClusterUpgradeChange),
			Detail:     &map[string]any{"phase": events.ObservedPhases},
		},
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(f["fleet"], &awseventstargets.LambdaFunctionProps{
			Event: awsevents.RuleTargetInput_FromObject(map[string]any{
				"cluster": awsevents.EventField_FromPath(jsii.String("$.detail.cluster")),
			}),
			DeadLetterQueue: n.deadLetters,
			MaxEventAge:     maxEventAge(),
			RetryAttempts:   jsii.Number(deliveryAttempts),
		})},
	})
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

// everyMinutes is the schedule expression of a period.
func everyMinutes(period time.Duration) string {
	return fmt.Sprintf("rate(%.0f minutes)", period.Minutes())
}

// newSchedules schedules the sweep, the audit, and the planning of all rollouts. A lost event delays work by at most the sweep's period of
// two minutes, except that of a rollout without a run: see backoff.RolloutPlanPeriod.
func newSchedules(scope constructs.Construct, f functions, n notices) {
	group := awsscheduler.NewCfnScheduleGroup(scope, jsii.String("Schedules"), &awsscheduler.CfnScheduleGroupProps{
		Name: jsii.String("drover"),
	})
	role := newRole(scope, "SweepScheduleRole", roleProps{
		suffix:      "scheduler",
		service:     "scheduler.amazonaws.com",
		description: "drover: invokes the sweep and the planning of rollouts on schedule",
		grants: []grant{
			{actions: []string{"lambda:InvokeFunction"}, resources: []string{functionARN("sweep"), functionARN("rollout")}},
			{why: "Undelivered invocations.", actions: []string{"sqs:SendMessage"}, resources: []string{deadLettersARN}},
		},
	})
	for _, schedule := range []struct{ id, name, description, rate, function, input string }{
		{
			id: "SweepSchedule", name: names.Function("sweep"), description: "Finds work whose event was lost",
			rate: everyMinutes(backoff.SweepPeriod), function: "sweep", input: `{"scheduledTime":"<aws.scheduler.scheduled-time>"}`,
		},
		// An audit reads every cluster, and its findings are not urgent.
		{
			id: "AuditSchedule", name: names.Function("audit"), description: "Compares every cluster with its spec",
			rate: everyMinutes(backoff.AuditPeriod), function: "sweep", input: `{"scheduledTime":"<aws.scheduler.scheduled-time>","audit":true}`,
		},
		// The sweep evaluates active runs.
		{
			id: "RolloutPlanSchedule", name: names.Function("rollout-plan"), description: "Plans all rollouts again",
			rate: everyMinutes(backoff.RolloutPlanPeriod), function: "rollout", input: `{"planAll":true}`,
		},
	} {
		awsscheduler.NewCfnSchedule(scope, jsii.String(schedule.id), &awsscheduler.CfnScheduleProps{
			Name:               jsii.String(schedule.name),
			GroupName:          group.Ref(),
			Description:        jsii.String(schedule.description),
			ScheduleExpression: jsii.String(schedule.rate),
			FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
			Target: &awsscheduler.CfnSchedule_TargetProperty{
				Arn:     f[schedule.function].FunctionArn(),
				RoleArn: role.RoleArn(),
				// Without an input the function would receive an event whose detail is a JSON string.
				Input:            jsii.String(schedule.input),
				DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: n.deadLetters.QueueArn()},
				// The next invocation follows within minutes and replaces an older one.
				RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
					MaximumEventAgeInSeconds: jsii.Number(300),
					MaximumRetryAttempts:     jsii.Number(3),
				},
			},
		})
	}
}
