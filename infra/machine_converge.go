package main

// The converge machine. It plans, changes the stacks stage by stage, and plans again until nothing differs. Then it reports.
//
// The next plan verifies each round of changes, and finds a spec that was uploaded during the round.

import (
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctionstasks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// notConverged is the error of a failed execution.
const notConverged = "NotConverged"

// The empty string and null, which ASL's schema requires as expressions.
const emptyString, jsonNull = "{% '' %}", "{% null %}"

// supersededError is the error of a change that was not started because its plan is stale. The round stops between two stacks.
var supersededError = fault.Name(&fault.Superseded{})

// anyStopped is whether a stack failed whose failure stops later stages. The stack of identities stops none: a new spec does.
var anyStopped = "$exists($results[error and ($not(stack in ['" + names.Identities + "', '" + names.Capabilities +
	"']) or error = '" + supersededError + "')])"

// resetRounds resets the variables that belong to one spec.
func resetRounds() *map[string]any {
	return &map[string]any{"rounds": 0, "results": []any{}, "tries": 0, "checks": 0}
}

// maxRounds bounds the rounds for one spec. Two are normal. The bound ends the loop of a template that always differs.
const maxRounds = 10

// stage is a Map over the stacks that may change at the same time.
type stage struct {
	// list is the field of events.Stages.
	list string
	// only is the stack of a stage that has a single stack.
	only string
	// title is the name of the Map. stack names an item in the names of its states.
	title, stack string
	comment      string
	// timeout of one stack, from the change to the event of its end.
	timeout awscdk.Duration
	// groups means that the list contains lists, which are changed in sequence.
	groups bool
	// collects means that a failed stack does not end the others. Its result has the error.
	collects bool
}

func convergeDefinition(parent constructs.Construct, f functions) awsstepfunctions.IChainable {
	scope := constructs.NewConstruct(parent, jsii.String("ConvergeStates"))

	read := awsstepfunctions.Pass_Jsonata(scope, jsii.String("Read the input"), &awsstepfunctions.PassJsonataProps{
		Comment: jsii.String("The name of a cluster is enough, so that an operator can start an execution."),
		Assign: &map[string]any{
			"cluster":   "{% $states.input.cluster %}",
			"execution": "{% $states.context.Execution.Id %}",
			"started":   "{% $states.context.Execution.StartTime %}",
			"roll":      "{% [$states.input.roll] %}", // a list, also if the input has none or a single name
			"rounds":    0,
			"results":   []any{},
			"tries":     0,
			"checks":    0,
			"failed":    jsonNull,
			"backOffs":  0,
		},
	})
	plan := invoke(scope, f, functionTask{
		name:     "Plan",
		comment:  "Takes the cluster's lease and compares its newest spec with the deployed stacks.",
		function: "plan",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster":   "{% $cluster %}",
			"execution": "{% $execution %}",
			"roll":      "{% $roll %}",
			"started":   "{% $started %}",
		}),
		timeout:       minutes(3),
		attempts:      attempts,
		crashAttempts: crashAttempts,
		assign: map[string]any{
			"plan":   "{% $states.result.Payload %}",
			"rounds": "{% $rounds + 1 %}",
			// The first plan records the requested roll.
			"roll":   []any{},
			"group":  0,
			"fault":  emptyString,
			"cause":  emptyString,
			"failed": jsonNull,
		},
		output: "{% $states.result.Payload %}",
	})
	planned := choice(scope, "What is planned?", "")
	leased := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Another execution converges this cluster"),
		&awsstepfunctions.SucceedJsonataProps{
			Comment: jsii.String("It holds the lease, and checks for a newer spec before it ends."),
		})
	unknown := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("No such cluster"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("There is neither a spec nor a stack of this name. The output reports it. Nothing was written."),
	})
	refused := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Request refused"), &awsstepfunctions.SucceedJsonataProps{
		Comment: jsii.String("A roll of an unknown pool, or of a cluster that cannot roll now. The output and the status show why. The cluster " +
			"did not fail, so no alarm counts it."),
	})
	prepare := invokePrepare(scope, f, "Prepare the cluster",
		"Gives drover's roles their permissions inside the cluster, before a node needs them.", false)
	morePools := choice(scope, "Are there more pools?", "Pools of a higher order wait for those of a lower order. "+
		"If a pool of a lower order failed, they do not change.")
	addonsChanged := choice(scope, "Did the add-ons change?", "Nodes are not Ready without them. "+
		"Failed identities of pods and capabilities stop no other stack.")
	changed := choice(scope, "Did every stack succeed?", "The next plan verifies it. Failed stacks wait for the next execution.")
	report := invoke(scope, f, functionTask{
		name:     "Report",
		comment:  "Writes the status, releases the lease and notifies.",
		function: "report",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster":   "{% $cluster %}",
			"execution": "{% $execution %}",
			"plan":      "{% $plan %}",
			"results":   "{% $results %}",
			"error":     "{% $fault %}",
			"cause":     "{% $cause %}",
			"failed":    "{% $failed %}",
			"try":       "{% $backOffs %}",
		}),
		timeout:  minutes(1),
		attempts: reportAttempts,
		assign:   *resetRounds(),
		output:   "{% $states.result.Payload %}",
	})
	again := choice(scope, "Plan again?", "Yes, also after a failure that may pass within minutes.")
	failed := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The cluster did not converge"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("The status has the details."),
		Error:   jsii.String(notConverged),
		Cause:   jsii.String("{% $exists($states.input.reason) ? $states.input.reason : 'no reason was reported' %}"),
	})
	unreported := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The status could not be written"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("The lease is stale when this execution has ended. The next execution takes it."),
		Error:   jsii.String(notConverged),
		Cause:   jsii.String("{% $fault & ': ' & $cause %}"),
	})
	done := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Done"), &awsstepfunctions.SucceedJsonataProps{})
	upgrade := startUpgrade(scope, done)

	// After a failed plan, the report must not see the plan of the previous round.
	planFailure := failureOf("Plan", "plan", "")
	planFailure["plan"] = jsonNull
	plan.AddCatch(report, catchAll(planFailure))
	prepare.AddCatch(report, catchAll(failureOf("Prepare the cluster", "prepare", "")))
	report.AddCatch(unreported, catchAll(failure()))

	stages := make(map[string]awsstepfunctions.Map)
	for _, s := range stageTable() {
		stages[s.list] = stageMap(scope, f, s, plan, report)
	}

	read.Next(plan)
	plan.Next(planned)
	backOff := wait(scope, "Back off", "The failure may pass within minutes. "+
		"The lease is released, and the status shows the time of the retry.",
		"$states.input.waitSeconds", &map[string]any{"backOffs": "{% $backOffs + 1 %}"})
	backOff.Next(plan)
	planned.When(when("$plan.outcome = 'Busy'"), leased, nil).
		When(when("$plan.outcome = 'Unknown'"), unknown, nil).
		When(when("$plan.outcome = 'Changes'"), stages["network"], nil).
		When(when("$plan.outcome = 'Refused'"), refused, nil).
		// A deletion has no spec whose rounds count.
		When(when("$plan.outcome = 'Deletes'"), newDeletion(scope, f, plan, report), &awsstepfunctions.ChoiceTransitionOptions{
			Assign: &map[string]any{"rounds": 0},
		}).
		Otherwise(report)
	stages["network"].Next(stages["controlPlane"])
	stages["controlPlane"].Next(prepare)
	prepare.Next(stages["addons"])
	stages["addons"].Next(addonsChanged)
	addonsChanged.When(when(anyStopped), changed, nil).Otherwise(stages["pools"])
	stages["pools"].Next(morePools)
	morePools.When(when("$exists($plan.stages.pools[$group]) and $not("+anyStopped+")"), stages["pools"], nil).
		Otherwise(stages["nodeAddons"])
	stages["nodeAddons"].Next(changed)
	changed.When(when("$exists($results[error = '"+supersededError+"'])"), plan,
		&awsstepfunctions.ChoiceTransitionOptions{Assign: resetRounds()}).
		When(when("$exists($results[error])"), report, nil).
		When(when("$rounds < "+strconv.Itoa(maxRounds)), plan, nil).
		Otherwise(failUnsettled(scope).Next(report))
	report.Next(again)
	again.When(when("$states.input.again = true and $exists($states.input.waitSeconds)"), backOff, nil).
		When(when("$states.input.again = true"), plan, nil).
		When(when("$states.input.failed = true"), failed, nil).
		When(when("$exists($plan.upgrade.start)"), upgrade, nil).
		Otherwise(done)
	return read
}

// invokePrepare returns a call of the cluster's API. With listRetained it lists the volumes to retain, otherwise it prepares the cluster.
func invokePrepare(scope constructs.Construct, f functions, name, comment string, listRetained bool) awsstepfunctionstasks.LambdaInvoke {
	return invoke(scope, f, functionTask{
		name:     name,
		comment:  comment,
		function: "prepare",
		payload: awsstepfunctions.TaskInput_FromObject(&map[string]any{
			"cluster": "{% $cluster %}", "fence": "{% $plan.fence %}", "listRetained": listRetained,
		}),
		timeout:       minutes(3),
		attempts:      attempts,
		crashAttempts: crashAttempts,
	})
}

// startUpgrade starts the upgrade machine if the plan contains a due upgrade. By then the cluster is converged and the lease released. The
// execution's name stays the same until the upgrade is recorded, so a second start has no effect. The audit finds an upgrade that could
// not be started.
func startUpgrade(scope constructs.Construct, done awsstepfunctions.IChainable) awsstepfunctions.IChainable {
	// By ARN, because the two machines start each other, and CloudFormation must create one first.
	machine := awsstepfunctions.StateMachine_FromStateMachineArn(scope, jsii.String("UpgradeMachine"), sub(upgradeARN))
	start := awsstepfunctionstasks.StepFunctionsStartExecution_Jsonata(scope, jsii.String("Start the upgrade"),
		&awsstepfunctionstasks.StepFunctionsStartExecutionJsonataProps{
			Comment:      jsii.String("For the spec, a channel, a time or a rollout. This execution does not wait for it."),
			StateMachine: machine,
			Name:         jsii.String("{% $plan.upgrade.name %}"),
			Input:        awsstepfunctions.TaskInput_FromText(jsii.String("{% $plan.upgrade.start %}")),
			TaskTimeout:  awsstepfunctions.Timeout_Duration(minutes(1)),
			Outputs:      "{% $states.result.ExecutionArn %}",
		})
	unstarted := awsstepfunctions.Fail_Jsonata(scope, jsii.String("The upgrade could not be started"), &awsstepfunctions.FailJsonataProps{
		Comment: jsii.String("The cluster is converged. The audit notices that the upgrade did not begin."),
		Error:   jsii.String(notConverged),
		Cause:   jsii.String("{% $fault & ': ' & $cause %}"),
	})
	start.AddRetry(retry(slices.Clone(startErrors), waitAttempts, maxWaitDelay))
	start.AddCatch(done, &awsstepfunctions.CatchProps{Errors: jsii.Strings(startedBefore...)})
	start.AddCatch(unstarted, catchAll(failure()))
	return start.Next(done)
}

// stageTable lists the stages in the order of shared/names. The timeouts are about three times what AWS needs. The timeout of the pools
// covers an update of every node with its drain. An instance refresh may take 36 hours.
func stageTable() []stage {
	return []stage{
		{
			list: "network", only: names.Network, title: "Change the network", stack: "network", timeout: minutes(30),
			comment: "VPC, subnets, routes.",
		},
		{
			list: "controlPlane", only: names.ControlPlane, title: "Change the control plane", stack: "control plane", timeout: minutes(90),
			comment: "The EKS cluster, its roles and keys.",
		},
		{
			list: "addons", title: "Change the add-ons", stack: "add-ons", timeout: minutes(60), collects: true,
			comment: "Add-ons that nodes need to become Ready, the identities of pods, and capabilities.",
		},
		{
			list: "pools", title: "Change the pools", stack: "pool", timeout: awscdk.Duration_Hours(jsii.Number(40)),
			groups: true, collects: true,
			comment: "Pools of the same order change in parallel. A failed pool does not stop the others.",
		},
		{
			list: "nodeAddons", only: names.NodeAddons, title: "Change the node add-ons", stack: "node add-ons", timeout: minutes(60),
			comment: "Add-ons that need nodes. They are installed even if a pool failed, because other pools have nodes.",
		},
	}
}

// stageMap returns the Map of a stage. Each iteration changes one stack and waits for it. Its output is an events.ChangeResult.
func stageMap(scope constructs.Construct, f functions, s stage, plan, report awsstepfunctions.IChainable) awsstepfunctions.Map {
	change := changeStack(scope, f, "Change "+s.stack+" stack",
		"Creates and executes a change set, then waits for CloudFormation's event that the operation succeeded.", s.timeout, s.groups)
	again := choice(scope, "Change "+s.stack+" stack again?",
		"What blocked the change has ended: a failed creation, or another caller's update.")
	changed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("Changed "+s.stack+" stack"), &awsstepfunctions.SucceedJsonataProps{})
	change.Next(again)
	if s.groups {
		drains := wait(scope, "Wait for drains of the "+s.stack, "Nodes are replaced only when no other node is being drained or launched. "+
			"The pauses grow. A change that is repeated waits, too.", "$states.input.waitSeconds", nil)
		again.When(when("$states.input.again = true and $exists($states.input.waitSeconds)"), drains.Next(change), nil)
	}
	again.When(when("$states.input.again = true"), change, nil).Otherwise(changed)

	items, assign := "{% $plan.stages."+s.list+" %}", map[string]any{"results": "{% $append($results, $states.result) %}"}
	if s.groups {
		group := "$plan.stages." + s.list + "[$group]"
		items, assign["group"] = "{% $exists("+group+") ? "+group+" : [] %}", "{% $group + 1 %}"
	}
	m := awsstepfunctions.Map_Jsonata(scope, jsii.String(s.title), &awsstepfunctions.MapJsonataProps{
		Comment:      jsii.String(s.comment),
		Items:        awsstepfunctions.ProvideItems_Jsonata(jsii.String(items)),
		ItemSelector: &map[string]any{"stack": "{% $states.context.Map.Item.Value %}"},
		Assign:       &assign,
	})
	m.ItemProcessor(change, nil)
	m.AddCatch(plan, &awsstepfunctions.CatchProps{Errors: jsii.Strings(supersededError), Assign: resetRounds()})
	m.AddCatch(report, catchAll(failureOf("Change "+s.stack+" stack", "change", s.only)))
	if s.collects {
		failed := awsstepfunctions.Succeed_Jsonata(scope, jsii.String("A "+s.stack+" stack failed"), &awsstepfunctions.SucceedJsonataProps{
			Comment: jsii.String("The report names the stack."),
		})
		change.AddCatch(failed, outcome("Change "+s.stack+" stack"))
	}
	return m
}

// changeStack returns the task that changes one stack and waits for its end. If drains is true, the function receives for how long it has
// waited for drains, and how often it has repeated the change.
func changeStack(scope constructs.Construct, f functions, name, comment string, timeout awscdk.Duration,
	drains bool) awsstepfunctionstasks.LambdaInvoke {
	payload := map[string]any{
		"cluster":   "{% $cluster %}",
		"execution": "{% $execution %}",
		"fence":     "{% $plan.fence %}",
		"planKey":   "{% $plan.planKey %}",
		"stack":     "{% $states.input.stack %}",
		"taskToken": "{% $states.context.Task.Token %}",
	}
	if drains {
		payload["waitedSeconds"] = "{% $exists($states.input.waitedSeconds) ? $states.input.waitedSeconds : 0 %}"
		payload["repeats"] = "{% $exists($states.input.repeats) ? $states.input.repeats : 0 %}"
	}
	return invoke(scope, f, functionTask{
		name:          name,
		comment:       comment,
		function:      "change",
		wait:          true,
		payload:       awsstepfunctions.TaskInput_FromObject(&payload),
		timeout:       timeout,
		attempts:      attempts,
		crashAttempts: crashAttempts,
		// The output keeps the stack's name for a second attempt.
		output: "{% $merge([$states.result, {'stack': $states.input.stack}]) %}",
	})
}

// outcome turns an error of a change into a result of the Map.
func outcome(step string) *awsstepfunctions.CatchProps {
	return &awsstepfunctions.CatchProps{
		Errors: jsii.Strings("States.ALL"),
		Outputs: map[string]any{
			"stack": "{% $states.input.stack %}",
			"again": false,
			"error": "{% $states.errorOutput.Error %}",
			"cause": causeOf,
			"state": step,
		},
	}
}

// failUnsettled fails a cluster whose plan contains changes after every round.
func failUnsettled(scope constructs.Construct) awsstepfunctions.Pass {
	return awsstepfunctions.Pass_Jsonata(scope, jsii.String("The plan never settles"), &awsstepfunctions.PassJsonataProps{
		Comment: jsii.String("After each round of changes the plan found more. This is a defect, so the execution ends."),
		Assign: &map[string]any{
			"fault": notConverged,
			"cause": "{% $string($rounds) & ' rounds of changes did not converge the cluster' %}",
		},
	})
}
