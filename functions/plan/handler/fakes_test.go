package handler

// Fakes of the buckets, of AWS and of the planner. specless and specced plan with shared/planner. cluster plans with a fake.

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

const specOfA = `apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  release: {name: 1.36-1}
  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b]}
  pools:
    - {name: a, instanceTypes: [m7i.large], minSize: 1, maxSize: 3, rollAt: "2026-11-27T12:00:00Z"}
`

// bucket is the state bucket, as the handler and its planner use it.
type bucket interface {
	State
	planner.State
}

// specless is a cluster without a spec: its lease, its status and its stacks.
type specless struct {
	bucket
	lease    store.Lease
	status   *status.Status
	deployed map[string]stack.Deployed
	// expected are the stacks that planning read by name; kept the keys that it wrote.
	expected, kept []string
	// running is whether the holder of the lease runs; conflicts counts the takings of the lease that lose.
	running   bool
	conflicts int
	acquired  int
	err       map[string]error
	// versions are those of the spec that the bucket still has; read are those that planning read.
	versions map[string]string
	read     []string
}

func (c *specless) GetVersion(_ context.Context, key, version string, _ int64) (store.Object, error) {
	c.read = append(c.read, version)
	if body, found := c.versions[version]; found && key == "clusters/demo.yaml" {
		return store.Object{Version: version, Body: []byte(body)}, c.err["version"]
	}
	return store.Object{}, cmp.Or(c.err["version"], store.ErrNotFound)
}

func (c *specless) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{}, store.ErrNotFound
}

func (c *specless) Lease(context.Context, string) (store.Lease, error) { return c.lease, nil }

func (c *specless) Running(context.Context, string) (bool, error) { return c.running, nil }

func (c *specless) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return nil, "", nil
}

func (c *specless) Acquire(_ context.Context, _ string, seen store.Lease, execution string) (store.Lease, error) {
	if c.conflicts > 0 {
		c.conflicts--
		return store.Lease{}, store.ErrConflict
	}
	c.acquired++
	c.lease = store.Lease{Execution: execution, Fence: seen.Fence + 1}
	return c.lease, nil
}

func (c *specless) Status(context.Context, string) (*status.Cluster, error) {
	cluster := status.New("demo")
	if c.status == nil {
		return cluster, store.ErrNotFound
	}
	cluster.Status = *c.status
	return cluster, c.err["status"]
}

func (c *specless) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(c.status)
	return c.err["write"]
}

func (c *specless) PutOnce(_ context.Context, key string, _ []byte) error {
	c.kept = append(c.kept, key)
	return c.err["keep"]
}

func (c *specless) ListCluster(_ context.Context, _ string, expected []string) (map[string]stack.Deployed, error) {
	c.expected = expected
	return c.deployed, c.err["stacks"]
}

// noOtherStacks has no stacks of other owners.
type noOtherStacks struct{ *specless }

func (noOtherStacks) Owners(context.Context, []string) (map[string]string, error) { return nil, nil }

// deployedAll are a network and a control plane with these parameters, and a pool.
func deployedAll(protection string) map[string]stack.Deployed {
	parameters := map[string]string{"DeletionProtection": protection}
	return map[string]stack.Deployed{
		names.Network: {Name: names.Network, Status: "CREATE_COMPLETE", Parameters: parameters},
		names.ControlPlane: {
			Name: names.ControlPlane, Status: "UPDATE_COMPLETE", Parameters: parameters, Outputs: map[string]string{"ClusterEndpoint": "https://x"},
		},
		names.PoolStack("a"): {Name: names.PoolStack("a"), Status: "CREATE_COMPLETE"},
	}
}

func (c *specless) plan(t *testing.T) (events.PlanResult, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	now := func() time.Time { return time.Unix(1000, 0) }
	h := &Handler{Planner: &planner.Planner{Specs: c, State: c, Stacks: noOtherStacks{c}, Now: now}, State: c, Executions: c, Now: now}
	return h.Handle(t.Context(), events.PlanRequest{Cluster: "demo", Execution: "x"})
}

// clusterWithSpec is a cluster with a spec. calls are what planning wrote, other than its status.
type clusterWithSpec struct {
	*specless
	cell    render.Cell
	objects map[string]string
	rolls   []string
	dues    []time.Time
}

func (s *clusterWithSpec) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	body, found := s.objects[key]
	if !found {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Body: []byte(body), Version: "v1"}, s.err[key]
}

func (s *clusterWithSpec) Rolls(context.Context, string) (map[string]time.Time, error) {
	return nil, nil
}

func (s *clusterWithSpec) AddRolls(_ context.Context, _ string, pools []string, _ time.Time) error {
	s.rolls = append(s.rolls, pools...)
	return s.err["rolls"]
}

func (s *clusterWithSpec) AddDue(_ context.Context, _ string, at time.Time) error {
	s.dues = append(s.dues, at)
	return s.err["due"]
}

func (*clusterWithSpec) Compat(context.Context, []string) (upgrade.Compat, error) { return nil, nil }

func (*clusterWithSpec) SettingBounds(context.Context, string, string) (*preflight.SettingBounds, error) {
	return &preflight.SettingBounds{}, nil
}

func (s *clusterWithSpec) Offered(context.Context) ([]string, error) {
	return []string{"1.35", "1.36", "1.37"}, nil
}

func (s *clusterWithSpec) Exists(context.Context, string) (bool, error) { return false, nil }

var planTime = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func withSpec(t *testing.T) *clusterWithSpec {
	t.Helper()
	release, err := os.ReadFile("../../../examples/releases/1.36-1.yaml")
	require.NoError(t, err)
	return &clusterWithSpec{
		specless: &specless{status: &status.Status{}, err: map[string]error{}},
		objects:  map[string]string{names.ClusterSpec("demo"): specOfA, names.ReleaseSpec("1.36-1"): string(release)},
	}
}

func (s *clusterWithSpec) handler() *Handler {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &Handler{Planner: s.planner(), State: s, Executions: s, Now: func() time.Time { return planTime }}
}

func (s *clusterWithSpec) planner() *planner.Planner {
	return &planner.Planner{
		Specs: s, State: s, Stacks: noOtherStacks{s.specless}, EKS: s, Now: func() time.Time { return planTime },
		Cell: s.cell,
	}
}

func (s *clusterWithSpec) plan(t *testing.T, roll ...string) (events.PlanResult, error) {
	t.Helper()
	return s.handler().Handle(t.Context(), events.PlanRequest{
		Cluster: "demo", Execution: "mine", Roll: roll, Started: planTime.Add(-time.Minute),
	})
}

// cluster is the cluster demo with its state bucket and a fake planner. It is also the planner and Step Functions.
type cluster struct {
	bucket *storetest.Bucket
	state  *store.State
	// running reports whether the holder of the lease runs.
	running bool
	// outcome, deletion, queued and spec are what the planner returns.
	outcome  planner.Outcome
	deletion planner.Deletion
	queued   *planner.QueuedUpgrade
	spec     api.Cluster
	// failing has the error of a method of the planner, or of Running, by name.
	failing map[string]error
	// requests are those of planning, and persisted how many plans were persisted.
	requests  []planner.Request
	persisted int
}

// newCluster returns a cluster as desired. Only shared/planner can make an outcome that can be recorded.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	c := &cluster{bucket: storetest.NewBucket("state"), failing: map[string]error{}}
	var err error
	c.outcome, err = withSpec(t).planner().Plan(t.Context(), planner.Request{Cluster: "demo"})
	require.NoError(t, err)
	c.outcome.Plan = plan.Plan{}
	c.state = store.NewState(c.bucket, store.Silent, func() time.Time { return planTime })
	c.spec.Spec.Pools = []api.Pool{{Name: "a"}}
	return c
}

// lease lets an execution hold the lease.
func (c *cluster) lease(execution string) {
	c.bucket.Upload(names.Lease("demo"), `{"execution":"`+execution+`","fence":4}`)
}

// holder returns who holds the lease.
func (c *cluster) holder(t *testing.T) string {
	t.Helper()
	lease, err := c.state.Lease(t.Context(), "demo")
	require.NoError(t, err)
	return lease.Execution
}

// amend changes the status.
func (c *cluster) amend(t *testing.T, change func(*status.Status)) {
	t.Helper()
	require.NoError(t, c.state.UpdateStatus(t.Context(), "demo", change))
}

// status returns the status.
func (c *cluster) status(t *testing.T) *status.Status {
	t.Helper()
	found, err := c.state.Status(t.Context(), "demo")
	require.NoError(t, err)
	return &found.Status
}

// refuse lets calls of the state bucket fail: those of an operation on a key.
func (c *cluster) refuse(operation, key string) {
	c.bucket.OnCall = func(call storetest.Call) error {
		if call.Operation == operation && call.Key == key {
			return storetest.Refusal("SlowDown")
		}
		return nil
	}
}

// handle calls the function for the execution "mine", which rolls pools.
func (c *cluster) handle(t *testing.T, roll ...string) (events.PlanResult, error) {
	t.Helper()
	h := &Handler{Planner: c, State: c.state, Executions: c, Now: func() time.Time { return planTime }}
	return h.Handle(t.Context(), events.PlanRequest{Cluster: "demo", Execution: "mine", Roll: roll, Started: planTime.Add(-time.Minute)})
}

func (c *cluster) Running(context.Context, string) (bool, error) {
	return c.running, c.failing["running"]
}

func (c *cluster) Plan(ctx context.Context, in planner.Request) (planner.Outcome, error) {
	c.requests = append(c.requests, in)
	if err := in.Accept(ctx, &c.spec); err != nil {
		return planner.Outcome{}, err
	}
	return c.outcome, c.failing["plan"]
}

func (c *cluster) PlanDeletion(context.Context, string) (planner.Deletion, error) {
	return c.deletion, c.failing["plan deletion"]
}

func (c *cluster) QueuedUpgrade(context.Context, string) (*planner.QueuedUpgrade, error) {
	return c.queued, c.failing["queued"]
}

func (c *cluster) SpecToRoll(context.Context, string) (*api.Cluster, error) {
	return &c.spec, c.failing["spec"]
}

func (c *cluster) Persist(context.Context, *planner.Outcome) (string, error) {
	c.persisted++
	return "plans/x", c.failing["persist"]
}

func (c *cluster) PersistDeletion(context.Context, plan.Plan) (string, error) {
	c.persisted++
	return "plans/x", c.failing["persist"]
}
