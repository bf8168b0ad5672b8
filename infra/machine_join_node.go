package main

// The join-node machine. It completes the launch hook of an instance whose node is Ready. If the node is not Ready in time, it abandons the
// hook, and Auto Scaling replaces the instance. While the function cannot check the node, the machine keeps the hook open: an error of
// Lambda, of AWS or of drover must not cost a node. Every path ends the hook, and the status records each failed join.

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
)

const (
	// checkAttempts take two minutes each at most. With the pause they take less than half of the hook's timeout of two hours.
	checkAttempts = 2
	// maxHookSeconds is how long the machine keeps a hook open: as long as the function does, and less than the hook's 48 hours.
	maxHookSeconds = 24 * 60 * 60
)

func joinNodeDefinition(parent constructs.Construct, f functions) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("JoinNodeStates"))
	const request = "$states.context.Execution.Input, {'started': $states.context.Execution.StartTime}"

	check := invoke(scope, f, functionTask{
		name: "Check the node",
		comment: "Looks once. The function completes the hook of a node that is Ready or has failed, and signals the pool's stack when the " +
			"next batch may begin.",
		function: "join",
		// What the function returned before, unless the call before failed. JSONata omits what is not there.
		payload: awsstepfunctions.TaskInput_FromText(jsii.String("{% $merge([" + request + ", {'pausedSeconds': $states.input.pausedSeconds, " +
			"'missingSince': $states.input.missingSince, 'node': $states.input.node}]) %}")),
		timeout:          minutes(2),
		attempts:         checkAttempts,
		machineKeepsHook: true,
		assign:           map[string]any{"message": "{% $exists($states.result.Payload.message) ? $states.result.Payload.message : '' %}"},
		output:           "{% $states.result.Payload %}",
	})
	joined := choice(scope, "Did the node join?", "")
	pause := wait(scope, "Wait for the next check", "For the node, the pool's pause or drains, or for a cluster that does not answer. "+
		"The function's time is not used.", "$states.input.waitSeconds", nil)
	troubled := choice(scope, "Has the hook time left?", "The error is not the node's: it may be Ready.")
	keep := keepHook(scope, "The function could not. The node may be Ready, so it must not be replaced.")
	backOff := wait(scope, "Back off", "", waitedSeconds, nil)
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
	record := invoke(scope, f, functionTask{
		name:     "Record the failed join",
		comment:  "In the cluster's status. The second failure is also signalled to CloudFormation.",
		function: "join",
		payload:  awsstepfunctions.TaskInput_FromText(jsii.String("{% $merge([" + request + ", {'givenUp': $message}]) %}")),
		timeout:  minutes(2),
		attempts: attempts,
	})

	check.AddCatch(troubled, &awsstepfunctions.CatchProps{
		Errors: jsii.Strings("States.ALL"),
		Assign: &map[string]any{"message": errorAndCause},
		// The pool's pause does not start again. Whether the node is missing is not known.
		Outputs: map[string]any{"pausedSeconds": "{% $exists($states.input.pausedSeconds) ? $states.input.pausedSeconds : 0 %}"},
	})
	onError := &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL")}
	abandon.AddCatch(record, onError)
	record.AddCatch(failed, onError)

	// The hook of an instance in service has ended, and its signal may be missing.
	keep.AddCatch(backOff, &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL"), Outputs: "{% $states.input %}"})

	check.Next(joined)
	joined.When(when("$states.input.outcome = 'Waiting'"), pause, nil).
		When(when("$states.input.outcome = 'Ready'"), ready, nil).
		When(when("$states.input.outcome = 'Gone'"), noHook, nil).
		When(when("$states.input.outcome = 'Abandoned'"), failed, nil).
		Otherwise(troubled)
	pause.Next(check)
	troubled.When(when(elapsedSeconds+" < "+strconv.Itoa(maxHookSeconds)), keep, nil).Otherwise(abandon)
	keep.Next(backOff)
	backOff.Next(check)
	abandon.Next(record)
	record.Next(failed)
	return check
}
