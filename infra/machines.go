package main

// What all state machines share: JSONata, error logs, tracing, the retry policy, and the task that invokes a function.

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctionstasks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
)

// machines are drover's state machines.
type machines struct {
	converge, joinNode, drainNode, upgrade awsstepfunctions.StateMachine
}

func newMachines(scope constructs.Construct, f functions) machines {
	m := machines{
		converge: newMachine(scope, "Converge", machineProps{
			name:       convergeMachine,
			roleSuffix: "converge",
			comment:    "Converges one cluster to its spec. Input: {\"cluster\": \"<name>\"}.",
			timeout:    awscdk.Duration_Days(jsii.Number(5)),
			definition: convergeDefinition(scope, f),
			grants:     convergeGrants,
		}),
		joinNode: newMachine(scope, "JoinNode", machineProps{
			name:       joinMachine,
			roleSuffix: "join-node",
			comment:    "Completes the launch hook of one instance when its node is Ready. Input: the detail of the lifecycle event.",
			// Auto Scaling ends a hook after 48 hours.
			timeout:    awscdk.Duration_Hours(jsii.Number(49)),
			definition: joinNodeDefinition(scope, f),
			grants:     joinNodeGrants,
		}),
		drainNode: newMachine(scope, "DrainNode", machineProps{
			name:       drainMachine,
			roleSuffix: "drain-node",
			comment: "Drains one node. Input: the detail of a terminate hook's, spot or rebalance event, or {\"cluster\": \"<name>\", \"node\": " +
				"\"<name>\"}, or with \"instance\" instead of \"node\".",
			// Auto Scaling ends a hook after 48 hours.
			timeout:    awscdk.Duration_Hours(jsii.Number(49)),
			definition: drainNodeDefinition(scope, f),
			grants:     drainNodeGrants,
		}),
	}
	m.upgrade = newMachine(scope, "UpgradeMachine", machineProps{
		name:       upgradeMachine,
		roleSuffix: "upgrade-machine",
		comment: "Upgrades one cluster, step by step. Input: {\"cluster\": \"<name>\", \"release\": \"<release>\"}, or {\"cluster\": " +
			"\"<name>\", \"rollback\": true}.",
		// Two hours of waiting for the cluster, and then its phases in sequence.
		timeout:    awscdk.Duration_Days(jsii.Number(14)),
		definition: upgradeDefinition(scope, f, m.converge),
		grants:     upgradeGrants,
	})
	return m
}

// machineProps is what differs between the machines.
type machineProps struct {
	name, roleSuffix, comment string
	timeout                   awscdk.Duration
	definition                awsstepfunctions.IChainable
	grants                    []grant
}

func newMachine(scope constructs.Construct, id string, p machineProps) awsstepfunctions.StateMachine {
	// AWS truncates the resource policy that lets it deliver logs unless the group's name starts with /aws/vendedlogs/.
	// https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
	group := newLogGroup(scope, id+"Logs", "/aws/vendedlogs/states/"+p.name)
	role := newRole(scope, id+"Role", roleProps{
		suffix:      p.roleSuffix,
		service:     "states.amazonaws.com",
		description: "drover: " + p.comment,
		grants:      append(append([]grant{}, p.grants...), machineGrants...),
	})
	return awsstepfunctions.NewStateMachine(scope, jsii.String(id), &awsstepfunctions.StateMachineProps{
		StateMachineName: jsii.String(p.name),
		StateMachineType: awsstepfunctions.StateMachineType_STANDARD,
		Comment:          jsii.String(p.comment),
		QueryLanguage:    awsstepfunctions.QueryLanguage_JSONATA,
		DefinitionBody:   awsstepfunctions.DefinitionBody_FromChainable(p.definition),
		Timeout:          p.timeout,
		TracingEnabled:   jsii.Bool(true),
		Role:             role,
		Logs: &awsstepfunctions.LogOptions{
			Destination: group,
			Level:       awsstepfunctions.LogLevel_ERROR,
			// An operator needs the inputs of failed states. They contain names and keys, and no content of specs.
			IncludeExecutionData: jsii.Bool(true),
		},
	})
}

// newLogGroup keeps logs for three months.
func newLogGroup(scope constructs.Construct, id, name string) awslogs.LogGroup {
	return awslogs.NewLogGroup(scope, jsii.String(id), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String(name),
		Retention:     awslogs.RetentionDays_THREE_MONTHS,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

// serviceErrors are errors of the Lambda service: it throttled an invocation or could not perform it. They say nothing about the function,
// so machines wait until they pass. crashes are errors of a function that ended during its work. Every function is idempotent and can run
// again. A function's own errors have other names.
// https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html#bp-lambda-serviceexception
// https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
var (
	serviceErrors = []string{
		"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
		"Lambda.ClientExecutionTimeoutException", "Lambda.EC2ThrottledException", "Lambda.EC2UnexpectedException",
		"Lambda.ResourceConflictException", "Lambda.ResourceNotReadyException",
	}
	crashes = []string{"Lambda.Unknown", "Runtime.ExitError", "Sandbox.Timedout"}
)

// noAnswer is the error of an invocation that took longer than Lambda lets the function run. The timeout of a task that waits for a
// token is that of the operation, and no error of Lambda.
const noAnswer = "States.Timeout"

// Longest delays between retries: of errors that pass soon, and of the Lambda service's errors. A limit of the account may last for hours.
const (
	maxDelay     = 1
	maxWaitDelay = 4
)

// retry waits 2 s, 4 s, … and at most maxMinutes. Full jitter spreads the retries of many executions.
func retry(errors []string, attempts, maxMinutes float64) *awsstepfunctions.RetryProps {
	return &awsstepfunctions.RetryProps{
		Errors:         jsii.Strings(errors...),
		Interval:       awscdk.Duration_Seconds(jsii.Number(2)),
		BackoffRate:    jsii.Number(2),
		MaxDelay:       minutes(maxMinutes),
		MaxAttempts:    jsii.Number(attempts),
		JitterStrategy: awsstepfunctions.JitterType_FULL,
	}
}

// Attempts of a call. Eight span about four minutes. Reporting is retried longer, because the status depends on it.
const (
	attempts       = 8
	reportAttempts = 14
	// waitAttempts span about three hours. Each takes three events of the execution's 25,000. A cluster may have 50 pools.
	waitAttempts = 100
	// crashAttempts of the steps of converge span six seconds. After three crashes the status reports the failure, and drover retries
	// after longer pauses.
	crashAttempts = 2
)

// functionTask is one invocation of a function.
type functionTask struct {
	name, comment string
	function      string
	payload       awsstepfunctions.TaskInput
	// wait for the task token: the result is that of a later SendTaskSuccess, and not the function's response.
	wait     bool
	timeout  awscdk.Duration
	attempts float64
	// crashAttempts bounds the retries after a crash. The default is attempts.
	crashAttempts float64
	// machineKeepsHook reports whether the machine itself waits for the Lambda service, and keeps a hook open.
	machineKeepsHook bool
	// retriesForHours reports whether the call is retried for waitAttempts after any error that passes.
	retriesForHours bool
	// assign sets variables. output is the state's output, by default the whole result.
	assign map[string]any
	output string
}

// invoke returns the state of a call. A function's response is in $states.result.Payload. The result of a task that waits is in
// $states.result.
func invoke(scope constructs.Construct, f functions, c functionTask) awsstepfunctionstasks.LambdaInvoke {
	pattern := awsstepfunctions.IntegrationPattern_REQUEST_RESPONSE
	if c.wait {
		pattern = awsstepfunctions.IntegrationPattern_WAIT_FOR_TASK_TOKEN
	}
	props := &awsstepfunctionstasks.LambdaInvokeJsonataProps{
		Comment:            jsii.String(c.comment),
		LambdaFunction:     f[c.function],
		Payload:            c.payload,
		IntegrationPattern: pattern,
		TaskTimeout:        awsstepfunctions.Timeout_Duration(c.timeout),
		// The construct's policy has no jitter and no maximum delay.
		RetryOnServiceExceptions: jsii.Bool(false),
	}
	if c.output != "" {
		props.Outputs = jsii.String(c.output)
	}
	if c.assign != nil {
		props.Assign = &c.assign
	}
	task := awsstepfunctionstasks.LambdaInvoke_Jsonata(scope, jsii.String(c.name), props)
	crashed := slices.Clone(crashes)
	if !c.wait {
		crashed = append(crashed, noAnswer)
	}
	all := slices.Concat(fault.Retryable(), serviceErrors, crashed)
	switch {
	case c.machineKeepsHook:
		task.AddRetry(retry(all, c.attempts, maxDelay))
		return task
	case c.retriesForHours:
		task.AddRetry(retry(all, waitAttempts, maxWaitDelay))
		return task
	}
	task.AddRetry(retry(slices.Clone(serviceErrors), waitAttempts, maxWaitDelay))
	if c.crashAttempts == 0 {
		task.AddRetry(retry(slices.Concat(fault.Retryable(), crashed), c.attempts, maxDelay))
		return task
	}
	task.AddRetry(retry(fault.Retryable(), c.attempts, maxDelay))
	task.AddRetry(retry(crashed, c.crashAttempts, maxDelay))
	return task
}

// failure assigns a caught error to variables. A timeout has no cause.
func failure() map[string]any {
	return map[string]any{
		"fault": "{% $states.errorOutput.Error %}",
		"cause": causeOf,
	}
}

// failureOf is failure and the failed step, for the report.
func failureOf(step, function, stack string) map[string]any {
	out := failure()
	failed := map[string]any{"state": step, "function": function}
	if stack != "" {
		failed["stack"] = stack
	}
	out["failed"] = failed
	return out
}

// Expressions of a caught error.
const (
	causeOf       = "{% $exists($states.errorOutput.Cause) ? $states.errorOutput.Cause : '' %}"
	errorAndCause = "{% $states.errorOutput.Error & ': ' & " +
		"($exists($states.errorOutput.Cause) ? $states.errorOutput.Cause : 'no cause given') %}"
)

// elapsedSeconds is the time since the execution started. waitedSeconds is a pause that grows with it: work of seconds continues soon, and
// an outage of two days fits into an execution, which has 25,000 events.
const (
	elapsedSeconds = "(($toMillis($states.context.State.EnteredTime) - $toMillis($states.context.Execution.StartTime)) / 1000)"
	waitedSeconds  = "$round($min([200, $max([15, " + elapsedSeconds + " / 10])]))"
)

// catchAll catches every error.
func catchAll(assign map[string]any) *awsstepfunctions.CatchProps {
	return &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL"), Assign: &assign}
}

// when returns a condition of a Choice.
func when(expression string) awsstepfunctions.Condition {
	return awsstepfunctions.Condition_Jsonata(jsii.String("{% " + expression + " %}"))
}

// choice returns a Choice with an optional comment.
func choice(scope constructs.Construct, name, comment string) awsstepfunctions.Choice {
	props := &awsstepfunctions.ChoiceJsonataProps{}
	if comment != "" {
		props.Comment = jsii.String(comment)
	}
	return awsstepfunctions.Choice_Jsonata(scope, jsii.String(name), props)
}

// wait returns a Wait with an optional comment. seconds is an expression.
func wait(scope constructs.Construct, name, comment, seconds string, assign *map[string]any) awsstepfunctions.Wait {
	props := &awsstepfunctions.WaitJsonataProps{
		Time:   awsstepfunctions.WaitTime_Seconds(jsii.String("{% " + seconds + " %}")),
		Assign: assign,
	}
	if comment != "" {
		props.Comment = jsii.String(comment)
	}
	return awsstepfunctions.Wait_Jsonata(scope, jsii.String(name), props)
}
