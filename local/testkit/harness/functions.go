package harness

// drover's functions in this process. They run as in Lambda: payloads in JSON, errors by the names of their types, and a
// session and a count of calls for each.

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
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/google/uuid"

	"github.com/drover-run/drover/events"
	admitting "github.com/drover-run/drover/functions/admit/handler"
	admit "github.com/drover-run/drover/functions/admit/setup"
	change "github.com/drover-run/drover/functions/change/setup"
	clean "github.com/drover-run/drover/functions/clean/setup"
	drain "github.com/drover-run/drover/functions/drain/setup"
	fleeting "github.com/drover-run/drover/functions/fleet/handler"
	fleet "github.com/drover-run/drover/functions/fleet/setup"
	join "github.com/drover-run/drover/functions/join/setup"
	planning "github.com/drover-run/drover/functions/plan/handler"
	plan "github.com/drover-run/drover/functions/plan/setup"
	prepare "github.com/drover-run/drover/functions/prepare/setup"
	publish "github.com/drover-run/drover/functions/publish/setup"
	report "github.com/drover-run/drover/functions/report/setup"
	rolling "github.com/drover-run/drover/functions/rollout/handler"
	rollout "github.com/drover-run/drover/functions/rollout/setup"
	stackevent "github.com/drover-run/drover/functions/stackevent/setup"
	sweeping "github.com/drover-run/drover/functions/sweep/handler"
	sweep "github.com/drover-run/drover/functions/sweep/setup"
	upgrading "github.com/drover-run/drover/functions/upgrade/handler"
	upgrade "github.com/drover-run/drover/functions/upgrade/setup"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/lambda"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/aws/cloudformation"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/preflight/collect"
)

// Functions runs drover's functions.
type Functions struct {
	// Plan, Sweep, Upgrade, Fleet and Rollout are handlers, and Planner is that of Plan. Tests change their fields and call them.
	Plan    *planning.Handler
	Planner *planner.Planner
	Sweep   *sweeping.Handler
	Upgrade *upgrading.Handler
	Fleet   *fleeting.Handler
	Rollout *rolling.Handler
	Admit   *admitting.Handler
	// Concurrency throttles invocations above the account's limit.
	Concurrency lambda.Concurrency
	// Killed is the error that Step Functions receives from a killed function. The default is Lambda.ServiceException, which it retries.
	Killed string

	account  *Account
	handlers map[string]awslambda.Handler

	mu       sync.Mutex
	kill     func(Call) Death
	attempts map[string]int // by payload, since the last success
	busy     int
	// invocations so far, and their total duration.
	invocations int
	spent       time.Duration
	// failed are the errors of functions.
	failed []string
	// sessions are the credentials of each function.
	sessions map[string][]*aws.CredentialsCache
}

// deploy builds the functions as their main.go do, with these environment variables. It changes only what a simulated world needs.
func (f *Functions) deploy(variables map[string]string) {
	f.attempts = map[string]int{}
	logs := logWriter{f.account}
	env := lambdaruntime.Env{Variables: variables, Output: logs, Transport: f.account.Reach}
	f.Plan, f.Sweep, f.Upgrade = plan.New(f.config("plan"), env), sweep.New(f.config("sweep"), env), upgrade.New(f.config("upgrade"), env)
	f.Planner = f.Plan.Planner.(*planner.Planner)
	f.Planner.RelayFile = func() ([]byte, error) { return []byte(relayPackage), nil }
	f.Sweep.Parallel = 1                                     // in parallel, no world replays
	f.Upgrade.Planner.(*planner.Planner).Now = f.Planner.Now // both functions plan at the same time
	f.Fleet = fleet.New(f.config("fleet"), env)
	f.Fleet.Parallel, f.Fleet.Pause = 1, f.pauses
	f.Rollout = rollout.New(f.config("rollout"), env)
	if !f.account.options.Fleet {
		f.Sweep.Cell = "" // it starts no function
	}
	f.Admit = admit.New(f.config("admit"), env)
	changes := change.New(f.config("change"), env)
	f.handlers = map[string]awslambda.Handler{
		"admit":      wrap(logs, "admit", f.Admit.Handle),
		"change":     wrap(logs, "change", changes.Handle),
		"clean":      wrap(logs, "clean", clean.New(f.config("clean"), env).Handle),
		"fleet":      wrap(logs, "fleet", f.Fleet.Handle),
		"plan":       wrap(logs, "plan", f.Plan.Handle),
		"publish":    wrap(logs, "publish", publish.New(f.config("publish"), env).Handle),
		"report":     wrap(logs, "report", report.New(f.config("report"), env).Handle),
		"rollout":    wrap(logs, "rollout", f.Rollout.Handle),
		"stackevent": wrap(logs, "stackevent", stackevent.New(f.config("stackevent"), env).Handle),
		"sweep":      wrap(logs, "sweep", f.Sweep.Handle),
		"upgrade":    wrap(logs, "upgrade", f.Upgrade.Handle),
	}
	if !f.account.options.Bubble {
		changes.Stacks.(*cloudformation.Stacks).Pause = time.Millisecond
		f.withoutClusters(logs)
		return
	}
	prepares := prepare.New(f.config("prepare"), env)
	prepares.Timeout = 79 * time.Second // if its pauses and its timeout end together, no world replays
	f.handlers["join"] = wrap(logs, "join", join.New(f.config("join"), env).Handle)
	f.handlers["drain"] = wrap(logs, "drain", drain.New(f.config("drain"), env).Handle)
	f.handlers["prepare"] = wrap(logs, "prepare", prepares.Handle)
}

// pauses is the pause of the function fleet between its attempts. It is not random, so that worlds replay.
func (f *Functions) pauses(ctx context.Context, attempt int) error {
	return f.account.clock.Work(ctx, time.Duration(attempt)*100*time.Millisecond)
}

// withoutClusters replaces what would call the APIs of clusters, which do not exist in real time.
func (f *Functions) withoutClusters(logs io.Writer) {
	f.Sweep.Nodes, f.Sweep.EventGrace = f.account.Nodes, 0
	f.Upgrade.Nodes, f.Upgrade.Pause = f.account.Nodes, 10*time.Millisecond
	f.Upgrade.Facts.(*collect.Gatherer).Kubernetes = empty{}
	cfg := f.config("join")
	f.handlers["join"] = wrap(logs, "join", joinEveryInstance(
		cloudformation.New(awscloudformation.NewFromConfig(cfg), nil, ""), autoscaling.New(awsautoscaling.NewFromConfig(cfg)),
	))
	f.handlers["drain"] = wrap(logs, "drain", drainEveryInstance(autoscaling.New(awsautoscaling.NewFromConfig(f.config("drain")))))
	f.handlers["prepare"] = wrap(logs, "prepare", func(context.Context, events.PrepareRequest) (struct{}, error) { return struct{}{}, nil })
}

// Replace replaces a function, and returns the handler that it had.
func (f *Functions) Replace(step string, handler awslambda.Handler) (replaced awslambda.Handler) {
	replaced, f.handlers[step] = f.handlers[step], handler
	return replaced
}

// Return makes every call of a function return the same result or error, and returns the handler that it had.
func (f *Functions) Return(step string, result any, err error) (replaced awslambda.Handler) {
	return f.Replace(step, wrap(logWriter{f.account}, step, lambdaruntime.Handler[json.RawMessage, any](
		func(context.Context, json.RawMessage) (any, error) { return result, err },
	)))
}

// Around replaces a function by a handler that may call it. The handler gets the function's configuration for AWS. It is for behavior that
// drover never has.
func (f *Functions) Around(step string, around func(cfg aws.Config, next awslambda.Handler) awslambda.Handler) {
	f.handlers[step] = around(f.config(step), f.handlers[step])
}

// empty is the survey of a cluster without an API: healthy, without pods.
type empty struct{}

func (empty) Survey(context.Context, string) (preflight.Survey, error) {
	return preflight.Survey{}, nil
}

// joinEveryInstance completes the launch hook of every instance, as join does for Ready nodes.
func joinEveryInstance(
	cloud *cloudformation.Stacks, hooks *autoscaling.Groups,
) lambdaruntime.Handler[events.JoinRequest, events.JoinResult] {
	return func(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
		err := cloud.Signal(ctx, in.AutoScalingGroupName, names.GroupResource, in.EC2InstanceID, true)
		if err == nil {
			_, err = hooks.Complete(ctx, in.Lifecycle, pool.Continue)
		}
		return events.JoinResult{Outcome: events.JoinReady}, err
	}
}

// drainEveryInstance completes the terminate hook of every instance: there are no pods.
func drainEveryInstance(hooks *autoscaling.Groups) lambdaruntime.Handler[events.DrainRequest, events.DrainResult] {
	return func(ctx context.Context, in events.DrainRequest) (events.DrainResult, error) {
		if in.Lifecycle == nil {
			return events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}, nil
		}
		_, err := hooks.Complete(ctx, *in.Lifecycle, pool.Continue)
		return events.DrainResult{DrainReport: events.DrainReport{Outcome: events.DrainDone}}, err
	}
}

// wrap gives each call its own handler, because a handler reuses the buffer of its result. In Lambda an environment has one
// call at a time.
func wrap[I, O any](logs io.Writer, step string, handle lambdaruntime.Handler[I, O]) awslambda.Handler {
	wrapped := lambdaruntime.WrapTo(logs, step, handle)
	return HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		return awslambda.NewHandler(wrapped).Invoke(ctx, payload)
	})
}

// HandlerFunc is a function as the handler of a Lambda function.
type HandlerFunc func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke implements awslambda.Handler.
func (f HandlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// logWriter records the output of functions.
type logWriter struct{ account *Account }

func (w logWriter) Write(p []byte) (int, error) {
	w.account.mu.Lock()
	defer w.account.mu.Unlock()
	return w.account.logs.Write(p)
}

// config returns the SDK's configuration of a function: a session of its role. In real time, retries have no pauses.
func (f *Functions) config(step string) aws.Config {
	a := f.account
	session := aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		_, session, err := a.Identities.AssumeRoleAs(RoleARN(step), step, "lambda.amazonaws.com")
		return aws.Credentials{
			AccessKeyID: session.AccessKeyID, SecretAccessKey: session.SecretAccessKey, SessionToken: session.SessionToken,
			CanExpire: true, Expires: session.Expires,
		}, err
	}))
	f.mu.Lock()
	if f.sessions == nil {
		f.sessions = map[string][]*aws.CredentialsCache{}
	}
	f.sessions[step] = append(f.sessions[step], session)
	f.mu.Unlock()
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

// Failed returns the errors of functions. On AWS each raises an alarm.
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
	ended, err := f.Concurrency.Begin(step)
	if err != nil {
		return lambda.Result{}, err
	}
	defer ended()
	if f.account.options.Bubble {
		deepen()
	}
	// A function continues when its caller has left.
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

// deepen grows the stack of the goroutine once, for all calls of a function. Growing it step by step would cost more.
//
//go:noinline
func deepen() {
	var room [40 << 10]byte
	runtime.KeepAlive(&room)
}

// Ran returns the number of invocations and their total duration. In virtual time that is the time that they waited.
func (f *Functions) Ran() (times int, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.invocations, f.spent
}

// InvokeAsync runs a function asynchronously.
func (f *Functions) InvokeAsync(_ context.Context, caller iam.Caller, in lambda.Invocation) (string, error) {
	name := in.Function[strings.LastIndex(in.Function, ":")+1:]
	if err := caller.Authorize("lambda:InvokeFunction", "arn:aws:lambda:"+Region+":"+ID+":function:"+name, nil); err != nil {
		return "", err
	}
	step := strings.TrimPrefix(name, names.Prefix)
	if _, ok := f.handlers[step]; !ok {
		return "", fmt.Errorf("there is no function %s", in.Function)
	}
	f.account.Events.start(step, json.RawMessage(in.Payload))
	return uuid.NewString(), nil
}

// Call invokes a function and returns its result.
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
