package main

// The part of the converge machine that deletes a cluster: one step a round, as the plan says: stacks of one kind, or what
// Kubernetes made in the account and then the network. The plan after it says the next, and finds the spec if it came back.

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
	// maxTries bounds the rounds in which a stack could not be deleted. The pauses between them double from a minute: an hour in all,
	// in which most of what is in the way goes by itself.
	maxTries = 6
	// maxLooks bounds how often leftovers are looked at: for about half an hour. A load balancer's network interfaces go minutes after it.
	maxLooks, lookPause = 120, 15
)

// newDeletion returns the state that deletes what a plan says. It goes on to plan, or to report when it is over.
func newDeletion(scope constructs.Construct, f functions, plan, report awsstepfunctions.IChainable) awsstepfunctions.IChainable {
	what := choice(scope, "What goes first?", "")
	survey := invoke(scope, f, call{
		name:     "Ask which volumes are to be kept",
		comment:  "Only the cluster's own API knows, and it is about to go. When it does not answer, all of them are kept.",
		function: "prepare",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster": "{% $cluster %}", "fence": "{% $plan.fence %}", "survey": true,
		}),
		timeout:       minutes(3),
		attempts:      attempts,
		crashAttempts: crashAttempts,
	})
	clean := invoke(scope, f, call{
		name:     "Remove what Kubernetes made",
		comment:  "Load balancers, target groups, network interfaces, security groups and volumes with the cluster's tags.",
		function: "clean",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster": "{% $cluster %}", "execution": "{% $execution %}", "fence": "{% $plan.fence %}",
			"last": "{% $count($plan.deletion.stacks) = 0 %}",
		}),
		timeout:       minutes(3),
		attempts:      attempts,
		crashAttempts: crashAttempts,
		assign:        map[string]any{"looks": "{% $looks + 1 %}"},
		output:        "{% $states.result.Payload %}",
	})
	cleaned := choice(scope, "Is it gone?", "")
	pause := wait(scope, "Wait until it is let go", "A load balancer keeps its network interfaces for a while, and they its security groups.",
		strconv.Itoa(lookPause), nil)
	remain := awsstepfunctions.Pass_Jsonata(scope, jsii.String("It cannot be removed"), &awsstepfunctions.PassJsonataProps{
		Comment: jsii.String("The status names each, with AWS's reason."),
		Assign: &map[string]any{
			"fault": fault.Name(&fault.LeftoversRemain{}),
			"cause": "{% $states.input.message %}",
		},
	})
	stacks := deletionMap(scope, f, plan, report)
	gone := choice(scope, "Did every stack go?", "")
	retry := wait(scope, "Wait before the next try", "What is in the way of a stack's deletion often goes by itself.",
		"60 * $power(2, $tries)", &map[string]any{"tries": "{% $tries + 1 %}", "results": []any{}})

	survey.AddCatch(stacks, catchAll(map[string]any{}))
	clean.AddCatch(report, catchAll(failureOf("Remove what Kubernetes made", "clean", "")))
	what.When(when("$plan.deletion.survey"), survey, nil).
		When(when("$plan.deletion.leftovers"), clean, &awsstepfunctions.ChoiceTransitionOptions{Assign: &map[string]any{"looks": 0}}).
		Otherwise(stacks)
	survey.Next(stacks)
	clean.Next(cleaned)
	cleaned.When(when("$states.input.outcome = '"+string(events.CleanSuperseded)+"'"), plan, &awsstepfunctions.ChoiceTransitionOptions{
		Assign: anew(),
	}).
		When(when("$states.input.outcome = '"+string(events.CleanWaiting)+"' and $looks < "+strconv.Itoa(maxLooks)), pause, nil).
		When(when("$states.input.outcome = '"+string(events.CleanWaiting)+"'"), remain, nil).
		When(when("$count($plan.deletion.stacks) = 0"), report, nil).
		Otherwise(stacks)
	pause.Next(clean)
	remain.Next(report)
	stacks.Next(gone)
	gone.When(when("$exists($results[error = '"+superseded+"'])"), plan, &awsstepfunctions.ChoiceTransitionOptions{Assign: anew()}).
		When(when("$exists($results[error]) and $tries < "+strconv.Itoa(maxTries)), retry, nil).
		When(when("$exists($results[error])"), report, nil).
		Otherwise(plan)
	retry.Next(plan)
	return what
}

// deletionMap deletes the stacks of one step at the same time. One that cannot be deleted holds up no other of its kind.
func deletionMap(scope constructs.Construct, f functions, plan, report awsstepfunctions.IChainable) awsstepfunctions.Map {
	remove := changeStack(scope, f, "Delete the stack", "Deletes it, then waits for CloudFormation's event that it is gone.",
		// A pool's nodes are drained, each for as long as its terminate hook can be held.
		awscdk.Duration_Hours(jsii.Number(49)), false)
	once := choice(scope, "Delete the stack once more?", "Somebody else's operation on it is over now.")
	removed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Deleted the stack"), &awsstepfunctions.SucceedJsonataProps{})
	failed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("A stack was not deleted"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("It is tried again, and then the report names it."),
	})
	remove.Next(once)
	once.When(when("$states.input.again = true"), remove, nil).Otherwise(removed)
	remove.AddCatch(failed, outcome("Delete the stack"))
	m := awsstepfunctions.Map_Jsonata(scope, jsii.String("Delete the stacks"), &awsstepfunctions.MapJsonataProps{
		Comment:      jsii.String("All that may go at the same time."),
		Items:        awsstepfunctions.ProvideItems_Jsonata(jsii.String("{% $plan.deletion.stacks %}")),
		ItemSelector: &map[string]any{"stack": "{% $states.context.Map.Item.Value %}"},
		Assign:       &map[string]any{"results": "{% $append($results, $states.result) %}"},
	})
	m.ItemProcessor(remove, nil)
	m.AddCatch(report, catchAll(failureOf("Delete the stack", "change", "")))
	return m
}

// wait is a pause of that many seconds, as an expression.
func wait(scope constructs.Construct, name, comment, seconds string, assign *map[string]any) awsstepfunctions.Wait {
	return awsstepfunctions.Wait_Jsonata(scope, jsii.String(name), &awsstepfunctions.WaitJsonataProps{
		Comment: jsii.String(comment),
		Time:    awsstepfunctions.WaitTime_Seconds(jsii.String("{% " + seconds + " %}")),
		Assign:  assign,
	})
}
