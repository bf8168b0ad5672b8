package main

// The drain-node machine. It evicts the pods of a node in slices of a minute, for at most the time of the pool's policy. Every path
// completes the terminate hook, if there is one. A node without a hook that cannot be drained is restored.

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
)

const (
	// maxTroubles bounds the failed slices in a row of a node without a hook. Each has its own retries and a pause of at least a minute.
	maxTroubles = 10
	// maxHookTroubles bounds those of an instance at a hook. They take 48 hours, the limit of a hook: while drains fail, the pods are
	// safer on the instance. The events stay below the execution's quota of 25,000.
	maxHookTroubles = 860
	// drainAttempts of a slice take two minutes each at most. With the pause they take less than half of the hook's timeout of 30 minutes.
	drainAttempts = 3
)

func drainNodeDefinition(parent constructs.Construct, f functions) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("DrainNodeStates"))
	const hasHook = "$exists($states.context.Execution.Input.LifecycleHookName)"
	const request = "$merge([$states.context.Execution.Input, {'started': $states.context.Execution.StartTime}])"

	begin := awsstepfunctions.Pass_Jsonata(scope, jsii.String("Begin"), &awsstepfunctions.PassJsonataProps{
		Assign: &map[string]any{"troubles": 0, "forced": []any{}, "evicted": 0, "requests": 0},
	})
	drain := invoke(scope, f, functionTask{
		name: "Drain the node",
		comment: "Evicts what disruption budgets allow for most of a minute, and keeps the hook open. " +
			"The function completes the hook when the node may terminate.",
		function:         "drain",
		payload:          awsstepfunctions.TaskInput_FromText(jsii.String("{% " + request + " %}")),
		timeout:          minutes(2),
		attempts:         drainAttempts,
		machineKeepsHook: true,
		assign: map[string]any{
			"troubles": 0,
			"forced":   "{% $append($forced, $exists($states.result.Payload.forced) ? $states.result.Payload.forced : []) %}",
			"evicted":  "{% $evicted + ($exists($states.result.Payload.evicted) ? $states.result.Payload.evicted : 0) %}",
			"requests": "{% $requests + ($exists($states.result.Payload.requests) ? $states.result.Payload.requests : 0) %}",
			"message":  "{% $exists($states.result.Payload.message) ? $states.result.Payload.message : '' %}",
		},
		output: "{% $states.result.Payload %}",
	})
	drained := choice(scope, "Is the node drained?", "")
	pause := wait(scope, "Wait for the next slice", "Short while pods leave, and longer the longer they are blocked.",
		"$states.input.waitSeconds", nil)
	done := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("The node has been drained"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("Or the node does not exist, or the drain timed out and the pool's policy terminates it."),
		Outputs: jsii.String("{% $merge([$states.input, {'forced': $forced, 'evicted': $evicted, 'requests': $requests}]) %}"),
	})
	again := choice(scope, "Try again?", "")
	backOff := wait(scope, "Back off", "", "$troubles > 0 ? $min([200, 60 + 10 * $troubles]) : "+waitedSeconds, nil)
	keep := keepHook(scope, "The function could not. Without a drain, the pods must not be terminated.")
	open := choice(scope, "Is the hook open?", "")
	hook := choice(scope, "Is there a hook?", "")
	complete := completeHook(scope, "Complete the hook", "CONTINUE")
	restore := invoke(scope, f, functionTask{
		name:     "Restore the node",
		comment:  "The node stays, and the cluster autoscaler may remove it again.",
		function: "drain",
		payload:  awsstepfunctions.TaskInput_FromText(jsii.String("{% $merge([" + request + ", {'restore': true}]) %}")),
		timeout:  minutes(2),
		attempts: attempts,
	})
	failed := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The node was not drained"), &awsstepfunctions.FailJsonataProps{
		Error: jsii.String(fault.Name(&fault.NodeFailed{})),
		Cause: jsii.String("{% $message %}"),
	})

	// Errors of the Lambda service are no failed slices. The execution waits for as long as the hook lasts, or for its own timeout.
	drain.AddCatch(again, &awsstepfunctions.CatchProps{
		Errors: jsii.Strings(serviceErrors...), Assign: &map[string]any{"message": errorAndCause},
	})
	drain.AddCatch(again, catchAll(map[string]any{
		"troubles": "{% $troubles + 1 %}",
		"message":  errorAndCause,
	}))
	toFailed := &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL")}
	complete.AddCatch(failed, toFailed)
	restore.AddCatch(failed, toFailed)

	begin.Next(drain)
	drain.Next(drained)
	drained.When(when("$states.input.outcome = 'Remaining'"), pause, nil).
		When(when("$states.input.outcome in ['Done', 'TimedOut', 'Gone']"), done, nil).
		When(when("$states.input.outcome = 'Refused'"), failed, nil).
		Otherwise(hook)
	pause.Next(drain)
	again.When(when(hasHook+" and $troubles < "+strconv.Itoa(maxHookTroubles)), keep, nil).
		When(when("$not("+hasHook+") and $troubles < "+strconv.Itoa(maxTroubles)), backOff, nil).
		Otherwise(hook)
	keep.AddCatch(open, &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL")})
	keep.Next(backOff)
	open.When(when("$exists($states.input.Cause) and $contains($states.input.Cause, 'No active Lifecycle Action')"), failed, nil).
		Otherwise(backOff)
	backOff.Next(drain)
	hook.When(when(hasHook), complete, nil).Otherwise(restore)
	complete.Next(failed)
	restore.Next(failed)
	return begin
}
