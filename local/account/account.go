// Package account is a whole AWS account on one machine: it puts the simulated services together, behind one endpoint, and
// deploys drover's synthesized stack into it as the cdk command would.
package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/drover-run/drover/local/autoscaling"
	"github.com/drover-run/drover/local/clock"
	"github.com/drover-run/drover/local/cloudformation"
	"github.com/drover-run/drover/local/cloudwatch"
	"github.com/drover-run/drover/local/ec2"
	"github.com/drover-run/drover/local/eks"
	"github.com/drover-run/drover/local/elb"
	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/eventbridge"
	"github.com/drover-run/drover/local/eventbridge/delivery"
	"github.com/drover-run/drover/local/faults"
	"github.com/drover-run/drover/local/iam"
	"github.com/drover-run/drover/local/iam/iamapi"
	"github.com/drover-run/drover/local/kms"
	"github.com/drover-run/drover/local/lambda"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/s3"
	"github.com/drover-run/drover/local/scheduler"
	"github.com/drover-run/drover/local/servicequotas"
	"github.com/drover-run/drover/local/sns"
	"github.com/drover-run/drover/local/sqs"
	"github.com/drover-run/drover/local/ssm"
	"github.com/drover-run/drover/local/states"
	"github.com/drover-run/drover/local/states/asl"
	"github.com/drover-run/drover/local/tagging"
	"github.com/drover-run/drover/local/wire"
	"github.com/drover-run/drover/shared/names"
)

// Options of an account.
type Options struct {
	// Dir is where everything is kept: absolute, and empty at first.
	Dir string
	// KubernetesBin holds the programs of the control planes: kubernetes.BinDir.
	KubernetesBin string
	// Address to listen on; 127.0.0.1:0 by default.
	Address string
	// Region; us-east-1 by default.
	Region string
	// Speed divides the time that simulated work takes.
	Speed float64
	// WaitForTerminateHooks makes CloudFormation and instance refreshes wait for drains: see autoscaling.Config.
	WaitForTerminateHooks bool
	// OnStackEvent and OnExecution see what happens, as it happens. They must not block.
	OnStackEvent func(cloudformation.StackEvent)
	OnExecution  func(states.Execution, asl.Event)
	// OnEvent sees every event and its bus; Intercept is called instead of each delivery and decides about it. Both may be nil.
	OnEvent   func(bus string, e eventbridge.Event)
	Intercept func(rule string, e eventbridge.Event, deliver func())
	// FaultSeed is what the chances of Account.Faults are drawn from.
	FaultSeed uint64
	// Log hears of what goes wrong behind the APIs; nil is silence.
	Log *slog.Logger
}

// ID is the account's number.
const ID = "000000000000"

// Account is a running account.
type Account struct {
	Identities     *iam.Service
	S3             *s3.Service
	Queues         *sqs.Service
	EC2            *ec2.Service
	ELB            *elb.Service
	AutoScaling    *autoscaling.Service
	EKS            *eks.Service
	CloudFormation *cloudformation.Service
	CloudWatch     *cloudwatch.Service
	Keys           *kms.Service
	Quotas         *servicequotas.Service
	Lambda         *lambda.Service
	States         *states.Service
	Events         *eventbridge.Service
	Scheduler      *scheduler.Service
	// Calls records every call that came to the endpoint.
	Calls *endpoint.Recorder
	// Faults decides what goes wrong: nothing, until rules are added to it or through the endpoint (faults.Control).
	Faults *faults.Engine
	// Endpoint may be given other faults: see its Intercept.
	Endpoint *endpoint.Endpoint

	id, region string
	dir        string
	url        string
	clock      *clock.Clock
	server     *http.Server
	closers    []func()
}

// Start starts an account without drover in it: Deploy puts it there. Close ends it.
func Start(options Options) (a *Account, err error) {
	if options.Region == "" {
		options.Region = "us-east-1"
	}
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	a = &Account{id: ID, region: options.Region, dir: options.Dir, clock: &clock.Clock{Speed: options.Speed}, Calls: &endpoint.Recorder{}}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("start the local account: %w", err)
	}
	a.url = "http://" + listener.Addr().String()
	handler, err := a.services(options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the local account: %w", err), listener.Close())
	}
	a.server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go a.server.Serve(listener)
	return a, nil
}

// services makes the services, each after those it needs.
func (a *Account) services(o Options) (http.Handler, error) {
	struck, calm := newStrikes(a, o)
	a.Faults = struck.Engine
	a.Identities = iam.New(a.id, a.region, a.clock)
	queues := sqs.New(a.Identities, a.clock)
	a.Queues = queues
	topics, keys := sns.New(a.Identities, a.clock, queues), kms.New(a.Identities, a.clock)
	topics.Keys, a.Keys = keys, keys
	a.CloudWatch = cloudwatch.New(a.Identities, a.clock, topics)
	watching, stop := context.WithCancel(context.Background())
	a.closing(stop)
	go a.CloudWatch.Run(watching)
	go metrics{a.CloudWatch}.watch(watching, a.clock, queues)
	events := &emitter{}
	var err error
	if a.S3, err = s3.New(a.Identities, a.clock, filepath.Join(o.Dir, "s3"), events.s3); err != nil {
		return nil, err
	}
	a.closing(func() { _ = a.S3.Close() })
	a.Quotas = servicequotas.New(a.Identities)
	a.EC2 = ec2.New(ec2.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Roles: a.Identities, Objects: a.S3, Events: events, VCPUs: vCPUs(a.Quotas),
		LaunchFails: struck.launch,
	})
	a.closing(a.EC2.Close)
	a.ELB = elb.New(elb.Config{Identities: a.Identities, Clock: a.clock, Network: a.EC2})
	a.closing(a.ELB.Close)
	a.AutoScaling = autoscaling.New(autoscaling.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Instances: a.EC2, Roles: a.Identities, Events: events,
		WaitForTerminateHooks: o.WaitForTerminateHooks,
	})
	a.closing(a.AutoScaling.Close)
	a.EKS, err = eks.New(eks.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Identities: a.Identities, Network: a.EC2,
		Dir: filepath.Join(o.Dir, "clusters"), BinDir: o.KubernetesBin, MaxClusters: func() int { return a.Quotas.Limit(servicequotas.Clusters) },
		UpdateFails: struck.update, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	a.closing(a.EKS.Close)
	a.EC2.SetNodes(boot{a.EKS, struck})
	parameters := ssm.New(ssm.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Images: ec2.ImageParameters(ssm.EKSImageParameter),
	})
	a.Lambda = lambda.New(lambda.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Roles: a.Identities, Objects: packages{a.S3}, Logs: a.CloudWatch,
		Queues: queues, Metric: metrics{a.CloudWatch}.put, Endpoint: func() string { return a.url }, Dir: filepath.Join(o.Dir, "functions"),
	})
	a.closing(a.Lambda.Close)
	scaling := a.AutoScaling.Wire()
	a.States = states.New(states.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Roles: a.Identities, Functions: a.Lambda, Emit: events.Emit,
		Metric: metrics{a.CloudWatch}.put, Logs: a.CloudWatch, Observe: struck.step(o.OnExecution), SDK: a.sdk(scaling),
	})
	a.closing(a.States.Close)
	a.CloudFormation = cloudformation.New(cloudformation.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Roles: a.Identities, Objects: a.S3, Events: events,
		Parameters: parameters, OnEvent: o.OnStackEvent,
	})
	a.closing(a.CloudFormation.Close)
	targets := delivery.Targets{Functions: a.Lambda, Machines: a.States, Queues: queues, Topics: topics}
	a.Events = eventbridge.New(eventbridge.Config{
		Account: a.id, Region: a.region, Clock: a.clock, Identities: a.Identities, Keys: keys, Observe: o.OnEvent, Intercept: struck.deliver(o.Intercept),
	})
	a.closing(a.Events.Close)
	a.Events.SetTargets(targets)
	events.bus.Store(a.Events)
	a.Scheduler = scheduler.New(scheduler.Config{Account: a.id, Region: a.region, Clock: a.clock, Roles: a.Identities, Targets: targets})
	a.closing(a.Scheduler.Close)
	identities := iamapi.New(a.Identities)
	for _, providers := range []map[string]resource.Provider{
		identities.Resources(), a.S3.Resources(), a.EC2.Resources(), a.AutoScaling.Resources(), a.EKS.Resources(), a.Lambda.Resources(),
		a.States.Resources(), a.Events.Resources(), a.Scheduler.Resources(), a.CloudWatch.Resources(), keys.Resources(),
		queues.Resources(), topics.Resources(),
	} {
		a.CloudFormation.Register(providers)
	}
	index := tagging.New(
		a.CloudFormation.Tagged, a.S3.Tagged, a.Lambda.Tagged, a.States.Tagged, a.Events.Tagged, a.Scheduler.Tagged, a.CloudWatch.Tagged,
		a.EC2.Tagged, a.ELB.Tagged, a.AutoScaling.Tagged, a.EKS.Tagged, queues.Tagged, topics.Tagged, keys.Tagged,
	)
	a.Endpoint = endpoint.New(a.Identities, a.Calls)
	a.Endpoint.Intercept = struck.call
	a.Endpoint.HandleS3(a.S3)
	a.Endpoint.Handle(
		a.CloudFormation.Wire(), a.CloudWatch.Wire(), a.CloudWatch.LogsWire(), a.EC2.Wire(), a.ELB.Wire(), a.EKS.Wire(), a.Events.Wire(),
		a.Lambda.Wire(), a.Quotas.Wire(), a.Scheduler.Wire(), a.States.Wire(), scaling, index.Wire(), keys.Wire(), parameters.Wire(),
		queues.Wire(), topics.Wire(), identities.IAM(), identities.STS(),
	)
	struck.work.Go(struck.live)
	a.closing(calm) // first of all
	control := faults.Control(a.Faults, struck.now)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, faults.Path) {
			control.ServeHTTP(w, r)
			return
		}
		a.Endpoint.ServeHTTP(w, r)
	}), nil
}

// sdk runs the aws-sdk tasks of state machines.
func (a *Account) sdk(services ...*wire.Service) states.SDK {
	return func(ctx context.Context, caller iam.Caller, service, action string, parameters map[string]any) (any, error) {
		for _, s := range services {
			if s.Name == service {
				return s.Do(ctx, caller, a.region, a.id, action, parameters)
			}
		}
		return nil, wire.Unsupported("states", "the aws-sdk integration with "+service)
	}
}

func (a *Account) closing(f func()) { a.closers = append(a.closers, f) }

// Close ends everything that runs. What was written stays in Dir.
func (a *Account) Close() {
	if a.server != nil {
		_ = a.server.Close()
	}
	for i := range a.closers {
		a.closers[len(a.closers)-1-i]()
	}
}

// URL of the endpoint.
func (a *Account) URL() string { return a.url }

// Region of the account.
func (a *Account) Region() string { return a.region }

// Config is the SDK's configuration of the person at the console.
func (a *Account) Config() aws.Config {
	_, admin := a.Identities.Admin()
	return aws.Config{
		Region: a.region, BaseEndpoint: &a.url,
		Credentials: credentials.NewStaticCredentialsProvider(admin.AccessKeyID, admin.SecretAccessKey, admin.SessionToken),
	}
}

// Environment is what a shell needs to reach the account as the person at the console.
func (a *Account) Environment() map[string]string {
	_, admin := a.Identities.Admin()
	return map[string]string{
		// The aws command of version 1 reads AWS_DEFAULT_REGION only.
		"AWS_ENDPOINT_URL": a.url, "AWS_REGION": a.region, "AWS_DEFAULT_REGION": a.region,
		"AWS_ACCESS_KEY_ID": admin.AccessKeyID, "AWS_SECRET_ACCESS_KEY": admin.SecretAccessKey,
	}
}

// Principal is the ARN of the person at the console, as access entries of clusters name it.
func (a *Account) Principal() string {
	admin, _ := a.Identities.Admin()
	return admin.ARN()
}

// KubeconfigPattern matches the kubeconfig of a cluster's administrator, a file that is there when its control plane is.
func (a *Account) KubeconfigPattern(cluster string) string {
	return filepath.Join(a.dir, "clusters", names.EKSCluster(cluster)+"-*", "admin.kubeconfig")
}

// Settle waits until no execution runs.
func (a *Account) Settle(ctx context.Context) error {
	for slices.ContainsFunc(a.States.Executions(), func(x states.Execution) bool { return x.Status == "RUNNING" }) {
		if err := a.clock.Timer(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for executions to end: %w", err)
		}
	}
	return nil
}
