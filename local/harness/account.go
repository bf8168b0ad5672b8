package harness

// The account: its services, put together.

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/autoscaling"
	"github.com/drover-run/drover/local/clock"
	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/cloudwatch"
	"github.com/drover-run/drover/local/ec2"
	"github.com/drover-run/drover/local/eks"
	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/iam/iamapi"
	"github.com/drover-run/drover/local/kms"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/s3"
	"github.com/drover-run/drover/local/sns"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/local/states/asl"
	"github.com/drover-run/drover/local/tagging"
)

// Region and ID of the account, as in the synthesized machines.
const (
	Region = "eu-central-1"
	ID     = "111122223333"
)

// speed divides what simulated work takes: EKS makes a cluster in half a millisecond.
const speed = 1e6

// Account is an account with drover in it.
type Account struct {
	CloudFormation *cloudformation.Service
	EKS            *eks.Service
	States         *states.Service
	// Calls records every call that came to the endpoint.
	Calls     *endpoint.Recorder
	Events    *Bus
	Functions *Functions

	t          testing.TB
	url        string
	http       *http.Client
	converge   string
	topic      string
	identities *iam.Service
	resources  map[string]resource.Provider

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced whenever anything happens
	logs       bytes.Buffer
	notices    []string
	last       map[string]string // type of the last event of each execution
	onCall     func(endpoint.Call) error
	onResource func(step string, r resource.Request) error
}

// Start starts an account; it ends with the test.
func Start(t testing.TB) *Account {
	t.Helper()
	a := &Account{t: t, Calls: &endpoint.Recorder{}, changed: make(chan struct{}), resources: map[string]resource.Provider{}, last: map[string]string{}}
	a.Calls.Notify = func(endpoint.Call) { a.happened() }
	time := &clock.Clock{Speed: speed}
	a.identities = iam.New(ID, Region, time)
	a.Events = &Bus{account: a}

	objects, err := s3.New(a.identities, time, filepath.Join(t.TempDir(), "s3"), a.Events.s3)
	require.NoError(t, err)
	t.Cleanup(func() { _ = objects.Close() })
	topics := sns.New(a.identities, time, nil)
	topics.OnPublish = a.noticed
	keys := kms.New(a.identities, time)
	network := ec2.New(ec2.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.identities, Objects: objects, Events: a.Events, Addresses: 1000,
	})
	t.Cleanup(network.Close)
	groups := autoscaling.New(autoscaling.Config{
		Account: ID, Region: Region, Clock: time, Instances: network, Roles: a.identities, Events: a.Events,
	})
	t.Cleanup(groups.Close)
	a.EKS, err = eks.New(eks.Config{
		Account: ID, Region: Region, Clock: time, Identities: a.identities, Network: network, Dir: t.TempDir(), Start: startPlane,
	})
	require.NoError(t, err)
	t.Cleanup(a.EKS.Close)
	network.SetNodes(a.EKS)
	a.CloudFormation = cloudformation.New(cloudformation.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.identities, Objects: objects, Events: a.Events,
		OnEvent: func(cloudformation.StackEvent) { a.happened() },
	})
	t.Cleanup(a.CloudFormation.Close)
	scaling := groups.Wire()
	a.Functions = &Functions{account: a}
	a.States = states.New(states.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.identities, Functions: a.Functions, Emit: a.Events.Emit,
		SDK: func(ctx context.Context, caller iam.Caller, _, action string, parameters map[string]any) (any, error) {
			return scaling.Do(ctx, caller, Region, ID, action, parameters)
		},
		Observe: func(x states.Execution, e asl.Event) {
			a.mu.Lock()
			a.last[x.ARN] = e.Type
			a.mu.Unlock()
			a.happened()
		},
		Random: func() float64 { return 0 }, // jitter takes all of a retry's delay
	})
	t.Cleanup(a.States.Close)
	a.register(
		iamapi.New(a.identities).Resources(), objects.Resources(), network.Resources(), groups.Resources(), a.EKS.Resources(),
		a.States.Resources(), keys.Resources(), topics.Resources(), cloudwatch.New(a.identities, time, nil).Resources(),
	)

	front := endpoint.New(a.identities, a.Calls)
	front.Intercept = func(_ *http.Request, call endpoint.Call) error { return a.intercept(call) }
	front.HandleS3(objects)
	front.Handle(
		a.CloudFormation.Wire(), a.EKS.Wire(), a.States.Wire(), scaling, tagging.New(a.CloudFormation.Tagged).Wire(), topics.Wire(),
	)
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	a.url, a.http = server.URL, server.Client()
	a.deploy()
	return a
}

// happened wakes everyone in Until.
func (a *Account) happened() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *Account) noticed(_, subject, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notices = append(a.notices, subject+"\n"+message)
}
