package account

// The demo: from an upload to nodes in the cluster's own API server, with the invariants of a ready cluster.

import (
	"context"
	"encoding/base64"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// intruder is the session name of callers that try forbidden actions.
const intruder = "intruder"

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// maxTransitions limits the state transitions of all executions for the demo. About 20 are checks of nodes that boot: each takes three. At
// real speed a node takes 52: see docs/performance.md.
const maxTransitions = 75

func TestDemo(t *testing.T) {
	spec, err := os.ReadFile(filepath.Join(cloud.root, "examples", "clusters", "demo.yaml"))
	require.NoError(t, err)
	started := time.Now().UTC()
	deliveries := make(chan func(), 10)
	cloud.deliveries(t, func(rule string, _ eventbridge.Event, deliver func()) {
		if rule == "drover-spec-changed" {
			deliveries <- deliver
		}
		deliver()
	})
	before := stateObjects(t)
	cloud.retire(t, "demo")
	version := cloud.upload(t, "demo", string(spec))
	s := cloud.ready(t, "demo", version)
	cloud.calmDeliveries()

	t.Run("reports Ready in the status", func(t *testing.T) {
		require.Equal(t, version, s.ObservedVersion)
		require.Equal(t, "1.36", s.KubernetesVersion)
		require.Equal(t, "1.36-1", s.Release)
		require.Empty(t, s.Plan)
		for _, c := range s.Conditions {
			// The roles of users are their account's own, so the demo names none.
			require.Equal(t, c.Type != status.AccessGranted, c.Status == "True", c.Type)
		}
		require.Len(t, s.Stacks, 6)
		for _, stack := range s.Stacks {
			require.Equal(t, "CREATE_COMPLETE", stack.Status, stack.Name)
		}
	})
	t.Run("takes few state transitions", func(t *testing.T) {
		transitions := 0
		converges := cloud.endedExecutions(t, "demo", "drover-converge", started)
		for _, x := range append(converges, cloud.endedExecutions(t, "demo", "drover-join-node", started)...) {
			require.Equal(t, "SUCCEEDED", x.Status, x.Cause)
			transitions += x.Transitions
		}
		require.LessOrEqual(t, transitions, maxTransitions)
		require.Greater(t, transitions, 20) // verifies that they are counted
	})
	t.Run("lists the configured nodes in the API server", func(t *testing.T) { demoNodes(t, s.Endpoint) })
	t.Run("enforces access entries", demoAccess)
	t.Run("binds the join function's permissions", demoRoles)
	t.Run("tags stacks with drover's tags and the user's", func(t *testing.T) { demoTags(t, version) })
	t.Run("stores state by content", func(t *testing.T) { demoState(t, before) })

	t.Run("changes nothing when an operator converges", func(t *testing.T) {
		mark := cloud.Calls.Mark()
		x := byHand(t, "demo")
		require.Equal(t, sfntypes.ExecutionStatusSucceeded, x.Status)
		require.Empty(t, cloud.mutations(mark))
	})
	t.Run("ignores a repeated event", func(t *testing.T) {
		require.Len(t, deliveries, 1)
		executions, admitted, mark := len(cloud.StepFunctions.Executions()), cloud.invocations("admit"), cloud.Calls.Mark()
		(<-deliveries)()
		cloud.until(t, func() bool { return cloud.invocations("admit") > admitted }, func() string { return "admit was not invoked" })
		cloud.settle(t)
		require.Len(t, cloud.StepFunctions.Executions(), executions)
		require.Empty(t, cloud.mutations(mark))
	})
	t.Run("changes only the status for an invalid spec", func(t *testing.T) { badSpec(t, string(spec), version) })
	t.Run("denies functions what they do not need", intruders)
	t.Run("rejects forged and foreign signatures", forgeries)
}

// byHand starts converge as an operator does and waits for its end.
func byHand(t *testing.T, cluster string) *sfn.DescribeExecutionOutput {
	t.Helper()
	return execute(t, "converge", `{"cluster":"`+cluster+`"}`)
}

// execute starts a machine as an operator does and waits for its end.
func execute(t *testing.T, machine, input string) *sfn.DescribeExecutionOutput {
	t.Helper()
	client := sfn.NewFromConfig(cloud.Config())
	started, err := client.StartExecution(t.Context(), &sfn.StartExecutionInput{
		StateMachineArn: aws.String("arn:aws:states:us-east-1:" + ID + ":stateMachine:" + names.Prefix + machine), Input: &input,
	})
	require.NoError(t, err)
	var x *sfn.DescribeExecutionOutput
	cloud.until(t, func() bool {
		x, err = client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: started.ExecutionArn})
		require.NoError(t, err)
		return x.Status != sfntypes.ExecutionStatusRunning
	}, func() string { return *started.ExecutionArn + " runs with " + input })
	return x
}

// nodesOf returns the nodes of a cluster as its administrator sees them.
func nodesOf(t *testing.T, cluster string) []corev1.Node {
	t.Helper()
	client, _, err := cloud.EKS.Administrator(names.EKSCluster(cluster))
	require.NoError(t, err)
	return list[corev1.Node](t, client, nodeResource)
}

func list[T any](t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource) []T {
	t.Helper()
	found, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	objects := make([]T, len(found.Items))
	for i := range found.Items {
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &objects[i]))
	}
	return objects
}

func demoNodes(t *testing.T, endpoint string) {
	require.True(t, strings.HasPrefix(endpoint, "https://127.0.0.1:"), endpoint)
	pools, zones := map[string]int{}, map[string]int{}
	for _, node := range nodesOf(t, "demo") {
		pool := node.Labels[names.LabelPool]
		pools[pool]++
		// The image is EKS's of 1.36. KWOK's own version differs.
		require.Regexp(t, `^v1\.36\.\d+-eks-`, node.Status.NodeInfo.KubeletVersion)
		require.Equal(t, "amd64", node.Status.NodeInfo.Architecture)
		zone, id, found := strings.Cut(strings.TrimPrefix(node.Spec.ProviderID, "aws:///"), "/")
		require.True(t, found, node.Spec.ProviderID)
		instance, err := cloud.EC2.Instance(id)
		require.NoError(t, err)
		require.Equal(t, instance.Zone, zone)
		require.Equal(t, instance.Zone, node.Labels["topology.kubernetes.io/zone"])
		require.Equal(t, "us-east-1", node.Labels["topology.kubernetes.io/region"])
		require.Equal(t, instance.Type, node.Labels["node.kubernetes.io/instance-type"])
		require.Equal(t, instance.PrivateDNSName, node.Name)
		require.Equal(t, "platform", instance.Tags["team"])
		require.Equal(t, "owned", instance.Tags[names.OwnershipTag("demo")])
		require.Equal(t, "demo", instance.Tags[names.TagCluster])
		var ready corev1.ConditionStatus
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready = c.Status
			}
		}
		require.Equal(t, corev1.ConditionTrue, ready)
		zones[zone]++
		taints := slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		})
		if pool == "spot" {
			require.Equal(t, "true", node.Labels["example.com/interruptible"])
			require.Equal(t, []corev1.Taint{{Key: "example.com/interruptible", Value: "true", Effect: corev1.TaintEffectPreferNoSchedule}}, taints)
		} else {
			require.NotContains(t, node.Labels, "example.com/interruptible")
			require.Empty(t, taints)
		}
	}
	require.Equal(t, map[string]int{"spot": 2, "workers": 2}, pools)
	require.Equal(t, map[string]int{"us-east-1a": 2, "us-east-1b": 2}, zones)
}

// as returns the configuration of a caller that assumed the role of a function.
func as(t *testing.T, step string) aws.Config {
	t.Helper()
	_, c, err := cloud.Identities.AssumeRoleAs(names.RoleARN("aws", ID, "us-east-1", step), intruder, "lambda.amazonaws.com")
	require.NoError(t, err)
	config := cloud.Config()
	config.Credentials = credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	return config
}

// kubernetesAs returns a client of a cluster's API with a role's token, which is signed for a cluster.
func kubernetesAs(t *testing.T, step, signedFor string) dynamic.Interface {
	t.Helper()
	out, err := eks.NewFromConfig(cloud.Config()).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("drover-demo")})
	require.NoError(t, err)
	ca, err := base64.StdEncoding.DecodeString(*out.Cluster.CertificateAuthority.Data)
	require.NoError(t, err)
	token, err := kube.Token(t.Context(), sts.NewPresignClient(sts.NewFromConfig(as(t, step))), signedFor)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(&rest.Config{
		Host: *out.Cluster.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
	require.NoError(t, err)
	return client
}

func demoAccess(t *testing.T) {
	join := kubernetesAs(t, "join", "drover-demo")
	found, err := join.Resource(nodeResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, found.Items, 4)
	_, err = join.Resource(podResource).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	err = join.Resource(nodeResource).Delete(t.Context(), found.Items[0].GetName(), metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = join.Resource(nodeResource).Patch(t.Context(), found.Items[0].GetName(), "application/merge-patch+json",
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	_, err = kubernetesAs(t, "admit", "drover-demo").Resource(nodeResource).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	// A token is valid for one cluster only.
	_, err = kubernetesAs(t, "join", "drover-other").Resource(nodeResource).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	_, err = kubernetesAs(t, "prepare", "drover-demo").Resource(podResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

func demoRoles(t *testing.T) {
	client, _, err := cloud.EKS.Administrator("drover-demo")
	require.NoError(t, err)
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	roles := list[rbacv1.ClusterRole](t, client, rbac.WithResource("clusterroles"))
	i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == kube.JoinGroup })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}}},
		roles[i].Rules)
	bindings := list[rbacv1.ClusterRoleBinding](t, client, rbac.WithResource("clusterrolebindings"))
	require.True(t, slices.ContainsFunc(bindings, func(b rbacv1.ClusterRoleBinding) bool {
		return b.RoleRef.Name == kube.JoinGroup && len(b.Subjects) == 1 && b.Subjects[0].Kind == "Group" && b.Subjects[0].Name == kube.JoinGroup
	}))
}

// stackOf describes one stack of a cluster.
func stackOf(t *testing.T, cluster, stack string) types.Stack {
	t.Helper()
	out, err := cloudformation.NewFromConfig(cloud.Config()).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{
		StackName: aws.String(names.Stack(cluster, stack)),
	})
	require.NoError(t, err)
	require.Len(t, out.Stacks, 1)
	return out.Stacks[0]
}

func tagsOf(stack types.Stack) map[string]string {
	tags := map[string]string{}
	for _, tag := range stack.Tags {
		tags[*tag.Key] = *tag.Value
	}
	return tags
}

func demoTags(t *testing.T, version string) {
	for _, name := range []string{"network", "control-plane", "addons", "pool-workers", "pool-spot", "addons-on-nodes"} {
		stack := stackOf(t, "demo", name)
		tags := tagsOf(stack)
		require.Regexp(t, "^[0-9a-f]{64}$", tags[names.TagChecksum], name)
		delete(tags, names.TagChecksum)
		want := map[string]string{
			names.TagCluster: "demo", names.TagStack: name, names.TagSpecVersion: version,
			names.OwnershipTag("demo"): "owned", "team": "platform",
		}
		if name == "control-plane" {
			require.Regexp(t, "^1.36-1@[0-9a-f]{64}$", tags[names.TagRelease])
			delete(tags, names.TagRelease)
		}
		if strings.HasPrefix(name, names.PoolPrefix) {
			require.Regexp(t, "^templates/[0-9a-f]{64}.yaml$", tags[names.TagTemplate])
			delete(tags, names.TagTemplate)
		}
		require.Empty(t, cmp.Diff(want, tags), name)
		// The demo's spec allows its deletion.
		require.False(t, aws.ToBool(stack.EnableTerminationProtection), name)
		require.Equal(t, "arn:aws:iam::"+ID+":role/drover-us-east-1-cloudformation", aws.ToString(stack.RoleARN), name)
	}
}

// stateObjects returns the keys of the state bucket.
func stateObjects(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := cloud.state.List(t.Context(), "")
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, entry := range entries {
		keys[entry.Key] = true
	}
	return keys
}

func demoState(t *testing.T, before map[string]bool) {
	state, kinds := cloud.state, map[string]int{}
	for key := range stateObjects(t) {
		kind, name := path.Split(key)
		if !before[key] {
			kinds[kind]++
		}
		switch strings.TrimSuffix(kind, "/") {
		case "templates", "userdata", "releases", "plans":
			object, err := state.Get(t.Context(), key, 1<<20)
			require.NoError(t, err)
			sum, _, _ := strings.Cut(name, ".")
			require.Equal(t, names.SHA256(object.Body), sum, key)
		}
	}
	delete(kinds, "releases/")        // another cluster may be pinned to the same release
	delete(kinds, "status/releases/") // in the first test of the account, the verdict on the release is still to come
	delete(kinds, "fleet/reports/")   // as above: the first report of the cell is still to come
	delete(kinds, "leases/")
	require.Equal(t, map[string]int{"plans/": 1, "status/clusters/": 1, "templates/": 6, "userdata/": 1}, kinds)
	// The lease is free and nothing waits.
	lease, err := state.Lease(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, lease.Execution)
}

func badSpec(t *testing.T, spec, good string) {
	mark, executions := cloud.Calls.Mark(), len(cloud.StepFunctions.Executions())
	bad := strings.Replace(spec, "      maxSize: 4\n", "      maxSize: 1\n      size: 3\n", 1)
	line := strings.Count(bad[:strings.Index(bad, "      size: 3")], "\n") + 1
	version := cloud.upload(t, "demo", bad)
	s := cloud.await(t, "demo", "rejected", func(s status.Status) bool { return s.ObservedVersion == version })
	cloud.settle(t)
	accepted := s.Condition(status.SpecAccepted)
	require.Equal(t, "False", accepted.Status)
	require.Equal(t, "SpecInvalid", accepted.Reason)
	require.Contains(t, accepted.Message, "clusters/demo.yaml:"+strconv.Itoa(line)+":")
	require.Contains(t, accepted.Message, "spec.pools[0].size")
	require.Contains(t, accepted.Message, "spec.pools[0].m") // minSize or maxSize: all errors are reported at once
	require.Equal(t, status.Ready, s.Phase)
	require.Equal(t, good, s.PlannedVersion)
	require.Len(t, cloud.StepFunctions.Executions(), executions)
	for _, call := range cloud.mutations(mark) {
		notifies := strings.HasPrefix(call, "events:PutEvents ") || strings.HasPrefix(call, "sns:Publish ")
		require.True(t, notifies || strings.Contains(call, "status/clusters/demo.json"),
			"only the status may change, with a notification: %s", call)
	}
	// The valid spec again is a new version with the same content: nothing changes.
	mark = cloud.Calls.Mark()
	version = cloud.upload(t, "demo", spec)
	s = cloud.await(t, "demo", "Ready again", func(s status.Status) bool {
		return s.ObservedVersion == version && s.Condition(status.SpecAccepted).Status == "True" && s.PlannedVersion == version
	})
	cloud.settle(t)
	for _, call := range cloud.mutations(mark) {
		require.NotContains(t, call, "cloudformation:")
	}
}

func intruders(t *testing.T) {
	denied := func(t *testing.T, err error) {
		t.Helper()
		var api smithy.APIError
		require.ErrorAs(t, err, &api)
		require.Contains(t, []string{"AccessDenied", "AccessDeniedException"}, api.ErrorCode())
		require.Contains(t, api.ErrorMessage(), intruder)
	}
	stack := aws.String("drover-demo-network")
	for _, step := range []string{"admit", "plan", "stackevent", "prepare", "join", "report", "sweep"} {
		_, err := cloudformation.NewFromConfig(as(t, step)).DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: stack})
		denied(t, err)
	}
	// The role that may delete stacks may delete those of clusters only, not drover's own.
	for _, own := range Stacks {
		_, err := cloudformation.NewFromConfig(as(t, "change")).DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &own})
		denied(t, err)
	}
	_, err := eks.NewFromConfig(as(t, "prepare")).DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("drover-demo")})
	denied(t, err)
	for _, step := range []string{"admit", "plan", "change", "stackevent", "report", "sweep"} {
		_, err = s3.NewFromConfig(as(t, step), pathStyle).PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(names.SpecsBucket(ID, "us-east-1")), Key: aws.String("clusters/evil.yaml"), Body: strings.NewReader("x"),
		})
		denied(t, err)
	}
	_, err = sts.NewFromConfig(as(t, "admit")).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(names.RoleARN("aws", ID, "us-east-1", "change")), RoleSessionName: aws.String(intruder),
	})
	denied(t, err)
}

func pathStyle(o *s3.Options) { o.UsePathStyle = true }

func forgeries(t *testing.T) {
	_, admin := cloud.Identities.Admin()
	for name, test := range map[string]struct {
		region, secret, key string
		codes               []string
	}{
		"a wrong secret": {"us-east-1", "not-the-secret", admin.AccessKeyID, []string{"SignatureDoesNotMatch", "InvalidSignatureException"}},
		"another region": {
			"eu-west-1", admin.SecretAccessKey, admin.AccessKeyID, []string{
				"SignatureDoesNotMatch", "InvalidSignatureException", "AuthorizationHeaderMalformed",
			},
		},
		"an unknown user": {
			"us-east-1", admin.SecretAccessKey, "AKIAUNKNOWNUNKNOWN00", []string{
				"InvalidClientTokenId", "InvalidAccessKeyId", "UnrecognizedClientException",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := cloud.Config()
			config.Region = test.region
			config.Credentials = credentials.NewStaticCredentialsProvider(test.key, test.secret, "")
			_, err := cloudformation.NewFromConfig(config).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{})
			requireRefused(t, err, test.codes)
			_, err = sfn.NewFromConfig(config).ListStateMachines(t.Context(), &sfn.ListStateMachinesInput{})
			requireRefused(t, err, test.codes)
			_, err = eks.NewFromConfig(config).ListClusters(t.Context(), &eks.ListClustersInput{})
			requireRefused(t, err, test.codes)
			_, err = s3.NewFromConfig(config, pathStyle).ListBuckets(t.Context(), &s3.ListBucketsInput{})
			requireRefused(t, err, test.codes)
		})
	}
	t.Run("no signature", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, path := range []string{
			"/", "/?Action=DescribeStacks&Version=2010-05-15", "/" + names.SpecsBucket(ID, "us-east-1"), "/clusters/drover-demo",
		} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, cloud.URL()+path, nil)
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusForbidden, response.StatusCode, path)
		}
	})
}

func requireRefused(t *testing.T, err error, codes []string) {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	require.Contains(t, codes, api.ErrorCode())
}
