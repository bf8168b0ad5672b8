package elb_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"
)

// testTags is the tag of what the tests create.
var testTags = []types.Tag{{Key: aws.String("elbv2.k8s.aws/cluster"), Value: aws.String("drover-demo")}}

// createBalancer creates a load balancer with a tag, in no subnet unless change adds one.
func (w world) createBalancer(name string, change ...func(*elasticloadbalancingv2.CreateLoadBalancerInput)) error {
	in := &elasticloadbalancingv2.CreateLoadBalancerInput{Name: &name, Tags: testTags}
	for _, f := range change {
		f(in)
	}
	_, err := w.modern().CreateLoadBalancer(w.t.Context(), in)
	return err
}

func inSubnet(in *elasticloadbalancingv2.CreateLoadBalancerInput) { in.Subnets = []string{"subnet-1"} }

// ofKind sets the type of a load balancer.
func ofKind(kind types.LoadBalancerTypeEnum) func(*elasticloadbalancingv2.CreateLoadBalancerInput) {
	return func(in *elasticloadbalancingv2.CreateLoadBalancerInput) { in.Type = kind }
}

// createGroup creates a target group with a tag.
func (w world) createGroup(name string, change ...func(*elasticloadbalancingv2.CreateTargetGroupInput)) error {
	in := &elasticloadbalancingv2.CreateTargetGroupInput{
		Name: &name, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(80), VpcId: aws.String("vpc-1"), Tags: testTags,
	}
	for _, f := range change {
		f(in)
	}
	_, err := w.modern().CreateTargetGroup(w.t.Context(), in)
	return err
}

func TestCreateThroughTheAPI(t *testing.T) {
	w := start(t)
	require.NoError(t, w.createBalancer("web", inSubnet))
	require.NoError(t, w.createBalancer("tcp", inSubnet, ofKind("network")))
	require.NoError(t, w.createGroup("web"))
	require.Equal(t, []string{"web", "tcp"}, w.balancers())
	require.Len(t, w.cards.existing(), 2, "each holds its subnet")
	tagged := w.Tagged(t.Context())
	require.Len(t, tagged, 3)
	for _, one := range tagged {
		require.Equal(t, map[string]string{"elbv2.k8s.aws/cluster": "drover-demo"}, one.Tags)
	}

	group := func(change func(*elasticloadbalancingv2.CreateTargetGroupInput)) error {
		return w.createGroup("api", change)
	}
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"the same load balancer twice": {w.createBalancer("web", inSubnet), "DuplicateLoadBalancerName"},
		"one in no subnet":             {w.createBalancer("api"), "ValidationError"},
		"one for gateways":             {w.createBalancer("api", inSubnet, ofKind("gateway")), "UnsupportedByLocalAccount"},
		"an unknown parameter": {
			w.createBalancer("api", inSubnet, func(in *elasticloadbalancingv2.CreateLoadBalancerInput) { in.IpAddressType = "ipv4" }),
			"UnsupportedByLocalAccount",
		},
		"the same target group twice": {w.createGroup("web"), "DuplicateTargetGroupName"},
		"one of no port": {
			group(func(in *elasticloadbalancingv2.CreateTargetGroupInput) { in.Port = aws.Int32(0) }), "ValidationError",
		},
		"one of another protocol": {
			group(func(in *elasticloadbalancingv2.CreateTargetGroupInput) { in.Protocol = "SMTP" }), "ValidationError",
		},
		"one of functions": {
			group(func(in *elasticloadbalancingv2.CreateTargetGroupInput) { in.TargetType = "lambda" }), "UnsupportedByLocalAccount",
		},
		"a reserved tag": {
			group(func(in *elasticloadbalancingv2.CreateTargetGroupInput) {
				in.Tags = []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("drover-demo")}}
			}), "ValidationError",
		},
	} {
		require.Equal(t, c.code, code(c.err), "%s: %v", name, c.err)
	}
}
