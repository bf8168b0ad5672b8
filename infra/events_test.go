package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eventbridge/pattern"
	"github.com/drover-run/drover/local/aws/iam"
)

// The samples of the AWS documentation, with this account's names in the fields that rules match.
const (
	objectCreated = `{"version":"0","id":"17793124-05d4-b198-2fde-7ededc63b103","detail-type":"Object Created","source":"aws.s3",` +
		`"account":"111122223333","time":"2021-11-12T00:00:00Z","region":"eu-central-1",` +
		`"resources":["arn:aws:s3:::drover-specs-111122223333-eu-central-1"],` +
		`"detail":{"version":"0","bucket":{"name":"drover-specs-111122223333-eu-central-1"},` +
		`"object":{"key":"clusters/demo.yaml","size":5,"etag":"b1946ac92492d2347c6235b4d2611184",` +
		`"version-id":"IYV3p45BT0ac8hjHg1houSdS1a.Mro8e","sequencer":"617f08299329d189"},` +
		`"request-id":"N4N7GDK58NMKJ12R","requester":"123456789012","source-ip-address":"1.2.3.4","reason":"PutObject"}}`
	objectDeleted = `{"version":"0","id":"2ee9cc15-d022-99ea-1fb8-1b1bac4850f9","detail-type":"Object Deleted","source":"aws.s3",` +
		`"account":"111122223333","time":"2021-11-12T00:00:00Z","region":"eu-central-1",` +
		`"resources":["arn:aws:s3:::drover-specs-111122223333-eu-central-1"],` +
		`"detail":{"version":"0","bucket":{"name":"drover-specs-111122223333-eu-central-1"},` +
		`"object":{"key":"clusters/demo.yaml","etag":"d41d8cd98f00b204e9800998ecf8427e",` +
		`"version-id":"1QW9g1Z99LUNbvaaYVpW9xDlOLU.qxgF","sequencer":"617f0837b476e463"},` +
		`"request-id":"0BH729840619AG5K","requester":"123456789012","source-ip-address":"1.2.3.4","reason":"DeleteObject",` +
		`"deletion-type":"Delete Marker Created"}}`
	stackStatus = `{"version":"0","id":"6a7e8feb-b491-4cf7-a9f1-bf3703467718","detail-type":"CloudFormation Stack Status Change",` +
		`"source":"aws.cloudformation","account":"111122223333","time":"2017-12-22T18:43:48Z","region":"eu-central-1",` +
		`"resources":["arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-demo-network/6a7e8feb"],` +
		`"detail":{"stack-id":"arn:aws:cloudformation:eu-central-1:111122223333:stack/drover-demo-network/6a7e8feb",` +
		`"status-details":{"status":"CREATE_COMPLETE","status-reason":""},"client-request-token":""}}`
	launch = `{"version":"0","id":"12345678-1234-1234-1234-123456789012","detail-type":"EC2 Instance-launch Lifecycle Action",` +
		`"source":"aws.autoscaling","account":"111122223333","time":"2026-01-01T00:00:00Z","region":"eu-central-1",` +
		`"resources":["auto-scaling-group-arn"],"detail":{"LifecycleActionToken":"87654321-4321-4321-4321-210987654321",` +
		`"AutoScalingGroupName":"drover-demo-pool-workers","LifecycleHookName":"launch","EC2InstanceId":"i-1234567890abcdef0",` +
		`"LifecycleTransition":"autoscaling:EC2_INSTANCE_LAUNCHING","NotificationMetadata":"additional-info","Origin":"EC2",` +
		`"Destination":"AutoScalingGroup"}}`
	spot = `{"version":"0","id":"12345678-1234-1234-1234-123456789012",` +
		`"detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"111122223333",` +
		`"time":"2026-01-01T00:00:00Z","region":"eu-central-1",` +
		`"resources":["arn:aws:ec2:eu-central-1a:instance/i-1234567890abcdef0"],` +
		`"detail":{"instance-id":"i-1234567890abcdef0","instance-action":"terminate"}}`
	terminate = `{"version":"0","id":"12345678-1234-1234-1234-123456789012",` +
		`"detail-type":"EC2 Instance-terminate Lifecycle Action","source":"aws.autoscaling","account":"111122223333",` +
		`"time":"2026-01-01T00:00:00Z","region":"eu-central-1","resources":["auto-scaling-group-arn"],` +
		`"detail":{"LifecycleActionToken":"87654321-4321-4321-4321-210987654321","AutoScalingGroupName":"drover-demo-pool-workers",` +
		`"LifecycleHookName":"terminate","EC2InstanceId":"i-1234567890abcdef0",` +
		`"LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING","NotificationMetadata":"additional-info",` +
		`"Origin":"AutoScalingGroup","Destination":"EC2"}}`
	abortedEvent = `{"version":"0","id":"315c1398-40ff-a850-213b-158f73e60175","detail-type":"Step Functions Execution Status Change",` +
		`"source":"aws.states","account":"111122223333","time":"2019-02-26T19:42:21Z","region":"eu-central-1",` +
		`"resources":["arn:aws:states:eu-central-1:111122223333:execution:drover-converge:demo-1"],` +
		`"detail":{"executionArn":"arn:aws:states:eu-central-1:111122223333:execution:drover-converge:demo-1",` +
		`"stateMachineArn":"arn:aws:states:eu-central-1:111122223333:stateMachine:drover-converge","name":"demo-1","status":"ABORTED",` +
		`"startDate":1551225271984,"stopDate":1551225371984,"input":"{\"cluster\":\"demo\"}","inputDetails":{"included":true},` +
		`"output":null,"outputDetails":null,"error":null,"cause":null}}`
)

func TestRulesMatchWhatTheyShouldAndNothingElse(t *testing.T) {
	rules := make(map[string]*pattern.Pattern)
	for _, rule := range synthesizedStacks.ofType("AWS::Events::Rule") {
		body, err := json.Marshal(rule["EventPattern"])
		require.NoError(t, err)
		rules[rule["Name"].(string)], err = pattern.Parse(body)
		require.NoError(t, err)
	}
	cases := map[string]struct {
		event string
		// replace pairs in the sample.
		replace []string
		// rules that match; all others must not.
		rules []string
	}{
		"a spec is uploaded": {objectCreated, nil, []string{"drover-spec-changed"}},
		"a spec is uploaded in parts": {
			objectCreated, []string{`"PutObject"`, `"CompleteMultipartUpload"`}, []string{"drover-spec-changed"},
		},
		"a spec is deleted": {objectDeleted, nil, []string{"drover-spec-changed"}},
		"a release is uploaded": {
			objectCreated, []string{"clusters/demo", "releases/r1"},
			[]string{"drover-release-changed", "drover-release-uploaded", "drover-rollout-changed"},
		},
		"a release is deleted": {
			objectDeleted, []string{"clusters/demo", "releases/r1"}, []string{"drover-release-changed", "drover-rollout-changed"},
		},
		"a rollout is uploaded": {objectCreated, []string{"clusters/demo", "rollouts/next"}, []string{"drover-rollout-changed"}},
		"a decision is uploaded": {
			objectCreated, []string{"clusters/demo", "decisions/next/go"}, []string{"drover-rollout-changed"},
		},
		"a freeze is deleted": {objectDeleted, []string{"clusters/demo", "freezes/sale"}, []string{"drover-rollout-changed"}},
		"a key only contains the prefix": {
			objectCreated, []string{"clusters/demo", "old/clusters/demo"}, []string{"drover-spec-changed"},
		},
		"a key has another suffix": {
			objectCreated, []string{"clusters/demo.yaml", "clusters/demo.yml"}, []string{"drover-spec-changed"},
		},
		"an object of another bucket":            {objectCreated, []string{"drover-specs-", "other-specs-"}, nil},
		"drover writes its own state":            {objectCreated, []string{"drover-specs-", "drover-state-"}, nil},
		"an object's tags change":                {objectCreated, []string{"Object Created", "Object Tags Added"}, nil},
		"another source's event looks like S3's": {objectCreated, []string{"aws.s3", "my.s3"}, nil},
		"a stack of a cluster is made":           {stackStatus, nil, []string{"drover-stack-done"}},
		"a stack could not be made": {
			stackStatus, []string{"CREATE_COMPLETE", "ROLLBACK_COMPLETE"}, []string{"drover-stack-done"},
		},
		"a stack could not be updated": {
			stackStatus, []string{"CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}, []string{"drover-stack-done"},
		},
		"a rollback fails": {
			stackStatus, []string{"CREATE_COMPLETE", "UPDATE_ROLLBACK_FAILED"}, []string{"drover-stack-done"},
		},
		"a stack could not be deleted": {stackStatus, []string{"CREATE_COMPLETE", "DELETE_FAILED"}, []string{"drover-stack-done"}},
		"a stack is being made": {
			stackStatus, []string{"CREATE_COMPLETE", "CREATE_IN_PROGRESS"}, []string{"drover-stack-progress"},
		},
		"a stack cleans up": {
			stackStatus, []string{"CREATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"}, []string{"drover-stack-progress"},
		},
		"a rolled back stack cleans up": {
			stackStatus, []string{"CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"}, []string{"drover-stack-progress"},
		},
		"a change set waits":            {stackStatus, []string{"CREATE_COMPLETE", "REVIEW_IN_PROGRESS"}, nil},
		"drover's own stack is updated": {stackStatus, []string{"stack/drover-demo-network", "stack/drover"}, nil},
		"a stack of others":             {stackStatus, []string{"stack/drover-demo-network", "stack/web-drover-demo"}, nil},
		"a resource of a stack": {
			stackStatus, []string{"CloudFormation Stack Status Change", "CloudFormation Resource Status Change"}, nil,
		},
		"an instance of a pool is launched": {launch, nil, []string{"drover-instance-launched"}},
		"an instance leaves a warm pool": {
			launch, []string{`"Origin":"EC2"`, `"Origin":"WarmPool"`}, []string{"drover-instance-launched"},
		},
		"an instance goes to a warm pool": {launch, []string{`"Destination":"AutoScalingGroup"`, `"Destination":"WarmPool"`}, nil},
		"an instance of another group":    {launch, []string{"drover-demo-pool-workers", "web"}, nil},
		"an instance was launched": {
			launch, []string{"EC2 Instance-launch Lifecycle Action", "EC2 Instance Launch Successful"}, nil,
		},
		"an instance of a pool is about to terminate": {terminate, nil, []string{"drover-instance-terminating"}},
		"an instance returns to a warm pool":          {terminate, []string{`"Destination":"EC2"`, `"Destination":"WarmPool"`}, nil},
		"an instance of another group terminates":     {terminate, []string{"drover-demo-pool-workers", "web"}, nil},
		"an instance was terminated": {
			terminate, []string{"EC2 Instance-terminate Lifecycle Action", "EC2 Instance Terminate Successful"}, nil,
		},
		"a converge is stopped":          {abortedEvent, nil, []string{"drover-converge-ended"}},
		"a converge times out":           {abortedEvent, []string{"ABORTED", "TIMED_OUT"}, []string{"drover-converge-ended"}},
		"a converge fails":               {abortedEvent, []string{"ABORTED", "FAILED"}, []string{"drover-converge-ended"}},
		"a converge succeeds":            {abortedEvent, []string{"ABORTED", "SUCCEEDED"}, nil},
		"a converge starts":              {abortedEvent, []string{"ABORTED", "RUNNING"}, nil},
		"an upgrade is stopped":          {abortedEvent, []string{"stateMachine:drover-converge", "stateMachine:drover-upgrade"}, nil},
		"a spot instance is interrupted": {spot, nil, []string{"drover-spot-instance-ending"}},
		"a spot instance may be interrupted": {
			spot, []string{
				"EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation",
			}, []string{"drover-spot-instance-ending"},
		},
		"an instance's state changes": {spot, []string{"EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			event := strings.NewReplacer(c.replace...).Replace(c.event)
			require.True(t, len(c.replace) == 0 || event != c.event, "nothing was replaced")
			var got []string
			for _, rule := range slices.Sorted(maps.Keys(rules)) {
				ok, err := rules[rule].Match([]byte(event))
				require.NoError(t, err)
				if ok {
					got = append(got, rule)
				}
			}
			require.Equal(t, c.rules, got)
		})
	}
}

// queuePolicy is who may send to the dead-letter queue.
func queuePolicy(t *testing.T) *iam.Policy {
	t.Helper()
	for _, p := range synthesizedStacks.ofType("AWS::SQS::QueuePolicy") {
		policy, _, err := iam.ParsePolicyValue(p["PolicyDocument"], true)
		require.NoError(t, err)
		return policy
	}
	require.Fail(t, "no queue policy")
	return nil
}

func TestNoEventIsLost(t *testing.T) {
	const queue = "arn:aws:sqs:eu-central-1:111122223333:drover-dead-letters"
	policy := queuePolicy(t)
	permissions := slices.Collect(maps.Values(synthesizedStacks.ofType("AWS::Lambda::Permission")))
	for _, rule := range synthesizedStacks.ofType("AWS::Events::Rule") {
		name := rule["Name"].(string)
		arn := "arn:aws:events:eu-central-1:111122223333:rule/" + name
		service := iam.Principal{Service: "events.amazonaws.com"}
		context := map[string]string{"aws:SourceArn": arn, "aws:SecureTransport": "true"}
		require.Equal(t, iam.Allowed, iam.EvaluateResourcePolicy(policy, service, "sqs:SendMessage", queue, context),
			"%s may not send its dead letters", name)
		for _, each := range rule["Targets"].([]any) {
			target := each.(map[string]any)
			require.Equal(t, map[string]any{"Arn": queue}, target["DeadLetterConfig"], name)
			require.NotEmpty(t, target["RetryPolicy"], name)
			if strings.Contains(target["Arn"].(string), ":function:") {
				require.True(t, slices.ContainsFunc(permissions, func(p map[string]any) bool {
					return p["FunctionName"] == target["Arn"] && p["SourceArn"] == arn && p["Principal"] == "events.amazonaws.com"
				}), "%s may not invoke its function", name)
			} else {
				require.NoError(t, authorizeService(t, target["RoleArn"].(string), "events.amazonaws.com", "states:StartExecution",
					target["Arn"].(string)), name)
			}
		}
	}
	for _, bus := range synthesizedStacks.ofType("AWS::Events::EventBus") {
		require.Equal(t, map[string]any{"Arn": queue}, bus["DeadLetterConfig"], "what it cannot encrypt")
		context := map[string]string{
			"aws:SourceArn": "arn:aws:events:eu-central-1:111122223333:event-bus/" + bus["Name"].(string), "aws:SecureTransport": "true",
		}
		require.Equal(t, iam.Allowed, iam.EvaluateResourcePolicy(policy, iam.Principal{Service: "events.amazonaws.com"}, "sqs:SendMessage",
			queue, context))
	}
	for _, schedule := range synthesizedStacks.ofType("AWS::Scheduler::Schedule") {
		target := schedule["Target"].(map[string]any)
		require.Equal(t, map[string]any{"Arn": queue}, target["DeadLetterConfig"])
		require.NotEmpty(t, target["RetryPolicy"])
		require.True(t, json.Valid([]byte(target["Input"].(string))), "the default input's detail is a string")
		for action, on := range map[string]string{"lambda:InvokeFunction": target["Arn"].(string), "sqs:SendMessage": queue} {
			require.NoError(t, authorizeService(t, target["RoleArn"].(string), "scheduler.amazonaws.com", action, on))
		}
	}
	configured := make(map[string]map[string]any)
	for _, c := range synthesizedStacks.ofType("AWS::Lambda::EventInvokeConfig") {
		configured[c["FunctionName"].(string)] = c
	}
	require.ElementsMatch(t, []string{
		"drover-admit", "drover-fleet", "drover-publish", "drover-rollout", "drover-stackevent", "drover-sweep",
	}, slices.Collect(maps.Keys(configured)), "functions that events invoke")
	for name, c := range configured {
		require.Equal(t, map[string]any{"OnFailure": map[string]any{"Destination": queue}}, c["DestinationConfig"], name)
		require.Positive(t, c["MaximumEventAgeInSeconds"], name)
		role := synthesizedStacks.resourceNamed(t, "AWS::Lambda::Function", "FunctionName", name)["Role"].(string)
		require.NoError(t, authorizeService(t, role, "lambda.amazonaws.com", "sqs:SendMessage", queue), name)
	}
	other := map[string]string{"aws:SourceArn": "arn:aws:events:eu-central-1:999999999999:rule/theirs", "aws:SecureTransport": "true"}
	require.NotEqual(t, iam.Allowed, iam.EvaluateResourcePolicy(policy, iam.Principal{Service: "events.amazonaws.com"}, "sqs:SendMessage",
		queue, other))
}

// authorizeService returns an error unless the service may perform the action with the role.
func authorizeService(t *testing.T, role, service, action, on string) error {
	t.Helper()
	caller, _, err := account(t).AssumeRoleAs(role, "test", service)
	require.NoError(t, err)
	return caller.Authorize(action, on, nil)
}
