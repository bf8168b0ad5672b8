package main

// The permissions of each function and machine: exactly the calls it makes, on resources with drover's prefix. Reading an object that
// may be absent also needs s3:ListBucket; without it S3 returns AccessDenied instead of NoSuchKey.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_RequestSyntax (Permissions)

import "github.com/drover-run/drover/shared/names"

// Grants that recur.
func specs(actions []string, prefixes ...string) grant {
	return grant{actions: actions, resources: keys(specsARN, prefixes)}
}

func state(actions []string, prefixes ...string) grant {
	return grant{actions: actions, resources: keys(stateARN, prefixes)}
}

func keys(bucket string, prefixes []string) []string {
	out := make([]string, len(prefixes))
	for i, p := range prefixes {
		out[i] = bucket + "/" + p + "*"
	}
	return out
}

var (
	s3Read            = []string{"s3:GetObject"}
	s3Write           = []string{"s3:PutObject"}
	s3ReadWrite       = []string{"s3:GetObject", "s3:PutObject"}
	s3ReadDelete      = []string{"s3:GetObject", "s3:DeleteObject"}
	s3ReadWriteDelete = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}

	listSpecs = grant{actions: []string{"s3:ListBucket"}, resources: []string{specsARN}}
	listState = grant{actions: []string{"s3:ListBucket"}, resources: []string{stateARN}}
	// deployedSpec is the version of a cluster's spec that its stacks were made of.
	deployedSpec = grant{
		why:       "The deployed spec is read by its version, to report what differs.",
		actions:   []string{"s3:GetObjectVersion"},
		resources: keys(specsARN, []string{"clusters/"}),
	}

	answerConverge = grant{
		why:       "A task token belongs to an execution, but IAM checks the machine.",
		actions:   []string{"states:SendTaskSuccess", "states:SendTaskFailure"},
		resources: []string{convergeARN},
	}
	startConverge = grant{actions: []string{"states:StartExecution"}, resources: []string{convergeARN}}
	// asClusterRole requires that CloudFormation uses its own role on stacks of clusters, and not the caller's permissions.
	asClusterRole = map[string]map[string]any{"StringEquals": {"cloudformation:RoleArn": roleARN(clusterRole)}}
	describeEKS   = grant{actions: []string{"eks:DescribeCluster"}, resources: []string{eksClustersARN}}
)

// notifyGrants are those of the functions that send notifications: they change a phase, reject a spec or watch a node. The topic is
// encrypted, so publishing needs its key too. The key's policy allows that, because roles of the base stack cannot name the key.
var notifyGrants = []grant{
	{actions: []string{"events:PutEvents"}, resources: []string{busARN}},
	{actions: []string{"sns:Publish"}, resources: []string{noticesARN}},
}

// invokeRelays allows to reach the API servers of private clusters.
var invokeRelays = grant{
	why:       "Requests to API servers that are not open to everyone go through a function in the cluster's network.",
	actions:   []string{"lambda:InvokeFunction"},
	resources: []string{relaysARN},
}

// findRelays allows to see that the function of a relay was deleted.
var findRelays = grant{
	why:       "CloudFormation does not notice that a function was deleted.",
	actions:   []string{"lambda:GetFunctionConfiguration"},
	resources: []string{relaysARN},
}

// functionGrants are the calls of each function. runtimeGrants and notifyGrants are added to them.
var functionGrants = map[string][]grant{
	"admit": {
		specs(s3Read, "clusters/"),
		listSpecs,
		state(s3ReadWrite, "status/"),
		listState,
		startConverge,
	},
	"publish": {
		specs(s3Read, "releases/"),
		listSpecs,
		state(s3ReadWrite, "status/"),
		listState,
		{
			why: "EKS's catalogs and images by id support no resource-level permissions.",
			actions: []string{
				"eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "eks:DescribeAddonConfiguration", "ec2:DescribeImages",
			},
			resources: []string{"*"},
		},
	},
	"rollout": {
		specs(s3Read, names.Rollouts, names.Decisions, names.Freezes, names.ReleaseSpecs),
		listSpecs,
		state(s3ReadWrite, names.ActiveRuns, names.RolloutRecords, names.RolloutPlans, names.RolloutStatuses, names.DesiredStates,
			names.IgnoredUploads),
		state(s3Read, names.CellReports),
		state(s3Write, names.PinnedReleases, names.DecisionAnswers),
		listState,
		{
			why:       "The alarms of stages. Describing supports no resource-level permissions.",
			actions:   []string{"cloudwatch:DescribeAlarms"},
			resources: []string{"*"},
		},
		{
			why:       "New assignments start the cell's part.",
			actions:   []string{"lambda:InvokeFunction"},
			resources: []string{functionARN("fleet")},
		},
	},
	"plan": {
		specs(s3Read, "clusters/", "releases/"),
		deployedSpec,
		listSpecs,
		state(s3ReadWrite, "status/", "releases/", "leases/", "rolls/", "due/"),
		state(s3Read, "upgrades/", names.Assignments, names.CellFreezes),
		state(s3Write, "templates/", "userdata/", "plans/", names.RelayCodes),
		listState,
		{
			why:       "A lease is stale once the execution that holds it is over.",
			actions:   []string{"states:DescribeExecution"},
			resources: []string{convergeExecutionsARN},
		},
		{actions: []string{"cloudformation:DescribeStacks"}, resources: []string{clusterStacksARN}},
		{
			why:       "Finding a cluster's stacks by tag and listing EKS versions support no resource-level permissions.",
			actions:   []string{"tag:GetResources", "eks:DescribeClusterVersions"},
			resources: []string{"*"},
		},
		describeEKS,
		findRelays,
		{
			why: "Whether the account has room for a new cluster, and images, networks, subnets and security groups can be used. These actions " +
				"support no resource-level permissions.",
			actions: []string{
				"servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota", "eks:ListClusters",
				"ec2:DescribeVpcs", "ec2:DescribeInternetGateways", "ec2:DescribeAddresses", "ec2:DescribeNatGateways", "ec2:DescribeSubnets",
				"ec2:DescribeSecurityGroups", "ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeAvailabilityZones",
				"iam:GetAccountSummary", "iam:ListOpenIDConnectProviders", "lambda:GetAccountSettings", "eks:DescribeAddonVersions",
				"ec2:DescribeImages", "ec2:DescribeVpcEndpointServices", "ec2:DescribeRouteTables",
			},
			resources: []string{"*"},
		},
		{
			why:       "Whether the keys of disks are enabled. Each key's policy decides too.",
			actions:   []string{"kms:DescribeKey"},
			resources: []string{"arn:${AWS::Partition}:kms:${AWS::Region}:*:key/*"},
		},
		{
			why:       "Whether the principals of a new cluster's access entries exist.",
			actions:   []string{"iam:GetRole"},
			resources: []string{"arn:${AWS::Partition}:iam::${AWS::AccountId}:role/*"},
		},
		{
			actions:   []string{"iam:GetUser"},
			resources: []string{"arn:${AWS::Partition}:iam::${AWS::AccountId}:user/*"},
		},
		{
			why:       "Whether a pool has a node for add-ons. Describing supports no resource-level permissions.",
			actions:   []string{"autoscaling:DescribeAutoScalingGroups"},
			resources: []string{"*"},
		},
	},
	"change": {
		specs(s3Read, "clusters/"),
		listSpecs,
		{
			why:       "CloudFormation reads the template's URL with the caller's permissions.",
			actions:   s3Read,
			resources: keys(stateARN, []string{"plans/", "templates/", "leases/"}),
		},
		state(s3ReadWriteDelete, "waiters/"),
		state(s3ReadWrite, "status/"),
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
			resources: []string{clusterStacksARN},
		},
		{
			why:       "Only from templates that plan has written, and only as CloudFormation's own role.",
			actions:   []string{"cloudformation:CreateChangeSet"},
			resources: []string{clusterStacksARN},
			when: map[string]map[string]any{
				"StringLike":   {"cloudformation:TemplateUrl": "https://" + stateBucket + ".s3.${AWS::Region}.${AWS::URLSuffix}/templates/*"},
				"StringEquals": asClusterRole["StringEquals"],
			},
		},
		{
			actions:   []string{"cloudformation:DeleteStack", "cloudformation:ContinueUpdateRollback"},
			resources: []string{clusterStacksARN},
			when:      asClusterRole,
		},
		{
			why:       "A change set sets the tags of its stack.",
			actions:   []string{"cloudformation:TagResource", "cloudformation:UntagResource"},
			resources: []string{clusterStacksARN},
		},
		{
			actions:   []string{"iam:PassRole"},
			resources: []string{roleARN(clusterRole)},
			when:      map[string]map[string]any{"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
		},
		describeEKS,
		{
			why:       "The size of a pool before a roll, and the start of other drains. Describing supports no resource-level permissions.",
			actions:   []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"},
			resources: []string{"*"},
		},
		{
			why:       "A task token belongs to an execution, but IAM checks the machine. Failures are the function's own errors.",
			actions:   []string{"states:SendTaskSuccess"},
			resources: []string{convergeARN},
		},
	},
	"stackevent": {
		state(s3ReadDelete, "waiters/"),
		state(s3ReadWrite, "status/"),
		state(s3Write, "due/inspect/"),
		listState,
		{actions: []string{"cloudformation:DescribeStackEvents"}, resources: []string{clusterStacksARN}},
		{
			why:       "The reason why a group got no instances. Describing supports no resource-level permissions.",
			actions:   []string{"autoscaling:DescribeScalingActivities"},
			resources: []string{"*"},
		},
		answerConverge,
	},
	"prepare": {
		describeEKS,
		state(s3ReadWrite, "status/"),
		listState,
		invokeRelays,
	},
	"upgrade": {
		specs(s3Read, "clusters/", "releases/"),
		deployedSpec,
		listSpecs,
		state(s3ReadWrite, "status/", "upgrades/", "releases/", "baselines/", names.Assignments),
		state(s3Read, "leases/", "rolls/", names.CellFreezes),
		listState,
		{
			why:       "Whether the execution that converges the cluster, or upgraded it, still runs.",
			actions:   []string{"states:DescribeExecution"},
			resources: []string{convergeExecutionsARN, upgradeExecutionsARN},
		},
		{actions: []string{"cloudformation:DescribeStacks"}, resources: []string{clusterStacksARN}},
		{
			why: "The reads of the checks support no resource-level permissions, or their resources are not known in advance.",
			actions: []string{
				"tag:GetResources", "eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "eks:ListClusters", "servicequotas:GetServiceQuota",
				"cloudwatch:DescribeAlarms",
				"ec2:DescribeSubnets", "ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeVolumes",
				"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities",
			},
			resources: []string{"*"},
		},
		{
			actions:   []string{"eks:DescribeCluster", "eks:ListAddons", "eks:ListInsights", "eks:DescribeInsight", "eks:DescribeInsightsRefresh"},
			resources: []string{eksClustersARN},
		},
		{
			why:       "EKS refreshes a cluster's insights once a day. A refresh changes nothing in the cluster.",
			actions:   []string{"eks:StartInsightsRefresh"},
			resources: []string{eksClustersARN},
		},
		{
			why:       "A rollback starts with EKS itself: CloudFormation may not accept a lower version in a template.",
			actions:   []string{"eks:UpdateClusterVersion"},
			resources: []string{eksClustersARN},
		},
		{actions: []string{"eks:DescribeAddon"}, resources: []string{eksAddonsARN}},
		{
			why: "The spec names the alarms. Their owners allow drover to silence them with a tag: " +
				"https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_alarms_and_tagging.html",
			actions:   []string{"cloudwatch:DisableAlarmActions"},
			resources: []string{alarmsARN},
			when:      map[string]map[string]any{"StringEquals": {"aws:ResourceTag/" + names.TagSilence: names.SilenceUpgrade}},
		},
		{
			why:       "An alarm must not stay silent after its tag was removed.",
			actions:   []string{"cloudwatch:EnableAlarmActions", "cloudwatch:ListTagsForResource"},
			resources: []string{alarmsARN},
		},
		findRelays,
		invokeRelays,
	},
	"clean": {
		specs(s3Read, "clusters/"),
		listSpecs,
		state(s3ReadWrite, "status/"),
		state(s3Read, "leases/"),
		listState,
		describeEKS,
		{
			why:       "Finding resources by tag, describing VPCs and listing roles support no resource-level permissions.",
			actions:   []string{"tag:GetResources", "ec2:DescribeVpcs", "iam:ListRoles"},
			resources: []string{"*"},
		},
		{
			why:       "The owner of a role that a control plane's stack retained.",
			actions:   []string{"iam:GetRole"},
			resources: []string{clusterRolesARN},
		},
		{
			why:       "Whether a key exists that a control plane's stack retained.",
			actions:   []string{"kms:DescribeKey"},
			resources: []string{"arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"},
			when:      map[string]map[string]any{"Null": {"aws:ResourceTag/" + names.TagCluster: "false"}},
		},
		{
			why:       "Whether its log group exists. IAM checks the list call against all log groups.",
			actions:   []string{"logs:DescribeLogGroups"},
			resources: []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:*"},
		},
	},
	"join": {
		describeEKS,
		state(s3ReadWrite, "status/", "due/"),
		listState,
		{actions: []string{"cloudformation:SignalResource", "cloudformation:DescribeStacks"}, resources: []string{clusterStacksARN}},
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, resources: []string{groupsARN}},
		{
			why:       "Whether the instance waits, and which others of its group drain. Describing supports no resource-level permissions.",
			actions:   []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeAutoScalingGroups"},
			resources: []string{"*"},
		},
		invokeRelays,
	},
	"drain": {
		describeEKS,
		state(s3ReadWrite, "status/"),
		listState,
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, resources: []string{groupsARN}},
		{
			why:       "The pool of an instance and its drain policy. Describing supports no resource-level permissions.",
			actions:   []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLifecycleHooks"},
			resources: []string{"*"},
		},
		invokeRelays,
	},
	"report": {
		state(s3ReadWrite, "status/", "leases/"),
		state(s3ReadDelete, "rolls/", "due/", "baselines/"),
		state(s3ReadWriteDelete, "upgrades/"),
		listState,
		specs(s3Read, "clusters/"),
		listSpecs,
	},
	"fleet": fleetGrants,
	"sweep": {
		state(s3ReadDelete, "waiters/"),
		state(s3ReadWriteDelete, "due/"),
		state(s3ReadWrite, "status/", "leases/", names.HandledChannels, names.CellLooks),
		state(s3Read, names.DesiredStates, names.CellReports, names.ActiveRuns),
		{
			why:       "Active runs are evaluated, and the facts of their members are kept fresh.",
			actions:   []string{"lambda:InvokeFunction"},
			resources: []string{functionARN("fleet"), functionARN("rollout")},
		},
		{
			why:       "The statuses of clusters that were deleted long ago expire.",
			actions:   []string{"s3:DeleteObject"},
			resources: keys(stateARN, []string{names.Statuses}),
		},
		{
			why:       "An execution that ended but holds a lease did not report. An execution without a waiter is stopped.",
			actions:   []string{"states:DescribeExecution", "states:StopExecution"},
			resources: []string{convergeExecutionsARN},
		},
		{
			why:       "If an execution ended without recording the end of its upgrade, another execution records it.",
			actions:   []string{"states:DescribeExecution"},
			resources: []string{upgradeExecutionsARN},
		},
		{actions: []string{"states:StartExecution"}, resources: []string{upgradeARN}},
		listState,
		specs(s3Read, "clusters/", "releases/"),
		state(s3Read, "releases/", "rolls/", "upgrades/", names.Assignments, names.CellFreezes),
		deployedSpec,
		listSpecs,
		{actions: []string{"cloudformation:DescribeStackEvents"}, resources: []string{clusterStacksARN}},
		describeEKS,
		{
			why: "Listing all stacks, EKS's catalogs, and images and instances by id support no resource-level permissions.",
			actions: []string{
				"cloudformation:DescribeStacks", "eks:DescribeClusterVersions", "eks:DescribeAddonVersions", "eks:DescribeAddonConfiguration",
				"ec2:DescribeImages", "ec2:DescribeInstances",
			},
			resources: []string{"*"},
		},
		{
			why:       "Auto Scaling drains and replaces an instance whose node stays NotReady.",
			actions:   []string{"autoscaling:SetInstanceHealth"},
			resources: []string{groupsARN},
		},
		answerConverge,
		startConverge,
		{
			why:       "Instances that wait at a hook without an execution, and drains that were aborted.",
			actions:   []string{"states:ListExecutions", "states:StartExecution"},
			resources: []string{joinARN, drainARN},
		},
		{actions: []string{"states:DescribeExecution"}, resources: []string{joinExecutionsARN, drainExecutionsARN}},
		{actions: []string{"autoscaling:ResumeProcesses"}, resources: []string{groupsARN}},
		{
			why:       "An instance that ended at its launch hook is abandoned.",
			actions:   []string{"autoscaling:CompleteLifecycleAction"},
			resources: []string{groupsARN},
		},
		{
			why: "Describing supports no resource-level permissions.",
			actions: []string{
				"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeScalingActivities",
			},
			resources: []string{"*"},
		},
		findRelays,
		invokeRelays,
	},
}

// fleetGrants are the calls of the function fleet. It starts drover-converge and changes no cluster itself.
var fleetGrants = []grant{
	specs(s3Read, "clusters/"),
	listSpecs,
	state(s3ReadWrite, names.Assignments, names.CellReports, names.CellFreezes, names.Dues),
	state(s3Read, names.DesiredStates, names.CellLooks, "status/", "upgrades/", "leases/", "releases/"),
	listState,
	{
		why:       "A cluster is busy while the execution that holds its lease runs.",
		actions:   []string{"states:DescribeExecution"},
		resources: []string{convergeExecutionsARN},
	},
	startConverge,
	{
		why:       "Listing all stacks, and alarms by name, support no resource-level permissions.",
		actions:   []string{"cloudformation:DescribeStacks", "cloudwatch:DescribeAlarms"},
		resources: []string{"*"},
	},
	{
		why:       "New facts tick the runs. An upgrade that has just ended needs a look.",
		actions:   []string{"lambda:InvokeFunction"},
		resources: []string{functionARN("rollout"), functionARN("sweep")},
	},
}

// runtimeGrants are the calls that Lambda makes with a function's role.
func runtimeGrants(function string, async bool) []grant {
	out := []grant{
		{
			actions:   []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			resources: []string{"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:" + names.FunctionLogs(function) + ":*"},
		},
		{why: tracingWhy, actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, resources: []string{"*"}},
	}
	if async {
		out = append(out, grant{
			why:       "Lambda sends events that a function could not handle to the dead-letter queue.",
			actions:   []string{"sqs:SendMessage"},
			resources: []string{deadLettersARN},
		})
	}
	return out
}

const tracingWhy = "X-Ray supports no resource-level permissions for traces."

// machineGrants are the calls that Step Functions makes with a machine's role.
// https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy
// https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html
var machineGrants = []grant{
	{
		why: "CloudWatch Logs supports no resource-level permissions for log deliveries.",
		actions: []string{
			"logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery",
			"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
		},
		resources: []string{"*"},
	},
	{
		why:       tracingWhy,
		actions:   []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"},
		resources: []string{"*"},
	},
}

var (
	convergeGrants = []grant{{
		actions: []string{"lambda:InvokeFunction"},
		resources: []string{
			functionARN("plan"), functionARN("change"), functionARN("prepare"), functionARN("clean"), functionARN("report"),
		},
	}, {
		why:       "Starts the upgrade that is due according to the plan.",
		actions:   []string{"states:StartExecution"},
		resources: []string{upgradeARN},
	}}
	upgradeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, resources: []string{functionARN("upgrade")}},
		{actions: []string{"states:StartExecution"}, resources: []string{convergeARN}},
		{actions: []string{"states:DescribeExecution", "states:StopExecution"}, resources: []string{convergeExecutionsARN}},
		{
			why: "Step Functions manages a rule that reports the end of the execution for which a task waits: " +
				"https://docs.aws.amazon.com/step-functions/latest/dg/service-integration-iam-templates.html#connect-iam-sync-async",
			actions: []string{"events:PutTargets", "events:PutRule", "events:DescribeRule"},
			resources: []string{
				"arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule",
			},
		},
	}
	joinNodeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, resources: []string{functionARN("join")}},
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, resources: []string{groupsARN}},
	}
	drainNodeGrants = []grant{
		{actions: []string{"lambda:InvokeFunction"}, resources: []string{functionARN("drain")}},
		{actions: []string{"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"}, resources: []string{groupsARN}},
	}
)
