package main

// The join-node machine: an instance that Auto Scaling launched becomes a Ready node, and its hook is completed; or it does
// not, and the hook is abandoned so that another takes its place. Every way ends the hook.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctionstasks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
)

func joinNodeDefinition(parent constructs.Construct, f functions) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("JoinNodeStates"))

	wait := invoke(scope, f, call{
		name:     "Wait for the node",
		comment:  "Watches the cluster's nodes for most of a minute. The function itself completes the hook of a node that is Ready, or hopeless.",
		function: "join",
		payload: awsstepfunctions.TaskInput_FromText(jsii.String(
			"{% $merge([$states.context.Execution.Input, {'started': $states.context.Execution.StartTime}]) %}")),
		timeout:  minutes(2),
		attempts: attempts,
		assign:   map[string]any{"message": "{% $exists($states.result.Payload.message) ? $states.result.Payload.message : '' %}"},
		output:   "{% $states.result.Payload %}",
	})
	joined := choice(scope, "Has it joined?", "")
	ready := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("The node is Ready"), nil)
	gone := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Nothing waits"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("The instance is gone or its hook was completed by somebody else."),
	})
	failed := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The node did not join"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("Auto Scaling replaces the instance."),
		Error:   jsii.String(fault.Name(&fault.NodeFailed{})),
		Cause:   jsii.String("{% $message %}"),
	})
	abandon := awsstepfunctionstasks.CallAwsService_Jsonata(scope, jsii.String("Abandon the instance"), &awsstepfunctionstasks.CallAwsServiceJsonataProps{
		Comment: jsii.String("The function could not: without this the group would wait for the hook's time to run out."),
		Service: jsii.String("autoscaling"),
		Action:  jsii.String("completeLifecycleAction"),
		Parameters: &map[string]any{
			"AutoScalingGroupName":  "{% $states.context.Execution.Input.AutoScalingGroupName %}",
			"LifecycleHookName":     "{% $states.context.Execution.Input.LifecycleHookName %}",
			"InstanceId":            "{% $states.context.Execution.Input.EC2InstanceId %}",
			"LifecycleActionResult": "ABANDON",
		},
		IamResources: &[]*string{sub(groupsARN)},
		TaskTimeout:  awsstepfunctions.Timeout_Duration(minutes(1)),
	})
	// Whatever the reason, one more try costs nothing and the hook must end. A hook that has ended is the one error that stays.
	abandon.AddRetry(retry([]string{"States.TaskFailed", "States.Timeout"}, 5))

	wait.AddCatch(abandon, catchAll(map[string]any{
		"message": "{% $states.errorOutput.Error & ': ' & ($exists($states.errorOutput.Cause) ? $states.errorOutput.Cause : 'no cause given') %}",
	}))
	abandon.AddCatch(failed, &awsstepfunctions.CatchProps{Errors: jsii.Strings("States.ALL")})

	wait.Next(joined)
	joined.When(when("$states.input.outcome = 'Waiting'"), wait, nil).
		When(when("$states.input.outcome = 'Ready'"), ready, nil).
		When(when("$states.input.outcome = 'Gone'"), gone, nil).
		When(when("$states.input.outcome = 'Abandoned'"), failed, nil).
		Otherwise(abandon)
	abandon.Next(failed)
	return wait
}
