package main

// Calls of Auto Scaling for the lifecycle hook in an execution's input. The join-node and drain-node machines make them themselves when
// their function cannot.

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctionstasks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// anyFailure are the errors of a call to an AWS service.
var anyFailure = []string{"States.TaskFailed", "States.Timeout"}

// completeHook returns the state that completes the hook. The hook must end, so every error is retried. Only the error of a hook that has
// already ended is permanent.
func completeHook(scope constructs.Construct, name, result string) awsstepfunctionstasks.CallAwsService {
	complete := callHook(scope, name, "The function could not. Without this, the group would wait until the hook times out.",
		"completeLifecycleAction", result)
	complete.AddRetry(retry(anyFailure, 5, maxDelay))
	return complete
}

// keepHook returns the state that keeps the hook open. Its output is its input.
func keepHook(scope constructs.Construct, comment string) awsstepfunctionstasks.CallAwsService {
	keep := callHook(scope, "Keep the hook open", comment, "recordLifecycleActionHeartbeat", "")
	keep.AddRetry(retry(anyFailure, 2, maxDelay))
	return keep
}

// callHook returns the state of an action on the hook. result is CONTINUE or ABANDON for an action that completes it.
func callHook(scope constructs.Construct, name, comment, action, result string) awsstepfunctionstasks.CallAwsService {
	parameters := map[string]any{
		"AutoScalingGroupName": "{% $states.context.Execution.Input.AutoScalingGroupName %}",
		"LifecycleHookName":    "{% $states.context.Execution.Input.LifecycleHookName %}",
		"InstanceId":           "{% $states.context.Execution.Input.EC2InstanceId %}",
	}
	if result != "" {
		parameters["LifecycleActionResult"] = result
	}
	return awsstepfunctionstasks.CallAwsService_Jsonata(scope, jsii.String(name), &awsstepfunctionstasks.CallAwsServiceJsonataProps{
		Comment:      jsii.String(comment),
		Service:      jsii.String("autoscaling"),
		Action:       jsii.String(action),
		Parameters:   &parameters,
		IamResources: &[]*string{sub(groupsARN)},
		TaskTimeout:  awsstepfunctions.Timeout_Duration(minutes(1)),
		Outputs:      "{% $states.input %}",
	})
}
