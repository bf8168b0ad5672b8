package main

// The upgrade machine. It checks the cluster, silences alarms, and makes the steps in sequence. An execution of the converge machine makes
// each step, and the upgrade function verifies it before the next one. Then the machine checks the result. Every failure ends in "Stop
// the upgrade", which enables the alarms and records the finished steps and the next one.
//
// The states pass on only the next action. The record in the state bucket holds the rest. An execution can be stopped at any state, and
// another one continues.

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctionstasks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// Errors of failed executions. They are also reasons of status conditions.
const (
	upgradeBlocked = status.ReasonUpgradeBlocked
	upgradeStopped = status.ReasonUpgradeStopped
)

// pauseSeconds is the pause that the function returned.
const pauseSeconds = "$states.input.waitSeconds"

// stepState is a kind of step and the state that makes it. The timeout is the kind's Limit.
type stepState struct {
	kind           upgrade.StepKind
	title, comment string
}

// stepTable lists the phases in the order of an upgrade.
func stepTable() []stepState {
	return []stepState{
		{upgrade.StepAddonsFirst, "Upgrade add-ons first", "Add-ons that are incompatible with the next Kubernetes version."},
		{upgrade.StepControlPlane, "Upgrade the control plane", "To the next Kubernetes minor version, or to the previous one in a rollback."},
		{upgrade.StepAddons, "Upgrade the add-ons", "To the versions of the release."},
		{upgrade.StepNodes, "Replace the nodes", "Pool by pool. Each node is drained by the policy of its pool."},
		{upgrade.StepNodesBack, "Roll back the nodes", "To their previous images, because nodes must not be newer than their control plane."},
	}
}

// request is the payload of the upgrade function: the execution's input and the action.
func request(action events.UpgradeAction, more string) awsstepfunctions.TaskInput {
	return awsstepfunctions.TaskInput_FromText(jsii.String("{% $merge([$states.context.Execution.Input, {'action': '" + string(action) +
		"', 'execution': $states.context.Execution.Id, 'started': $states.context.Execution.StartTime" + more + "}]) %}"))
}

func upgradeDefinition(parent constructs.Construct, f functions, converge awsstepfunctions.StateMachine) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("UpgradeStates"))
	invokeAction := func(name, comment string, action events.UpgradeAction, more string) awsstepfunctionstasks.LambdaInvoke {
		return invoke(scope, f, functionTask{
			name: name, comment: comment, function: "upgrade", payload: request(action, more), timeout: minutes(3),
			// A stopped upgrade needs an operator. So the machine retries for hours instead of stopping.
			retriesForHours: true,
			output:          "{% $states.result.Payload %}",
		})
	}
	check := invokeAction("Check the cluster", "Plans the steps and runs every check. Changes nothing.", events.UpgradeCheck, "")
	mayBegin := choice(scope, "May the upgrade begin?", "")
	busy := wait(scope, "Wait for the cluster", "Another operation is in flight: after two hours the upgrade is missed. "+
		"Or EKS refreshes its insights, for at most ten minutes.", pauseSeconds, nil)
	begin := invokeAction("Silence the alarms", "Silences the alarms that the spec names, and opens the first step.", events.UpgradeBegin, "")
	nextStep := choice(scope, "What is the next step?", "")
	unfinished := wait(scope, "Wait for the step", "Another execution converges the cluster, EKS has not finished, "+
		"or old nodes are still being drained.", pauseSeconds, nil)
	next := invokeAction("Verify the step", "Compares the deployed state and EKS with the step, checks that old nodes are removed, "+
		"and opens the next step.",
		events.UpgradeNext, "")
	finish := invokeAction("Check the result", "Runs the checks again, and compares versions and workloads with the state before. "+
		"Enables the alarms.",
		events.UpgradeFinish, "")
	settle := wait(scope, "Wait for the checks", "Pods start, and alarms are evaluated again. "+
		"After 15 minutes a failed check stops the upgrade.", pauseSeconds, nil)
	passed := choice(scope, "Did the checks pass?", "")
	stop := invokeAction("Stop the upgrade", "Enables the alarms. Completed steps stay, and the status shows what is next.",
		events.UpgradeStop,
		", 'error': $fault, 'cause': $cause")
	nothing := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Nothing to upgrade"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("The cluster is already at the target, or another execution makes this upgrade."),
	})
	refused := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Request refused"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("An operator started it, and it is not possible. The output and the status show why. No alarm counts it."),
	})
	done := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Upgraded"), &awsstepfunctions.SucceedJsonataProps{})
	blocked := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The checks failed"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("Nothing was changed. The status names each failed check and what to do."),
		Error:   jsii.String(upgradeBlocked),
		Cause:   jsii.String("{% $states.input.message %}"),
	})
	stopped := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The upgrade stopped"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("Start it again with the same input to continue."),
		Error:   jsii.String(upgradeStopped),
		Cause:   jsii.String("{% $states.input.message %}"),
	})
	unrecorded := awsstepfunctions.Fail_Jsonata(scope, jsii.String("Recording the stop failed"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("The sweep records it."),
		Error:   jsii.String(upgradeStopped),
		Cause:   jsii.String("{% $fault & ': ' & $cause %}"),
	})

	for _, task := range []awsstepfunctionstasks.LambdaInvoke{check, begin, next, finish} {
		task.AddCatch(stop, catchAll(failure()))
	}
	stop.AddCatch(unrecorded, catchAll(failure()))

	// refuse stops the upgrade with the message of the function.
	refuse := &awsstepfunctions.ChoiceTransitionOptions{
		Assign: &map[string]any{"fault": upgradeStopped, "cause": "{% $states.input.message %}"},
	}
	outcome := func(o events.UpgradeOutcome) awsstepfunctions.Condition {
		return when("$states.input.outcome = '" + string(o) + "'")
	}

	check.Next(mayBegin)
	mayBegin.When(outcome(events.UpgradeGo), begin, nil).
		When(outcome(events.UpgradeBusy), busy, nil).
		When(outcome(events.UpgradeNothing), nothing, nil).
		When(outcome(events.UpgradeRefused), refused, nil).
		When(outcome(events.UpgradeBlocked), blocked, nil).
		When(when("true"), stop, refuse)
	busy.Next(check)
	begin.Next(nextStep)
	for _, p := range stepTable() {
		nextStep.When(when("$states.input.outcome = '"+string(events.UpgradeGo)+"' and $states.input.kind = '"+string(p.kind)+"'"),
			step(scope, p, converge, next, stop), nil)
	}
	nextStep.When(outcome(events.UpgradeBusy), unfinished, nil).
		When(outcome(events.UpgradeDone), finish, nil).
		When(when("true"), stop, refuse)
	unfinished.Next(next)
	next.Next(nextStep)
	finish.Next(passed)
	settle.Next(finish)
	passed.When(outcome(events.UpgradeDone), done, nil).
		When(outcome(events.UpgradeBusy), settle, nil).
		When(when("true"), stop, refuse)
	stop.Next(stopped)
	return check
}

// startErrors are temporary errors of StartExecution: a quota, or an error of Step Functions.
// https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html
var startErrors = []string{
	"StepFunctions.ExecutionLimitExceeded", "StepFunctions.ExecutionLimitExceededException", "StepFunctions.AWSStepFunctionsException",
	"StepFunctions.SdkClientException",
}

// startedBefore are the errors of a name that is used already: an earlier attempt started the execution, and it ended.
var startedBefore = []string{"StepFunctions.ExecutionAlreadyExists", "StepFunctions.ExecutionAlreadyExistsException"}

// step runs an execution of the converge machine. Its success does not verify the step: another execution may hold the lease, or the spec
// may have changed.
func step(scope constructs.Construct, p stepState, converge awsstepfunctions.StateMachine,
	next, stop awsstepfunctions.IChainable) awsstepfunctions.IChainable {
	task := awsstepfunctionstasks.StepFunctionsStartExecution_Jsonata(scope, jsii.String(p.title),
		&awsstepfunctionstasks.StepFunctionsStartExecutionJsonataProps{
			Comment:            jsii.String(p.comment),
			StateMachine:       converge,
			IntegrationPattern: awsstepfunctions.IntegrationPattern_RUN_JOB,
			Name:               jsii.String("{% $states.input.name %}"),
			Input:              awsstepfunctions.TaskInput_FromObject(&map[string]any{"cluster": "{% $states.context.Execution.Input.cluster %}"}),
			TaskTimeout:        awsstepfunctions.Timeout_Duration(awscdk.Duration_Seconds(jsii.Number(p.kind.Limit().Seconds()))),
			Outputs:            "{% $states.result.Status %}",
		})
	task.AddRetry(retry(slices.Clone(startErrors), waitAttempts, maxWaitDelay))
	task.AddCatch(next, &awsstepfunctions.CatchProps{Errors: jsii.Strings(startedBefore...)})
	task.AddCatch(stop, catchAll(failure()))
	return task.Next(next)
}
