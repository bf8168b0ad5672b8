package harness

// What of drover's own stack the functions need: buckets, topic, roles and state machines.

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/shared/names"
)

// The cell's buckets.
var (
	SpecsBucket = names.SpecsBucket(ID, Region)
	StateBucket = names.StateBucket(ID, Region)
)

func (a *Account) deploy() {
	for _, bucket := range []string{SpecsBucket, StateBucket} {
		a.make("AWS::S3::Bucket", map[string]any{
			"BucketName": bucket, "VersioningConfiguration": map[string]any{"Status": "Enabled"},
			"NotificationConfiguration": map[string]any{"EventBridgeConfiguration": map[string]any{"EventBridgeEnabled": true}},
		})
	}
	a.topic = a.make("AWS::SNS::Topic", map[string]any{"TopicName": "drover"})
	machines := map[string]string{}
	for _, machine := range []string{"converge", "join-node"} {
		_, here, _, _ := runtime.Caller(0)
		definition, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../infra/testdata/machines", machine+".asl.json"))
		require.NoError(a.t, err)
		machines[machine] = a.make("AWS::StepFunctions::StateMachine", map[string]any{
			"StateMachineName": names.Prefix + machine, "DefinitionString": string(definition), "RoleArn": a.role(machine, "states.amazonaws.com"),
		})
	}
	a.converge = machines["converge"]
	a.Functions.deploy(cell{topic: a.topic, machines: machines, cloudformation: a.role("cloudformation", "cloudformation.amazonaws.com")})
}

// make makes a resource of drover's stack and returns what Ref returns of it.
func (a *Account) make(kind string, properties map[string]any) string {
	a.t.Helper()
	result, err := a.resources[kind].Create(context.Background(), resource.Request{
		Type: kind, LogicalID: "Made", Properties: properties, Caller: a.Admin(), Region: Region, Account: ID,
	})
	require.NoError(a.t, err)
	return result.PhysicalID
}

// role makes a role that may do everything and that a service may assume.
func (a *Account) role(step, service string) string {
	a.t.Helper()
	role, err := a.identities.CreateRole(iam.Role{Name: names.Role(Region, step), TrustDocument: `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Principal": {"Service": "` + service + `"}, "Action": "sts:AssumeRole"}]}`})
	require.NoError(a.t, err)
	require.NoError(a.t, a.identities.PutRolePolicy(role.Name, "everything",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`))
	return a.identities.RoleARN(role)
}
