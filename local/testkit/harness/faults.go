package harness

// Faults of AWS: calls that are rejected and resources that cannot be created.

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/drover-run/drover/local/account/injection"
	"github.com/drover-run/drover/local/account/subject"
	"github.com/drover-run/drover/local/aws/cloudformation"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
)

// OnCall calls before ahead of each call. Its error is sent instead of an answer. nil removes it. before may make calls
// itself.
func (a *Account) OnCall(before func(endpoint.Call) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onCall = before
}

// OnAnswer calls see after each call.
func (a *Account) OnAnswer(see func(endpoint.Call)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onAnswer = see
}

// OnMachineCall calls see before each call that a state machine makes itself, without a function.
func (a *Account) OnMachineCall(see func(action string, parameters map[string]any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onMachine = see
}

func (a *Account) machineCalls(action string, parameters map[string]any) {
	a.mu.Lock()
	see := a.onMachine
	a.mu.Unlock()
	if see != nil {
		see(action, parameters)
	}
}

// OnStack calls see for every new status of a stack, in order.
func (a *Account) OnStack(see func(stackName, status string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onStack = see
}

func (a *Account) afterCall(call endpoint.Call) {
	a.mu.Lock()
	see := a.onAnswer
	a.mu.Unlock()
	if see != nil {
		see(call)
	}
}

func (a *Account) afterStackEvent(e cloudformation.StackEvent) {
	a.mu.Lock()
	see := a.onStack
	a.mu.Unlock()
	if see != nil && e.PhysicalResourceId == e.StackId {
		see(e.StackName, e.ResourceStatus)
	}
}

func (a *Account) intercept(call endpoint.Call) error {
	a.mu.Lock()
	before := a.onCall
	a.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(call)
}

// CalledBy returns the function that made a call, or the name of another caller.
func CalledBy(call endpoint.Call) string { return call.Caller[strings.LastIndex(call.Caller, "/")+1:] }

// strike lets the engine of the account's options decide about a call.
func (a *Account) strike(r *http.Request, call endpoint.Call) (err error) {
	i, _ := r.Context().Value(invocationKey{}).(*invocation)
	if i != nil && a.options.OnFunctionCall != nil {
		defer func() {
			if err == nil {
				a.options.OnFunctionCall(call, i.payload)
			}
		}()
	}
	if a.options.Faults == nil || i == nil { // faults affect functions only
		return nil
	}
	moment := injection.Call(r, call, CalledBy(call), i.number())
	if call.Service == "lambda" { // a decision depends on all of its moment, and the recorded worlds call no relay
		moment = moment.About(call.Resource, subject.Of)
	}
	strike := a.faults().Decide(moment)
	_ = a.clock.Timer(context.WithoutCancel(r.Context()), strike.Delay) // the context has no end
	switch {
	case strike.Kind == faults.CrashBefore:
		i.die()
	case strike.Kind == faults.CrashAfter:
		i.die()
		return nil
	case strike.Done():
		i.loseAnswer()
		return nil
	}
	return strike.Answer(call.Service)
}

// killAt lets the engine decide whether an execution is stopped at a state.
func (a *Account) killAt(x stepfunctions.Execution, e asl.Event) {
	if a.faults().Kills(x, e) {
		a.StepFunctions.Stop(x.ARN, "Killed", "by a fault rule")
	}
}

// faults asks the engine of the account's options.
func (a *Account) faults() injection.Injector {
	return injection.Injector{Engine: a.options.Faults, Now: a.clock.Now}
}

// OnResource calls before ahead of each resource that CloudFormation creates ("create"), changes ("update") or deletes
// ("delete"). Its error is the resource's failure. nil removes it.
func (a *Account) OnResource(before func(step string, r resource.Request) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onResource = before
}

// OnChangeSet sets fails, which returns why CloudFormation cannot create the change set of a stack, or "". nil removes
// it.
func (a *Account) OnChangeSet(fails func(stackName string) (reason string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onSet = fails
}

func (a *Account) changeSetFails(stackName string) (reason string) {
	a.mu.Lock()
	fails := a.onSet
	a.mu.Unlock()
	if fails == nil {
		return ""
	}
	return fails(stackName)
}

func (a *Account) fault(step string, r resource.Request) error {
	a.mu.Lock()
	before := a.onResource
	a.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(step, r)
}

// register registers the resource types with CloudFormation.
func (a *Account) register(services ...map[string]resource.Provider) {
	for _, providers := range services {
		maps.Copy(a.resources, providers)
	}
	faulty := map[string]resource.Provider{}
	for kind, provider := range a.resources {
		faulty[kind] = faultyProvider{provider, a}
	}
	a.CloudFormation.Register(faulty)
}

type faultyProvider struct {
	resource.Provider
	account *Account
}

func (p faultyProvider) Create(ctx context.Context, r resource.Request) (resource.Result, error) {
	if err := p.account.fault("create", r); err != nil {
		return resource.Result{}, err
	}
	return p.Provider.Create(ctx, r)
}

func (p faultyProvider) Update(ctx context.Context, r resource.Request) (resource.Result, error) {
	if err := p.account.fault("update", r); err != nil {
		return resource.Result{}, err
	}
	return p.Provider.Update(ctx, r)
}

func (p faultyProvider) Delete(ctx context.Context, r resource.Request) error {
	if err := p.account.fault("delete", r); err != nil {
		return err
	}
	return p.Provider.Delete(ctx, r)
}
