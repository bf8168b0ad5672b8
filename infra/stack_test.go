package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/names"
)

// The stack contains only types that the local account provides, and no custom resource.
func TestStackKeepsToKnownTypes(t *testing.T) {
	known := []string{
		"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Events::EventBus", "AWS::Events::Rule",
		"AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::KMS::Key",
		"AWS::Lambda::EventInvokeConfig", "AWS::Lambda::Function", "AWS::Lambda::Permission", "AWS::Logs::LogGroup",
		"AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy",
		"AWS::Scheduler::Schedule", "AWS::Scheduler::ScheduleGroup", "AWS::StepFunctions::StateMachine",
	}
	for id, r := range synthesizedStacks.Resources {
		require.Contains(t, known, r.Type, id)
	}
	require.Empty(t, synthesizedStacks.Parameters, "a deployment needs no parameters")
	require.Empty(t, synthesizedStacks.Rules)
}

// variables are the environment of a function.
func variables(function resource) map[string]any {
	return function.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
}

// Both architectures must have the same stack, because the tests run only one of them.
func TestArchitectureChangesNothingElse(t *testing.T) {
	other, err := synthesize(t.TempDir(), map[string]any{"architecture": "x86_64"})
	require.NoError(t, err)
	require.Equal(t, slices.Sorted(maps.Keys(synthesizedStacks.Resources)), slices.Sorted(maps.Keys(other.Resources)))
	for id, r := range synthesizedStacks.Resources {
		o := other.Resources[id]
		if r.Type == "AWS::Lambda::Function" {
			require.Equal(t, []any{"arm64"}, r.Properties["Architectures"])
			require.Equal(t, []any{"x86_64"}, o.Properties["Architectures"])
			ours, theirs := r.Properties["Code"].(map[string]any), o.Properties["Code"].(map[string]any)
			require.NotEqual(t, ours["S3Key"], theirs["S3Key"])
			theirs["S3Key"] = ours["S3Key"]
			o.Properties["Architectures"] = r.Properties["Architectures"]
			ourRelay, theirRelay := variables(r), variables(o)
			if code, plans := ourRelay["DROVER_RELAY"]; plans {
				require.NotEqual(t, code, theirRelay["DROVER_RELAY"])
				theirRelay["DROVER_RELAY"] = code
			}
		}
		if diff := cmp.Diff(r, o); diff != "" {
			t.Errorf("%s (-arm64 +x86_64):\n%s", id, diff)
		}
	}
}

func TestSynthesisRefuses(t *testing.T) {
	t.Run("an architecture that Lambda does not have", func(t *testing.T) {
		_, err := newApp(options{functions: t.TempDir(), outdir: t.TempDir(), context: map[string]any{"architecture": "riscv64"}})
		require.EqualError(t, err, `context "architecture" is riscv64: must be arm64 or x86_64`)
	})
	t.Run("a function that is not compiled", func(t *testing.T) {
		_, err := newApp(options{functions: t.TempDir(), outdir: t.TempDir()})
		require.ErrorContains(t, err, "function admit is not compiled")
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	// The validation plugin must be active, and the findings of its default rules must be errors.
	for name, c := range map[string]struct {
		kind       string
		properties map[string]any
		complaint  string
	}{
		"a property that does not exist": {"AWS::SQS::Queue", map[string]any{"VisibilityTimeOut": 1}, "VisibilityTimeOut"},
		"a runtime that Lambda no longer takes": {"AWS::Lambda::Function", map[string]any{
			"Runtime": "nodejs12.x", "Handler": "index.handler", "Role": "arn:aws:iam::111122223333:role/any",
			"Code": map[string]any{"ZipFile": "x"},
		}, "nodejs12.x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, compile(filepath.Join(dir, "functions")))
			app, err := newApp(options{functions: filepath.Join(dir, "functions"), outdir: filepath.Join(dir, "cdk.out")})
			require.NoError(t, err)
			stack := app.Node().FindChild(jsii.String("drover")).(awscdk.Stack)
			awscdk.NewCfnResource(stack, jsii.String("Wrong"), &awscdk.CfnResourceProps{Type: jsii.String(c.kind), Properties: &c.properties})
			require.ErrorContains(t, synth(app), "Validation failed")
			report, err := os.ReadFile(filepath.Join(dir, "cdk.out", "validation-report.json"))
			require.NoError(t, err)
			require.Contains(t, string(report), c.complaint)
		})
	}
}

func TestFunctions(t *testing.T) {
	groups := synthesizedStacks.ofType("AWS::Logs::LogGroup")
	for _, f := range synthesizedStacks.ofType("AWS::Lambda::Function") {
		name := f["FunctionName"].(string)
		require.Equal(t, "provided.al2023", f["Runtime"], name)
		require.Equal(t, "bootstrap", f["Handler"], name)
		require.Equal(t, map[string]any{"Mode": "Active"}, f["TracingConfig"], name)
		require.Equal(t, map[string]any{"LogFormat": "JSON", "LogGroup": "/aws/lambda/" + name}, f["LoggingConfig"], name)
		require.NotContains(t, f, "ReservedConcurrentExecutions", name)
		env := f["Environment"].(map[string]any)["Variables"].(map[string]any)
		require.Equal(t, "drover-specs-111122223333-eu-central-1", env["DROVER_SPECS_BUCKET"], name)
		require.Equal(t, "drover-state-111122223333-eu-central-1", env["DROVER_STATE_BUCKET"], name)
		require.Equal(t, testAccount, env["DROVER_ACCOUNT"], name)
		require.Equal(t, testPartition, env["DROVER_PARTITION"], name)
	}
	env := func(function string) map[string]any {
		f := synthesizedStacks.resourceNamed(t, "AWS::Lambda::Function", "FunctionName", "drover-"+function)
		return f["Environment"].(map[string]any)["Variables"].(map[string]any)
	}
	converge := "arn:aws:states:eu-central-1:111122223333:stateMachine:drover-converge"
	require.Equal(t, converge, env("admit")["DROVER_CONVERGE_ARN"])
	require.Equal(t, converge, env("sweep")["DROVER_CONVERGE_ARN"])
	require.Equal(t, "arn:aws:sns:eu-central-1:111122223333:drover-notices", env("report")["DROVER_TOPIC_ARN"])
	require.Equal(t, "arn:aws:iam::111122223333:role/drover-eu-central-1-cloudformation", env("change")["DROVER_CLOUDFORMATION_ROLE_ARN"])
	for id, g := range groups {
		require.Positive(t, g["RetentionInDays"], "%s keeps logs for ever", id)
	}
	for _, m := range synthesizedStacks.ofType("AWS::StepFunctions::StateMachine") {
		require.Equal(t, map[string]any{"Enabled": true}, m["TracingConfiguration"])
		logging := m["LoggingConfiguration"].(map[string]any)
		require.Contains(t, []any{"ERROR", "ALL"}, logging["Level"])
		destination, err := json.Marshal(logging["Destinations"])
		require.NoError(t, err)
		require.Contains(t, string(destination), "log-group:/aws/vendedlogs/states/"+m["StateMachineName"].(string))
	}
}

// resourcePolicy of a kind, whose resource property names the resource.
func resourcePolicy(t *testing.T, kind, property, name string) *iam.Policy {
	t.Helper()
	policy, _, err := iam.ParsePolicyValue(synthesizedStacks.resourceNamed(t, kind, property, name)["PolicyDocument"], true)
	require.NoError(t, err)
	return policy
}

func TestBuckets(t *testing.T) {
	specs, state := "drover-specs-111122223333-eu-central-1", "drover-state-111122223333-eu-central-1"
	for _, name := range []string{specs, state} {
		bucket := synthesizedStacks.resourceNamed(t, "AWS::S3::Bucket", "BucketName", name)
		require.Equal(t, map[string]any{"Status": "Enabled"}, bucket["VersioningConfiguration"])
		require.Equal(t, map[string]any{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		}, bucket["PublicAccessBlockConfiguration"])
		require.NotEmpty(t, bucket["BucketEncryption"])
	}
	require.Equal(t, map[string]any{"EventBridgeConfiguration": map[string]any{"EventBridgeEnabled": true}},
		synthesizedStacks.resourceNamed(t, "AWS::S3::Bucket", "BucketName", specs)["NotificationConfiguration"])

	role := func(function string) iam.Principal {
		return iam.Principal{
			ARN:     "arn:aws:sts::111122223333:assumed-role/drover-eu-central-1-" + function + "/test",
			RoleARN: "arn:aws:iam::111122223333:role/drover-eu-central-1-" + function, Account: testAccount,
		}
	}
	admin := iam.Principal{ARN: "arn:aws:iam::111122223333:user/admin", Account: testAccount}
	node := iam.Principal{
		ARN: "arn:aws:sts::111122223333:assumed-role/drover-demo-control-plane-NodeRole-1/i-1", Account: testAccount,
		RoleARN: "arn:aws:iam::111122223333:role/drover-demo-control-plane-NodeRole-1",
	}
	for name, c := range map[string]struct {
		who         iam.Principal
		action, key string
		bucket, tls string
		denied      bool
	}{
		"a user writes a spec": {who: admin, action: "s3:PutObject", key: "clusters/demo.yaml", bucket: specs, tls: "true"},
		"not in the clear": {
			who: admin, action: "s3:PutObject", key: "clusters/demo.yaml", bucket: specs, tls: "false", denied: true,
		},
		"plan writes a template": {who: role("plan"), action: "s3:PutObject", key: "templates/1.yaml", bucket: state, tls: "true"},
		"report writes the status": {
			who: role("report"), action: "s3:PutObject", key: "status/clusters/demo.json", bucket: state, tls: "true",
		},
		"a user writes no status": {
			who: admin, action: "s3:PutObject", key: "status/clusters/demo.json", bucket: state, tls: "true", denied: true,
		},
		"a user reads the status": {who: admin, action: "s3:GetObject", key: "status/clusters/demo.json", bucket: state, tls: "true"},
		"a user replicates nothing": {
			who: admin, action: "s3:ReplicateObject", key: "status/clusters/demo.json", bucket: state, tls: "true", denied: true,
		},
		"a user deletes no version": {
			who: admin, action: "s3:DeleteObjectVersion", key: "leases/demo.json", bucket: state, tls: "true", denied: true,
		},
		"a node reads its configuration": {who: node, action: "s3:GetObject", key: "userdata/1", bucket: state, tls: "true"},
		"a node writes nothing":          {who: node, action: "s3:PutObject", key: "userdata/1", bucket: state, tls: "true", denied: true},
		"a machine, which writes nothing": {
			who: role("join-node"), action: "s3:PutObject", key: "status/clusters/demo.json", bucket: state, tls: "true", denied: true,
		},
		"reads without TLS are denied": {
			who: role("plan"), action: "s3:GetObject", key: "templates/1.yaml", bucket: state, tls: "false", denied: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			context := map[string]string{"aws:SecureTransport": c.tls, "aws:PrincipalArn": c.who.ARN}
			if c.who.RoleARN != "" {
				context["aws:PrincipalArn"] = c.who.RoleARN
			}
			got := iam.EvaluateResourcePolicy(resourcePolicy(t, "AWS::S3::BucketPolicy", "Bucket", c.bucket), c.who, c.action, "arn:aws:s3:::"+
				c.bucket+"/"+c.key, context)
			require.Equal(t, c.denied, got == iam.Denied)
		})
	}
}

// Objects that are named by their content may be in use for years. Only plans, baselines, answers and replaced objects expire.
func TestNothingInUseExpires(t *testing.T) {
	expiring := 0
	for _, bucket := range synthesizedStacks.ofType("AWS::S3::Bucket") {
		for _, each := range bucket["LifecycleConfiguration"].(map[string]any)["Rules"].([]any) {
			rule := each.(map[string]any)
			if _, expires := rule["ExpirationInDays"]; expires {
				days, expires := map[any]string{
					"plans/": "90", "baselines/": "90", names.RolloutPlans: "400", names.DecisionAnswers: "400",
				}[rule["Prefix"]]
				require.True(t, expires, rule["Prefix"])
				require.Equal(t, days, fmt.Sprint(rule["ExpirationInDays"]), rule["Prefix"])
				expiring++
			}
			require.NotContains(t, rule, "ExpirationDate")
		}
	}
	require.Equal(t, 4, expiring)
}

func TestAlarmsReachPeople(t *testing.T) {
	const topic = "arn:aws:sns:eu-central-1:111122223333:drover-notices"
	watched := make(map[string]bool)
	for _, alarm := range synthesizedStacks.ofType("AWS::CloudWatch::Alarm") {
		require.Equal(t, []any{topic}, alarm["AlarmActions"], alarm["AlarmName"])
		require.Equal(t, []any{topic}, alarm["OKActions"], alarm["AlarmName"])
		require.Equal(t, "notBreaching", alarm["TreatMissingData"], alarm["AlarmName"])
		dimensions, ok := alarm["Dimensions"].([]any)
		if !ok {
			require.Equal(t, "800", fmt.Sprint(alarm["Threshold"]), "four fifths of AWS's default")
			watched[alarm["MetricName"].(string)+" of the account"] = true
			continue
		}
		require.Equal(t, "0", fmt.Sprint(alarm["Threshold"]), alarm["AlarmName"])
		for _, each := range dimensions {
			value := each.(map[string]any)["Value"].(string)
			watched[alarm["MetricName"].(string)+" of "+value[strings.LastIndex(value, ":")+1:]] = true
		}
	}
	for _, f := range functionTable {
		if f.deadLettersAlarm {
			require.True(t, f.async, "%s: events that it fails to handle do not reach the dead-letter queue", f.name)
			require.NotContains(t, watched, "Errors of drover-"+f.name)
			continue
		}
		require.Contains(t, watched, "Errors of drover-"+f.name)
		require.Contains(t, watched, "Throttles of drover-"+f.name)
	}
	for machine := range machineGoldens {
		for _, metric := range []string{"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"} {
			require.Contains(t, watched, metric+" of "+machine)
		}
	}
	require.Contains(t, watched, "ApproximateNumberOfMessagesVisible of drover-dead-letters")
	require.Contains(t, watched, "ClaimedAccountConcurrency of the account")

	// The topic is encrypted: an alarm needs both the topic and its key.
	alarms := iam.Principal{Service: "cloudwatch.amazonaws.com"}
	context := func(account string) map[string]string {
		return map[string]string{"aws:SourceAccount": account, "aws:SecureTransport": "true"}
	}
	var onTopic *iam.Policy
	for _, p := range synthesizedStacks.ofType("AWS::SNS::TopicPolicy") {
		var err error
		onTopic, _, err = iam.ParsePolicyValue(p["PolicyDocument"], true)
		require.NoError(t, err)
	}
	keys := slices.Collect(maps.Values(synthesizedStacks.ofType("AWS::KMS::Key")))
	require.Len(t, keys, 1)
	onKey, _, err := iam.ParsePolicyValue(keys[0]["KeyPolicy"], true)
	require.NoError(t, err)
	for account, want := range map[string]bool{testAccount: true, "999999999999": false} {
		require.Equal(t, want, iam.Allowed == iam.EvaluateResourcePolicy(onTopic, alarms, "sns:Publish", topic, context(account)))
		for _, action := range []string{"kms:GenerateDataKey", "kms:Decrypt"} {
			require.Equal(t, want, iam.Allowed == iam.EvaluateResourcePolicy(onKey, alarms, action,
				"arn:aws:kms:eu-central-1:111122223333:key/NoticesKey", context(account)))
		}
	}
	// So does a function that notifies. Its role permits publishing, and the key's policy permits the use of the key.
	for _, f := range functionTable {
		role := iam.Principal{
			ARN:     "arn:aws:sts::111122223333:assumed-role/drover-eu-central-1-" + f.name + "/test",
			RoleARN: "arn:aws:iam::111122223333:role/drover-eu-central-1-" + f.name, Account: testAccount,
		}
		for _, action := range []string{"kms:GenerateDataKey", "kms:Decrypt"} {
			require.Equal(t, f.notifies, iam.Allowed == iam.EvaluateResourcePolicy(onKey, role, action,
				"arn:aws:kms:eu-central-1:111122223333:key/NoticesKey", nil), f.name)
		}
		require.NotEqual(t, iam.Allowed, iam.EvaluateResourcePolicy(onKey, role, "kms:PutKeyPolicy",
			"arn:aws:kms:eu-central-1:111122223333:key/NoticesKey", nil), f.name)
	}
}

func TestDashboardShowsEveryMachine(t *testing.T) {
	boards := slices.Collect(maps.Values(synthesizedStacks.ofType("AWS::CloudWatch::Dashboard")))
	require.Len(t, boards, 1)
	body, err := json.Marshal(boards[0]["DashboardBody"])
	require.NoError(t, err)
	shown := strings.ReplaceAll(string(body), `\`, "")
	for machine := range machineGoldens {
		for _, metric := range []string{"ExecutionsStarted", "ExecutionsSucceeded", "ExecutionsFailed", "ExecutionsTimedOut"} {
			require.Regexp(t, `"`+metric+`","StateMachineArn","[^"]*:`+machine+`"`, shown)
		}
	}
}

func TestConcurrencyOfTheAccount(t *testing.T) {
	for _, test := range []struct {
		context any
		want    float64
		ok      bool
	}{{nil, 1000, true}, {10.0, 10, true}, {"250", 250, true}, {"many", 0, false}, {"0", 0, false}, {0.0, 0, false}, {true, 0, false}} {
		got, err := findConcurrency(test.context)
		require.Equal(t, test.ok, err == nil, "%v: %v", test.context, err)
		require.EqualValues(t, test.want, got)
	}
}
