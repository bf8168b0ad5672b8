package main

// What each function and machine may do: exactly the calls it makes, on resources named by prefix. Reading one object that
// may be absent needs s3:ListBucket as well, or S3 answers AccessDenied instead of NoSuchKey.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_RequestSyntax (Permissions)

import "github.com/drover-run/drover/shared/names"

// Grants that recur.
func specs(actions []string, prefixes ...string) grant {
	return grant{actions: actions, on: keys(specsARN, prefixes)}
}

func state(actions []string, prefixes ...string) grant {
	return grant{actions: actions, on: keys(stateARN, prefixes)}
}

func keys(bucket string, prefixes []string) []string {
	out := make([]string, len(prefixes))
	for i, p := range prefixes {
		out[i] = bucket + "/" + p + "*"
	}
	return out
}

var (
	get       = []string{"s3:GetObject"}
	put       = []string{"s3:PutObject"}
	getPut    = []string{"s3:GetObject", "s3:PutObject"}
	getDelete = []string{"s3:GetObject", "s3:DeleteObject"}
	all       = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}

	listSpecs = grant{actions: []string{"s3:ListBucket"}, on: []string{specsARN}}
	listState = grant{actions: []string{"s3:ListBucket"}, on: []string{stateARN}}

	answerConverge = grant{
		why:     "A task token belongs to an execution, but IAM checks the machine.",
		actions: []string{"states:SendTaskSuccess", "states:SendTaskFailure"},
		on:      []string{convergeARN},
	}
	startConverge = grant{actions: []string{"states:StartExecution"}, on: []string{convergeARN}}
	// asClusterRole: CloudFormation acts as its own role on stacks of clusters, never as who asks it.
	asClusterRole = map[string]map[string]any{"StringEquals": {"cloudformation:RoleArn": roleARN(clusterRole)}}
	describeEKS   = grant{actions: []string{"eks:DescribeCluster"}, on: []string{eksClustersARN}}
)

// tellGrants are those of the functions that change a phase, reject a spec or watch a node: they tell who listens.
var tellGrants = []grant{
	{actions: []string{"events:PutEvents"}, on: []string{busARN}},
	{actions: []string{"sns:Publish"}, on: []string{noticesARN}},
	{
		why:     "The topic is encrypted with a key of ours, so publishing needs the key too; EventBridge uses the bus's by itself.",
		actions: []string{"kms:GenerateDataKey", "kms:Decrypt"},
		on:      []string{"${" + noticesKey + ".Arn}"},
	},
}

// functionGrants are what each function calls, less what every function has (see runtimeGrants) and what those that tell have.
var functionGrants = map[string][]grant{
	"admit": {
		specs(get, "clusters/"),
		listSpecs,
		state(getPut, "status/"),
		listState,
		startConverge,
	},
	"publish": {
		specs(get, "releases/"),
		listSpecs,
		state(getPut, "status/"),
		listState,
		{
			why:     "EKS's catalogues and images by id belong to nobody's resources.",
			actions: []string{"eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "ec2:DescribeImages"},
			on:      []string{"*"},
		},
	},
	"plan": {
		specs(get, "clusters/", "releases/"),
		{
			why:     "What was deployed last is read by its version, to say what differs.",
			actions: []string{"s3:GetObjectVersion"},
			on:      keys(specsARN, []string{"clusters/"}),
		},
		listSpecs,
		state(getPut, "status/", "releases/", "leases/", "rolls/", "due/"),
		state(get, "upgrades/"),
		state(put, "templates/", "userdata/", "plans/"),
		listState,
		{
			why:     "A lease is stale once the execution that holds it is over.",
			actions: []string{"states:DescribeExecution"},
			on:      []string{convergeExecutionsARN},
		},
		{actions: []string{"cloudformation:DescribeStacks"}, on: []string{clusterStacksARN}},
		{
			why:     "Finding a cluster's stacks by tag, and the versions EKS offers, cannot be limited to a resource.",
			actions: []string{"tag:GetResources", "eks:DescribeClusterVersions"},
			on:      []string{"*"},
		},
		describeEKS,
		{
			why:     "Whether a pool has a node that add-ons can run on; describing knows no resources.",
			actions: []string{"autoscaling:DescribeAutoScalingGroups"},
			on:      []string{"*"},
		},
	},
	"change": {
		specs(get, "clusters/"),
		listSpecs,
		{
			why:     "CloudFormation reads the template's URL with the caller's permissions.",
			actions: get,
			on:      keys(stateARN, []string{"plans/", "templates/", "leases/"}),
		},
		state(all, "waiters/"),
		state(getPut, "status/"),
		listState,
		{
			actions: []string{
				"cloudformation:DescribeStacks",
				"cloudformation:DescribeStackEvents",
				"cloudformation:DescribeChangeSet",
				"cloudformation:ExecuteChangeSet",
				"cloudformation:DeleteChangeSet",
				"cloudformation:UpdateTerminationProtection",
			},
			on: []string{clusterStacksARN},
		},
		{
			why:     "Only from templates that plan has written, and only as CloudFormation's own role.",
			actions: []string{"cloudformation:CreateChangeSet"},
			on:      []string{clusterStacksARN},
			when: map[string]map[string]any{
				"StringLike":   {"cloudformation:TemplateUrl": "https://" + stateBucket + ".s3.${AWS::Region}.${AWS::URLSuffix}/templates/*"},
				"StringEquals": asClusterRole["StringEquals"],
			},
		},
		{
			actions: []string{"cloudformation:DeleteStack", "cloudformation:ContinueUpdateRollback"},
			on:      []string{clusterStacksARN},
			when:    asClusterRole,
		},
		{
			why:     "A stack's tags are set with its change set.",
			actions: []string{"cloudformation:TagResource", "cloudformation:UntagResource"},
			on:      []string{clusterStacksARN},
		},
		{
			actions: []string{"iam:PassRole"},
			on:      []string{roleARN(clusterRole)},
			when:    map[string]map[string]any{"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
		},
		describeEKS,
		{
			why:     "How many nodes a pool has before they are replaced, and since when others are drained; describing knows no resources.",
			actions: []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"},
			on:      []string{"*"},
		},
		{
			why:     "A task token belongs to an execution, but IAM checks the machine. What went wrong is the function's own error.",
			actions: []string{"states:SendTaskSuccess"},
			on:      []string{convergeARN},
		},
	},
	"stackevent": {
		state(getDelete, "waiters/"),
		state(getPut, "status/"),
		state(put, "due/inspect/"),
		listState,
		{actions: []string{"cloudformation:DescribeStackEvents"}, on: []string{clusterStacksARN}},
		{why: "Why a pool's group got no instances; describing knows no resources.", actions: []string{
			"autoscaling:DescribeScalingActivities",
		}, on: []string{"*"}},
		answerConverge,
	},
	"prepare": {
		describeEKS,
		state(getPut, "status/"),
		listState,
	},
	"upgrade": {
		specs(get, "clusters/", "releases/"),
		{
			why:     "What was deployed last is read by its version, to say what differs.",
			actions: []string{"s3:GetObjectVersion"},
			on:      keys(specsARN, []string{"clusters/"}),
		},
		listSpecs,
		state(getPut, "status/", "upgrades/", "releases/", "baselines/"),
		state(get, "leases/", "rolls/"),
		listState,
		{
			why:     "Whether who converges the cluster, or upgraded it, still runs.",
			actions: []string{"states:DescribeExecution"},
			on:      []string{convergeExecutionsARN, upgradeExecutionsARN},
		},
		{actions: []string{"cloudformation:DescribeStacks"}, on: []string{clusterStacksARN}},
		{
			why: "What the checks look at belongs to nobody's resources, or cannot be limited to them; all of it is read only.",
			actions: []string{
				"tag:GetResources", "eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "eks:ListClusters", "servicequotas:GetServiceQuota",
				"cloudwatch:DescribeAlarms",
				"ec2:DescribeSubnets", "ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeVolumes",
				"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities",
			},
			on: []string{"*"},
		},
		{
			actions: []string{"eks:DescribeCluster", "eks:ListAddons", "eks:ListInsights", "eks:DescribeInsight", "eks:DescribeInsightsRefresh"},
			on:      []string{eksClustersARN},
		},
		{
			why:     "EKS looks at a cluster once a day by itself; it changes nothing in it.",
			actions: []string{"eks:StartInsightsRefresh"},
			on:      []string{eksClustersARN},
		},
		{actions: []string{"eks:DescribeAddon"}, on: []string{eksAddonsARN}},
		{
			why: "Which alarms there are is the spec's to say; which of them may be silenced is their owners', by a tag. It is asked for before: " +
				"https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_alarms_and_tagging.html",
			actions: []string{"cloudwatch:DisableAlarmActions"},
			on:      []string{alarmsARN},
			when:    map[string]map[string]any{"StringEquals": {"aws:ResourceTag/" + names.TagSilence: names.SilenceUpgrade}},
		},
		{
			why:     "An alarm whose tag was taken away meanwhile must not stay silent.",
			actions: []string{"cloudwatch:EnableAlarmActions", "cloudwatch:ListTagsForResource"},
			on:      []string{alarmsARN},
		},
	},
	"clean": {
		specs(get, "clusters/"),
		listSpecs,
		state(getPut, "status/"),
		state(get, "leases/"),
		listState,
		describeEKS,
		{
			why: "Finding what has a cluster's tags cannot be limited to a resource, nor can whether such a VPC is still there, " +
				"nor listing roles.",
			actions: []string{"tag:GetResources", "ec2:DescribeVpcs", "iam:ListRoles"},
			on:      []string{"*"},
		},
		{
			why:     "Whose a role is that a control plane's stack has kept.",
			actions: []string{"iam:GetRole"},
			on:      []string{clusterRolesARN},
		},
		{
			why:     "Whether a key is there that a control plane's stack has kept.",
			actions: []string{"kms:DescribeKey"},
			on:      []string{"arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"},
			when:    map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "false"}},
		},
		{
			why:     "Whether its log group is; IAM checks listing against all of them.",
			actions: []string{"logs:DescribeLogGroups"},
			on:      []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:*"},
		},
	},
	"join": {
		describeEKS,
		state(getPut, "status/", "due/"),
		listState,
		{actions: []string{"cloudformation:SignalResource", "cloudformation:DescribeStacks"}, on: []string{clusterStacksARN}},
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, on: []string{groupsARN}},
		{
			why:     "Whether the instance still waits, and which of its group are being drained; describing knows no resources.",
			actions: []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeAutoScalingGroups"},
			on:      []string{"*"},
		},
	},
	"drain": {
		describeEKS,
		state(getPut, "status/"),
		listState,
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, on: []string{groupsARN}},
		{
			why:     "Which pool an instance is of, and how the pool is drained; describing knows no resources.",
			actions: []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLifecycleHooks"},
			on:      []string{"*"},
		},
	},
	"report": {
		state(getPut, "status/", "leases/"),
		state(getDelete, "rolls/", "due/", "baselines/"),
		state(all, "upgrades/"),
		listState,
		specs(get, "clusters/"),
		listSpecs,
	},
	"sweep": {
		state(getDelete, "waiters/"),
		state(all, "due/"),
		state(getPut, "status/", "leases/", channelsSeen),
		{
			why:     "The status of a cluster that was deleted long ago.",
			actions: []string{"s3:DeleteObject"},
			on:      keys(stateARN, []string{names.Statuses}),
		},
		{
			why:     "An execution that is over and holds a lease ended without a report; one that nobody would resume is stopped.",
			actions: []string{"states:DescribeExecution", "states:StopExecution"},
			on:      []string{convergeExecutionsARN},
		},
		{
			why:     "An upgrade whose execution is over and did not say so is told of by another.",
			actions: []string{"states:DescribeExecution"},
			on:      []string{upgradeExecutionsARN},
		},
		{actions: []string{"states:StartExecution"}, on: []string{upgradeARN}},
		listState,
		specs(get, "clusters/", "releases/"),
		state(get, "releases/", "rolls/", "upgrades/"),
		{
			why:     "What was deployed last is read by its version, to say what differs.",
			actions: []string{"s3:GetObjectVersion"},
			on:      keys(specsARN, []string{"clusters/"}),
		},
		listSpecs,
		{actions: []string{"cloudformation:DescribeStackEvents"}, on: []string{clusterStacksARN}},
		describeEKS,
		{
			why:     "Listing all stacks, EKS's catalogues and images by id cannot be limited to a resource.",
			actions: []string{"cloudformation:DescribeStacks", "eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "ec2:DescribeImages"},
			on:      []string{"*"},
		},
		{
			why:     "Auto Scaling drains and replaces an instance whose node does not come back.",
			actions: []string{"autoscaling:SetInstanceHealth"},
			on:      []string{groupsARN},
		},
		answerConverge,
		startConverge,
		{
			why:     "Instances that wait at a hook and that nobody works on, and drains that were cut off.",
			actions: []string{"states:ListExecutions", "states:StartExecution"},
			on:      []string{joinARN, drainARN},
		},
		{actions: []string{"states:DescribeExecution"}, on: []string{joinExecutionsARN, drainExecutionsARN}},
		{actions: []string{"autoscaling:ResumeProcesses"}, on: []string{groupsARN}},
		{
			why: "Describing knows no resources.",
			actions: []string{
				"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeScalingActivities",
			},
			on: []string{"*"},
		},
	},
}

// runtimeGrants are what Lambda does with a function's role on its behalf.
func runtimeGrants(step string, async bool) []grant {
	out := []grant{
		{
			actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			on:      []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:" + names.FunctionLogs(step) + ":*"},
		},
		{why: tracingWhy, actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, on: []string{"*"}},
	}
	if async {
		out = append(out, grant{
			why:     "Lambda sends what a function could not handle to the dead-letter queue.",
			actions: []string{"sqs:SendMessage"},
			on:      []string{deadLettersARN},
		})
	}
	return out
}

const tracingWhy = "X-Ray knows no resources for traces."

// machineGrants are what Step Functions does with a machine's role on its behalf.
// https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy
// https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html
var machineGrants = []grant{
	{
		why: "CloudWatch Logs knows no resources for log deliveries.",
		actions: []string{
			"logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery",
			"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
		},
		on: []string{"*"},
	},
	{
		why:     tracingWhy,
		actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"},
		on:      []string{"*"},
	},
}

var (
	convergeGrants = []grant{{
		actions: []string{"lambda:InvokeFunction"},
		on: []string{
			functionARN("plan"), functionARN("change"), functionARN("prepare"), functionARN("clean"), functionARN("report"),
		},
	}, {
		why:     "The upgrade that planning found to be due.",
		actions: []string{"states:StartExecution"},
		on:      []string{upgradeARN},
	}}
	upgradeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, on: []string{functionARN("upgrade")}},
		{actions: []string{"states:StartExecution"}, on: []string{convergeARN}},
		{actions: []string{"states:DescribeExecution", "states:StopExecution"}, on: []string{convergeExecutionsARN}},
		{
			why: "Step Functions hears by a rule of its own that the execution is over which a task waits for: " +
				"https://docs.aws.amazon.com/step-functions/latest/dg/service-integration-iam-templates.html#connect-iam-sync-async",
			actions: []string{"events:PutTargets", "events:PutRule", "events:DescribeRule"},
			on: []string{
				"arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule",
			},
		},
	}
	joinNodeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, on: []string{functionARN("join")}},
		{actions: []string{"autoscaling:CompleteLifecycleAction"}, on: []string{groupsARN}},
	}
	drainNodeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, on: []string{functionARN("drain")}},
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, on: []string{groupsARN}},
	}
)
