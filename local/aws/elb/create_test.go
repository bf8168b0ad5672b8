package elb_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/query"
)

// form returns the parameters of a call, with a tag.
func form(arguments ...string) map[string]string {
	all := map[string]string{"Tags.member.1.Key": "elbv2.k8s.aws/cluster", "Tags.member.1.Value": "drover-demo"}
	for i := 0; i < len(arguments); i += 2 {
		all[arguments[i]] = arguments[i+1]
	}
	return all
}

func TestCreateThroughTheAPI(t *testing.T) {
	w := start(t)
	make := func(action string, arguments map[string]string) error {
		return query.ELBv2.Call(t.Context(), w.config, w.session, action, arguments, nil)
	}
	require.NoError(t, make("CreateLoadBalancer", form("Name", "web", "Subnets.member.1", "subnet-1")))
	require.NoError(t, make("CreateLoadBalancer", form("Name", "tcp", "Type", "network", "Subnets.member.1", "subnet-1")))
	group := form("Name", "web", "Protocol", "HTTP", "Port", "80", "VpcId", "vpc-1")
	require.NoError(t, make("CreateTargetGroup", group))
	require.Equal(t, []string{"web", "tcp"}, w.balancers())
	require.Len(t, w.cards.existing(), 2, "each holds its subnet")
	tagged := w.Tagged(t.Context())
	require.Len(t, tagged, 3)
	for _, one := range tagged {
		require.Equal(t, map[string]string{"elbv2.k8s.aws/cluster": "drover-demo"}, one.Tags)
	}

	other := func(key, value string) map[string]string {
		changed := maps.Clone(group)
		changed["Name"], changed[key] = "api", value
		return changed
	}
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"the same load balancer twice": {
			make("CreateLoadBalancer", form("Name", "web", "Subnets.member.1", "subnet-1")), "DuplicateLoadBalancerName",
		},
		"one in no subnet": {make("CreateLoadBalancer", form("Name", "api")), "ValidationError"},
		"one for gateways": {
			make("CreateLoadBalancer", form("Name", "api", "Type", "gateway", "Subnets.member.1", "subnet-1")), "UnsupportedByLocalAccount",
		},
		"an unknown parameter": {
			make("CreateLoadBalancer", form("Name", "api", "Subnets.member.1", "subnet-1", "IpAddressType", "ipv4")), "UnsupportedByLocalAccount",
		},
		"the same target group twice": {make("CreateTargetGroup", group), "DuplicateTargetGroupName"},
		"one of no port":              {make("CreateTargetGroup", other("Port", "0")), "ValidationError"},
		"one of another protocol":     {make("CreateTargetGroup", other("Protocol", "SMTP")), "ValidationError"},
		"one of functions":            {make("CreateTargetGroup", other("TargetType", "lambda")), "UnsupportedByLocalAccount"},
		"a reserved tag":              {make("CreateTargetGroup", other("Tags.member.1.Key", "aws:x")), "ValidationError"},
	} {
		require.Equal(t, c.code, code(c.err), "%s: %v", name, c.err)
	}
}
