package harness

// drover's functions in this process, as Lambda would run them: payloads in JSON, errors by the name that the boundary gives
// them, a session and a count of calls for each.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	cloudwatchapi "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	servicequotasapi "github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/uuid"

	"github.com/drover-run/drover/events"
	admit "github.com/drover-run/drover/functions/admit/handler"
	change "github.com/drover-run/drover/functions/change/handler"
	clean "github.com/drover-run/drover/functions/clean/handler"
	drain "github.com/drover-run/drover/functions/drain/handler"
	join "github.com/drover-run/drover/functions/join/handler"
	plan "github.com/drover-run/drover/functions/plan/handler"
	prepare "github.com/drover-run/drover/functions/prepare/handler"
	publish "github.com/drover-run/drover/functions/publish/handler"
	report "github.com/drover-run/drover/functions/report/handler"
	stackevent "github.com/drover-run/drover/functions/stackevent/handler"
	"github.com/drover-run/drover/functions/sweep/audit"
	sweep "github.com/drover-run/drover/functions/sweep/handler"
	passes "github.com/drover-run/drover/functions/sweep/sweep"
	upgrade "github.com/drover-run/drover/functions/upgrade/handler"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/shared/admission"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/aws/cloudwatch"
	"github.com/drover-run/drover/shared/aws/ec2"
	"github.com/drover-run/drover/shared/aws/eventbridge"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/aws/servicequotas"
	"github.com/drover-run/drover/shared/aws/sns"
	"github.com/drover-run/drover/shared/aws/stepfunctions"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
	"github.com/drover-run/drover/shared/releases"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/cache"
	"github.com/drover-run/drover/shared/upgrade/checker"
	"github.com/drover-run/drover/shared/waiter"
)

// Functions are drover's.
type Functions struct {
	// Plan, Sweep and Upgrade are the handlers, and Planner is that of Plan, for their knobs and for asking them.
	Plan    *plan.Handler
	Planner *planner.Planner
	Sweep   *sweep.Handler
	Upgrade *upgrade.Handler
	// Killed is what Step Functions hears of a killed function: Lambda.ServiceException, which it retries, unless set.
	Killed string

	account  *Account
	handlers map[string]awslambda.Handler

	mu       sync.Mutex
	kill     func(Call) Death
	attempts map[string]int // by what was asked, since it last succeeded
	busy     int
	// invocations so far, and how long all of them took.
	invocations int
	spent       time.Duration
	// failed are the errors that functions ended in.
	failed []string
}

// cell is what the functions are told by their environment.
type cell struct {
	topic, cloudformation, leftovers string
	machines                         map[string]string
}

// deploy wires the functions as their main.go do.
func (f *Functions) deploy(c cell) {
	f.handlers, f.attempts = map[string]awslambda.Handler{}, map[string]int{}
	logs, now := logWriter{f.account}, time.Now
	state := func(cfg aws.Config) *store.State {
		return store.NewState(s3.NewBucket(f.account.s3(cfg), StateBucket), store.Silent, now)
	}
	notifying := func(cfg aws.Config) *store.State {
		notifier := notification.New(sns.NewTopic(cfg, c.topic), eventbridge.NewBus(cfg, names.Bus), logs, now)
		return store.NewState(s3.NewBucket(f.account.s3(cfg), StateBucket), notifier, now)
	}
	specs := func(cfg aws.Config) *s3.Bucket { return s3.NewBucket(f.account.s3(cfg), SpecsBucket) }
	machine := func(cfg aws.Config) *stepfunctions.Executions {
		return stepfunctions.New(sfn.NewFromConfig(cfg), c.machines["converge"])
	}
	cloud := func(cfg aws.Config) *cloudformation.Stacks {
		return f.account.stacks(cfg, c.cloudformation)
	}
	resumer := func(cfg aws.Config) *waiter.Resumer {
		return &waiter.Resumer{
			Steps: machine(cfg), Stacks: cloud(cfg), Groups: f.account.groups(cfg), State: state(cfg), Now: now,
		}
	}

	cfg := f.config("admit")
	admitState := notifying(cfg)
	f.handlers["admit"] = wrap(logs, "admit", (&admit.Handler{
		Admitter: &admission.Admitter{Specs: specs(cfg), State: admitState, Machine: machine(cfg), Now: now}, State: admitState,
		Specs: specs(cfg),
	}).Handle)
	cfg = f.config("publish")
	publishState := notifying(cfg)
	f.handlers["publish"] = wrap(logs, "publish", (&publish.Handler{
		Checker: &releases.Checker{
			Specs: specs(cfg), State: publishState, EKS: f.account.versions(cfg), Images: ec2.New(cfg), Now: now,
		},
		State: publishState, Specs: specs(cfg),
	}).Handle)
	cfg = f.config("plan")
	planState := notifying(cfg)
	f.Planner = &planner.Planner{
		Specs: specs(cfg), State: planState, Stacks: cloud(cfg), EKS: f.account.versions(cfg), Groups: f.account.groups(cfg),
		Cell: render.Cell{Partition: "aws", Region: Region, Account: ID, StateBucket: StateBucket},
		Now:  func() time.Time { return f.Plan.Now() },
	}
	f.Plan = &plan.Handler{Planner: f.Planner, State: planState, Executions: machine(cfg), Now: now}
	f.handlers["plan"] = wrap(logs, "plan", f.Plan.Handle)
	cfg = f.config("change")
	f.handlers["change"] = wrap(logs, "change", (&change.Handler{
		Specs: specs(cfg), State: state(cfg), Stacks: cloud(cfg), Clusters: f.account.versions(cfg), Groups: f.account.groups(cfg),
		Resume:       resumer(cfg),
		TemplateBase: fmt.Sprintf("https://%s.s3.%s.%s", StateBucket, Region, names.DNSSuffix("aws")),
	}).Handle)
	cfg = f.config("stackevent")
	f.handlers["stackevent"] = wrap(logs, "stackevent", (&stackevent.Handler{State: notifying(cfg), Resume: resumer(cfg), Now: now}).Handle)
	cfg = f.config("report")
	f.handlers["report"] = wrap(logs, "report", (&report.Handler{
		Specs: specs(cfg), State: notifying(cfg), Now: now,
	}).Handle)
	cfg = f.config("sweep")
	sweepNow := func() time.Time { return f.Sweep.Now() }
	specCache, snapshot := cache.NewETagCache(specs(cfg), sweepNow, names.ClusterSpecs, names.ReleaseSpecs), cache.NewSnapshot(state(cfg), now)
	f.Sweep = sweep.New(&audit.Deps{
		Deps: &passes.Deps{
			Specs: specCache, State: notifying(cfg), Stacks: cloud(cfg), Resume: resumer(cfg), Executions: machine(cfg), Start: machine(cfg),
			Groups:    f.account.groups(cfg),
			Upgrade:   stepfunctions.NewMachine(sfn.NewFromConfig(cfg), c.machines["upgrade"]),
			JoinNode:  stepfunctions.NewMachine(sfn.NewFromConfig(cfg), c.machines["join-node"]),
			DrainNode: stepfunctions.NewMachine(sfn.NewFromConfig(cfg), c.machines["drain-node"]),
			Admit:     &admission.Admitter{Specs: specs(cfg), State: notifying(cfg), Machine: machine(cfg), Now: now},
			Publish:   &releases.Checker{Specs: specs(cfg), State: notifying(cfg), EKS: f.account.versions(cfg), Images: ec2.New(cfg), Now: now},
			Now:       now,
		},
		Snapshot: snapshot, Nodes: f.account.Nodes, EKS: f.account.versions(cfg),
		Planner: &planner.Planner{
			Specs: specCache, State: snapshot, Groups: f.account.groups(cfg),
			EKS: f.account.versions(cfg), Cell: f.Planner.Cell, Now: now,
		},
	})
	if f.account.options.Bubble {
		f.Sweep.Patience = 2 * time.Minute
		f.Sweep.Nodes = kube.NewClusters(f.account.eks(cfg), sts.NewFromConfig(cfg), kube.WithTransport(f.account.reach))
	}
	f.handlers["sweep"] = wrap(logs, "sweep", f.Sweep.Handle)
	cfg = f.config("upgrade")
	f.Upgrade = f.upgrade(cfg, specs(cfg), notifying(cfg), cloud(cfg), machine(cfg))
	f.handlers["upgrade"] = wrap(logs, "upgrade", f.Upgrade.Handle)
	cfg = f.config("clean")
	f.handlers["clean"] = wrap(logs, "clean", (&clean.Handler{
		Specs: specs(cfg), State: state(cfg), Clusters: f.account.versions(cfg), Leftovers: leftovers.New(cfg, c.leftovers),
	}).Handle)
	if f.account.options.Bubble {
		f.deployNodes(logs, state, notifying, cloud)
		return
	}
	cfg = f.config("join")
	f.handlers["join"] = wrap(logs, "join", joined(cloud(cfg), f.account.groups(cfg)))
	f.config("prepare") // whose role the cluster's access entries name
	f.handlers["drain"] = wrap(logs, "drain", drained(f.account.groups(f.config("drain"))))
	f.handlers["prepare"] = wrap(logs, "prepare", func(context.Context, events.PrepareRequest) (struct{}, error) { return struct{}{}, nil })
}

// upgrade is the handler of the upgrade function.
func (f *Functions) upgrade(
	cfg aws.Config, specs *s3.Bucket, state *store.State, cloud *cloudformation.Stacks, machine *stepfunctions.Executions,
) *upgrade.Handler {
	offered, pools, alarmed := f.account.versions(cfg), f.account.groups(cfg), cloudwatch.New(cloudwatchapi.NewFromConfig(cfg))
	clusters := kube.NewClusters(f.account.eks(cfg), sts.NewFromConfig(cfg), kube.WithTransport(f.account.reach))
	var kubernetes collect.Kubernetes = survey.New(clusters)
	var nodes upgrade.Nodes = clusters
	ask := 2 * time.Second
	if !f.account.options.Bubble {
		kubernetes, nodes, ask = empty{}, f.account.Nodes, 10*time.Millisecond
	}
	facts := &collect.Gatherer{
		Kubernetes: kubernetes, EKS: offered, Groups: pools, Alarms: alarmed, Capacity: ec2.New(cfg),
		Quotas: servicequotas.New(servicequotasapi.NewFromConfig(cfg)), Now: time.Now,
	}
	return &upgrade.Handler{
		Checker: &checker.Checker{
			Specs: specs, State: state, Stacks: cloud, Executions: machine, EKS: offered, Facts: facts, Now: time.Now,
		},
		State: state, Stacks: cloud, Executions: machine, EKS: offered, Groups: pools, Alarms: alarmed,
		Nodes: nodes, Instances: ec2.New(cfg), Facts: facts, Patience: 10 * time.Second, Pause: ask, Now: time.Now,
		Planner: &planner.Planner{ // at the time at which planning decides
			Specs: specs, State: state, Stacks: cloud, Groups: pools, EKS: offered, Cell: f.Planner.Cell,
			Now: f.Planner.Now,
		},
	}
}

// deployNodes wires the functions that speak to clusters.
func (f *Functions) deployNodes(logs io.Writer, state, told func(aws.Config) *store.State, cloud func(aws.Config) *cloudformation.Stacks) {
	clusters := func(cfg aws.Config) *kube.Clusters {
		return kube.NewClusters(f.account.eks(cfg), sts.NewFromConfig(cfg), kube.WithTransport(f.account.reach))
	}
	cfg := f.config("join")
	f.handlers["join"] = wrap(logs, "join", (&join.Handler{
		Clusters: kube.Opener[join.Cluster]{Clusters: clusters(cfg), As: func(c *kube.Cluster) join.Cluster { return c }},
		Groups:   f.account.groups(cfg), Stacks: cloud(cfg), State: told(cfg),
		Watch: 50 * time.Second, Limit: 14 * time.Minute, SignalLimit: time.Hour, HoldTimeout: 24 * time.Hour, Now: time.Now,
	}).Handle)
	cfg = f.config("drain")
	f.handlers["drain"] = wrap(logs, "drain", (&drain.Handler{
		Clusters: kube.Opener[drain.Cluster]{Clusters: clusters(cfg), As: func(c *kube.Cluster) drain.Cluster { return drainer.NewCluster(c) }},
		Groups:   f.account.groups(cfg), State: told(cfg),
		Slice: 50 * time.Second, JoinGrace: 10 * time.Second, Now: time.Now, Metrics: logs,
	}).Handle)
	cfg = f.config("prepare")
	f.handlers["prepare"] = wrap(logs, "prepare", (&prepare.Handler{
		// not both over at once, or no world replays
		Clusters: kube.Opener[prepare.Cluster]{Clusters: clusters(cfg), As: func(c *kube.Cluster) prepare.Cluster { return c }},
		State:    state(cfg), Timeout: 79 * time.Second, Pause: 2 * time.Second,
	}).Handle)
}

// Around puts something around a function: what it returns is called instead, with the function's own configuration to call AWS
// with. For what drover would never do.
func (f *Functions) Around(step string, around func(cfg aws.Config, next awslambda.Handler) awslambda.Handler) {
	f.handlers[step] = around(f.config(step), f.handlers[step])
}

// empty is what a cluster without an API is to a survey: healthy, and nothing runs on it.
type empty struct{}

func (empty) Survey(context.Context, string) (preflight.Survey, error) {
	return preflight.Survey{}, nil
}

// joined lets any instance into service, as join does with those whose node is Ready.
func joined(cloud *cloudformation.Stacks, hooks *autoscaling.Groups) lambdaruntime.Handler[events.JoinRequest, events.JoinResult] {
	return func(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
		err := cloud.Signal(ctx, in.AutoScalingGroupName, names.GroupResource, in.EC2InstanceID, true)
		if err == nil {
			_, err = hooks.Complete(ctx, in.Lifecycle, pool.Continue)
		}
		return events.JoinResult{Outcome: events.JoinReady}, err
	}
}

// drained lets any instance go: there are no pods.
func drained(hooks *autoscaling.Groups) lambdaruntime.Handler[events.DrainRequest, events.DrainResult] {
	return func(ctx context.Context, in events.DrainRequest) (events.DrainResult, error) {
		if in.Lifecycle == nil {
			return events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}, nil
		}
		_, err := hooks.Complete(ctx, *in.Lifecycle, pool.Continue)
		return events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}, err
	}
}

// wrap gives each call a handler of its own, as each has on Lambda, where an environment has one call at a time: the
// answer of one is in a buffer that the next call of the same handler writes over.
func wrap[I, O any](logs io.Writer, step string, handle lambdaruntime.Handler[I, O]) awslambda.Handler {
	wrapped := lambdaruntime.WrapTo(logs, step, handle)
	return handlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return awslambda.NewHandler(wrapped).Invoke(ctx, payload)
	})
}

// handlerFunc is a function as a handler.
type handlerFunc func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke is awslambda.Handler's.
func (f handlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// logWriter keeps what functions print.
type logWriter struct{ account *Account }

func (w logWriter) Write(p []byte) (int, error) {
	w.account.mu.Lock()
	defer w.account.mu.Unlock()
	return w.account.logs.Write(p)
}

// config is the SDK's configuration of a function: a session of its own role, retries without their pauses unless time is
// virtual.
func (f *Functions) config(step string) aws.Config {
	a := f.account
	session := aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		_, session, err := a.identities.AssumeRoleAs(role(step), step, "lambda.amazonaws.com")
		return aws.Credentials{
			AccessKeyID: session.AccessKeyID, SecretAccessKey: session.SecretAccessKey, SessionToken: session.SessionToken,
			CanExpire: true, Expires: session.Expires,
		}, err
	}))
	cfg := aws.Config{
		Region: Region, BaseEndpoint: aws.String(address), HTTPClient: client{&transport{functions: f, next: inProcess{a.handler}}},
		Credentials: session,
	}
	if a.options.Bubble {
		a.direct(&cfg)
	} else {
		cfg.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.RateLimiter = ratelimit.None
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		}
	}
	return cfg
}

// Failed are the errors that functions ended in: on AWS each is an alarm.
func (f *Functions) Failed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.failed)
}

// Invoke runs a function as Lambda does for a synchronous caller.
func (f *Functions) Invoke(ctx context.Context, caller iam.Caller, in lambda.Invocation) (lambda.Result, error) {
	if err := caller.Authorize("lambda:InvokeFunction", in.Function, nil); err != nil {
		return lambda.Result{}, err
	}
	return f.invoke(ctx, in)
}

func (f *Functions) invoke(ctx context.Context, in lambda.Invocation) (lambda.Result, error) {
	step := strings.TrimPrefix(in.Function[strings.LastIndex(in.Function, ":")+1:], names.Prefix)
	handler, ok := f.handlers[step]
	if !ok {
		return lambda.Result{}, fmt.Errorf("there is no function %s", in.Function)
	}
	if f.account.options.Bubble {
		deepen()
	}
	// A function goes on when its caller is gone.
	ctx, invocation := f.begin(context.WithoutCancel(ctx), step, in.Payload)
	started := time.Now()
	output, err := handler.Invoke(ctx, in.Payload)
	f.mu.Lock()
	f.spent += time.Since(started)
	f.mu.Unlock()
	killed := f.end(invocation, err)
	result := lambda.Result{RequestID: uuid.NewString(), Payload: output}
	switch {
	case killed && f.Killed == "":
		return lambda.Result{}, &iam.Error{Code: "ServiceException", Message: "the host is gone", Status: http.StatusInternalServerError}
	case killed:
		err = messages.InvokeResponse_Error{Type: f.Killed, Message: "RequestId: " + result.RequestID + " Error: Runtime exited"}
	}
	if err != nil {
		failure := messages.InvokeResponse_Error{Type: "errorString", Message: err.Error()}
		errors.As(err, &failure)
		result.FunctionError = "Unhandled"
		if result.Payload, err = json.Marshal(failure); err != nil {
			return lambda.Result{}, err
		}
	}
	return result, nil
}

// deepen makes room on the stack for what a function calls, all at once: copying a stack each time that it is too small for what is called
// next costs more.
//
//go:noinline
func deepen() {
	var room [40 << 10]byte
	runtime.KeepAlive(&room)
}

// Ran says how often functions ran so far, and how long all of them took: in virtual time that is what they waited.
func (f *Functions) Ran() (times int, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.invocations, f.spent
}

// InvokeAsync runs a function for a caller that does not wait.
func (f *Functions) InvokeAsync(_ context.Context, _ iam.Caller, in lambda.Invocation) (string, error) {
	return "", fmt.Errorf("no machine of drover's invokes %s asynchronously", in.Function)
}

// Call invokes a function and returns what it said.
func (f *Functions) Call(step string, payload any) (json.RawMessage, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	result, err := f.invoke(context.Background(), lambda.Invocation{Function: names.Function(step), Payload: body})
	if err == nil && result.FunctionError != "" {
		err = fmt.Errorf("%s: %s", step, result.Payload)
	}
	return result.Payload, err
}
