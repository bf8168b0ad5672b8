package eks

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes"
)

const (
	testAccount = "111122223333"
	testRegion  = "us-east-1"
)

// memoryPlane keeps a cluster's objects in memory. No pod is scheduled or runs. Tests with a real control plane are elsewhere.
type memoryPlane struct {
	client  dynamic.Interface
	minor   atomic.Value // a string
	stopped bool
	metrics string
	// settings are those of the last Configure.
	settings kubernetes.Settings

	endpoint string
}

func newMemoryPlane(o kubernetes.Options) *memoryPlane {
	p := &memoryPlane{client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		nodeResource: "NodeList", podResource: "PodList", namespaceResource: "NamespaceList", deploymentResource: "DeploymentList",
		daemonSetResource: "DaemonSetList",
	})}
	p.minor.Store(o.Minor)
	return p
}

func (p *memoryPlane) Address() (string, []byte) { return p.endpoint, []byte("authority") }
func (p *memoryPlane) Kubeconfig() string        { return "" }
func (p *memoryPlane) Client(string, []string) (dynamic.Interface, error) {
	return p.client, nil
}
func (p *memoryPlane) SetMinor(_ context.Context, minor string) error {
	p.minor.Store(minor)
	return nil
}
func (p *memoryPlane) Configure(_ context.Context, settings kubernetes.Settings) error {
	p.settings = settings
	return nil
}
func (p *memoryPlane) Metrics(context.Context) ([]byte, error) { return []byte(p.metrics), nil }
func (p *memoryPlane) Stop()                                   { p.stopped = true }

// testbed is an EKS with the parts of an account that it needs.
type testbed struct {
	*Service
	identities *iam.Service
	network    *ec2.Service
	admin      iam.Caller
	subnets    []string
	roleARN    string
	planes     map[string]*memoryPlane
	endpoint   string // of the next clusters
}

func newTestbed(t *testing.T, speed float64) *testbed {
	t.Helper()
	time := &clock.Clock{Speed: speed}
	b := &testbed{identities: iam.New(testAccount, testRegion, time), planes: map[string]*memoryPlane{}, endpoint: "https://127.0.0.1:1"}
	b.network = ec2.New(ec2.Config{Account: testAccount, Region: testRegion, Clock: time})
	b.admin, _ = b.identities.Admin()
	b.subnets = makeSubnets(t, b.network, b.admin, "10.0")
	b.roleARN = b.role(t, "cluster", "eks.amazonaws.com")
	var err error
	b.Service, err = New(Config{
		Account: testAccount, Region: testRegion, Clock: time, Identities: b.identities, Network: b.network, Dir: t.TempDir(),
		Start: func(_ context.Context, o kubernetes.Options) (ControlPlane, error) {
			b.planes[o.Name] = newMemoryPlane(o)
			b.planes[o.Name].endpoint = b.endpoint
			return b.planes[o.Name], nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		b.Close()
		b.network.Close()
	})
	return b
}

// makeSubnets creates a VPC with a subnet in each of three zones.
func makeSubnets(t *testing.T, network *ec2.Service, admin iam.Caller, prefix string) []string {
	t.Helper()
	create := func(kind string, properties map[string]any) string {
		result, err := network.Resources()[kind].Create(t.Context(), resource.Request{
			Type: kind, Properties: properties, Caller: admin, Account: testAccount, Region: testRegion,
		})
		require.NoError(t, err)
		return result.PhysicalID
	}
	vpc := create("AWS::EC2::VPC", map[string]any{"CidrBlock": prefix + ".0.0/16"})
	var subnets []string
	for i, zone := range []string{"a", "b", "c"} {
		subnets = append(subnets, create("AWS::EC2::Subnet", map[string]any{
			"VpcId": vpc, "CidrBlock": fmt.Sprintf("%s.%d.0/24", prefix, i), "AvailabilityZone": testRegion + zone,
		}))
	}
	return subnets
}

// role creates a role that a service may assume.
func (b *testbed) role(t *testing.T, name, service string) string {
	t.Helper()
	r, err := b.identities.CreateRole(iam.Role{
		Name: name, TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service +
			`"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`,
	})
	require.NoError(t, err)
	return b.identities.RoleARN(r)
}

// assume returns a caller with a role and a policy.
func (b *testbed) assume(t *testing.T, name, policy string) (iam.Caller, iam.Credentials) {
	t.Helper()
	arn := b.role(t, name, "lambda.amazonaws.com")
	if policy != "" {
		require.NoError(t, b.identities.PutRolePolicy(name, "p", policy))
	}
	caller, credentials, err := b.identities.AssumeRoleAs(arn, "session", "lambda.amazonaws.com")
	require.NoError(t, err)
	return caller, credentials
}

func (b *testbed) input(name string) CreateClusterInput {
	no := false
	return CreateClusterInput{
		Name: name, Version: "1.35", RoleArn: b.roleARN, ResourcesVpcConfig: VPCRequest{SubnetIds: b.subnets},
		AccessConfig: AccessConfig{AuthenticationMode: "API", BootstrapClusterCreatorAdminPermissions: &no}, BootstrapSelfManagedAddons: &no,
	}
}

// cluster creates a cluster and waits until it is ACTIVE.
func (b *testbed) cluster(t *testing.T, name string) *Cluster {
	t.Helper()
	_, err := b.CreateCluster(t.Context(), b.admin, b.input(name))
	require.NoError(t, err)
	b.await(t, name, active)
	out, err := b.DescribeCluster(t.Context(), b.admin, NamedInput{name})
	require.NoError(t, err)
	return out.Cluster
}

func (b *testbed) await(t *testing.T, name, status string) {
	t.Helper()
	require.NoError(t, b.wait(t.Context(), func() (bool, error) {
		c, err := b.find(name)
		if err != nil {
			return false, err
		}
		return c.Status == status, nil
	}))
}

// sdk returns a client of the AWS SDK.
func (b *testbed) sdk(t *testing.T, as iam.Credentials) *awseks.Client {
	t.Helper()
	e := endpoint.New(b.identities, nil)
	e.Handle(b.Wire())
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return awseks.New(awseks.Options{
		Region: testRegion, BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(as.AccessKeyID, as.SecretAccessKey, as.SessionToken),
	})
}

// makeAvailable sets the pods of a Deployment in memory to available.
func (p *memoryPlane) makeAvailable(t *testing.T, name string) {
	t.Helper()
	p.setStatus(t, deploymentResource, name, map[string]any{"availableReplicas": int64(2), "updatedReplicas": int64(2)})
}

// setStatus sets the status of a Deployment or DaemonSet in memory.
func (p *memoryPlane) setStatus(t *testing.T, resource schema.GroupVersionResource, name string, status map[string]any) {
	t.Helper()
	api := p.client.Resource(resource).Namespace("kube-system")
	o, err := api.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(o.Object, status, "status"))
	_, err = api.Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
}
