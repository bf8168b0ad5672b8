package harness

// The resources of drover's own two stacks that the functions need: buckets, topic, roles and state machines.

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
)

// The buckets of the cell.
var (
	SpecsBucket = names.SpecsBucket(ID, Region)
	StateBucket = names.StateBucket(ID, Region)
)

func (a *Account) deploy() {
	var publishers []any
	for _, step := range []string{"admit", "publish", "plan", "stackevent", "join", "drain", "upgrade", "report", "rollout", "sweep"} {
		publishers = append(publishers, RoleARN(step))
	}
	root := map[string]any{
		"Effect": "Allow", "Principal": map[string]any{"AWS": "arn:aws:iam::" + ID + ":root"}, "Action": "kms:*", "Resource": "*",
	}
	// Roles name the key, and its policy names roles.
	key := a.CreateResource("AWS::KMS::Key", KeyPolicy(root))
	a.identify(key)
	_, err := a.resources["AWS::KMS::Key"].Update(context.Background(), resource.Request{
		Type: "AWS::KMS::Key", PhysicalID: key, Caller: a.Admin(), Region: Region, Account: ID, Properties: KeyPolicy(root, map[string]any{
			"Effect": "Allow", "Principal": map[string]any{"AWS": publishers}, "Action": []any{"kms:GenerateDataKey", "kms:Decrypt"},
			"Resource": "*",
		}),
	})
	require.NoError(a.t, err)
	for _, bucket := range []string{SpecsBucket, StateBucket} {
		a.CreateResource("AWS::S3::Bucket", map[string]any{
			"BucketName": bucket, "VersioningConfiguration": map[string]any{"Status": "Enabled"},
			"NotificationConfiguration": map[string]any{"EventBridgeConfiguration": map[string]any{"EventBridgeEnabled": true}},
		})
	}
	a.topic = a.CreateResource("AWS::SNS::Topic", map[string]any{"TopicName": names.Prefix + "notices", "KmsMasterKeyId": key})
	// The policy of drover's stack. Without it a topic trusts the whole account.
	a.CreateResource("AWS::SNS::TopicPolicy", map[string]any{"Topics": []any{
		a.topic,
	}, "PolicyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{
			"Effect": "Deny", "Principal": "*", "Action": "sns:Publish", "Resource": a.topic,
			"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		},
	}}})
	a.CreateResource("AWS::Events::EventBus", map[string]any{"Name": names.Bus})
	machines := map[string]string{}
	for _, machine := range []string{"converge", "join-node", "drain-node", "upgrade"} {
		definition := a.golden("machines/" + machine + ".asl.json")
		machines[machine] = a.CreateResource("AWS::StepFunctions::StateMachine", map[string]any{
			"StateMachineName": names.Prefix + machine, "DefinitionString": string(definition), "RoleArn": RoleARN(machineRole(machine)),
		})
	}
	a.converge = machines["converge"]
	variables := map[string]string{
		lambdaruntime.SpecsBucket: SpecsBucket, lambdaruntime.StateBucket: StateBucket, lambdaruntime.TopicARN: a.topic,
		lambdaruntime.Account: ID, lambdaruntime.Partition: "aws",
		lambdaruntime.ConvergeARN: machines["converge"], lambdaruntime.UpgradeARN: machines["upgrade"],
		lambdaruntime.JoinARN: machines["join-node"], lambdaruntime.DrainARN: machines["drain-node"],
		lambdaruntime.CloudFormationRole: RoleARN("cloudformation"), lambdaruntime.LeftoversRole: RoleARN("leftovers"),
		lambdaruntime.Relay: relayCode.String(),
	}
	if a.options.Workloads {
		variables[lambdaruntime.CellSettings] = WorkloadSettings
	}
	a.Functions.deploy(variables)
}

// KeyPolicy returns the properties of a key.
func KeyPolicy(statements ...any) map[string]any {
	return map[string]any{"KeyPolicy": map[string]any{"Version": "2012-10-17", "Statement": statements}}
}

// machineRole returns the step in the name of a machine's role. It differs where a function has the machine's name.
func machineRole(machine string) string {
	if machine == "upgrade" {
		return "upgrade-machine"
	}
	return machine
}

// CreateResource creates a resource of drover's stack and returns the value of Ref.
func (a *Account) CreateResource(kind string, properties map[string]any) string {
	a.t.Helper()
	result, err := a.resources[kind].Create(context.Background(), resource.Request{
		Type: kind, LogicalID: "Made", Properties: properties, Caller: a.Admin(), Region: Region, Account: ID,
	})
	require.NoError(a.t, err)
	return result.PhysicalID
}

// identify creates the roles that infra synthesizes, with exactly their permissions. key is the topic's.
func (a *Account) identify(key string) {
	a.t.Helper()
	var written iam.Definitions
	require.NoError(a.t, json.Unmarshal(a.golden("identities.json"), &written))
	if a.options.Workloads {
		a.addWorkloads(&written)
	}
	if a.options.Identities != nil {
		a.options.Identities(&written)
	}
	for _, r := range written.Roles {
		for name, body := range r.Inline {
			r.Inline[name] = bytes.ReplaceAll(body, []byte(":key/NoticesKey\""), []byte(":key/"+key+"\""))
		}
	}
	require.NoError(a.t, a.Identities.Load(written))
	a.definitions = written
}

// golden reads a golden file of infra.
func (a *Account) golden(path string) []byte {
	a.t.Helper()
	_, here, _, _ := runtime.Caller(0)
	body, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../infra/testdata", path))
	require.NoError(a.t, err)
	return body
}

// RoleARN returns the ARN of a role of the cell.
func RoleARN(step string) string { return names.RoleARN("aws", ID, Region, step) }
