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

	"github.com/drover-run/drover/local/account/subject"
	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/aws/eventbridge"
	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/states"
	"github.com/drover-run/drover/local/aws/states/asl"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// strikes carries out the engine's decisions.
type strikes struct {
	*faults.Engine
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

// beat is the interval of the moments of instances and API servers, in real time.
const beat = time.Second

// newStrikes returns an engine without rules. calm ends its effects: everything that is down recovers or ends.
func newStrikes(a *Account, o Options) (s *strikes, calm func()) {
	s = &strikes{Engine: faults.New(o.FaultSeed), account: a, log: o.Log, calls: map[string]invocation{}, down: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	return s, func() { cancel(); s.work.Wait() }
}

// now returns the time of faults.
func (s *strikes) now() time.Time { return s.account.clock.Now() }

// wait waits in real time, because drover's own timers run in it too.
func (s *strikes) wait(ctx context.Context, d time.Duration) error {
	return (&clock.Clock{}).Timer(ctx, d)
}

// call is the endpoint's Intercept.
func (s *strikes) call(r *http.Request, call endpoint.Call) error {
	key := ""
	if signature, err := iam.ParseSignature(r); err == nil {
		key = signature.AccessKeyID
	}
	m := faults.Moment{
		What: faults.Call, Service: call.Service, Action: call.Action, Caller: caller(call.Caller, s.account.region),
	}.About(call.Resource, subject.Of)
	m.Conditional = call.Service == "s3" && mutates(r.Method) && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "")
	m.Number = s.number(key)
	strike := s.Decide(s.now(), m)
	if strike.Kind == "" {
		return nil
	}
	if err := s.wait(r.Context(), strike.Delay); err != nil {
		return err
	}
	answer := strike.Answer(call.Service)
	if strike.Kind == faults.CrashBefore {
		s.account.Lambda.Kill(key)
	}
	if !strike.Done() {
		return answer
	}
	return &endpoint.Dropped{After: func(err error) error {
		switch {
		case strike.Kind == faults.CrashAfter:
			s.account.Lambda.Kill(key)
		case err != nil: // the call itself failed, so a retry finds nothing
			return err
		}
		return answer
	}}
}

func mutates(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// number returns the number of a call within its invocation, or 0 if no function makes it.
func (s *strikes) number(key string) int {
	function, id := s.account.Lambda.Running(key)
	if function == "" || id == "" {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.calls[key]
	if i.id != id {
		i = invocation{id: id}
	}
	i.calls++
	s.calls[key] = i
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
func (s *strikes) deliver(next func(rule string, e eventbridge.Event, deliver func())) func(string, eventbridge.Event, func()) {
	if next == nil {
		next = func(_ string, _ eventbridge.Event, deliver func()) { deliver() }
	}
	return func(rule string, e eventbridge.Event, deliver func()) {
		strike := s.Decide(s.now(), faults.Moment{What: faults.Delivery, Event: e.DetailType, Target: rule}.In(e.Detail, subject.Of))
		switch strike.Kind {
		case faults.Drop:
			return
		case faults.Reorder:
			if s.wait(s.ctx, strike.Delay) != nil {
				return
			}
		case faults.Duplicate:
			next(rule, e, deliver)
		}
		next(rule, e, deliver)
	}
}

// step observes executions and calls next.
func (s *strikes) step(next func(states.Execution, asl.Event)) func(states.Execution, asl.Event) {
	return func(x states.Execution, e asl.Event) {
		if next != nil {
			next(x, e)
		}
		if !strings.HasSuffix(e.Type, "StateEntered") {
			return
		}
		m := faults.Moment{
			What: faults.Step, Machine: strings.TrimPrefix(x.MachineName, names.Prefix), State: e.State,
		}.In([]byte(x.Input), subject.Of)
		if s.Decide(s.now(), m).Kind == faults.Kill {
			go s.account.States.Stop(x.ARN, "Fault", "killed by a fault rule of the local account") // the execution waits for this function
		}
	}
}

// live strikes instances and API servers until the account ends.
func (s *strikes) live() {
	for s.wait(s.ctx, beat) == nil {
		s.beat()
	}
}

func (s *strikes) beat() {
	for _, i := range s.account.EC2.Living() {
		m := faults.Moment{What: faults.Instances}.About(i.Tags["aws:autoscaling:groupName"], subject.Of)
		if m.Pool != "" && s.Decide(s.now(), m).Kind == faults.InstanceLost {
			_ = s.account.EC2.Terminate(i.ID, "Server.InternalError") // it may have ended already
		}
	}
	for _, name := range s.account.EKS.Running() {
		s.mu.Lock()
		down := s.down[name]
		s.mu.Unlock()
		if down {
			continue
		}
		strike := s.Decide(s.now(), faults.Moment{What: faults.Cluster, Cluster: strings.TrimPrefix(name, names.Prefix)})
		if strike.Kind != faults.APIServerDown {
			continue
		}
		s.mark(name, true)
		s.work.Go(func() {
			defer s.mark(name, false)
			if err := s.account.EKS.Interrupt(s.ctx, name, strike.Delay); err != nil && s.ctx.Err() == nil {
				s.log.Warn("an API server could not be interrupted", "cluster", name, "error", err)
			}
		})
	}
}

// update carries out EKS's UpdateFails.
func (s *strikes) update(cluster, kind string) string {
	return s.Decide(s.now(), faults.Moment{What: faults.Update, Action: kind, Cluster: strings.TrimPrefix(cluster, names.Prefix)}).Code
}

// launch carries out EC2's LaunchFails.
func (s *strikes) launch(tags map[string]string) string {
	return s.Decide(s.now(), faults.Moment{What: faults.Launch}.About(tags["aws:autoscaling:groupName"], subject.Of)).Code
}

// boot passes instances to the clusters that they join.
type boot struct {
	ec2.Nodes
	struck *strikes
}

// RegisterNode may replace a node's kubelet version.
func (b boot) RegisterNode(ctx context.Context, n ec2.Node) error {
	m := faults.Moment{What: faults.Boot, Cluster: strings.TrimPrefix(n.Cluster, names.Prefix), Pool: n.Labels[kube.PoolLabel]}
	if strike := b.struck.Decide(b.struck.now(), m); strike.Code != "" {
		n.KubeletVersion = strike.Code
	}
	return b.Nodes.RegisterNode(ctx, n)
}

func (s *strikes) mark(cluster string, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down[cluster] = down
}
