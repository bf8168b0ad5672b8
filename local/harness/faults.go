package harness

// Faults of AWS itself: calls that are refused, resources that cannot be made.

import (
	"context"
	"maps"
	"strings"

	"github.com/drover-run/drover/local/endpoint"
	"github.com/drover-run/drover/local/resource"
	"github.com/drover-run/drover/local/wire"
)

// OnCall has before see every call before it is answered; its error is answered instead. nil ends that. before may do
// anything, calls of its own too.
func (a *Account) OnCall(before func(endpoint.Call) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onCall = before
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

// CalledBy is the function that made a call, or the name of who else did.
func CalledBy(call endpoint.Call) string { return call.Caller[strings.LastIndex(call.Caller, "/")+1:] }

// Throttled is how a service says that it is called too often.
func Throttled(service string) error {
	switch service {
	case "s3":
		return &wire.Error{Code: "SlowDown", Message: "Please reduce your request rate.", Status: 503}
	case "cloudformation":
		return &wire.Error{Code: "Throttling", Message: "Rate exceeded", Status: 400}
	}
	return &wire.Error{Code: "ThrottlingException", Message: "Rate exceeded", Status: 400}
}

// OnResource has before see every resource before CloudFormation makes ("create"), changes ("update") or deletes ("delete")
// it; its error is the resource's failure. nil ends that.
func (a *Account) OnResource(before func(step string, r resource.Request) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onResource = before
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

// register tells CloudFormation of the resource types.
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
