package elb_test

import (
	"errors"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/elb"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
)

// cards are the existing network interfaces.
type cards struct {
	mu  sync.Mutex
	ids []string
	err error
}

func (c *cards) CreateNetworkInterface(subnet string, _ []string, description, requester string, _ map[string]string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", c.err
	}
	c.ids = append(c.ids, subnet+" "+requester+" "+description)
	return c.ids[len(c.ids)-1], nil
}

func (c *cards) DeleteNetworkInterface(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = slices.DeleteFunc(c.ids, func(other string) bool { return other == id })
}

func (c *cards) existing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

type world struct {
	*elb.Service
	t      *testing.T
	cards  *cards
	config aws.Config
}

// start starts a service whose minute takes a tenth of a second.
func start(t *testing.T) world {
	time := &clock.Clock{Speed: 600}
	identities := iam.New("111122223333", "eu-west-1", time)
	c := &cards{}
	s := elb.New(elb.Config{Identities: identities, Clock: time, Network: c})
	t.Cleanup(s.Close)
	front := endpoint.New(identities, nil)
	front.Handle(s.Wire())
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	_, admin := identities.Admin()
	return world{s, t, c, aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider(admin.AccessKeyID, admin.SecretAccessKey, ""),
	}}
}

func (w world) modern() *elasticloadbalancingv2.Client {
	return elasticloadbalancingv2.NewFromConfig(w.config)
}

func (w world) classic() *elasticloadbalancing.Client {
	return elasticloadbalancing.NewFromConfig(w.config)
}

func (w world) deleteBalancer(arn string) error {
	_, err := w.modern().DeleteLoadBalancer(w.t.Context(), &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: &arn})
	return err
}

func (w world) deleteTargetGroup(arn string) error {
	_, err := w.modern().DeleteTargetGroup(w.t.Context(), &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: &arn})
	return err
}

func (w world) deleteClassic(name string) error {
	_, err := w.classic().DeleteLoadBalancer(w.t.Context(), &elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: &name})
	return err
}

// balancers returns the names of load balancers of both APIs.
func (w world) balancers() (names []string) {
	w.t.Helper()
	modern, err := w.modern().DescribeLoadBalancers(w.t.Context(), nil)
	require.NoError(w.t, err)
	for _, balancer := range modern.LoadBalancers {
		names = append(names, *balancer.LoadBalancerName)
	}
	classic, err := w.classic().DescribeLoadBalancers(w.t.Context(), nil)
	require.NoError(w.t, err)
	for _, balancer := range classic.LoadBalancerDescriptions {
		names = append(names, *balancer.LoadBalancerName)
	}
	return names
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func (w world) create(name, kind string, protected bool) string {
	w.t.Helper()
	arn, err := w.Create(name, kind, "subnet-1", nil, protected, map[string]string{"of": "demo"})
	require.NoError(w.t, err)
	return arn
}

func TestDeletedLoadBalancerKeepsItsInterfaces(t *testing.T) {
	w := start(t)
	arn := w.create("web", "application", false)
	require.Equal(t, []string{"web"}, w.balancers())
	require.Len(t, w.cards.existing(), 1)
	require.Contains(t, w.cards.existing()[0], "subnet-1 amazon-elb ELB app/web/")
	require.NoError(t, w.deleteBalancer(arn))
	require.Empty(t, w.balancers())
	require.Len(t, w.cards.existing(), 1, "for a while it holds the subnet")
	require.Eventually(t, func() bool { return len(w.cards.existing()) == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, w.deleteBalancer(arn), "deleting twice succeeds")
}

func TestDeletionProtection(t *testing.T) {
	w := start(t)
	arn := w.create("web", "network", true)
	require.Equal(t, "OperationNotPermitted", code(w.deleteBalancer(arn)))
	require.Equal(t, []string{"web"}, w.balancers())
	w.Unprotect(arn)
	require.NoError(t, w.deleteBalancer(arn))
	require.Empty(t, w.balancers())
}

func TestDeleteTargetGroup(t *testing.T) {
	w := start(t)
	arn := w.create("web", "application", false)
	group := w.CreateTargetGroup("targets", arn, nil)
	require.Equal(t, "ResourceInUse", code(w.deleteTargetGroup(group)))
	require.NoError(t, w.deleteBalancer(arn))
	require.NoError(t, w.deleteTargetGroup(group))
	require.NoError(t, w.deleteTargetGroup(group), "deleting twice succeeds")
	require.Empty(t, w.Tagged(t.Context()))
}

func TestClassicLoadBalancers(t *testing.T) {
	w := start(t)
	arn := w.create("old", "classic", false)
	require.NoError(t, w.deleteBalancer(arn))
	require.Equal(t, []string{"old"}, w.balancers(), "which does not know it")
	require.NoError(t, w.deleteClassic("old"))
	require.Empty(t, w.balancers())
}

func TestCreateRejects(t *testing.T) {
	w := start(t)
	w.create("web", "application", false)
	_, err := w.Create("web", "application", "subnet-1", nil, false, nil)
	require.ErrorContains(t, err, "DuplicateLoadBalancerName")
	_, err = w.Create("web", "gateway", "subnet-1", nil, false, nil)
	require.ErrorContains(t, err, "load balancers of the kind gateway")
	w.cards.err = errors.New("the subnet is full")
	_, err = w.Create("api", "network", "subnet-1", nil, false, nil)
	require.ErrorIs(t, err, w.cards.err)
	require.Equal(t, []string{"web"}, w.balancers())
}

func TestDeletePermissions(t *testing.T) {
	w := start(t)
	arn := w.create("web", "application", false)
	classic := w.create("old", "classic", false)
	group := w.CreateTargetGroup("targets", "", map[string]string{"of": "demo"})
	unknown := w
	unknown.config.Credentials = credentials.NewStaticCredentialsProvider("AKIAUNKNOWN", "x", "")
	require.Error(t, unknown.deleteBalancer(arn))
	require.Error(t, unknown.deleteClassic("old"))
	require.Error(t, unknown.deleteTargetGroup(group))
	var arns []string
	for _, tagged := range w.Tagged(t.Context()) {
		require.Equal(t, "demo", tagged.Tags["of"])
		arns = append(arns, tagged.ARN)
	}
	require.ElementsMatch(t, []string{arn, classic, group}, arns)
}
