package private_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/kube/relay"
	"github.com/drover-run/drover/shared/names"
)

// privateCluster is a cluster whose endpoint is private, with a relay that the test made.
type privateCluster struct {
	*life
	endpoint, group, clusterGroup string
	through                       http.RoundTripper
}

func newPrivateCluster(t *testing.T, a *life) *privateCluster {
	t.Helper()
	p := &privateCluster{life: a}
	p.Upload(names.ReleaseSpec("r1"), harness.Release())
	p.ChangeSpec("")
	clusters := awseks.NewFromConfig(a.Config())
	name := names.EKSCluster("demo")
	found, err := clusters.DescribeCluster(t.Context(), &awseks.DescribeClusterInput{Name: &name})
	require.NoError(t, err)
	vpc := found.Cluster.ResourcesVpcConfig
	p.endpoint, p.clusterGroup = *found.Cluster.Endpoint, *vpc.ClusterSecurityGroupId
	p.group = p.CreateResource("AWS::EC2::SecurityGroup", map[string]any{"VpcId": *vpc.VpcId, "GroupDescription": "relay"})
	r, err := a.Identities.CreateRole(iam.Role{
		Name: "relay", TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},` +
			`"Action":"sts:AssumeRole"}]}`,
	})
	require.NoError(t, err)
	require.NoError(t, a.Identities.PutRolePolicy("relay", "vpc",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`))
	_, err = s3.NewClient(a.Config()).PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(harness.StateBucket), Key: aws.String("relay.zip"), Body: bytes.NewReader([]byte("code")),
	})
	require.NoError(t, err)
	_, err = p.functions().CreateFunction(t.Context(), &awslambda.CreateFunctionInput{
		FunctionName: aws.String(names.Relay("demo")), Role: aws.String(a.Identities.RoleARN(r)), Runtime: types.RuntimeProvidedal2023,
		Handler: aws.String("bootstrap"), Timeout: aws.Int32(60), Architectures: []types.Architecture{map[string]types.Architecture{
			"amd64": types.ArchitectureX8664, "arm64": types.ArchitectureArm64,
		}[runtime.GOARCH]},
		Code:        &types.FunctionCode{S3Bucket: aws.String(harness.StateBucket), S3Key: aws.String("relay.zip")},
		Environment: &types.Environment{Variables: map[string]string{"CLUSTER_ENDPOINT": p.endpoint, "CLUSTER_CA": "YQ=="}},
		VpcConfig:   &types.VpcConfig{SubnetIds: vpc.SubnetIds[:2], SecurityGroupIds: []string{p.group}},
	})
	require.NoError(t, err)
	_, err = clusters.UpdateClusterConfig(t.Context(), &awseks.UpdateClusterConfigInput{
		Name: &name, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{
			EndpointPublicAccess: aws.Bool(false), EndpointPrivateAccess: aws.Bool(true),
		},
	})
	require.NoError(t, err)
	p.through = relay.To(lambda.New(a.Config()))("demo")
	return p
}

func (p *privateCluster) functions() *awslambda.Client { return awslambda.NewFromConfig(p.Config()) }

// allow admits the relay to the API.
func (p *privateCluster) allow() {
	p.CreateResource("AWS::EC2::SecurityGroupIngress", map[string]any{
		"GroupId": p.clusterGroup, "IpProtocol": "tcp", "FromPort": 443.0, "ToPort": 443.0, "SourceSecurityGroupId": p.group,
	})
}

// get requests a path of the API.
func (p *privateCluster) get(by http.RoundTripper, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(p.T.Context(), http.MethodGet, p.endpoint+path, nil)
	require.NoError(p.T, err)
	return by.RoundTrip(r)
}

func (p *privateCluster) fails(want relay.Reason) {
	p.T.Helper()
	_, err := p.get(p.through, "/api/v1/nodes")
	var failed *relay.Error
	require.ErrorAs(p.T, err, &failed)
	require.Equal(p.T, want, failed.Reason, "%v", err)
}

func TestPrivateEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startWith(t, harness.Options{Bubble: true})
		defer a.Close()
		p := newPrivateCluster(t, a)
		p.fails(relay.NotReady)
		time.Sleep(3 * time.Minute)

		begin := time.Now()
		_, err := p.get(a.Reach(""), "/api/v1/nodes")
		var network net.Error
		require.True(t, errors.As(err, &network) && network.Timeout(), "%v", err)
		require.Equal(t, harness.DialTimeout, time.Since(begin))

		p.fails(relay.Unreachable)
		p.allow()
		response, err := p.get(p.through, "/api/v1/nodes")
		require.NoError(t, err)
		var nodes struct {
			Metadata struct{ ResourceVersion string }
			Items    []json.RawMessage
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&nodes))
		require.Len(t, nodes.Items, 1)
		require.NoError(t, response.Body.Close())

		watch, err := p.get(p.through, "/api/v1/nodes?watch=true&resourceVersion="+nodes.Metadata.ResourceVersion)
		require.NoError(t, err)
		begin = time.Now()
		go func() {
			time.Sleep(7 * time.Second)
			p.DeleteNode("demo", nodeName(t, nodes.Items[0]))
		}()
		lines := bufio.NewScanner(watch.Body)
		for lines.Scan() && !bytes.Contains(lines.Bytes(), []byte("DELETED")) {
		}
		require.NoError(t, lines.Err())
		require.Equal(t, 7*time.Second, time.Since(begin), "the event arrives when it happens")
		rest, err := io.ReadAll(watch.Body)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.InDelta(t, relay.WatchLimit, time.Since(begin), float64(time.Second), "the API server ends the watch")
		require.NoError(t, watch.Body.Close())

		_, err = p.functions().PutFunctionConcurrency(t.Context(), &awslambda.PutFunctionConcurrencyInput{
			FunctionName: aws.String(names.Relay("demo")), ReservedConcurrentExecutions: aws.Int32(0),
		})
		require.NoError(t, err)
		p.fails(relay.Throttled)
		_, err = p.functions().DeleteFunction(t.Context(), &awslambda.DeleteFunctionInput{FunctionName: aws.String(names.Relay("demo"))})
		require.NoError(t, err)
		p.fails(relay.Missing)
	})
}

// nodeName returns the name of a node.
func nodeName(t *testing.T, node json.RawMessage) string {
	t.Helper()
	var n struct{ Metadata struct{ Name string } }
	require.NoError(t, json.Unmarshal(node, &n))
	return n.Metadata.Name
}
