package main

// The part of the converge machine that deletes a cluster. Each round makes one step of the plan: it deletes the stacks of one kind, or
// removes leftovers and then deletes the network. The next plan returns the next step, and finds a spec that was restored.

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
)

const (
	// maxTries bounds the rounds in which a deletion failed. The pauses double from a minute to an hour in total. Most blockers disappear
	// within that time.
	maxTries = 6
	// maxChecks bounds the checks of leftovers to about half an hour. AWS removes a load balancer's network interfaces minutes after it.
	maxChecks, checkPauseSeconds = 120, 15
)

// newDeletion returns the first state of a deletion step. The step continues with plan, or with report when the deletion ends.
func newDeletion(scope constructs.Construct, f functions, plan, report awsstepfunctions.IChainable) awsstepfunctions.IChainable {
	first := choice(scope, "What is deleted first?", "")
	listRetained := invokePrepare(scope, f, "List retained volumes",
		"Only the cluster's API knows them, and it is deleted next. If it does not answer, all volumes are retained.", true)
	clean := invoke(scope, f, functionTask{
		name:     "Remove the leftovers",
		comment:  "Load balancers, target groups, network interfaces, security groups and volumes with the cluster's tags.",
		function: "clean",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster": "{% $cluster %}", "execution": "{% $execution %}", "fence": "{% $plan.fence %}",
			"last": "{% $count($plan.deletion.stacks) = 0 %}",
		}),
		timeout:       minutes(3),
		attempts:      attempts,
		crashAttempts: crashAttempts,
		assign:        map[string]any{"checks": "{% $checks + 1 %}"},
		output:        "{% $states.result.Payload %}",
	})
	cleaned := choice(scope, "Are the leftovers removed?", "")
	pause := wait(scope, "Wait for the leftovers", "A load balancer keeps its network interfaces for some time, "+
		"and these keep its security groups.",
		strconv.Itoa(checkPauseSeconds), nil)
	remain := awsstepfunctions.Pass_Jsonata(scope, jsii.String("Leftovers remain"), &awsstepfunctions.PassJsonataProps{
		Comment: jsii.String("The status names each leftover, with AWS's reason."),
		Assign: &map[string]any{
			"fault": fault.Name(&fault.LeftoversRemain{}),
			"cause": "{% $states.input.message %}",
		},
	})
	stacks := deletionMap(scope, f, plan, report)
	deleted := choice(scope, "Was every stack deleted?", "")
	retry := wait(scope, "Wait before the retry", "What blocks the deletion of a stack often ends by itself.",
		"60 * $power(2, $tries)", &map[string]any{"tries": "{% $tries + 1 %}", "results": []any{}})

	listRetained.AddCatch(stacks, catchAll(map[string]any{}))
	clean.AddCatch(report, catchAll(failureOf("Remove the leftovers", "clean", "")))
	first.When(when("$plan.deletion.listRetained"), listRetained, nil).
		When(when("$plan.deletion.leftovers"), clean, &awsstepfunctions.ChoiceTransitionOptions{Assign: &map[string]any{"checks": 0}}).
		Otherwise(stacks)
	listRetained.Next(stacks)
	clean.Next(cleaned)
	cleaned.When(when("$states.input.outcome = '"+string(events.CleanSuperseded)+"'"), plan, &awsstepfunctions.ChoiceTransitionOptions{
		Assign: resetRounds(),
	}).
		When(when("$states.input.outcome = '"+string(events.CleanWaiting)+"' and $checks < "+strconv.Itoa(maxChecks)), pause, nil).
		When(when("$states.input.outcome = '"+string(events.CleanWaiting)+"'"), remain, nil).
		When(when("$count($plan.deletion.stacks) = 0"), report, nil).
		Otherwise(stacks)
	pause.Next(clean)
	remain.Next(report)
	stacks.Next(deleted)
	deleted.When(when("$exists($results[error = '"+supersededError+"'])"), plan,
		&awsstepfunctions.ChoiceTransitionOptions{Assign: resetRounds()}).
		When(when("$exists($results[error]) and $tries < "+strconv.Itoa(maxTries)), retry, nil).
		When(when("$exists($results[error])"), report, nil).
		Otherwise(plan)
	retry.Next(plan)
	return first
}

// deletionMap deletes the stacks of one step in parallel. A failed deletion does not stop the others.
func deletionMap(scope constructs.Construct, f functions, plan, report awsstepfunctions.IChainable) awsstepfunctions.Map {
	remove := changeStack(scope, f, "Delete the stack", "Deletes it, then waits for CloudFormation's event that it is deleted.",
		// The nodes of a pool are drained, each for at most the limit of its terminate hook.
		awscdk.Duration_Hours(jsii.Number(49)), false)
	again := choice(scope, "Delete the stack again?", "Another caller's operation on it has ended.")
	removed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Deleted the stack"), &awsstepfunctions.SucceedJsonataProps{})
	failed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("A stack was not deleted"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("The deletion is retried. If it fails again, the report names the stack."),
	})
	remove.Next(again)
	again.When(when("$states.input.again = true"), remove, nil).Otherwise(removed)
	remove.AddCatch(failed, outcome("Delete the stack"))
	m := awsstepfunctions.Map_Jsonata(scope, jsii.String("Delete the stacks"), &awsstepfunctions.MapJsonataProps{
		Comment:      jsii.String("All stacks that can be deleted in parallel."),
		Items:        awsstepfunctions.ProvideItems_Jsonata(jsii.String("{% $plan.deletion.stacks %}")),
		ItemSelector: &map[string]any{"stack": "{% $states.context.Map.Item.Value %}"},
		Assign:       &map[string]any{"results": "{% $append($results, $states.result) %}"},
	})
	m.ItemProcessor(remove, nil)
	m.AddCatch(report, catchAll(failureOf("Delete the stack", "change", "")))
	return m
}
