package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/shared/names"
)

// statement of a synthesized policy.
type statement struct {
	Effect    string
	Action    oneOrMany
	Resource  oneOrMany
	Condition map[string]map[string]any
}

type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(body []byte) error {
	if body[0] == '"' {
		*o = make([]string, 1)
		return json.Unmarshal(body, &(*o)[0])
	}
	return json.Unmarshal(body, (*[]string)(o))
}

// statements of a policy document.
func statements(t *testing.T, document any) []statement {
	t.Helper()
	body, err := json.Marshal(document)
	require.NoError(t, err)
	var policy struct{ Statement []statement }
	require.NoError(t, json.Unmarshal(body, &policy))
	return policy.Statement
}

// policies lists every identity policy of the template by the role or policy it is in.
func policies(t *testing.T) map[string][]statement {
	t.Helper()
	out := make(map[string][]statement)
	for _, role := range synthesizedStacks.ofType("AWS::IAM::Role") {
		inline, _ := role["Policies"].([]any)
		for _, p := range inline {
			name := role["RoleName"].(string)
			out[name] = append(out[name], statements(t, p.(map[string]any)["PolicyDocument"])...)
		}
	}
	for _, p := range synthesizedStacks.ofType("AWS::IAM::ManagedPolicy") {
		if name := p["ManagedPolicyName"].(string); name != names.Boundary(testRegion) { // which grants nothing
			out[name] = statements(t, p["PolicyDocument"])
		}
	}
	return out
}

// short spells ARNs of the tests' account as the tables below do.
var short = strings.NewReplacer(
	"arn:aws:s3:::drover-specs-111122223333-eu-central-1", "specs",
	"arn:aws:s3:::drover-state-111122223333-eu-central-1", "state",
	"arn:aws:cloudformation:eu-central-1:111122223333:", "",
	"arn:aws:autoscaling:eu-central-1:111122223333:", "",
	"arn:aws:states:eu-central-1:111122223333:", "",
	"arn:aws:lambda:eu-central-1:111122223333:", "",
	"arn:aws:eks:eu-central-1:111122223333:", "",
	"arn:aws:logs:eu-central-1:111122223333:", "",
	"arn:aws:cloudwatch:eu-central-1:111122223333:", "",
	"arn:aws:sqs:eu-central-1:111122223333:", "",
	"arn:aws:sns:eu-central-1:111122223333:", "",
	"arn:aws:events:eu-central-1:111122223333:", "",
	"arn:aws:kms:eu-central-1:111122223333:", "",
	"arn:aws:iam::111122223333:", "",
)

// runtime returns the permissions that every function's role has in addition to its own calls.
func runtime(function string) []string {
	return []string{
		"logs:CreateLogStream on log-group:/aws/lambda/drover-" + function + ":*",
		"logs:PutLogEvents on log-group:/aws/lambda/drover-" + function + ":*",
		"xray:PutTelemetryRecords on *",
		"xray:PutTraceSegments on *",
	}
}

func TestFunctionRolesHaveOnlyTheirCalls(t *testing.T) {
	const (
		relays      = "lambda:InvokeFunction on function:drover-*-relay"
		findsRelays = "lambda:GetFunctionConfiguration on function:drover-*-relay"
	)
	const failed = "sqs:SendMessage on drover-dead-letters"
	notifications := []string{"events:PutEvents on event-bus/drover", "sns:Publish on drover-notices"}
	resume := []string{
		"states:SendTaskSuccess on stateMachine:drover-converge", "states:SendTaskFailure on stateMachine:drover-converge",
	}
	for step, want := range map[string][]string{
		"admit": {
			"s3:GetObject on specs/clusters/*", "s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
			"states:StartExecution on stateMachine:drover-converge", failed,
		},
		"publish": {
			"s3:GetObject on specs/releases/*", "s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
			"eks:DescribeClusterVersions on *", "eks:DescribeAddonVersions on *", "eks:DescribeAddonConfiguration on *",
			"ec2:DescribeImages on *", failed,
		},
		"rollout": {
			"s3:GetObject on specs/rollouts/*", "s3:GetObject on specs/decisions/*", "s3:GetObject on specs/freezes/*",
			"s3:GetObject on specs/releases/*", "s3:ListBucket on specs",
			"s3:GetObject on state/rollouts/active.json*", "s3:PutObject on state/rollouts/active.json*",
			"s3:GetObject on state/rollouts/runs/*", "s3:PutObject on state/rollouts/runs/*",
			"s3:GetObject on state/rollouts/plans/*", "s3:PutObject on state/rollouts/plans/*",
			"s3:GetObject on state/status/rollouts/*", "s3:PutObject on state/status/rollouts/*",
			"s3:GetObject on state/fleet/desired/*", "s3:PutObject on state/fleet/desired/*",
			"s3:GetObject on state/status/ignored.json*", "s3:PutObject on state/status/ignored.json*",
			"s3:GetObject on state/fleet/reports/*", "s3:PutObject on state/releases/*", "s3:PutObject on state/rollouts/answers/*",
			"s3:ListBucket on state", "cloudwatch:DescribeAlarms on *", "lambda:InvokeFunction on function:drover-fleet", failed,
		},
		"plan": {
			findsRelays,
			"s3:GetObject on specs/clusters/*", "s3:GetObjectVersion on specs/clusters/*", "s3:GetObject on specs/releases/*",
			"s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*",
			"s3:GetObject on state/releases/*", "s3:PutObject on state/releases/*",
			"s3:PutObject on state/templates/*",
			"s3:PutObject on state/userdata/*",
			"s3:PutObject on state/plans/*", "s3:PutObject on state/relay/*",
			"s3:GetObject on state/leases/*", "s3:PutObject on state/leases/*", "s3:ListBucket on state",
			"s3:GetObject on state/rolls/*", "s3:PutObject on state/rolls/*", "s3:GetObject on state/due/*", "s3:PutObject on state/due/*",
			"s3:GetObject on state/upgrades/*", "s3:GetObject on state/assignments/*", "s3:GetObject on state/fleet/freezes.json*",
			"states:DescribeExecution on execution:drover-converge:*",
			"cloudformation:DescribeStacks on stack/drover-*", "tag:GetResources on *", "eks:DescribeClusterVersions on *",
			"servicequotas:GetServiceQuota on *", "servicequotas:GetAWSDefaultServiceQuota on *", "eks:ListClusters on *",
			"ec2:DescribeVpcs on *", "ec2:DescribeInternetGateways on *", "ec2:DescribeAddresses on *", "ec2:DescribeNatGateways on *",
			"ec2:DescribeSubnets on *", "ec2:DescribeSecurityGroups on *", "ec2:DescribeVpcEndpointServices on *",
			"ec2:DescribeRouteTables on *",
			"ec2:DescribeInstances on *", "ec2:DescribeInstanceTypes on *",
			"ec2:DescribeAvailabilityZones on *", "iam:GetAccountSummary on *",
			"iam:ListOpenIDConnectProviders on *", "lambda:GetAccountSettings on *",
			"eks:DescribeAddonVersions on *", "ec2:DescribeImages on *", "iam:GetRole on role/*", "iam:GetUser on user/*",
			"autoscaling:DescribeAutoScalingGroups on *", "eks:DescribeCluster on cluster/drover-*",
			"kms:DescribeKey on arn:aws:kms:eu-central-1:*:key/*",
		},
		"change": {
			"autoscaling:DescribeAutoScalingGroups on *", "autoscaling:DescribeScalingActivities on *", "eks:DescribeCluster on cluster/drover-*",
			"s3:GetObject on specs/clusters/*", "s3:ListBucket on specs",
			"s3:GetObject on state/plans/*", "s3:GetObject on state/templates/*", "s3:GetObject on state/leases/*",
			"s3:GetObject on state/waiters/*", "s3:PutObject on state/waiters/*", "s3:DeleteObject on state/waiters/*",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
			"cloudformation:DescribeStacks on stack/drover-*", "cloudformation:DescribeStackEvents on stack/drover-*",
			"cloudformation:CreateChangeSet on stack/drover-* if StringEquals cloudformation:RoleArn if StringLike cloudformation:TemplateUrl",
			"cloudformation:DescribeChangeSet on stack/drover-*",
			"cloudformation:ExecuteChangeSet on stack/drover-*", "cloudformation:DeleteChangeSet on stack/drover-*",
			"cloudformation:DeleteStack on stack/drover-* if StringEquals cloudformation:RoleArn",
			"cloudformation:UpdateTerminationProtection on stack/drover-*",
			"cloudformation:ContinueUpdateRollback on stack/drover-* if StringEquals cloudformation:RoleArn",
			"cloudformation:TagResource on stack/drover-*", "cloudformation:UntagResource on stack/drover-*",
			"iam:PassRole on role/drover-eu-central-1-cloudformation if StringEquals iam:PassedToService",
			"states:SendTaskSuccess on stateMachine:drover-converge",
		},
		"stackevent": append([]string{
			"s3:GetObject on state/waiters/*", "s3:DeleteObject on state/waiters/*",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
			"s3:PutObject on state/due/inspect/*",
			"cloudformation:DescribeStackEvents on stack/drover-*", "autoscaling:DescribeScalingActivities on *", failed,
		}, resume...),
		"prepare": {
			relays,
			"eks:DescribeCluster on cluster/drover-*",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
		},
		"upgrade": {
			relays, findsRelays,
			"s3:GetObject on specs/clusters/*", "s3:GetObjectVersion on specs/clusters/*", "s3:GetObject on specs/releases/*",
			"s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:GetObject on state/upgrades/*",
			"s3:PutObject on state/upgrades/*", "s3:GetObject on state/assignments/*", "s3:PutObject on state/assignments/*",
			"s3:GetObject on state/releases/*", "s3:PutObject on state/releases/*", "s3:GetObject on state/fleet/freezes.json*",
			"s3:GetObject on state/leases/*", "s3:GetObject on state/rolls/*", "s3:ListBucket on state",
			"states:DescribeExecution on execution:drover-converge:*", "states:DescribeExecution on execution:drover-upgrade:*",
			"cloudformation:DescribeStacks on stack/drover-*", "tag:GetResources on *",
			"eks:DescribeCluster on cluster/drover-*", "eks:DescribeClusterVersions on *", "eks:DescribeAddonVersions on *", "eks:ListClusters on *",
			"eks:ListAddons on cluster/drover-*", "eks:ListInsights on cluster/drover-*", "eks:DescribeInsight on cluster/drover-*",
			"eks:StartInsightsRefresh on cluster/drover-*", "eks:UpdateClusterVersion on cluster/drover-*",
			"eks:DescribeInsightsRefresh on cluster/drover-*", "eks:DescribeAddon on addon/drover-*",
			"servicequotas:GetServiceQuota on *", "ec2:DescribeSubnets on *", "ec2:DescribeImages on *", "ec2:DescribeInstanceTypes on *",
			"ec2:DescribeInstances on *",
			"ec2:DescribeVolumes on *",
			"autoscaling:DescribeAutoScalingGroups on *", "autoscaling:DescribeScalingActivities on *",
			"s3:GetObject on state/baselines/*", "s3:PutObject on state/baselines/*",
			"cloudwatch:DescribeAlarms on *", "cloudwatch:DisableAlarmActions on alarm:* if StringEquals aws:ResourceTag/drover:silence",
			"cloudwatch:EnableAlarmActions on alarm:*", "cloudwatch:ListTagsForResource on alarm:*",
		},
		"clean": {
			"s3:GetObject on specs/clusters/*", "s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:GetObject on state/leases/*", "s3:ListBucket on state",
			"eks:DescribeCluster on cluster/drover-*", "tag:GetResources on *", "ec2:DescribeVpcs on *",
			"kms:DescribeKey on key/* if Null aws:ResourceTag/drover:cluster", "logs:DescribeLogGroups on log-group:*",
			"iam:ListRoles on *", "iam:GetRole on role/drover/drover-*",
		},
		"join": {
			relays,
			"eks:DescribeCluster on cluster/drover-*",
			"autoscaling:CompleteLifecycleAction on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"autoscaling:RecordLifecycleActionHeartbeat on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"autoscaling:DescribeAutoScalingInstances on *", "autoscaling:DescribeAutoScalingGroups on *",
			"cloudformation:SignalResource on stack/drover-*", "cloudformation:DescribeStacks on stack/drover-*",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
			"s3:GetObject on state/due/*", "s3:PutObject on state/due/*",
		},
		"drain": {
			relays,
			"eks:DescribeCluster on cluster/drover-*",
			"autoscaling:CompleteLifecycleAction on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"autoscaling:RecordLifecycleActionHeartbeat on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"autoscaling:DescribeAutoScalingInstances on *", "autoscaling:DescribeLifecycleHooks on *",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:ListBucket on state",
		},
		"report": {
			"s3:GetObject on specs/clusters/*", "s3:ListBucket on specs",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*",
			"s3:GetObject on state/leases/*", "s3:PutObject on state/leases/*", "s3:ListBucket on state",
			"s3:GetObject on state/rolls/*", "s3:GetObject on state/due/*", "s3:GetObject on state/upgrades/*", "s3:GetObject on state/baselines/*",
			"s3:DeleteObject on state/rolls/*", "s3:DeleteObject on state/due/*", "s3:DeleteObject on state/upgrades/*",
			"s3:DeleteObject on state/baselines/*",
			"s3:PutObject on state/upgrades/*",
		},
		"sweep": append([]string{
			relays, findsRelays,
			"s3:GetObject on specs/clusters/*", "s3:GetObjectVersion on specs/clusters/*", "s3:GetObject on specs/releases/*",
			"s3:ListBucket on specs",
			"s3:GetObject on state/releases/*",
			"s3:GetObject on state/waiters/*", "s3:DeleteObject on state/waiters/*", "s3:GetObject on state/due/*",
			"s3:DeleteObject on state/due/*", "s3:GetObject on state/rolls/*",
			"s3:PutObject on state/due/*", "s3:GetObject on state/upgrades/*", "s3:GetObject on state/channels.json*",
			"s3:PutObject on state/channels.json*", "s3:GetObject on state/assignments/*", "s3:GetObject on state/fleet/freezes.json*",
			"s3:GetObject on state/fleet/desired/*", "s3:GetObject on state/fleet/reports/*", "s3:GetObject on state/fleet/looks.json*",
			"s3:PutObject on state/fleet/looks.json*", "lambda:InvokeFunction on function:drover-fleet",
			"s3:GetObject on state/rollouts/active.json*", "lambda:InvokeFunction on function:drover-rollout",
			"s3:GetObject on state/status/*", "s3:PutObject on state/status/*", "s3:DeleteObject on state/status/clusters/*",
			"s3:ListBucket on state",
			"s3:GetObject on state/leases/*", "s3:PutObject on state/leases/*", "states:DescribeExecution on execution:drover-converge:*",
			"states:DescribeExecution on execution:drover-upgrade:*", "states:StartExecution on stateMachine:drover-upgrade",
			"states:StopExecution on execution:drover-converge:*",
			"cloudformation:DescribeStacks on *", "eks:DescribeCluster on cluster/drover-*", "eks:DescribeClusterVersions on *",
			"eks:DescribeAddonVersions on *", "eks:DescribeAddonConfiguration on *", "ec2:DescribeImages on *", "ec2:DescribeInstances on *",
			"autoscaling:CompleteLifecycleAction on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"cloudformation:DescribeStackEvents on stack/drover-*",
			"autoscaling:SetInstanceHealth on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"states:StartExecution on stateMachine:drover-converge", failed,
			"states:StartExecution on stateMachine:drover-join-node", "states:StartExecution on stateMachine:drover-drain-node",
			"states:ListExecutions on stateMachine:drover-join-node", "states:ListExecutions on stateMachine:drover-drain-node",
			"states:DescribeExecution on execution:drover-join-node:*", "states:DescribeExecution on execution:drover-drain-node:*",
			"autoscaling:ResumeProcesses on autoScalingGroup:*:autoScalingGroupName/drover-*",
			"autoscaling:DescribeAutoScalingGroups on *", "autoscaling:DescribeLifecycleHooks on *", "autoscaling:DescribeScalingActivities on *",
		}, resume...),
		"fleet": {
			"s3:GetObject on specs/clusters/*", "s3:ListBucket on specs", "s3:ListBucket on state",
			"s3:GetObject on state/assignments/*", "s3:PutObject on state/assignments/*",
			"s3:GetObject on state/fleet/reports/*", "s3:PutObject on state/fleet/reports/*",
			"s3:GetObject on state/fleet/freezes.json*", "s3:PutObject on state/fleet/freezes.json*",
			"s3:GetObject on state/due/*", "s3:PutObject on state/due/*",
			"s3:GetObject on state/fleet/desired/*", "s3:GetObject on state/fleet/looks.json*",
			"s3:GetObject on state/status/*", "s3:GetObject on state/upgrades/*", "s3:GetObject on state/leases/*",
			"s3:GetObject on state/releases/*",
			"states:DescribeExecution on execution:drover-converge:*", "states:StartExecution on stateMachine:drover-converge",
			"cloudformation:DescribeStacks on *", "cloudwatch:DescribeAlarms on *",
			"lambda:InvokeFunction on function:drover-rollout", "lambda:InvokeFunction on function:drover-sweep", failed,
		},
	} {
		t.Run(step, func(t *testing.T) {
			want = append(want, runtime(step)...)
			if !slices.Contains([]string{"change", "prepare", "clean", "fleet"}, step) {
				want = append(want, notifications...)
			}
			slices.Sort(want)
			role := synthesizedStacks.resourceNamed(t, "AWS::IAM::Role", "RoleName", "drover-eu-central-1-"+step)
			require.NotContains(t, role, "ManagedPolicyArns")
			require.Equal(t, "drover-eu-central-1-"+step, roleOf(t, step))
			if diff := cmp.Diff(want, grantLines(policies(t)["drover-eu-central-1-"+step])); diff != "" {
				t.Errorf("-wanted +granted:\n%s", diff)
			}
		})
	}
}

// roleOf is the name of the role that a function runs as.
func roleOf(t *testing.T, function string) string {
	t.Helper()
	arn := synthesizedStacks.resourceNamed(t, "AWS::Lambda::Function", "FunctionName", "drover-"+function)["Role"].(string)
	return arn[strings.LastIndex(arn, "/")+1:]
}

// grantLines spells statements as one line an action and resource.
func grantLines(list []statement) []string {
	var out []string
	for _, s := range list {
		for _, action := range s.Action {
			for _, on := range s.Resource {
				line := action + " on " + short.Replace(on)
				for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
					for key := range s.Condition[operator] {
						line += " if " + operator + " " + key
					}
				}
				if s.Effect != "Allow" {
					line = s.Effect + " " + line
				}
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withoutResources are mutating actions without resource-level permissions, with the reason why drover's roles have them.
var withoutResources = map[string]string{
	"xray:PutTraceSegments":    "tracing",
	"xray:PutTelemetryRecords": "tracing",
	"logs:CreateLogDelivery":   "Step Functions delivers the logs of machines",
	"logs:UpdateLogDelivery":   "Step Functions delivers the logs of machines",
	"logs:DeleteLogDelivery":   "Step Functions delivers the logs of machines",
	"logs:PutResourcePolicy":   "Step Functions delivers the logs of machines",
	"kms:CreateKey":            "a key that does not exist has no ARN; only with a cluster's tag",
}

func TestNoMutatingActionIsGrantedOnEverything(t *testing.T) {
	reads := func(action string) bool {
		_, name, _ := strings.Cut(action, ":")
		return strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Describe")
	}
	for role, list := range policies(t) {
		for _, s := range list {
			for _, action := range s.Action {
				require.NotContains(t, action, "*", "%s: actions are written out", role)
				for _, on := range s.Resource {
					if on == "*" && !reads(action) {
						require.Contains(t, withoutResources, action, "%s may %s on everything", role, action)
					}
					if action == "kms:CreateKey" {
						require.NotEmpty(t, s.Condition)
					}
					if on != "*" {
						require.True(t, strings.HasPrefix(on, "arn:aws:"), "%s: %s is no ARN", role, on)
						require.NotContains(t, strings.SplitN(on, ":", 6)[2], "*", "%s: %s names its service", role, on)
						require.NotEqual(t, "*", strings.SplitN(on, ":", 6)[5], "%s: %s names no resource", role, on)
					}
				}
			}
		}
	}
}

// identities are the synthesized roles and policies.
func identities(t *testing.T) iam.Definitions {
	t.Helper()
	body := func(document any) json.RawMessage {
		text, err := json.Marshal(document)
		require.NoError(t, err)
		return text
	}
	out := iam.Definitions{Policies: map[string]json.RawMessage{}, Roles: map[string]iam.RoleDefinition{}}
	ids := make(map[string]string)
	for id, p := range synthesizedStacks.ofType("AWS::IAM::ManagedPolicy") {
		ids[id] = p["ManagedPolicyName"].(string)
		out.Policies[ids[id]] = body(p["PolicyDocument"])
	}
	for id, r := range synthesizedStacks.ofType("AWS::IAM::Role") {
		role := iam.RoleDefinition{Trust: body(r["AssumeRolePolicyDocument"]), Inline: map[string]json.RawMessage{}}
		inline, _ := r["Policies"].([]any)
		for _, p := range inline {
			role.Inline[p.(map[string]any)["PolicyName"].(string)] = body(p.(map[string]any)["PolicyDocument"])
		}
		attached, _ := synthesizedStacks.Resources[id].Properties["ManagedPolicyArns"].([]any)
		for _, p := range attached {
			role.Managed = append(role.Managed, ids[p.(map[string]any)["Ref"].(string)])
		}
		out.Roles[r["RoleName"].(string)] = role
	}
	return out
}

// account is the local account's IAM with the synthesized roles and policies.
func account(t *testing.T) *iam.Service {
	t.Helper()
	s := iam.New(testAccount, testRegion, &clock.Clock{})
	require.NoError(t, s.Load(identities(t)))
	return s
}

// Accounts inside test processes load drover's roles from this golden.
func TestIdentitiesMatchGolden(t *testing.T) {
	path := filepath.Join("testdata", "identities.json")
	got, err := json.MarshalIndent(identities(t), "", " ")
	require.NoError(t, err)
	got = append(got, '\n')
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make golden and review the difference (-golden +synthesized):\n%s", diff)
	}
}

func TestRolesAreAssumedByTheirServicesAlone(t *testing.T) {
	services := map[string]string{
		"cloudformation":  "cloudformation.amazonaws.com",
		"converge":        "states.amazonaws.com",
		"join-node":       "states.amazonaws.com",
		"drain-node":      "states.amazonaws.com",
		"upgrade-machine": "states.amazonaws.com",
		"events":          "events.amazonaws.com",
		"scheduler":       "scheduler.amazonaws.com",
	}
	for _, f := range functionTable {
		services[f.name] = "lambda.amazonaws.com"
	}
	s := account(t)
	require.Len(t, s.Roles(), len(services)+1, "a role without an expectation")
	_, _, err := s.AssumeRoleAs("arn:aws:iam::"+testAccount+":role/drover-eu-central-1-leftovers", "test", "lambda.amazonaws.com")
	require.Error(t, err, "only the clean function's role may assume it")
	for step, service := range services {
		arn := "arn:aws:iam::" + testAccount + ":role/drover-eu-central-1-" + step
		_, _, err := s.AssumeRoleAs(arn, "test", service)
		require.NoError(t, err, step)
		for _, other := range []string{"ec2.amazonaws.com", "lambda.amazonaws.com", "states.amazonaws.com"} {
			if other != service {
				_, _, err := s.AssumeRoleAs(arn, "test", other)
				require.Error(t, err, "%s must not be assumed by %s", step, other)
			}
		}
	}
	// A service that acts for another account.
	elsewhere := iam.New("999999999999", testRegion, &clock.Clock{})
	for _, r := range s.Roles() {
		if strings.HasSuffix(r.Name, "-cloudformation") || strings.HasSuffix(r.Name, "-leftovers") {
			continue // CloudFormation sends no account: see the role.
		}
		made, err := elsewhere.CreateRole(r)
		require.NoError(t, err)
		_, _, err = elsewhere.AssumeRoleAs(elsewhere.RoleARN(made), "test", services[strings.TrimPrefix(made.Name, "drover-eu-central-1-")])
		require.Error(t, err, "%s trusts other accounts", r.Name)
	}
}

// IAM limits the characters of policies without white space. The test uses the region and partition with the longest names.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html#reference_iam-quotas-entity-length
func TestPoliciesFit(t *testing.T) {
	length := func(document any) int {
		body, err := json.Marshal(document)
		require.NoError(t, err)
		longest := strings.NewReplacer("arn:aws:", "arn:aws-us-gov:", testRegion, "ap-southeast-1").Replace(string(body))
		return len(longest)
	}
	for _, p := range synthesizedStacks.ofType("AWS::IAM::ManagedPolicy") {
		require.LessOrEqual(t, length(p["PolicyDocument"]), 6144, p["ManagedPolicyName"])
	}
	for _, r := range synthesizedStacks.ofType("AWS::IAM::Role") {
		require.LessOrEqual(t, len(r["RoleName"].(string)), 64)
		if r["Policies"] != nil {
			require.LessOrEqual(t, length(r["Policies"]), 10240, r["RoleName"])
		}
	}
}
