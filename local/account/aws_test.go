package account

// The real aws command, new or old, against the endpoint.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
)

func TestAWSCommand(t *testing.T) {
	if _, err := exec.LookPath("aws"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no aws command on PATH: .ci/run installs it")
		}
		t.Skip("there is no aws command on PATH: apt-get install awscli")
	}
	const name = "console"
	cloud.retire(t, name)
	aws := console(t)
	run := func(t *testing.T, arguments ...string) string {
		t.Helper()
		output, code := aws(t, arguments...)
		require.Zero(t, code, "aws %s\n%s", strings.Join(arguments, " "), output)
		return output
	}
	spec := text(t, specOf(name, pool("one", 1)))
	file := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(spec), 0o600))
	specs, machine := names.SpecsBucket(ID, "us-east-1"), "arn:aws:states:us-east-1:"+ID+":stateMachine:drover-converge"
	topic := "arn:aws:sns:us-east-1:" + ID + ":drover-notices"
	// a queue of its own, because a message in the dead-letter queue raises an alarm
	queueName := name
	created, err := sqs.NewFromConfig(cloud.Config()).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &queueName})
	require.NoError(t, err)
	queue := *created.QueueUrl
	group := names.Group(name, "one")

	require.Contains(t, run(t, "s3", "cp", file, "s3://"+specs+"/clusters/"), "upload: ")
	object, err := cloud.specs.Get(t.Context(), names.ClusterSpec(name), 1<<20)
	require.NoError(t, err)
	cloud.ready(t, name, object.Version)

	payload := filepath.Join(t.TempDir(), "payload")
	require.NoError(t, os.WriteFile(payload, []byte("{}"), 0o600))
	execution := find(t, run(t, "stepfunctions", "start-execution", "--state-machine-arn", machine, "--input", `{"cluster":"`+name+`"}`),
		"executionArn")
	cloud.settle(t)
	// words are required in the output of a command.
	tests := map[string]struct {
		command string
		want    []string
	}{
		"s3 ls":             {"s3 ls", []string{specs}},
		"s3 ls of a bucket": {"s3 ls s3://" + specs + " --recursive", []string{"clusters/console.yaml"}},
		"s3 cp to stdout":   {"s3 cp s3://" + specs + "/clusters/console.yaml -", []string{"name: console"}},
		"s3api":             {"s3api list-object-versions --bucket " + specs + " --prefix clusters/console", []string{"VersionId"}},
		"s3api head":        {"s3api head-object --bucket " + specs + " --key clusters/console.yaml", []string{"ETag"}},
		"state machines":    {"stepfunctions list-state-machines", []string{machine, "drover-join-node"}},
		"a state machine":   {"stepfunctions describe-state-machine --state-machine-arn " + machine, []string{"JSONata"}},
		"executions":        {"stepfunctions list-executions --state-machine-arn " + machine, []string{"SUCCEEDED"}},
		"an execution": {
			"stepfunctions describe-execution --execution-arn " + execution, []string{`"SUCCEEDED"`, "the cluster matches its spec"},
		},
		"an execution's history": {
			"stepfunctions get-execution-history --execution-arn " + execution, []string{"TaskStateEntered", "ExecutionSucceeded"},
		},
		"stacks":               {"cloudformation describe-stacks", []string{"drover-console-network", "CREATE_COMPLETE"}},
		"a stack":              {"cloudformation describe-stacks --stack-name drover-console-control-plane", []string{"ClusterEndpoint"}},
		"stacks by status":     {"cloudformation list-stacks --stack-status-filter CREATE_COMPLETE", []string{"drover-console-pool-one"}},
		"a stack's events":     {"cloudformation describe-stack-events --stack-name drover-console-network", []string{"AWS::EC2::VPC"}},
		"a stack's resources":  {"cloudformation list-stack-resources --stack-name " + group, []string{"AWS::AutoScaling::AutoScalingGroup"}},
		"a stack's template":   {"cloudformation get-template --stack-name " + group, []string{"AutoScalingRollingUpdate"}},
		"clusters":             {"eks list-clusters", []string{"drover-console"}},
		"a cluster":            {"eks describe-cluster --name drover-console", []string{"ACTIVE", "certificateAuthority"}},
		"a cluster's token":    {"eks get-token --cluster-name drover-console", []string{"k8s-aws-v1."}},
		"a cluster's add-ons":  {"eks list-addons --cluster-name drover-console", []string{"coredns"}},
		"a cluster's insights": {"eks list-insights --cluster-name drover-console", []string{"Kubelet version skew", "UPGRADE_READINESS"}},
		"insights of one kind": {
			"eks list-insights --cluster-name drover-console --filter categories=UPGRADE_READINESS,statuses=PASSING", []string{
				"Deprecated APIs removed in Kubernetes v1.37",
			},
		},
		"insights refreshed":  {"eks start-insights-refresh --cluster-name drover-console", []string{"IN_PROGRESS"}},
		"Kubernetes versions": {"eks describe-cluster-versions", []string{"STANDARD_SUPPORT", "endOfExtendedSupportDate"}},
		"a quota": {
			"service-quotas get-service-quota --service-code ec2 --quota-code L-1216C47A", []string{"Running On-Demand Standard"},
		},
		"quotas": {"service-quotas list-service-quotas --service-code eks", []string{"L-1194D53C"}},
		"a quota by default": {
			"service-quotas get-aws-default-service-quota --service-code ec2 --quota-code L-1216C47A", []string{`"Value": 5`},
		},
		"alarms are silenced": {"cloudwatch disable-alarm-actions --alarm-names drover-none", nil},
		"groups": {
			"autoscaling describe-auto-scaling-groups --auto-scaling-group-names " + group, []string{"InService", "MixedInstancesPolicy"},
		},
		"hooks": {
			"autoscaling describe-lifecycle-hooks --auto-scaling-group-name " + group, []string{"autoscaling:EC2_INSTANCE_LAUNCHING"},
		},
		"activities":       {"autoscaling describe-scaling-activities --auto-scaling-group-name " + group, []string{"Successful"}},
		"instances":        {"ec2 describe-instances --filters Name=tag:drover:cluster,Values=console", []string{"m7i.large", "running"}},
		"VPCs":             {"ec2 describe-vpcs", []string{"10.7.0.0/16"}},
		"subnets":          {"ec2 describe-subnets --filters Name=availability-zone,Values=us-east-1b", []string{"us-east-1b"}},
		"launch templates": {"ec2 describe-launch-templates", []string{"LatestVersionNumber"}},
		"log groups":       {"logs describe-log-groups --log-group-name-prefix /aws/lambda/drover-", []string{"/aws/lambda/drover-plan"}},
		"log streams":      {"logs describe-log-streams --log-group-name /aws/lambda/drover-plan", []string{"logStreamName"}},
		"log events": {
			"logs filter-log-events --log-group-name /aws/lambda/drover-admit --filter-pattern accepted", []string{`\"cluster\":\"console\"`},
		},
		"logs as they come": {"logs tail /aws/lambda/drover-admit --since 5m", []string{"accepted"}},
		"rules":             {"events list-rules", []string{"drover-spec-changed", "ENABLED"}},
		"targets":           {"events list-targets-by-rule --rule drover-stack-done", []string{"drover-stackevent"}},
		"schedules":         {"scheduler list-schedules", []string{"drover-sweep"}},
		"a schedule":        {"scheduler get-schedule --group-name drover --name drover-sweep", []string{"rate(2 minutes)"}},
		"functions":         {"lambda list-functions", []string{"drover-plan", "provided.al2023"}},
		"a function":        {"lambda get-function --function-name drover-plan", []string{"DROVER_STATE_BUCKET"}},
		"a function that is run": {
			"lambda invoke --function-name drover-sweep --payload fileb://" + payload + " " + os.DevNull, []string{`"StatusCode": 200`},
		},
		"queues": {"sqs list-queues", []string{"drover-dead-letters"}},
		"a queue": {
			"sqs get-queue-attributes --attribute-names All --queue-url " + queue, []string{"ApproximateNumberOfMessages"},
		},
		"a message that is sent": {"sqs send-message --message-body hello --queue-url " + queue, []string{"MessageId"}},
		"messages":               {"sqs receive-message --queue-url " + queue, nil},
		"topics":                 {"sns list-topics", []string{topic}},
		"a topic":                {"sns get-topic-attributes --topic-arn " + topic, []string{"Policy"}},
		"a notice":               {"sns publish --message hello --topic-arn " + topic, []string{"MessageId"}},
		"parameters": {
			"ssm get-parameter --name /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id",
			[]string{"ami-00000000000013601"},
		},
		"who one is":        {"sts get-caller-identity", []string{ID, "user/admin"}},
		"a role":            {"iam get-role --role-name drover-us-east-1-plan", []string{"AssumeRolePolicyDocument"}},
		"a role's policies": {"iam list-role-policies --role-name drover-us-east-1-plan", []string{"PolicyNames"}},
		"alarms":            {"cloudwatch describe-alarms --alarm-names drover-converge-failed", []string{"StateValue"}},
		"metrics":           {"cloudwatch list-metrics --namespace AWS/States", []string{"ExecutionsSucceeded"}},
		"a metric": {
			"cloudwatch get-metric-statistics --namespace AWS/Lambda --metric-name Invocations --dimensions Name=FunctionName,Value=drover-plan " +
				"--start-time 2026-01-01T00:00:00Z --end-time 2099-01-01T00:00:00Z --period 86400000 --statistics Sum", []string{"Sum"},
		},
		"dashboards": {"cloudwatch list-dashboards", []string{"drover"}},
		"keys":       {"kms list-aliases", []string{"alias/"}},
		"what carries a tag": {
			"resourcegroupstaggingapi get-resources --tag-filters Key=drover:cluster,Values=console --resource-type-filters cloudformation:stack",
			[]string{"stack/drover-console-network"},
		},
	}
	if strings.HasPrefix(run(t, "--version"), "aws-cli/1.") {
		delete(tests, "logs as they come") // version 2 supports it
	}
	t.Run("reads and writes", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				out := run(t, strings.Fields(test.command)...)
				for _, want := range test.want {
					require.Contains(t, out, want)
				}
			})
		}
	})
	run(t, "sqs", "purge-queue", "--queue-url", queue)
	t.Run("names an unsupported operation", func(t *testing.T) {
		output, code := aws(t, "sns", "list-platform-applications")
		require.NotZero(t, code)
		require.Contains(t, output, "ListPlatformApplications")
		require.Contains(t, output, "UnsupportedByLocalAccount")
	})
}

// server runs the aws command of version 1 repeatedly in one process, because its start takes more than a second. Each
// input line has the arguments of one command. Each output line has its output and exit code.
const server = `
import io, json, sys
from awscli.clidriver import create_clidriver
answers, driver = sys.stdout, create_clidriver()
for line in sys.stdin:
    sys.stdout = sys.stderr = output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        code = driver.main(json.loads(line))
    except SystemExit as e:
        code = e.code
    print(json.dumps({"code": code or 0, "output": output.buffer.getvalue().decode()}), file=answers, flush=True)
`

// console runs the aws command as the administrator. The endpoint is an argument, because old versions need it.
func console(t *testing.T) func(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	environment := append(os.Environ(), "HOME="+t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=")
	for key, value := range cloud.Environment() {
		environment = append(environment, key+"="+value)
	}
	always := []string{"--endpoint-url", cloud.URL(), "--output", "json"}
	if exec.CommandContext(t.Context(), "python3", "-c", "import awscli.clidriver").Run() != nil { // version 2 has its own Python
		return func(t *testing.T, arguments ...string) (string, int) {
			cmd := exec.CommandContext(t.Context(), "aws", append(always, arguments...)...)
			cmd.Env = environment
			output, err := cmd.CombinedOutput()
			require.NotNil(t, cmd.ProcessState, "%v", err)
			return string(output), cmd.ProcessState.ExitCode()
		}
	}
	cmd := exec.Command("python3", "-c", server) // it ends with its input
	cmd.Env, cmd.Stderr = environment, os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	})
	commands, answers := json.NewEncoder(in), json.NewDecoder(out)
	return func(t *testing.T, arguments ...string) (string, int) {
		t.Helper()
		require.NoError(t, commands.Encode(append(slices.Clone(always), arguments...)))
		var answer struct {
			Output string
			Code   int
		}
		require.NoError(t, answers.Decode(&answer))
		return answer.Output, answer.Code
	}
}

// find returns a member of a JSON object.
func find(t *testing.T, body, key string) string {
	t.Helper()
	var values map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &values), body)
	require.Contains(t, values, key)
	return fmt.Sprint(values[key])
}
