package account

// The examples whose API servers exclude drover's functions, with real control planes. drover reaches each through its relay.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/local/kubernetes/workload"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// prerequisites are what the examples refer to: a network, a key and the principals that get access. The last resource permits what the
// context accessRoles of the CDK does.
const prerequisites = `
Resources:
  Vpc: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.9.0.0/16, EnableDnsSupport: true, EnableDnsHostnames: true}}
  A: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.0.0/20, AvailabilityZone: us-east-1a}}
  B: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.16.0/20, AvailabilityZone: us-east-1b}}
  C: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.32.0/20, AvailabilityZone: us-east-1c}}
  D: {Type: "AWS::EC2::Subnet", Properties: {VpcId: !Ref Vpc, CidrBlock: 10.9.48.0/20, AvailabilityZone: us-east-1a}}
  Group: {Type: "AWS::EC2::SecurityGroup", Properties: {VpcId: !Ref Vpc, GroupDescription: of nodes}}
  Admins: {Type: "AWS::IAM::Role", Properties: {RoleName: platform-admins, AssumeRolePolicyDocument: {Version: "2012-10-17",
    Statement: [{Effect: Allow, Principal: {AWS: "ACCOUNT"}, Action: "sts:AssumeRole"}]}}}
  Developers: {Type: "AWS::IAM::Role", Properties: {RoleName: developers, Path: /teams/, AssumeRolePolicyDocument: {Version: "2012-10-17",
    Statement: [{Effect: Allow, Principal: {AWS: "ACCOUNT"}, Action: "sts:AssumeRole"}]}}}
  Key: {Type: "AWS::KMS::Key", Properties: {KeyPolicy: {Version: "2012-10-17", Statement: [
    {Effect: Allow, Principal: {AWS: "arn:aws:iam::ACCOUNT:root"}, Action: "kms:*", Resource: "*"},
    {Effect: Allow, Principal: {AWS: "arn:aws:iam::ACCOUNT:role/CLOUDFORMATION"}, Action: "kms:CreateGrant", Resource: "*"},
    {Effect: Allow, Principal: {AWS: "arn:aws:iam::ACCOUNT:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"},
    Action: "kms:*", Resource: "*"},
    {Effect: Allow, Principal: {Service: logs.us-east-1.amazonaws.com}, Action: "kms:GenerateDataKey*", Resource: "*",
    Condition: {ArnEquals: {"kms:EncryptionContext:aws:logs:arn":
    "arn:aws:logs:us-east-1:ACCOUNT:log-group:/aws/eks/drover-everything/cluster"}}}]}}}
  AccessRoles: {Type: "AWS::IAM::Policy", Properties: {PolicyName: accessRoles, Roles: [CLOUDFORMATION], PolicyDocument: {
    Version: "2012-10-17", Statement: [{Effect: Allow, Action: "iam:PassRole", Resource: [!GetAtt Admins.Arn, !GetAtt Developers.Arn],
    Condition: {StringEquals: {"iam:PassedToService": ec2.amazonaws.com}}}]}}}
  Checkout: {Type: "AWS::IAM::Role", Properties: {RoleName: checkout, Path: /workloads/, AssumeRolePolicyDocument: {Version: "2012-10-17",
    Statement: [{Effect: Allow, Principal: {Service: pods.eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}]}}}
  Dns: {Type: "AWS::IAM::Role", Properties: {RoleName: dns, Path: /workloads/, AssumeRolePolicyDocument: {Version: "2012-10-17",
    Statement: [{Effect: Allow, Principal: {Service: pods.eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}]}}}
  Gitops: {Type: "AWS::IAM::Role", Properties: {RoleName: capability-gitops, AssumeRolePolicyDocument: {Version: "2012-10-17",
    Statement: [{Effect: Allow, Principal: {Service: capabilities.eks.amazonaws.com}, Action: ["sts:AssumeRole", "sts:TagSession"]}]}}}
  Workloads: {Type: "AWS::IAM::ManagedPolicy", Properties: {ManagedPolicyName: workloads, PolicyDocument: {
    Version: "2012-10-17", Statement: [{Effect: Allow, Action: "s3:GetObject", Resource: "arn:aws:s3:::exports/*"}]}}}
Outputs:
  Vpc: {Value: !Ref Vpc}
  Subnets: {Value: !Join [",", [!Ref A, !Ref B, !Ref C]]}
  Other: {Value: !Ref D}
  Group: {Value: !GetAtt Group.GroupId}
  Key: {Value: !GetAtt Key.Arn}
`

// createPrerequisites returns the outputs of the stack that has them.
func createPrerequisites(t *testing.T) map[string]string {
	t.Helper()
	client := cloudformation.NewFromConfig(cloud.Config())
	body := strings.NewReplacer("ACCOUNT", ID, "CLOUDFORMATION", names.Role("us-east-1", "cloudformation")).Replace(prerequisites)
	_, err := client.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String("prerequisites"), TemplateBody: &body,
		Capabilities: []cfntypes.Capability{cfntypes.CapabilityCapabilityNamedIam},
	})
	require.NoError(t, err)
	outputs := map[string]string{}
	cloud.until(t, func() bool {
		out, err := client.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("prerequisites")})
		require.NoError(t, err)
		for _, output := range out.Stacks[0].Outputs {
			outputs[*output.OutputKey] = *output.OutputValue
		}
		require.NotContains(t, string(out.Stacks[0].StackStatus), "ROLLBACK", aws.ToString(out.Stacks[0].StackStatusReason))
		return out.Stacks[0].StackStatus == cfntypes.StackStatusCreateComplete
	}, func() string { return "the prerequisites do not exist" })
	return outputs
}

// example reads an example. It replaces what belongs to another account, what EKS does not create here, and times.
func example(t *testing.T, name string, outputs map[string]string) object {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(cloud.root, "examples", "clusters", name+".yaml"))
	require.NoError(t, err)
	var example object
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(body), "111122223333", ID)), &example))
	spec := example["spec"].(object)
	spec["release"] = object{"name": "1.36-1"}
	spec["deletionProtection"] = false
	delete(spec, "kubernetesVersion")
	switch name {
	case "everything":
		controlPlane, network := spec["controlPlane"].(object), spec["network"].(object)
		controlPlane["encryptionKeyARN"], controlPlane["logKeyARN"] = outputs["Key"], outputs["Key"]
		delete(controlPlane, "securityGroups") // they belong to a VPC that exists before
		for zone := range network["natAddresses"].(object) {
			network["natAddresses"].(object)[zone] = cloud.EC2.AddAddress()
		}
		addons := spec["addons"].([]any)
		addons[0].(object)["version"], addons[1].(object)["version"] = "v1.21.1-eksbuild.1", "v0.8.1-eksbuild.1"
		general := spec["pools"].([]any)[0].(object)
		general["volumes"].([]any)[0].(object)["snapshotID"] = cloud.EC2.AddSnapshot(20, true)
		general["imageID"] = "ami-00000000000013601"
		delete(general, "securityGroups") // they belong to a VPC that exists before
		general["rootVolume"].(object)["kmsKeyARN"] = outputs["Key"]
		general["volumes"].([]any)[1].(object)["kmsKeyARN"] = outputs["Key"]
		general["rollAt"] = time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
		general["drain"].(object)["loadBalancerWait"] = "1s"
		upgrade := spec["upgrade"].(object)
		upgrade["at"].(object)["time"] = time.Now().AddDate(0, 2, 0).UTC().Format(time.RFC3339)
	case "existing-network":
		existing := spec["network"].(object)["existing"].(object)
		existing["vpcID"], existing["subnets"] = outputs["Vpc"], strings.Split(outputs["Subnets"], ",")
		spec["controlPlane"].(object)["subnets"] = []any{outputs["Other"], strings.Split(outputs["Subnets"], ",")[1]}
		pools := spec["pools"].([]any)
		pools[0].(object)["securityGroups"] = []any{outputs["Group"]}
		pools[1].(object)["subnets"] = []any{outputs["Other"]}
	}
	return example
}

// tend does on each node what the readiness of a pool waits for. DaemonSets do so in a cluster.
func tend(ctx context.Context, t *testing.T, cluster string) {
	for cloud.clock.Timer(ctx, 200*time.Millisecond) == nil {
		client, _, err := cloud.EKS.Administrator(names.EKSCluster(cluster))
		if err != nil {
			continue // the cluster does not exist
		}
		nodes, err := client.Resource(nodeResource).List(ctx, metav1.ListOptions{LabelSelector: "!example.com/cache-warm"})
		if err != nil {
			continue
		}
		for _, node := range nodes.Items {
			condition := `{"status":{"conditions":[{"type":"example.com/NetworkReady","status":"True","reason":"Ready"}]}}`
			label := `{"metadata":{"labels":{"example.com/cache-warm":"true"}}}`
			if _, err := client.Resource(nodeResource).Patch(ctx, node.GetName(), types.StrategicMergePatchType, []byte(condition),
				metav1.PatchOptions{}, "status"); err == nil {
				_, _ = client.Resource(nodeResource).Patch(ctx, node.GetName(), types.StrategicMergePatchType, []byte(label), metav1.PatchOptions{})
			}
		}
	}
}

// relayCalls returns the number of invocations of a cluster's relay that ended.
func (w *world) relayCalls(cluster string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.reports {
		if r.Function == names.Relay(cluster) {
			n++
		}
	}
	return n
}

// ownedARNs returns the resources of a cluster's stacks and of its Kubernetes.
func (w *world) ownedARNs(cluster string) (arns []string) {
	for arn, tagged := range w.resources() {
		if tagged.Tags[names.TagCluster] == cluster || tagged.Tags[names.OwnershipTag(cluster)] == "owned" {
			arns = append(arns, arn)
		}
	}
	slices.Sort(arns)
	return arns
}

func TestExamples(t *testing.T) {
	t.Parallel()
	release, err := os.ReadFile(filepath.Join(cloud.root, "examples", "releases", "1.37-1.yaml"))
	require.NoError(t, err)
	_, err = cloud.specs.Put(t.Context(), names.ReleaseSpec("1.37-1"), release)
	require.NoError(t, err)
	// The first group of an account creates this role too. The policy of the key names it.
	require.NoError(t, cloud.Identities.LinkRole("AWSServiceRoleForAutoScaling", "autoscaling.amazonaws.com", "", nil))
	outputs := createPrerequisites(t)
	for _, name := range []string{"everything", "existing-network"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go tend(ctx, t, name)
			spec := example(t, name, outputs)
			cloud.ready(t, name, cloud.upload(t, name, text(t, spec)))
			require.Len(t, nodesOf(t, name), 3)
			require.NotZero(t, cloud.relayCalls(name), "the nodes joined through the relay")
			requireRelay(t, name, spec)
			if name == "everything" {
				requirePodIdentity(t, name)
			}
			drainThroughRelay(t, name)

			removeBudgets(t, name)
			object, err := cloud.specs.Get(t.Context(), names.ClusterSpec(name), 1<<20)
			require.NoError(t, err)
			require.NoError(t, cloud.specs.DeleteIf(t.Context(), names.ClusterSpec(name), object.ETag))
			s := cloud.await(t, name, "deleted", func(s status.Status) bool { return s.Phase == status.Deleted || s.Phase == status.Failed })
			require.Equal(t, status.Deleted, s.Phase, s.Message)
			cloud.quiet(t, name)
			require.Empty(t, cloud.ownedARNs(name))
		})
	}
}

// requireRelay lists the nodes with drover's client as the function join. Its own connection fails, and one through the relay does not.
func requireRelay(t *testing.T, name string, spec object) {
	t.Helper()
	role := names.RoleARN("aws", ID, cloud.Region(), "join")
	_, session, err := cloud.Identities.AssumeRoleAs(role, names.Function("join"), "lambda.amazonaws.com")
	require.NoError(t, err)
	cfg := cloud.Config()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(session.AccessKeyID, session.SecretAccessKey, session.SessionToken)
	pool := spec["spec"].(object)["pools"].([]any)[0].(object)["name"].(string)

	direct, err := kube.NewClusters(cfg).Open(t.Context(), name)
	require.NoError(t, err)
	_, err = direct.PoolNodes(t.Context(), pool)
	unreachable := new(fault.ClusterUnreachable)
	require.ErrorAs(t, err, &unreachable)

	through, err := kube.NewClusters(cfg, kube.WithRelay(relay.To(lambda.New(cfg)))).Open(t.Context(), name)
	require.NoError(t, err)
	nodes, err := through.PoolNodes(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, nodes, 3)
}

// drainThroughRelay drains a node as an operator does. Its pods leave within their budget.
func drainThroughRelay(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster := connect(t, name)
	web := workload.Workload{
		Namespace: "shop", Name: "web", Kind: workload.Deployment, Replicas: 6, MaxUnavailable: "2", ReadyAfter: 200 * time.Millisecond,
		Grace: time.Second,
	}
	require.NoError(t, cluster.Deploy(ctx, web))
	require.NoError(t, cluster.Budgeted(ctx, web))
	pods, err := cluster.Watch(ctx)
	require.NoError(t, err)
	defer pods.Close()
	require.NoError(t, pods.Wait(ctx, "all pods to run", func() bool { return pods.Settled(web) }))
	node := slices.IndexFunc(nodesOf(t, name), func(n corev1.Node) bool { return len(pods.On(web.Namespace, n.Name)) > 0 })
	require.GreaterOrEqual(t, node, 0)
	drained, before := nodesOf(t, name)[node].Name, cloud.relayCalls(name)

	client := sfn.NewFromConfig(cloud.Config())
	input, err := json.Marshal(object{"cluster": name, "node": drained})
	require.NoError(t, err)
	started, err := client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String("arn:aws:states:" + cloud.Region() + ":" + ID + ":stateMachine:drover-drain-node"),
		Input:           aws.String(string(input)),
	})
	require.NoError(t, err)
	var x *sfn.DescribeExecutionOutput
	cloud.until(t, func() bool {
		x, err = client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: started.ExecutionArn})
		return err == nil && x.Status != sfntypes.ExecutionStatusRunning
	}, func() string { return cloud.executions(name) })
	require.Equal(t, sfntypes.ExecutionStatusSucceeded, x.Status, fmt.Sprint(aws.ToString(x.Cause)))
	require.Greater(t, cloud.relayCalls(name), before, "the drain went through the relay")
	require.NoError(t, pods.Wait(ctx, "all pods to be back", func() bool { return pods.Settled(web) }))
	require.Empty(t, pods.On(web.Namespace, drained))
	_, least := pods.Healthy(web.Namespace, web.Name)
	require.GreaterOrEqual(t, least, 4, "the budget is broken")
	require.NoError(t, cluster.Remove(ctx, web))
}

// removeBudgets removes the budgets of add-ons. The pods of the last node cannot move, so their budgets would delay the deletion.
func removeBudgets(t *testing.T, name string) {
	t.Helper()
	client, _, err := cloud.EKS.Administrator(names.EKSCluster(name))
	require.NoError(t, err)
	budgets := client.Resource(schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"})
	require.NoError(t, budgets.Namespace("kube-system").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}
