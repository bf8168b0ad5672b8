package eks

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/resource"
)

// testbedWithSources is a testbed whose callers connect from the sources of the test.
func testbedWithSources(t *testing.T) (b *testbed, from map[string]Source) {
	t.Helper()
	b = newTestbed(t, 100_000)
	from = map[string]Source{"function": {Public: netip.MustParsePrefix("192.0.2.0/24")}}
	b.config.User = Source{Public: netip.MustParsePrefix("203.0.113.10/32")}
	b.config.SourceOf = func(caller iam.Caller) Source {
		if f, ok := from[caller.SessionName()]; ok {
			return f
		}
		return b.config.User
	}
	return b, from
}

func (b *testbed) make(t *testing.T, kind string, properties map[string]any) string {
	t.Helper()
	r, err := b.network.Resources()[kind].Create(t.Context(), resource.Request{
		Type: kind, Properties: properties, Caller: b.admin, Account: testAccount, Region: testRegion,
	})
	require.NoError(t, err)
	return r.PhysicalID
}

func (b *testbed) access(t *testing.T, name string, public, private bool, cidrs ...string) {
	t.Helper()
	out, err := b.UpdateClusterConfig(t.Context(), b.admin, UpdateClusterConfigInput{
		Name: name, ResourcesVpcConfig: &VPCRequest{EndpointPublicAccess: &public, EndpointPrivateAccess: &private, PublicAccessCidrs: cidrs},
	})
	require.NoError(t, err)
	require.Equal(t, "EndpointAccessUpdate", out.Update.Type)
	b.await(t, name, active)
}

func TestReaches(t *testing.T) {
	b, _ := testbedWithSources(t)
	c := b.cluster(t, "demo")
	vpc := c.ResourcesVpcConfig.VPCID
	group := b.make(t, "AWS::EC2::SecurityGroup", map[string]any{"VpcId": vpc, "GroupDescription": "functions"})
	function, err := b.network.CreateFunctionInterface(b.subnets[0], []string{group}, "function", "lambda")
	require.NoError(t, err)
	defer b.network.DeleteNetworkInterface(function)
	inside := Source{SubnetIDs: b.subnets[:1], SecurityGroupIDs: []string{group}}
	elsewhere := Source{SubnetIDs: makeSubnets(t, b.network, b.admin, "10.9")[:1]}
	public := func(cidr string) Source { return Source{Public: netip.MustParsePrefix(cidr)} }
	rule := func(properties map[string]any) (remove func()) {
		properties["GroupId"], properties["IpProtocol"] = c.ResourcesVpcConfig.ClusterSecurityGroupID, "tcp"
		kind := "AWS::EC2::SecurityGroupIngress"
		r, err := b.network.Resources()[kind].Create(t.Context(), resource.Request{
			Type: kind, Properties: properties, Caller: b.admin, Account: testAccount, Region: testRegion,
		})
		require.NoError(t, err)
		return func() {
			require.NoError(t, b.network.Resources()[kind].Delete(t.Context(), resource.Request{
				Type: kind, PhysicalID: r.PhysicalID, Properties: properties, Caller: b.admin,
			}))
		}
	}
	check := func(want bool, from Source, why string) {
		t.Helper()
		require.Equal(t, want, b.Reaches("demo", from), why)
	}

	check(true, public("203.0.113.10/32"), "the endpoint is public for everyone")
	check(false, inside, "a function in a VPC without NAT gateway has no way to a public endpoint")

	b.access(t, "demo", true, false, "203.0.113.0/24", "192.0.2.0/25")
	check(true, public("203.0.113.10/32"), "the address is in a block")
	check(false, public("198.51.100.1/32"), "the address is in no block")
	check(false, public("192.0.2.0/24"), "some of the addresses are in no block")

	b.access(t, "demo", true, true, "203.0.113.0/24")
	check(false, inside, "no rule of the cluster security group admits the function")
	remove := rule(map[string]any{"FromPort": 443.0, "ToPort": 443.0, "SourceSecurityGroupId": group})
	check(true, inside, "a rule names the group of the function")
	remove()
	remove = rule(map[string]any{"FromPort": 80.0, "ToPort": 80.0, "SourceSecurityGroupId": group})
	check(false, inside, "the rule is for another port")
	remove()
	remove = rule(map[string]any{"FromPort": 1.0, "ToPort": 1000.0, "CidrIp": "10.0.0.0/24"})
	check(true, inside, "a rule names the addresses of the subnet")
	check(false, elsewhere, "another VPC")

	b.access(t, "demo", false, true)
	check(false, public("203.0.113.10/32"), "the endpoint is private")
	check(true, inside, "the endpoint is private")
	remove()
	check(false, inside, "the rule is removed")
}

func TestEndpointOfSource(t *testing.T) {
	b, _ := testbedWithSources(t)
	function, _ := b.assume(t, "function", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:*","Resource":"*"}]}`)
	_, functions, err := b.identities.AssumeRoleAs(function.RoleARN(), "function", "lambda.amazonaws.com")
	require.NoError(t, err)
	caller, _, _, err := b.identities.Caller(functions.AccessKeyID)
	require.NoError(t, err)
	api := listen(t)
	b.endpoint = "https://" + api
	c := b.cluster(t, "demo")
	endpoint := func(caller iam.Caller) string {
		t.Helper()
		out, err := b.DescribeCluster(t.Context(), caller, NamedInput{"demo"})
		require.NoError(t, err)
		return out.Cluster.Endpoint
	}
	outside, own := endpoint(b.admin), endpoint(caller)
	require.Equal(t, c.Endpoint, outside, "the user's endpoint is that of stacks and nodes")
	require.NotEqual(t, outside, own)
	require.Equal(t, "the API is "+own+"/", b.Resolve("the API is "+outside+"/", Source{Public: netip.MustParsePrefix("192.0.2.0/24")}))
	connects(t, outside)
	connects(t, own)

	b.access(t, "demo", true, true, "203.0.113.0/24")
	connects(t, outside)
	times(t, own)
	require.Equal(t, own, endpoint(caller), "the endpoint stays")

	b.access(t, "demo", false, true)
	times(t, outside)
	times(t, own)

	b.access(t, "demo", true, true, "0.0.0.0/0")
	connects(t, outside)
	connects(t, own)
}

// listen returns an address that accepts connections.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	return l.Addr().String()
}

// connects requires that a connection begins, soon after a change.
func connects(t *testing.T, endpoint string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) { require.NoError(t, dial(endpoint)) }, time.Minute, 10*time.Millisecond)
}

// times requires that a connection waits until its timeout.
func times(t *testing.T, endpoint string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		var network net.Error
		err := dial(endpoint)
		require.True(t, errors.As(err, &network) && network.Timeout(), "%v", err)
	}, time.Minute, 10*time.Millisecond)
}

func dial(endpoint string) error {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(endpoint, "https://"), 200*time.Millisecond)
	if err == nil {
		err = c.Close()
	}
	return err
}
