// Package sweeptest provides an account in memory for the tests of the sweep, its passes and the audit. Account holds
// what a sweep finds and records what it does. The other types are the interfaces of the passes over one Account.
// Tests embed them and replace what they need.
package sweeptest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Account is an account as a sweep finds it.
type Account struct {
	// Waiting is the waiter of every stack. Without a stack's name there is none.
	Waiting store.Waiter
	// Leased is the lease of every cluster. HeldClusters are the clusters whose lease an execution has. Runs reports whether it runs.
	Leased       store.Lease
	HeldClusters []string
	Runs         bool
	// WasRemoved reports whether a removal of drover ended the executions. Requested is the input of those of drover-upgrade, and Upgrades
	// are the inputs of those that were started.
	WasRemoved bool
	Requested  events.Upgrade
	Upgrades   []events.Upgrade
	// Drains are the executions that drain nodes, with their inputs. Aborted are those that failed, Joins the failed ones of joins.
	Drains, Aborted map[string]events.DrainRequest
	Joins           map[string]events.Lifecycle
	// Deployed is every stack. OperationBegan reports whether an operation of it has begun, and ChangedAt when.
	Deployed       stack.Deployed
	OperationBegan bool
	ChangedAt      time.Time
	// Recorded is the status of every cluster.
	Recorded status.Status
	// Failing holds the errors of calls, by the beginning of what Calls records, or by the name of a read.
	Failing map[string]error
	// Calls are what the sweep did, in order.
	Calls []string
}

// Quiet discards the log of a test.
func Quiet() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// Did records a call. It returns the error of the call.
func (a *Account) Did(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	a.Calls = append(a.Calls, call)
	for name, err := range a.Failing {
		if strings.HasPrefix(call, name) {
			return err
		}
	}
	return nil
}

// Resume implements passes.Resumer.
func (a *Account) Resume(_ context.Context, w store.Waiter, report status.StackReport) error {
	return a.Did("resume %q %t %s", w.ClientRequestToken, w.Again, report.Status)
}

// Supersede implements audit.Superseder.
func (a *Account) Supersede(_ context.Context, w store.Waiter, _ string) error {
	return a.Did("supersede %s", w.StackName)
}

// Admit implements passes.Admitter.
func (a *Account) Admit(_ context.Context, cluster string) error { return a.Did("admit %s", cluster) }

// Refresh implements audit.Snapshot.
func (a *Account) Refresh(context.Context) error { return a.Failing["overview"] }

// State is the state bucket. Methods that it does not replace have no bucket, and panic.
type State struct {
	*store.State
	*Account
}

// Waiter returns Waiting.
func (s State) Waiter(context.Context, string) (store.Waiter, error) {
	if s.Waiting.StackName == "" {
		return s.Waiting, store.ErrNotFound
	}
	return s.Waiting, s.Failing["waiter"]
}

// DeleteWaiter is recorded.
func (s State) DeleteWaiter(context.Context, store.Waiter) error { return s.Did("forget") }

// Held returns HeldClusters.
func (s State) Held(context.Context) ([]string, error) { return s.HeldClusters, s.Failing["held"] }

// Lease returns Leased.
func (s State) Lease(context.Context, string) (store.Lease, error) {
	return s.Leased, s.Failing["lease"]
}

// Release is recorded.
func (s State) Release(_ context.Context, cluster, execution string) error {
	return s.Did("release %s %s", cluster, execution)
}

// UpdateStatus changes Recorded.
func (s State) UpdateStatus(_ context.Context, cluster string, change func(*status.Status)) error {
	change(&s.Recorded)
	return s.Did("write %s", cluster)
}

// AddDue is recorded.
func (s State) AddDue(_ context.Context, cluster string, at time.Time) error {
	return s.Did("due %s %s", cluster, at.Format("15:04"))
}

// Status returns Recorded.
func (s State) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	err := s.Did("read %s", cluster)
	return &status.Cluster{Status: s.Recorded}, err
}

// UpdateIgnored is recorded.
func (s State) UpdateIgnored(context.Context, store.Lister) error { return s.Did("list uploads") }

// Executions are those of drover-converge and drover-upgrade.
type Executions struct{ *Account }

// Running returns Runs.
func (e Executions) Running(context.Context, string) (bool, error) {
	return e.Runs, e.Failing["running"]
}

// State returns Runs and WasRemoved.
func (e Executions) State(context.Context, string) (running, removed bool, err error) {
	return e.Runs, e.WasRemoved, e.Failing["running"]
}

// Converge is recorded.
func (e Executions) Converge(_ context.Context, cluster, version, after string) error {
	return e.Did("converge %s %s %s", cluster, version, after)
}

// ConvergeDue is recorded.
func (e Executions) ConvergeDue(_ context.Context, cluster string, at time.Time) error {
	return e.Did("start %s %s", cluster, at.Format("15:04"))
}

// StartRetry is recorded.
func (e Executions) StartRetry(_ context.Context, cluster, _, _ string) (begun bool, err error) {
	return true, e.Did("again %s", cluster)
}

// Stop is recorded.
func (e Executions) Stop(_ context.Context, execution, _ string) error {
	return e.Did("stop %s", execution)
}

// Stacks are all Deployed.
type Stacks struct{ *Account }

// Describe returns Deployed.
func (s Stacks) Describe(context.Context, string) (stack.Deployed, error) {
	return s.Deployed, s.Failing["describe"]
}

// HasBegun returns OperationBegan.
func (s Stacks) HasBegun(context.Context, string, string) (bool, error) {
	return s.OperationBegan, s.Failing["began"]
}

// LastChangeBegan returns ChangedAt.
func (s Stacks) LastChangeBegan(context.Context, string) (time.Time, error) {
	return s.ChangedAt, s.Failing["since"]
}

// Changing returns OperationBegan.
func (s Stacks) Changing(context.Context, string, time.Time) (bool, error) {
	return s.OperationBegan, s.Failing["changing"]
}

// All returns none.
func (s Stacks) All(context.Context) (map[string]stack.Deployed, error) {
	return nil, s.Failing["stacks"]
}

// Machine is drover-drain-node, drover-join-node or drover-upgrade.
type Machine struct{ *Account }

// Running returns the executions of Drains.
func (m Machine) Running(context.Context) (running []string, err error) {
	for x := range m.Drains {
		running = append(running, x)
	}
	return running, m.Failing["list"]
}

// Unsuccessful returns the executions of Aborted and Joins.
func (m Machine) Unsuccessful(context.Context, time.Time) (broken []string, err error) {
	for x := range m.Aborted {
		broken = append(broken, x)
	}
	for x := range m.Joins {
		broken = append(broken, x)
	}
	return broken, m.Failing["broken"]
}

// Input decodes the input of an execution.
func (m Machine) Input(_ context.Context, x string, into any) error {
	if err := m.Failing["input "+x]; err != nil {
		return err
	}
	switch into := into.(type) {
	case *events.Upgrade:
		*into = m.Requested
		return nil
	case *events.DrainRequest:
		if in, found := m.Drains[x]; found {
			*into = in
			return nil
		}
		*into = m.Aborted[x]
	case *events.Lifecycle:
		*into = m.Joins[x]
	}
	return nil
}

// Start is recorded.
func (m Machine) Start(_ context.Context, name string, input any) error {
	switch in := input.(type) {
	case events.DrainRequest:
		return m.Did("give back %s", in.Target())
	case events.Lifecycle:
		return m.Did("signal %s", in.EC2InstanceID)
	case events.Upgrade:
		m.Upgrades = append(m.Upgrades, in)
	}
	return m.Did("start %s", name)
}

// Groups is Auto Scaling with groups and their open hooks, by "group hook".
type Groups struct {
	*Account
	Existing []pool.Group
	Hooks    map[string]events.Lifecycle
}

// All returns Existing.
func (g Groups) All(context.Context) ([]pool.Group, error) { return g.Existing, g.Failing["groups"] }

// Hook returns an open hook.
func (g Groups) Hook(_ context.Context, group, hook string) (events.Lifecycle, bool, error) {
	if err := g.Failing["hook "+group]; err != nil {
		return events.Lifecycle{}, false, err
	}
	found, ok := g.Hooks[group+" "+hook]
	return found, ok, nil
}

// Complete is recorded.
func (g Groups) Complete(_ context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error) {
	return true, g.Did("%s %s %s", result, hook.LifecycleHookName, hook.EC2InstanceID)
}

// EC2 has the instances of an account that ended.
type EC2 struct {
	*Account
	Dead []string
}

// Ended returns those of the instances that ended.
func (e EC2) Ended(_ context.Context, ids []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(e.Dead, id) }), e.Failing["ended"]
}

// Resume is recorded.
func (g Groups) Resume(_ context.Context, group string, processes []string) error {
	return g.Did("resume processes of %s: %d", group, len(processes))
}

// LaunchFailureReason returns no failed launch.
func (g Groups) LaunchFailureReason(context.Context, string, time.Time, time.Time) (string, error) {
	return "", nil
}

// MarkUnhealthy is recorded.
func (g Groups) MarkUnhealthy(_ context.Context, instance string) error {
	return g.Did("unhealthy %s", instance)
}

// Listed are objects of a bucket, by prefix.
type Listed map[string][]store.Entry

// List returns the objects with a prefix.
func (l Listed) List(_ context.Context, prefix string) ([]store.Entry, error) { return l[prefix], nil }

// Specs is the specs bucket. Every object has the version.
type Specs struct {
	Listed
	Version string
}

// Get returns an empty object.
func (s Specs) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: s.Version}, nil
}

// GetUnless returns an empty object.
func (s Specs) GetUnless(context.Context, string, string, int64) (object store.Object, changed bool, err error) {
	return store.Object{Version: s.Version}, true, nil
}

// ListedState is a state bucket whose objects can be listed. Each stack has a waiter, whose execution is named after it.
type ListedState struct {
	State
	Listed
}

// List returns the objects with a prefix.
func (l ListedState) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return l.Listed.List(ctx, prefix)
}

// Waiter returns the waiter of a stack.
func (l ListedState) Waiter(_ context.Context, stackName string) (store.Waiter, error) {
	return store.Waiter{StackName: stackName, Execution: stackName}, nil
}

// Status returns Recorded.
func (l ListedState) Status(context.Context, string) (*status.Cluster, error) {
	return &status.Cluster{Status: l.Recorded}, l.Failing["status"]
}

// RecordingState is a state bucket that records every listing, so that it can fail.
type RecordingState struct {
	State
	Listed
}

// List is recorded.
func (u RecordingState) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return u.Listed[prefix], u.Did("list %s", prefix)
}

// Dues is recorded.
func (u RecordingState) Dues(context.Context, time.Time) ([]store.Due, error) {
	return nil, u.Did("dues")
}

// RecordingSpecs is a specs bucket that records every read, so that it can fail.
type RecordingSpecs struct {
	Specs
	*Account
}

// List is recorded.
func (s RecordingSpecs) List(context.Context, string) ([]store.Entry, error) {
	return nil, s.Did("list specs")
}

// GetUnless is recorded.
func (s RecordingSpecs) GetUnless(context.Context, string, string, int64) (store.Object, bool, error) {
	return store.Object{}, false, s.Did("channels")
}

// Agenda is a state bucket with what is due, and the executions that hold clusters.
type Agenda struct {
	State
	Due     []store.Due
	Holders map[string]string
	// Missing reports that no cluster has a status.
	Missing bool
}

// Dues returns Due.
func (a Agenda) Dues(context.Context, time.Time) ([]store.Due, error) {
	return a.Due, a.Failing["dues"]
}

// Holder returns the execution that holds a cluster.
func (a Agenda) Holder(_ context.Context, cluster string, _ func(context.Context, string) (bool, error)) (string, error) {
	return a.Holders[cluster], a.Failing["holder "+cluster]
}

// Done is recorded.
func (a Agenda) Done(_ context.Context, due store.Due) error {
	if due.Inspect {
		return a.Did("done inspecting %s", due.Cluster)
	}
	return a.Did("done %s %s", due.Cluster, due.At.Format("15:04"))
}

// Status returns Recorded.
func (a Agenda) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	if a.Missing {
		return nil, store.ErrNotFound
	}
	err := a.Did("read %s", cluster)
	return &status.Cluster{Status: a.Recorded}, err
}
