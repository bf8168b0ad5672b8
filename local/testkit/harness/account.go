package harness

// The account: its services and their connections.

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/cloudwatch"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/elb"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/iam/iamapi"
	"github.com/drover-run/drover/local/aws/kms"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/local/aws/s3"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/aws/sns"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	s3adapter "github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
)

// Region and ID of the account, as in the synthesized machines.
const (
	Region = "eu-central-1"
	ID     = "111122223333"
)

// speed divides simulated work in real time: EKS creates a cluster in half a millisecond.
const speed = 1e6

// Options of an account. The zero value is in real time, with objects in memory.
type Options struct {
	// Bubble is for accounts under testing/synctest. Everything takes as long as on AWS, and drover pauses as on AWS. There are
	// no sockets or files.
	Bubble bool
	// Files stores objects with versitygw, which cannot run in a bubble. It needs several times as much processor time as memory.
	Files bool
	// Turns is clock.Clock's.
	Turns func(what string) (ticket func())
	// OnCluster is called for each control plane of the bubble when it starts, with the name of its EKS cluster.
	OnCluster func(name string, api *apiserver.Server)
	// OnFunctionCall is called before each call of a function is answered, with the function's payload.
	OnFunctionCall func(call endpoint.Call, asked []byte)
	// Fleet also runs the functions of rollouts.
	Fleet bool
	// Readings has the open questions about AWS that the account does not read strictly.
	Readings questions.Readings
	// Faults decides which faults occur, like OnCall, Kill and Decide. It may be nil.
	Faults *faults.Engine
	// Decided reports whether the account has already shown what its test is about. Every later Idle and Until ends the goroutine of the
	// test. It may be nil.
	Decided func() bool
	// Workloads gives the cell the settings of infra's tests (WorkloadSettings), and creates what they name.
	Workloads bool
	// Identities changes the synthesized roles before they are created.
	Identities func(*iam.Definitions)
	// OnAllow and OnDeny are iam.Service's.
	OnAllow func(role, sid string)
	OnDeny  func(role string, would func(*iam.Policy) bool)
}

// Account is an account with drover.
type Account struct {
	CloudFormation *cloudformation.Service
	AutoScaling    *autoscaling.Service
	EKS            *eks.Service
	CloudWatch     *cloudwatch.Service
	Keys           *kms.Service
	Quotas         *servicequotas.Service
	EC2            *ec2.Service
	ELB            *elb.Service
	StepFunctions  *stepfunctions.Service
	// Lambda has the functions of clusters' stacks. Functions has drover's.
	Lambda *lambda.Service
	// Calls records every call that reached the endpoint.
	Calls     *endpoint.Recorder
	Events    *Bus
	Functions *Functions
	Nodes     *Nodes
	// Identities are the roles and policies of the account.
	Identities *iam.Service

	t       testing.TB
	options Options
	// definitions are the synthesized roles. authenticates reports whether API servers check tokens: see CheckTokens.
	definitions   iam.Definitions
	authenticates atomic.Bool
	handler       http.Handler // the endpoint
	http          client
	clock         *clock.Clock
	converge      string
	topic         string
	clusters      map[string]*cluster // in virtual time, by host
	started       int
	closing       []func()
	ending        context.Context // operations in flight end with the account
	end           context.CancelFunc
	resources     map[string]resource.Provider
	answers       answers
	documents     map[string]knownDocument // by key
	objects       *s3.Service
	admin         *awss3.Client // of the administrator

	mu         sync.Mutex
	changed    chan struct{} // closed at each change; nil while nothing waits for it
	happenings int
	logs       bytes.Buffer
	notices    []string
	busEvents  []eventbridge.Event
	last       map[string]string // type of the last event of each execution
	// unannounced counts the executions that have ended and whose event is not on the bus yet.
	unannounced int
	onCall      func(endpoint.Call) error
	onAnswer    func(endpoint.Call)
	onMachine   func(action string, parameters map[string]any)
	onStack     func(stackName, is string)
	onResource  func(step string, r resource.Request) error
	onSet       func(stackName string) (reason string)
	relays      map[string]Relay // by function
}

// Start starts an account. It ends with the test.
func Start(t testing.TB) *Account { return StartWith(t, Options{}) }

// StartWith starts an account with options. It ends with the test, or with Close.
func StartWith(t testing.TB, o Options) (a *Account) {
	t.Helper()
	folder := t.TempDir() // before Close is registered, which must run first
	t.Cleanup(func() { a.Close() })
	ending, end := context.WithCancel(context.Background())
	a = &Account{
		ending: ending, end: end, t: t, options: o, Calls: &endpoint.Recorder{}, clusters: map[string]*cluster{},
		resources: map[string]resource.Provider{}, documents: map[string]knownDocument{},
		last: map[string]string{},
	}
	a.Calls.Notify = func(call endpoint.Call) { a.afterCall(call); a.wake() }
	time := &clock.Clock{Speed: speed, Turns: o.Turns}
	if o.Bubble {
		time.Speed = 1
	}
	a.clock = time
	a.Identities = iam.New(ID, Region, time)
	a.Identities.OnAllow, a.Identities.OnDeny = o.OnAllow, o.OnDeny
	a.Events = &Bus{account: a}

	var err error
	objects := (*s3.Service)(nil)
	if o.Files {
		objects, err = s3.New(a.Identities, time, filepath.Join(folder, "s3"), a.Events.s3)
		require.NoError(t, err)
	} else {
		objects = s3.NewInMemory(a.Identities, time, a.Events.s3)
	}
	a.objects = objects
	a.OnClose(func() { _ = objects.Close() })
	keys := kms.New(a.Identities, time)
	a.Keys, keys.Readings = keys, o.Readings
	topics := sns.New(a.Identities, time, nil)
	topics.OnPublish, topics.Keys = a.recordNotice, keys
	buses := eventbridge.New(eventbridge.Config{Account: ID, Region: Region, Clock: time, Identities: a.Identities, Observe: a.recordEvent})
	a.OnClose(buses.Close)
	a.Quotas, a.CloudWatch = servicequotas.New(a.Identities), cloudwatch.New(a.Identities, time, topics)
	a.CloudWatch.Keys = keys
	a.Identities.MaxRoles = a.Quotas.Of(servicequotas.Roles)
	a.Identities.MaxOIDCProviders = a.Quotas.Of(servicequotas.OIDCProviders)
	network := ec2.New(ec2.Config{
		MetadataTags: true, // the default under which more fails
		Account:      ID, Region: Region, Clock: time, Roles: a.Identities, Objects: objects, Events: a.Events, Keys: keys,
		Quotas: ec2.Quotas{
			VPCs: a.Quotas.Of(servicequotas.VPCs), InternetGateways: a.Quotas.Of(servicequotas.InternetGateways),
			NATGateways: a.Quotas.Of(servicequotas.NATGateways), Addresses: a.Quotas.Of(servicequotas.Addresses),
		},
		VCPUs: func(spot bool) int {
			return a.Quotas.Limit(map[bool]string{false: servicequotas.StandardVCPUs, true: servicequotas.StandardSpotVCPUs}[spot])
		},
		LaunchFails: a.faults().LaunchFails,
	})
	a.OnClose(network.Close)
	a.EC2 = network
	a.ELB = elb.New(elb.Config{Identities: a.Identities, Clock: time, Network: network})
	a.OnClose(a.ELB.Close)
	a.AutoScaling = autoscaling.New(autoscaling.Config{
		Account: ID, Region: Region, Clock: time, Instances: network, Roles: a.Identities, Events: a.Events,
		Readings: o.Readings,
	})
	a.OnClose(a.AutoScaling.Close)
	start := startPlane
	if o.Bubble {
		start = a.startCluster
	}
	a.EKS, err = eks.New(eks.Config{
		Account: ID, Region: Region, Clock: time, Identities: a.Identities, Network: network, Dir: filepath.Join(folder, "eks"), Start: start,
		UpdateFails: a.faults().UpdateFails, Keys: keys, Readings: o.Readings,
	})
	require.NoError(t, err)
	a.OnClose(a.EKS.Close)
	network.SetNodes(a.faults().Boot(a.EKS))
	a.CloudFormation = cloudformation.New(cloudformation.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.Identities, Objects: objects, Events: a.Events,
		OnEvent: func(e cloudformation.StackEvent) { a.afterStackEvent(e); a.wake() }, OnDelivered: a.wake, ChangeSetFails: a.changeSetFails,
	})
	a.OnClose(a.CloudFormation.Close)
	a.Lambda = lambda.New(lambda.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.Identities, Objects: packages{objects}, Network: network, Run: a.runRelay,
		Other: func(ctx context.Context, caller iam.Caller, in lambda.Invocation) (found bool, err error) {
			if _, found = a.Functions.handlers[strings.TrimPrefix(in.Function, names.Prefix)]; found {
				_, err = a.Functions.InvokeAsync(ctx, caller, in)
			}
			return found, err
		},
	})
	a.OnClose(a.Lambda.Close)
	scaling := a.AutoScaling.Wire()
	a.Functions, a.Nodes = &Functions{account: a}, &Nodes{account: a}
	a.Functions.Concurrency.Limit = func() int { return a.Quotas.Limit(servicequotas.LambdaConcurrency) }
	a.Functions.Concurrency.Exhausted = a.faults().AtLambdaLimit
	a.Lambda.Concurrency = &a.Functions.Concurrency // relays share it
	a.StepFunctions = stepfunctions.New(stepfunctions.Config{
		Account: ID, Region: Region, Clock: time, Roles: a.Identities, Functions: a.Functions, Emit: a.announce,
		SDK: func(ctx context.Context, caller iam.Caller, _, action string, parameters map[string]any) (any, error) {
			a.machineCalls(action, parameters)
			return scaling.Do(ctx, caller, Region, ID, action, parameters)
		},
		Observe: func(x stepfunctions.Execution, e asl.Event) {
			a.mu.Lock()
			a.last[x.ARN] = e.Type
			if endsExecution(e.Type) {
				a.unannounced++
			}
			a.mu.Unlock()
			a.killAt(x, e)
			a.wake()
		},
		Random: func() float64 { return 0 }, // jitter uses the whole delay of a retry
	})
	a.OnClose(a.StepFunctions.Close)
	a.register(
		iamapi.New(a.Identities).Resources(), objects.Resources(), network.Resources(), a.AutoScaling.Resources(), a.EKS.Resources(),
		a.StepFunctions.Resources(), a.Lambda.Resources(), keys.Resources(), topics.Resources(), buses.Resources(), a.CloudWatch.Resources(),
	)

	front := endpoint.New(a.Identities, a.Calls)
	front.Intercept = func(r *http.Request, call endpoint.Call) error {
		if err := a.intercept(call); err != nil {
			return err
		}
		return a.strike(r, call)
	}
	front.HandleS3(objects)
	front.Handle(
		a.CloudFormation.Wire(), a.CloudWatch.Wire(), a.Quotas.Wire(), a.EKS.Wire(), a.StepFunctions.Wire(), scaling, topics.Wire(), buses.Wire(),
		network.Wire(), a.ELB.Wire(), keys.Wire(), a.CloudWatch.LogsWire(), a.Lambda.Wire(),
		iamapi.New(a.Identities).IAM(), iamapi.New(a.Identities).STS(),
		tagging.New(a.CloudFormation.Tagged, network.Tagged, a.ELB.Tagged, a.EKS.Tagged, a.AutoScaling.Tagged, a.Lambda.Tagged, keys.Tagged,
			a.CloudWatch.Tagged).Wire(),
	)
	a.handler, a.http = front, client{inProcess{front}}
	a.admin = s3adapter.NewClient(a.Config())
	a.deploy()
	return a
}

// OnClose calls a function when the account ends.
func (a *Account) OnClose(f func()) { a.closing = append(a.closing, f) }

// Close ends everything that runs. The end of the test calls it too.
func (a *Account) Close() {
	a.end()
	a.Events.work.Wait()
	for _, f := range slices.Backward(a.closing) {
		f()
	}
	a.closing = nil
}

// wake wakes Until, and makes atOnce repeat its check.
func (a *Account) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.happenings++
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// announce emits an event of an execution. Until then, an execution that ended counts as running.
func (a *Account) announce(ctx context.Context, source, detailType string, resources []string, detail any) {
	a.Events.Emit(ctx, source, detailType, resources, detail)
	if event, ok := detail.(map[string]any); !ok || event["stopDate"] == nil {
		return
	}
	a.mu.Lock()
	a.unannounced--
	a.mu.Unlock()
	a.wake()
}

func endsExecution(event string) bool {
	return strings.HasPrefix(event, "Execution") && event != "ExecutionStarted"
}

func (a *Account) recordEvent(bus string, e eventbridge.Event) {
	if bus != names.Bus {
		return
	}
	a.mu.Lock()
	a.busEvents = append(a.busEvents, e)
	a.mu.Unlock()
	if a.options.Fleet && (e.DetailType == events.ClusterStatusChange || e.DetailType == events.ClusterUpgradeChange) {
		var detail struct{ Cluster, Phase string }
		_ = json.Unmarshal(e.Detail, &detail) // drover's own event
		if slices.Contains(events.ObservedPhases, detail.Phase) {
			a.Events.start("fleet", events.Fleet{Cluster: detail.Cluster})
		}
	}
}

func (a *Account) recordNotice(_, subject, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notices = append(a.notices, subject+"\n"+message)
}
