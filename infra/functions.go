package main

// The Lambda functions. Each has one binary. The table lists the settings that differ.

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/drover-run/drover/shared/names"
)

// functions of the cell by name.
type functions map[string]awslambda.Function

// function is what differs between functions.
type function struct {
	name        string
	description string
	// timeout of one invocation, in seconds. Tasks of the machines allow more, so that Lambda stops the function first.
	timeout float64
	// memory in MB. It also sets the share of CPU: 1,769 MB is one vCPU.
	memory float64
	// notifies reports whether the function changes statuses whose changes are notified.
	notifies bool
	// plans reports whether the function plans clusters. Such a function knows the code of relays.
	plans bool
	// async functions are invoked by events. Events that they fail to handle go to the dead-letter queue.
	async bool
	// deadLettersAlarm reports that the alarm dead-letters is the only one for failures and throttles of the function. An alarm costs $0.10 a
	// month: https://aws.amazon.com/cloudwatch/pricing/. The function is only invoked asynchronously, and Lambda delivers an event that it
	// failed to handle, or that Lambda throttled for an hour, to the dead-letter queue.
	deadLettersAlarm bool
	// env lists the variables beyond those that every function has.
	env map[string]string
}

// functionTable lists first the functions through which a spec passes, in that order.
var functionTable = []function{
	{
		name: "admit", description: "Decodes and validates an uploaded spec and starts its convergence",
		notifies: true, timeout: 30, memory: 256, async: true,
		env: map[string]string{"DROVER_CONVERGE_ARN": convergeARN},
	},
	{
		name: "publish", description: "Checks an uploaded release: whether its images, add-ons and Kubernetes version exist",
		notifies: true, timeout: 60, memory: 256, async: true,
	},
	{
		name: "rollout", description: "Plans rollouts, evaluates their runs and assigns releases to clusters",
		// Plans and records of 10,000 clusters.
		notifies: true, timeout: 120, memory: 1024, async: true, deadLettersAlarm: true,
	},
	{
		name: "plan", description: "Renders a cluster, compares it with its stacks, and plans the ordered changes with their reasons",
		notifies: true, plans: true, timeout: 120, memory: 512,
	},
	{
		name: "change", description: "Creates, reads and executes the change set of one stack",
		// The greatest number of change sets that one invocation may create, each with its longest wait.
		timeout: 480, memory: 256,
		env: map[string]string{"DROVER_CLOUDFORMATION_ROLE_ARN": roleARN(clusterRole)},
	},
	{
		name: "stackevent", description: "Records the status of a stack and resumes the execution that waits for it",
		notifies: true, timeout: 30, memory: 256, async: true,
	},
	{
		name: "prepare", description: "Gives drover's roles their permissions inside a cluster",
		timeout: 120, memory: 512,
	},
	{
		name: "join", description: "Checks whether a new instance is a Ready node, and completes its launch hook",
		notifies: true, timeout: 90, memory: 256,
	},
	{
		name: "drain", description: "Evicts the pods of a node as their disruption budgets allow and completes its terminate hook",
		notifies: true, timeout: 90, memory: 512,
	},
	{
		name: "upgrade", description: "Checks a cluster before and after an upgrade, plans its steps and verifies each",
		// The checks read the whole cluster.
		notifies: true, plans: true, timeout: 120, memory: 512,
	},
	{
		name: "clean", description: "Removes what Kubernetes created in the account for a cluster that is being deleted",
		timeout: 120, memory: 256,
		env: map[string]string{"DROVER_LEFTOVERS_ROLE_ARN": roleARN(leftoversRole)},
	},
	{
		name: "report", description: "Writes a cluster's status, releases its lease and notifies",
		notifies: true, timeout: 30, memory: 256,
	},
	{
		name: "sweep", description: "Finds missed events and drift, and repairs, resumes or reports them",
		// An audit of thousands of clusters takes minutes.
		notifies: true, plans: true, timeout: 600, memory: 512, async: true,
		env: map[string]string{
			"DROVER_CONVERGE_ARN": convergeARN, "DROVER_JOIN_ARN": joinARN, "DROVER_DRAIN_ARN": drainARN, "DROVER_UPGRADE_ARN": upgradeARN,
		},
	},
	{
		name: "fleet", description: "Carries out the assignments of rollouts in this cell and reports facts about its clusters",
		// It may read a thousand clusters.
		timeout: 120, memory: 512, async: true, deadLettersAlarm: true,
		env: map[string]string{"DROVER_CONVERGE_ARN": convergeARN},
	},
}

// grantsOf returns the grants of a function: its own calls, notifications if it sends any, and what Lambda does on its behalf.
func grantsOf(f function) []grant {
	own := slices.Clone(functionGrants[f.name])
	if f.notifies {
		own = append(own, notifyGrants...)
	}
	return append(own, runtimeGrants(f.name, f.async)...)
}

func newFunctions(scope constructs.Construct, c code, n notices, roles functionRoles) functions {
	out := make(functions, len(functionTable))
	for _, f := range functionTable {
		out[f.name] = newFunction(scope, c, n, f, roles[f.name])
	}
	return out
}

func newFunction(scope constructs.Construct, c code, n notices, f function, role awsiam.IRole) awslambda.Function {
	id := constructID(f.name)
	architecture := awslambda.Architecture_ARM_64()
	if c.architecture == x86 {
		architecture = awslambda.Architecture_X86_64()
	}
	env := map[string]*string{
		"DROVER_SPECS_BUCKET": sub(specsBucket),
		"DROVER_STATE_BUCKET": sub(stateBucket),
		"DROVER_ACCOUNT":      sub("${AWS::AccountId}"),
		"DROVER_PARTITION":    sub("${AWS::Partition}"),
	}
	for key, value := range f.env {
		env[key] = sub(value)
	}
	if f.name == "fleet" && c.cellLimit > 0 {
		env["DROVER_CELL_LIMIT"] = jsii.String(strconv.Itoa(c.cellLimit))
	}
	if settings := c.settings.String(); settings != "" && (f.plans || f.name == "admit" || f.name == "publish") {
		env["DROVER_CELL_SETTINGS"] = jsii.String(settings)
	}
	if f.notifies {
		env["DROVER_TOPIC_ARN"] = sub(noticesARN)
	}
	if f.plans {
		env["DROVER_RELAY"] = jsii.String(c.relay)
	}
	fn := awslambda.NewFunction(scope, jsii.String(id), &awslambda.FunctionProps{
		FunctionName:  jsii.String(names.Function(f.name)),
		Description:   jsii.String(f.description),
		Runtime:       awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:  architecture,
		Handler:       jsii.String("bootstrap"),
		Code:          awslambda.Code_FromAsset(jsii.String(filepath.Join(c.dir, f.name)), &awss3assets.AssetOptions{}),
		Timeout:       awscdk.Duration_Seconds(jsii.Number(f.timeout)),
		MemorySize:    jsii.Number(f.memory),
		Environment:   &env,
		Role:          role,
		Tracing:       awslambda.Tracing_ACTIVE,
		LoggingFormat: awslambda.LoggingFormat_JSON,
		LogGroup:      newLogGroup(scope, id+"Logs", names.FunctionLogs(f.name)),
	})
	if f.async {
		fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
			// Within an hour the sweep handles what the event was about.
			MaxEventAge:   awscdk.Duration_Hours(jsii.Number(1)),
			RetryAttempts: jsii.Number(2),
			OnFailure:     awslambdadestinations.NewSqsDestination(n.deadLetters),
		})
	}
	return fn
}
