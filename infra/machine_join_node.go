package main

// The join-node machine. It completes the launch hook of an instance whose node is Ready. Otherwise it abandons the hook, and Auto
// Scaling replaces the instance. Every path ends the hook, and the status records each failed join.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
)

func joinNodeDefinition(parent constructs.Construct, f functions) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("JoinNodeStates"))
	const request = "$states.context.Execution.Input, {'started': $states.context.Execution.StartTime}"

	watch := invoke(scope, f, call{
		name: "Wait for the node",
		comment: "Watches the cluster's nodes for most of a minute. " +
			"The function completes the hook of a node that is Ready or has failed, and signals the pool's stack when the next batch may begin.",
		function: "join",
		payload: awsstepfunctions.TaskInput_FromText(jsii.String(
			"{% $merge([" + request + ", {'pausedSeconds': $exists($states.input.pausedSeconds) ? $states.input.pausedSeconds : 0}]) %}")),
		timeout:  minutes(2),
		attempts: attempts,
		assign:   map[string]any{"message": "{% $exists($states.result.Payload.message) ? $states.result.Payload.message : '' %}"},
		output:   "{% $states.result.Payload %}",
	})
	joined := choice(scope, "Did the node join?", "")
	pause := wait(scope, "Wait for the next check", "For the pool's pause, for drains that take long, or for a cluster that does not answer.",
		"$states.input.waitSeconds", nil)
	ready := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("The node is Ready"), nil)
	noHook := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("No hook to complete"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("The instance was terminated, or another caller completed its hook."),
	})
	failed := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The node did not join"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("Auto Scaling replaces the instance."),
		Error:   jsii.String(fault.Name(&fault.NodeFailed{})),
		Cause:   jsii.String("{% $message %}"),
	})
	abandon := completeHook(scope, "Abandon the instance", "ABANDON")
	record := invoke(scope, f, call{
		name:     "Record the failed join",
		comment:  "In the cluster's status. The second failure is also signalled to CloudFormation.",
		function: "join",
		payload:  awsstepfunctions.TaskInput_FromText(jsii.String("{% $merge([" + request + ", {'givenUp': $message}]) %}")),
		timeout:  minutes(2),
		attempts: attempts,
	})

	watch.AddCatch(abandon, catchAll(map[string]any{"message": errorAndCause}))
	onError := &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL")}
	abandon.AddCatch(record, onError)
	record.AddCatch(failed, onError)

	watch.Next(joined)
	joined.When(when("$states.input.outcome = 'Waiting' and $states.input.waitSeconds = 0"), watch, nil).
		When(when("$states.input.outcome = 'Waiting'"), pause, nil).
		When(when("$states.input.outcome = 'Ready'"), ready, nil).
		When(when("$states.input.outcome = 'Gone'"), noHook, nil).
		When(when("$states.input.outcome = 'Abandoned'"), failed, nil).
		Otherwise(abandon)
	pause.Next(watch)
	abandon.Next(record)
	record.Next(failed)
	return watch
}
