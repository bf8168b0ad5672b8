package account

// Fault injection. Package faults decides at every moment at which a fault may occur. Its decision is carried out, where
// possible on real processes.

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/account/injection"
	"github.com/drover-run/drover/local/account/subject"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/names"
)

// faultInjector carries out the engine's decisions.
type faultInjector struct {
	injection.Injector
	account *Account
	log     *slog.Logger
	ctx     context.Context
	work    sync.WaitGroup

	mu sync.Mutex
	// calls counts the calls of each environment's current invocation.
	calls map[string]invocation // by access key
	down  map[string]bool       // clusters whose API server is down
}

type invocation struct {
	id    string
	calls int
}

// faultInterval is the time between two decisions about faults of instances and API servers, in real time.
const faultInterval = time.Second

// newFaultInjector returns an injector without rules. calm ends its effects: everything that is down recovers or ends.
func newFaultInjector(a *Account, o Options) (f *faultInjector, calm func()) {
	injector := injection.Injector{Engine: faults.New(o.FaultSeed), Now: a.clock.Now}
	f = &faultInjector{Injector: injector, account: a, log: o.Log, calls: map[string]invocation{}, down: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	f.ctx = ctx
	return f, func() { cancel(); f.work.Wait() }
}

// wait waits in real time, because drover's own timers run in it too.
func (f *faultInjector) wait(ctx context.Context, d time.Duration) error {
	return (&clock.Clock{}).Timer(ctx, d)
}

// call is the endpoint's Intercept.
func (f *faultInjector) call(r *http.Request, call endpoint.Call) error {
	key := ""
	if signature, err := iam.ParseSignature(r); err == nil {
		key = signature.AccessKeyID
	}
	m := injection.Call(r, call, caller(call.Caller, f.account.region), f.number(key))
	strike := f.Decide(m.About(call.Resource, subject.Of))
	if strike.Kind == "" {
		return nil
	}
	if err := f.wait(r.Context(), strike.Delay); err != nil {
		return err
	}
	answer := strike.Answer(call.Service)
	if strike.Kind == faults.CrashBefore {
		f.account.Lambda.Kill(key)
	}
	if !strike.Done() {
		return answer
	}
	return &endpoint.Dropped{After: func(err error) error {
		switch {
		case strike.Kind == faults.CrashAfter:
			f.account.Lambda.Kill(key)
		case err != nil: // the call itself failed, so a retry finds nothing
			return err
		}
		return answer
	}}
}

// number returns the number of a call within its invocation, or 0 if no function makes it.
func (f *faultInjector) number(key string) int {
	function, id := f.account.Lambda.Running(key)
	if function == "" || id == "" {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.calls[key]
	if i.id != id {
		i = invocation{id: id}
	}
	i.calls++
	f.calls[key] = i
	return i.calls
}

// caller returns the function or machine of the calling role, or the last part of any other caller's name.
func caller(arn, region string) string {
	parts := strings.Split(arn, "/")
	if len(parts) == 3 {
		return strings.TrimPrefix(parts[1], names.Role(region, ""))
	}
	return parts[len(parts)-1]
}

// deliver is the bus's Intercept. next decides about deliveries without a fault.
func (f *faultInjector) deliver(next func(rule string, e eventbridge.Event, deliver func())) func(string, eventbridge.Event, func()) {
	if next == nil {
		next = func(_ string, _ eventbridge.Event, deliver func()) { deliver() }
	}
	return func(rule string, e eventbridge.Event, deliver func()) {
		strike := f.Decide(faults.Moment{Kind: faults.Delivery, Event: e.DetailType, Target: rule}.In(e.Detail, subject.Of))
		switch strike.Kind {
		case faults.Drop:
			return
		case faults.Reorder:
			if f.wait(f.ctx, strike.Delay) != nil {
				return
			}
		case faults.Duplicate:
			next(rule, e, deliver)
		}
		next(rule, e, deliver)
	}
}

// step observes executions and calls next.
func (f *faultInjector) step(next func(stepfunctions.Execution, asl.Event)) func(stepfunctions.Execution, asl.Event) {
	return func(x stepfunctions.Execution, e asl.Event) {
		if next != nil {
			next(x, e)
		}
		if f.Kills(x, e) {
			go f.account.StepFunctions.Stop(x.ARN, "Fault", "killed by a fault rule of the local account") // the execution waits for this function
		}
	}
}

// run injects faults of instances and API servers until the account ends.
func (f *faultInjector) run() {
	for f.wait(f.ctx, faultInterval) == nil {
		f.injectResourceFaults()
	}
}

// injectResourceFaults decides once about each instance and each API server.
func (f *faultInjector) injectResourceFaults() {
	for _, i := range f.account.EC2.Living() {
		m := faults.Moment{Kind: faults.Instances}.About(i.Tags["aws:autoscaling:groupName"], subject.Of)
		if m.Pool != "" && f.Decide(m).Kind == faults.InstanceLost {
			_ = f.account.EC2.Terminate(i.ID, "Server.InternalError") // it may have ended already
		}
	}
	for _, name := range f.account.EKS.Running() {
		f.mu.Lock()
		down := f.down[name]
		f.mu.Unlock()
		if down {
			continue
		}
		strike := f.Decide(faults.Moment{Kind: faults.Cluster, Cluster: strings.TrimPrefix(name, names.Prefix)})
		if strike.Kind != faults.APIServerDown {
			continue
		}
		f.mark(name, true)
		f.work.Go(func() {
			defer f.mark(name, false)
			if err := f.account.EKS.Interrupt(f.ctx, name, strike.Delay); err != nil && f.ctx.Err() == nil {
				f.log.Warn("an API server could not be interrupted", "cluster", name, "error", err)
			}
		})
	}
}

func (f *faultInjector) mark(cluster string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[cluster] = down
}
