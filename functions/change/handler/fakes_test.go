package handler

// One cluster in memory, as the handler sees it: both buckets, CloudFormation, EKS, Auto Scaling and Step Functions.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/waiter"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const (
	network      = "drover-demo-network"
	controlPlane = "drover-demo-control-plane"
)

const spec = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: 1.36-1}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b]}
  pools: [{name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3}]
`

// account is the cluster demo and its AWS account. The execution "mine" holds the lease with fence 7.
type account struct {
	specs, bucket *storetest.Bucket
	state         *store.State
	// plan has one change. specVersion is that of the spec, from which the plan was made.
	plan        plan.Plan
	change      plan.Change
	specVersion string
	waited      *int64
	// stacks by name.
	stacks map[string]stack.Deployed
	// changes are in each change set. The first empty ones find nothing to change, and so do those of the pace if emptyPace is true.
	changes   []stack.ResourceChange
	empty     int
	emptyPace bool
	// group is the pool's, and began when its instances began to drain. desired, if any, is its desired capacity at each read: the last
	// one is repeated.
	group   pool.Group
	began   map[string]time.Time
	desired []int
	// exists reports whether the EKS cluster exists, and deleted whether CloudFormation has deleted it.
	exists, deleted bool
	// updateFailed is the resource whose update failed last, and skipped are those that the continued rollback skips.
	updateFailed string
	skipped      []string
	// checks is how often the lease is still held when it is checked; -1 is always.
	checks int
	// failing has the error of a call or a read, and before what happens before the first call, by name.
	failing map[string]error
	before  map[string]func()
	// calls are those that change something, in order. reads counts the others by name.
	calls []string
	reads map[string]int
	// sets are the change sets that were created, and results what the task was resumed with.
	sets    []changeSet
	results []events.ChangeResult
}

// changeSet is what a change set was created with.
type changeSet struct {
	create                bool
	template, note, token string
	tags, parameters      map[string]string
}

// newAccount returns an account with a plan of one change.
func newAccount(t *testing.T, change plan.Change) *account {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	waited := int64(0)
	a := &account{
		specs: storetest.NewBucket("specs"), bucket: storetest.NewBucket("state"), change: change, waited: &waited, checks: -1,
		stacks: map[string]stack.Deployed{}, failing: map[string]error{}, before: map[string]func(){}, reads: map[string]int{},
	}
	a.state = store.NewState(a.bucket, store.Silent, func() time.Time { return noon })
	a.specVersion = a.specs.Upload(names.ClusterSpec("demo"), spec)
	a.bucket.Upload(names.Lease("demo"), `{"execution":"mine","fence":7}`)
	a.plan = plan.Plan{Cluster: "demo", SpecVersion: a.specVersion}
	a.amend(t, func(s *status.Status) { s.Stacks = []status.Stack{{Name: change.Stack, Status: "UPDATE_COMPLETE"}} })
	return a
}

// deploy sets the status of the change's stack.
func (a *account) deploy(status string) {
	now := a.stacks[a.change.StackName]
	now.Status = status
	a.stacks[a.change.StackName] = now
}

// amend changes the status of the cluster.
func (a *account) amend(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, a.state.UpdateStatus(t.Context(), "demo", change))
}

// accept records a version of the spec as accepted.
func (a *account) accept(t *testing.T, version string) {
	t.Helper()
	a.amend(t, func(s *status.Status) { s.RecordAccepted(status.Upload{Version: version, UploadedAt: noon}) })
}

// status returns the recorded state of the change's stack.
func (a *account) status(t *testing.T) status.Stack {
	t.Helper()
	c, err := a.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	require.Len(t, c.Status.Stacks, 1)
	return c.Status.Stacks[0]
}

// waiter returns the registered waiter of the change's stack.
func (a *account) waiter(t *testing.T) store.Waiter {
	t.Helper()
	w, err := a.state.Waiter(t.Context(), a.change.StackName)
	require.NoError(t, err)
	return w
}

// waiters returns the keys of all registered waiters.
func (a *account) waiters() []string {
	return slices.DeleteFunc(a.bucket.Keys(), func(key string) bool { return key != names.Waiter(a.change.StackName) })
}

func (a *account) handler() *Handler {
	state := stolenLease{a.state, a}
	return &Handler{
		Specs: a.specs, State: state, Stacks: stacks{a}, Clusters: clusters{a}, Groups: groups{a}, TemplateBase: "https://state",
		Resume: &waiter.Resumer{Tasks: tasks{a}, Stacks: stacks{a}, State: state}, Now: func() time.Time { return noon },
	}
}

func (a *account) request() events.ChangeRequest {
	return events.ChangeRequest{
		Cluster: "demo", Execution: "mine", Fence: 7, PlanKey: "plans/x", Stack: a.change.Stack, TaskToken: "task", WaitedSeconds: a.waited,
	}
}

// newCall returns a call for tests of its parts.
func (a *account) newCall() *call {
	return &call{Handler: a.handler(), in: a.request(), change: a.change, token: "token"}
}

// token returns the token of the change.
func (a *account) token() string { return a.change.Token(a.specVersion, 7) }

// persist writes the plan to the state bucket.
func (a *account) persist(t *testing.T) {
	t.Helper()
	a.plan.Changes = []plan.Change{a.change}
	body, err := json.Marshal(a.plan)
	require.NoError(t, err)
	a.bucket.Upload("plans/x", string(body))
}

// handle calls the function.
func (a *account) handle(t *testing.T) error {
	t.Helper()
	a.persist(t)
	_, err := a.handler().Handle(t.Context(), a.request())
	return err
}

// call records a call that changes something, and returns its error.
func (a *account) call(name string) error {
	if do := a.before[name]; do != nil {
		delete(a.before, name)
		do()
	}
	a.calls = append(a.calls, name)
	return a.failing[name]
}

// read records a call that changes nothing, and returns its error.
func (a *account) read(name string) error {
	a.reads[name]++
	return a.failing[name]
}

// end sets the status of a stack after a call that begins an operation.
func (a *account) end(call, stackName, status string) error {
	if err := a.call(call); err != nil {
		return err
	}
	now := a.stacks[stackName]
	now.Status = status
	a.stacks[stackName] = now
	return nil
}

// stolenLease is the state bucket. Another execution takes the lease over after account.checks.
type stolenLease struct {
	*store.State
	a *account
}

func (l stolenLease) CheckLease(ctx context.Context, cluster, execution string, fence int64) error {
	if err := l.a.read("lease"); err != nil {
		return err
	}
	if l.a.checks == 0 {
		l.a.bucket.Upload(names.Lease("demo"), `{"execution":"theirs","fence":8}`)
	}
	l.a.checks--
	return l.State.CheckLease(ctx, cluster, execution, fence)
}

func (l stolenLease) PutWaiter(ctx context.Context, w store.Waiter) (store.Waiter, error) {
	if err := l.a.call("register"); err != nil {
		return w, err
	}
	return l.State.PutWaiter(ctx, w)
}

func (l stolenLease) DeleteWaiter(ctx context.Context, w store.Waiter) error {
	if err := l.a.call("delete waiter"); err != nil {
		return err
	}
	return l.State.DeleteWaiter(ctx, w)
}

func (l stolenLease) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	if err := l.a.read("read status"); err != nil {
		return nil, err
	}
	return l.State.Status(ctx, cluster)
}

func (l stolenLease) UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	if err := l.a.call("status"); err != nil {
		return err
	}
	return l.State.UpdateStatus(ctx, cluster, change)
}

// stacks is CloudFormation. Operations begin, and do not end.
type stacks struct{ *account }

func (s stacks) Describe(_ context.Context, stackName string) (stack.Deployed, error) {
	if err := s.read("describe " + stackName); err != nil {
		return stack.Deployed{}, err
	}
	return s.stacks[stackName], nil
}

func (s stacks) Deleted(_ context.Context, stackName, resource string) (bool, error) {
	err := s.read(fmt.Sprintf("deleted %s of %s", resource, stackName))
	return s.deleted && err == nil, err
}

func (s stacks) UpdateFailed(_ context.Context, stackName, resource string) (bool, error) {
	return s.updateFailed == resource, s.read(fmt.Sprintf("failed %s of %s", resource, stackName))
}

func (s stacks) WhyFailed(context.Context, string) (stack.Failure, error) {
	return stack.Failure{Reason: "rolled back"}, s.read("failure")
}

func (s stacks) CreateChangeSet(
	_ context.Context, change plan.Change, create bool, template string, parameters map[string]string, token string,
) (stack.ChangeSet, error) {
	s.sets = append(s.sets, changeSet{
		create: create, template: template, token: token, tags: maps.Clone(change.Tags), parameters: maps.Clone(parameters),
	})
	if len(s.sets) > MaxChangeSets {
		return stack.ChangeSet{}, fmt.Errorf("more than %d change sets", MaxChangeSets)
	}
	s.empty--
	return stack.ChangeSet{Name: token, Changes: s.changes, Empty: s.empty >= 0}, s.call("prepare")
}

func (s stacks) PrepareParameters(
	_ context.Context, _ plan.Change, _ stack.Deployed, template string, parameters map[string]string, note, token string,
) (stack.ChangeSet, error) {
	s.sets = append(s.sets, changeSet{template: template, note: note, token: token, parameters: maps.Clone(parameters)})
	return stack.ChangeSet{Name: token, Empty: s.emptyPace}, s.call("pace")
}

func (s stacks) Execute(_ context.Context, change plan.Change, set stack.ChangeSet, token string) error {
	if set.Name != token {
		return fmt.Errorf("the change set is %s, and the token %s", set.Name, token)
	}
	if s.sets[len(s.sets)-1].create {
		return s.end("execute", change.StackName, "CREATE_IN_PROGRESS")
	}
	return s.end("execute", change.StackName, "UPDATE_IN_PROGRESS")
}

func (s stacks) ContinueRollback(_ context.Context, stackName, _ string, skip []string) error {
	s.skipped = skip
	return s.end("continue rollback", stackName, "UPDATE_ROLLBACK_IN_PROGRESS")
}

func (s stacks) Delete(_ context.Context, stackName, _ string) error {
	return s.end("delete", stackName, "DELETE_IN_PROGRESS")
}

func (s stacks) Protect(_ context.Context, stackName string, on bool) error {
	if err := s.call(fmt.Sprint("protect ", on)); err != nil {
		return err
	}
	now := s.stacks[stackName]
	now.TerminationProtection = on
	s.stacks[stackName] = now
	return nil
}

// clusters is EKS.
type clusters struct{ *account }

func (c clusters) Exists(_ context.Context, eksCluster string) (bool, error) {
	return c.exists && eksCluster == "drover-demo", c.read("exists")
}

// groups is Auto Scaling.
type groups struct{ *account }

func (g groups) Describe(context.Context, string) (pool.Group, bool, error) {
	group := g.group
	if len(g.desired) > 0 {
		group.Desired = g.desired[0]
	}
	if len(g.desired) > 1 {
		g.desired = g.desired[1:]
	}
	return group, true, g.read("group")
}

func (g groups) ActivityStarts(context.Context, string, []string) (map[string]time.Time, error) {
	return g.began, g.call("drains")
}

// tasks is Step Functions.
type tasks struct{ *account }

func (t tasks) Succeed(_ context.Context, token string, result events.ChangeResult) error {
	if token != "task" {
		return fmt.Errorf("unexpected token %q", token)
	}
	t.results = append(t.results, result)
	return t.call("resume")
}

func (t tasks) Fail(_ context.Context, _, _ string, result events.ChangeResult) error {
	t.results = append(t.results, result)
	return t.call("fail")
}
