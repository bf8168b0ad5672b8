package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var errThrottled = errors.New("throttled")

// demo is the name of the cluster.
const demo = "demo"

func condition(kind, is, reason string) status.Condition {
	return status.Condition{Type: kind, Status: is, Reason: reason}
}

// swept is an account as a sweep finds it. calls are what the sweep did, in order.
type swept struct {
	waiter store.Waiter
	lease  store.Lease
	// held are the clusters whose lease somebody has.
	held    []string
	running bool
	// drains are the executions that drain nodes, with their inputs; broken are those that ended badly.
	drains, broken map[string]events.DrainRequest
	joins          map[string]events.Lifecycle
	stack          stack.Deployed
	began          bool
	since          time.Time
	status         status.Status
	failing        map[string]error
	calls          []string
}

func (s *swept) did(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	s.calls = append(s.calls, call)
	for name, err := range s.failing {
		if strings.HasPrefix(call, name) {
			return err
		}
	}
	return nil
}

// anyState, anyStacks and anyGroups are all that some pass uses. The fakes embed them, and implement what one test needs.
type anyState interface {
	WaiterState
	StatusLister
	Leases
	UpgradeRecords
	ChannelState
	DueState
}

type anyStacks interface {
	WaiterStacks
	InstanceStacks
}

type anyGroups interface {
	HookReader
	ProcessResumer
	LaunchFailures
}

type sweptState struct {
	anyState
	*swept
}

func (s sweptState) Waiter(context.Context, string) (store.Waiter, error) {
	if s.waiter.StackName == "" {
		return s.waiter, store.ErrNotFound
	}
	return s.waiter, s.failing["waiter"]
}
func (s sweptState) DeleteWaiter(context.Context, store.Waiter) error { return s.did("forget") }
func (s sweptState) Held(context.Context) ([]string, error)           { return s.held, s.failing["held"] }
func (s sweptState) Lease(context.Context, string) (store.Lease, error) {
	return s.lease, s.failing["lease"]
}
func (s sweptState) Release(_ context.Context, cluster, execution string) error {
	return s.did("release %s %s", cluster, execution)
}
func (s sweptState) UpdateStatus(_ context.Context, cluster string, change func(*status.Status)) error {
	change(&s.status)
	return s.did("write %s", cluster)
}

type sweptExecutions struct{ *swept }

func (s sweptExecutions) Running(context.Context, string) (bool, error) {
	return s.running, s.failing["running"]
}

type sweptStacks struct {
	anyStacks
	*swept
}

func (s sweptStacks) Describe(context.Context, string) (stack.Deployed, error) {
	return s.stack, s.failing["describe"]
}
func (s sweptStacks) Began(context.Context, string, string) (bool, error) {
	return s.began, s.failing["began"]
}
func (s sweptStacks) Since(context.Context, string) (time.Time, error) {
	return s.since, s.failing["since"]
}

func (s *swept) Resume(_ context.Context, w store.Waiter, stackStatus string) error {
	return s.did("resume %q %t %s", w.ClientRequestToken, w.Again, stackStatus)
}

// machine is that of drains, or of joins.
type machine struct {
	Machine
	*swept
	joins bool
}

func (m machine) Running(context.Context) (running []string, err error) {
	for x := range m.drains {
		running = append(running, x)
	}
	return running, m.failing["list"]
}

func (m machine) Broken(context.Context, time.Time) (broken []string, err error) {
	for x := range m.broken {
		broken = append(broken, x)
	}
	for x := range m.swept.joins {
		broken = append(broken, x)
	}
	return broken, m.failing["broken"]
}

func (m machine) Input(_ context.Context, x string, into any) error {
	if err := m.failing["input "+x]; err != nil {
		return err
	}
	switch into := into.(type) {
	case *events.DrainRequest:
		if in, found := m.drains[x]; found {
			*into = in
			return nil
		}
		*into = m.broken[x]
	case *events.Lifecycle:
		*into = m.swept.joins[x]
	}
	return nil
}

func (m machine) Start(_ context.Context, name string, input any) error {
	switch in := input.(type) {
	case events.DrainRequest:
		return m.did("give back %s", DrainTarget(in))
	case events.Lifecycle:
		return m.did("signal %s", in.EC2InstanceID)
	}
	return m.did("start %s", name)
}

// deps are what the passes use.
type deps struct {
	Specs               ChannelSpecs
	State               anyState
	Stacks              anyStacks
	Groups              anyGroups
	Executions          DueExecutions
	Upgrade             Upgrader
	JoinNode, DrainNode Machine
	Resume              Resumer
	Admit               Admitter
	Patience            time.Duration
	Now                 func() time.Time
}

func (s *swept) deps() *deps {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &deps{
		State: sweptState{swept: s}, Executions: sweptExecutions{s}, Stacks: sweptStacks{swept: s}, Resume: s, Admit: s,
		DrainNode: machine{swept: s}, JoinNode: machine{swept: s, joins: true}, Upgrade: machine{swept: s}, Now: func() time.Time { return noon },
	}
}

func (d *deps) waiters() Waiters {
	return Waiters{State: d.State, Executions: d.Executions, Stacks: d.Stacks, Groups: d.Groups, Resume: d.Resume, Now: d.Now}
}

func (d *deps) missedSpecs() MissedSpecs {
	return MissedSpecs{Specs: d.Specs, State: d.State, Admit: d.Admit, Cache: &SpecCache{}, Patience: d.Patience, Now: d.Now}
}

func (d *deps) ended() EndedExecutions {
	return EndedExecutions{State: d.State, Executions: d.Executions, Now: d.Now}
}

func (d *deps) hooks() Hooks {
	return Hooks{Groups: d.Groups, JoinNode: d.JoinNode, DrainNode: d.DrainNode}
}

func (d *deps) instances() Instances {
	return Instances{Stacks: d.Stacks, Groups: d.Groups, JoinNode: d.JoinNode, DrainNode: d.DrainNode, Now: d.Now}
}

func (d *deps) late() LateUpgrades { return LateUpgrades{Specs: d.Specs, State: d.State, Now: d.Now} }

func (d *deps) ender() UpgradeEnder {
	return UpgradeEnder{Executions: d.Executions, Upgrade: d.Upgrade, Now: d.Now}
}

// agenda is what is due, and which clusters are held by an execution.
type agenda struct {
	sweptState
	dues    []store.Due
	holders map[string]string
	missing bool
}

func (a agenda) Dues(context.Context, time.Time) ([]store.Due, error) {
	return a.dues, a.failing["dues"]
}

func (a agenda) Holder(_ context.Context, cluster string, _ func(context.Context, string) (bool, error)) (string, error) {
	return a.holders[cluster], a.failing["holder "+cluster]
}

func (a agenda) Done(_ context.Context, due store.Due) error {
	if due.Inspect {
		return a.did("done inspecting %s", due.Cluster)
	}
	return a.did("done %s %s", due.Cluster, due.At.Format("15:04"))
}

func (a agenda) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	if a.missing {
		return nil, store.ErrNotFound
	}
	err := a.did("read %s", cluster)
	return &status.Cluster{Status: a.status}, err
}

func (s *swept) ConvergeDue(_ context.Context, cluster string, at time.Time) error {
	return s.did("start %s %s", cluster, at.Format("15:04"))
}

func (s sweptExecutions) Converge(_ context.Context, cluster, version, after string) error {
	return s.did("converge %s %s %s", cluster, version, after)
}

func (a agenda) due() Due {
	d := a.swept.deps()
	return Due{State: a, Executions: d.Executions, Late: LateUpgrades{Specs: listedSpecs{}, State: a, Now: d.Now}, Now: d.Now}
}

func due(cluster string, ago time.Duration) store.Due {
	return store.Due{Cluster: cluster, At: noon.Add(-ago)}
}

// listed are objects of a bucket, by prefix.
type listed map[string][]store.Entry

func (l listed) List(_ context.Context, prefix string) ([]store.Entry, error) { return l[prefix], nil }

type listedSpecs struct {
	ChannelSpecs
	listed
	version string
}

func (l listedSpecs) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return l.listed.List(ctx, prefix)
}

func (l listedSpecs) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: l.version}, nil
}

type listedState struct {
	sweptState
	listed
}

func (l listedState) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return l.listed.List(ctx, prefix)
}

func (l listedState) Waiter(_ context.Context, stackName string) (store.Waiter, error) {
	return store.Waiter{StackName: stackName, Execution: stackName}, nil
}

func (l listedState) Status(context.Context, string) (*status.Cluster, error) {
	return &status.Cluster{Status: l.status}, l.failing["status"]
}

func (s *swept) Admit(_ context.Context, cluster string) error { return s.did("admit %s", cluster) }

// scaling is Auto Scaling with groups and their hooks.
type scaling struct {
	anyGroups
	*swept
	all   []pool.Group
	hooks map[string]events.Lifecycle
}

func (s scaling) All(context.Context) ([]pool.Group, error) { return s.all, s.failing["groups"] }

func (s scaling) Hook(_ context.Context, group, hook string) (events.Lifecycle, bool, error) {
	if err := s.failing["hook "+group]; err != nil {
		return events.Lifecycle{}, false, err
	}
	found, ok := s.hooks[group+" "+hook]
	return found, ok, nil
}

func (s scaling) Resume(_ context.Context, group string, processes []string) error {
	return s.did("resume processes of %s: %d", group, len(processes))
}

func (s sweptStacks) Changing(context.Context, string, time.Time) (bool, error) {
	return s.began, s.failing["changing"]
}

// broken is a bucket that cannot be listed, under some prefixes.
type broken struct {
	sweptState
	listed
}

func (b broken) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return b.listed[prefix], b.did("list %s", prefix)
}

func (b broken) Dues(context.Context, time.Time) ([]store.Due, error) { return nil, b.did("dues") }

type noSpecs struct {
	ChannelSpecs
	*swept
}

func (n noSpecs) List(context.Context, string) ([]store.Entry, error) {
	return nil, n.did("list specs")
}

func (n noSpecs) GetUnless(context.Context, string, string, int64) (store.Object, bool, error) {
	return store.Object{}, false, n.did("channels")
}
