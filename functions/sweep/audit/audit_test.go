package audit

// What the audit does for one cluster, decision by decision, without an account.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var errThrottled = errors.New("throttled")

// auditFixture is a cluster as the audit finds it. calls are what the audit did to it, in order.
type auditFixture struct {
	work.SpecLister
	// version of its spec; "" when there is none.
	version string
	status  *status.Status
	// during changes the status between its reading and its writing.
	during  func(*status.Status)
	lease   store.Lease
	running bool
	waiters map[string]store.Waiter
	// begun means that an execution of the same name runs, or is over.
	begun   bool
	preview plan.Preview
	nodes   []pool.NodeHealth
	// failing are the errors of calls, by name.
	failing map[string]error
	calls   []string
}

func (a *auditFixture) did(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	a.calls = append(a.calls, call)
	for name, err := range a.failing {
		if len(call) >= len(name) && call[:len(name)] == name {
			return err
		}
	}
	return nil
}

func (a *auditFixture) Get(context.Context, string, int64) (store.Object, error) {
	if err := a.failing["spec"]; err != nil {
		return store.Object{}, err
	}
	if a.version == "" {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Version: a.version}, nil
}

// stateOf and the others have methods of the same name as the specs, or of another meaning.
type stateOf struct {
	State
	*auditFixture
}

func (s stateOf) Status(context.Context, string) (*status.Cluster, error) {
	if s.status == nil {
		return nil, store.ErrNotFound
	}
	return &status.Cluster{Status: *s.status}, s.failing["status"]
}

func (s stateOf) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	if s.during != nil {
		s.during(s.status)
	}
	change(s.status)
	return s.did("write")
}

func (s stateOf) Lease(context.Context, string) (store.Lease, error) {
	return s.lease, s.failing["lease"]
}

func (s stateOf) Waiter(_ context.Context, stackName string) (store.Waiter, error) {
	if err := s.failing["waiter"]; err != nil {
		return store.Waiter{}, err
	}
	w, found := s.waiters[stackName]
	if !found {
		return w, store.ErrNotFound
	}
	return w, nil
}

func (s stateOf) RequestInspection(_ context.Context, cluster, _ string) error {
	return s.did("inspect %s", cluster)
}

func (s stateOf) Release(_ context.Context, _, execution string) error {
	return s.did("release %s", execution)
}

type executionsOf struct {
	Executions
	*auditFixture
}

func (e executionsOf) State(context.Context, string) (running, removed bool, err error) {
	return e.running, false, e.failing["running"]
}

func (e executionsOf) Running(context.Context, string) (bool, error) {
	return e.running, e.failing["running"]
}

func (e executionsOf) Stop(_ context.Context, execution, _ string) error {
	return e.did("stop %s", execution)
}

func (e executionsOf) StartRetry(_ context.Context, _, _, why string) (bool, error) {
	return !e.begun, e.did("start: %s", why)
}

func (a *auditFixture) Supersede(_ context.Context, w store.Waiter, _ string) error {
	return a.did("supersede %s", w.StackName)
}

func (a *auditFixture) Admit(context.Context, string) error { return a.did("admit") }

func (a *auditFixture) PreviewWith(context.Context, string, map[string]stack.Deployed) (plan.Preview, error) {
	return a.preview, a.did("compare")
}

func (a *auditFixture) Health(context.Context, string, stack.API) ([]pool.NodeHealth, error) {
	return a.nodes, a.did("nodes")
}

type groupsOf struct {
	Groups
	*auditFixture
}

func (g groupsOf) MarkUnhealthy(_ context.Context, instance string) error {
	return g.did("replace %s", instance)
}

func (g groupsOf) LaunchFailureReason(context.Context, string, time.Time, time.Time) (string, error) {
	return "", nil
}

func (a *auditFixture) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	return preflight.ControlPlane{Version: "1.36"}, nil
}

// demo is the name of the cluster.
const demo = "demo"

// run is an audit at noon.
func (a *auditFixture) run() *auditRun {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &auditRun{
		Audit: Audit{
			Specs: a, State: stateOf{auditFixture: a}, Executions: executionsOf{auditFixture: a}, Groups: groupsOf{auditFixture: a}, Admit: a,
			Planner: a, Nodes: a, EKS: a, EventGrace: 5 * time.Minute, Now: func() time.Time { return noon },
		},
		now: noon, specs: map[string]store.Entry{}, stacks: map[string]map[string]stack.Deployed{}, groups: map[string]pool.Group{},
	}
}

// withSpec has the audit list a spec that was uploaded that long ago.
func (a *auditFixture) withSpec(r *auditRun, ago time.Duration) *auditRun {
	r.specs[demo] = store.Entry{Key: names.ClusterSpec(demo), Modified: r.now.Add(-ago)}
	return r
}

func condition(kind, is, reason string) status.Condition {
	return status.Condition{Type: kind, Status: is, Reason: reason}
}

func TestAuditLooksAtACluster(t *testing.T) {
	ready := status.Status{Phase: status.Ready, ObservedVersion: "v1", PlannedVersion: "v1"}
	for name, test := range map[string]struct {
		version  string
		uploaded time.Duration
		status   status.Status
		want     []string
	}{
		"compares it":                           {"v1", time.Hour, ready, []string{"compare"}},
		"leaves it alone while its spec is new": {"v2", 4 * time.Minute, ready, nil},
		"compares it when its new spec was planned": {
			"v2", 4 * time.Minute, status.Status{Phase: status.Ready, PlannedVersion: "v2"}, []string{"compare"},
		},
		"admits a spec whose event was lost": {"v2", 5 * time.Minute, ready, []string{"admit"}},
		"compares it without a spec":         {"", 0, status.Status{Phase: status.Stopped, ObservedVersion: "v1"}, []string{"compare"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{version: test.version, status: &test.status}
			a.status.UpdatedAt = noon.Add(-time.Minute)
			r := a.run()
			if test.version != "" {
				a.withSpec(r, test.uploaded)
			}
			require.NoError(t, r.audit(t.Context(), demo))
			require.Equal(t, test.want, a.calls)
		})
	}
	t.Run("leaves it alone without a status", func(t *testing.T) {
		a := &auditFixture{version: "v1"}
		require.NoError(t, a.withSpec(a.run(), time.Hour).audit(t.Context(), demo))
		require.Empty(t, a.calls)
	})
	t.Run("fails without its status", func(t *testing.T) {
		a := &auditFixture{version: "v1", status: &ready, failing: map[string]error{"status": errThrottled}}
		require.ErrorIs(t, a.withSpec(a.run(), time.Hour).audit(t.Context(), demo), errThrottled)
		require.Empty(t, a.calls)
	})
	t.Run("does the rest when its spec cannot be read", func(t *testing.T) {
		a := &auditFixture{status: &ready, failing: map[string]error{"spec": errThrottled}}
		require.ErrorIs(t, a.withSpec(a.run(), time.Hour).audit(t.Context(), demo), errThrottled)
		require.Equal(t, []string{"compare"}, a.calls)
	})
}

func TestAuditActsOnACluster(t *testing.T) {
	past, future := noon, noon.Add(time.Second)
	deletion := status.Status{Phase: status.Ready, PlannedVersion: "v1"}
	newer := status.Status{
		Phase: status.Ready, ObservedVersion: "v2", PlannedVersion: "v1", Conditions: []status.Condition{
			condition(status.SpecAccepted, "True", "Valid"),
		},
	}
	start := func(why string) []string { return []string{"start: " + why + " 2026-11-26T12:00:00Z"} }
	for name, test := range map[string]struct {
		status status.Status
		// since is the time since its last write.
		since time.Duration
		spec  bool
		want  []string
	}{
		"not while it was just admitted": {status.Status{Phase: status.Pending}, pendingTimeout - 1, true, nil},
		"when its execution never began": {
			status.Status{Phase: status.Pending}, pendingTimeout, true, start("not-started"),
		},
		"not while its spec was just deleted":        {deletion, pendingTimeout - 1, false, []string{"compare"}},
		"when its deletion is pending":               {deletion, pendingTimeout, false, start("deletion-pending")},
		"not while its newer spec was just admitted": {newer, pendingTimeout - 1, true, []string{"compare"}},
		"when its newer spec is pending":             {newer, pendingTimeout, true, start("spec-pending")},
		"not while it converges":                     {status.Status{Phase: status.Converging}, silenceTimeout - 1, true, nil},
		"when it converges in silence": {
			status.Status{Phase: status.Converging}, silenceTimeout, true, start("silent-execution"),
		},
		"not while it is deleted":        {status.Status{Phase: status.Deleting}, deletionTimeout - 1, false, nil},
		"when its deletion stands still": {status.Status{Phase: status.Deleting}, deletionTimeout, false, start("silent-execution")},
		"not before its next try": {
			status.Status{Phase: status.Failed, RetryAt: &future}, time.Minute, true, []string{"compare"},
		},
		"when its next try is due": {
			status.Status{Phase: status.Failed, RetryAt: &past}, time.Minute, true, start("due"),
		},
		"not when its deletion failed": {status.Status{Phase: status.Failed}, time.Hour, false, nil},
		"when it failed":               {status.Status{Phase: status.Failed}, time.Minute, true, []string{"compare"}},
		"when the account had no room for it": {
			status.Status{Phase: status.Stopped, Conditions: []status.Condition{condition(status.Converged, "False", "AccountNotReady")}},
			time.Minute, true, start("account"),
		},
		"when it stopped":        {status.Status{Phase: status.Stopped}, time.Minute, true, []string{"compare"}},
		"when it is upgraded":    {status.Status{Phase: status.Upgrading}, time.Minute, true, []string{"compare"}},
		"not once it is deleted": {status.Status{Phase: status.Deleted}, time.Hour, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &test.status}
			a.status.UpdatedAt = noon.Add(-test.since)
			r := a.run()
			if test.spec {
				a.withSpec(r, time.Hour)
			}
			require.NoError(t, r.startDue(t.Context(), demo, a.status))
			require.Equal(t, test.want, a.calls)
		})
	}
}

func TestAuditStartsABoundedNumber(t *testing.T) {
	a := &auditFixture{begun: true}
	r := a.run()
	for range maxStarts {
		begun, err := r.startConvergeOnce(t.Context(), demo, &status.Status{}, "it was begun before", noon)
		require.NoError(t, err)
		require.False(t, begun)
	}
	require.Len(t, a.calls, maxStarts)
	a.begun, a.calls = false, nil
	for i := range maxStarts + 1 {
		begun, err := r.startConvergeOnce(t.Context(), demo, &status.Status{}, "so", noon)
		require.NoError(t, err)
		require.Equal(t, i < maxStarts, begun, "one that began nothing does not count")
	}
	require.Len(t, a.calls, maxStarts)
	a.failing = map[string]error{"start": errThrottled}
	_, err := a.run().startConvergeOnce(t.Context(), demo, &status.Status{}, "so", noon)
	require.ErrorIs(t, err, errThrottled)
}

func TestIdleExecution(t *testing.T) {
	const mine = "execution"
	stackName := names.Stack(demo, names.Addons)
	replaced := []string{"stop execution", "release execution", "start: silent-execution 2026-11-26T12:00:00Z"}
	for name, test := range map[string]struct {
		given func(*auditFixture)
		err   bool
		want  []string
	}{
		"is replaced": {func(*auditFixture) {}, false, replaced},
		"is replaced when another execution waits for its stack": {
			func(a *auditFixture) { a.waiters = map[string]store.Waiter{stackName: {Execution: "another"}} }, false, replaced,
		},
		"is left alone when it waits for a stack": {
			func(a *auditFixture) { a.waiters = map[string]store.Waiter{stackName: {Execution: mine}} }, false, nil,
		},
		"is left alone when it waits for drains": {
			func(a *auditFixture) {
				a.status.Stacks = []status.Stack{{Name: names.Addons, Delay: &status.Delay{Message: "drains", Until: noon}}}
			}, false, nil,
		},
		"is replaced when that wait is long over": {
			func(a *auditFixture) {
				a.status.Stacks = []status.Stack{{Name: names.Addons, Delay: &status.Delay{Message: "drains", Until: noon.Add(-period)}}}
			}, false, replaced,
		},
		"is left to the sweep when it is over": {func(a *auditFixture) { a.running = false }, false, nil},
		"is followed by another without a lease": {
			func(a *auditFixture) { a.lease = store.Lease{} }, false, replaced[2:],
		},
		"is left alone when its lease cannot be read":  {func(a *auditFixture) { a.failing["lease"] = errThrottled }, true, nil},
		"is left alone when its state cannot be read":  {func(a *auditFixture) { a.failing["running"] = errThrottled }, true, nil},
		"is left alone when its waiter cannot be read": {func(a *auditFixture) { a.failing["waiter"] = errThrottled }, true, nil},
		"keeps its lease when it cannot be stopped":    {func(a *auditFixture) { a.failing["stop"] = errThrottled }, true, replaced[:1]},
		"is not followed while it has the lease":       {func(a *auditFixture) { a.failing["release"] = errThrottled }, true, replaced[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{
				lease: store.Lease{Execution: mine, Fence: 3}, running: true, failing: map[string]error{},
				status: &status.Status{Phase: status.Converging, Plan: []status.Change{{Stack: names.Network}, {Stack: names.Addons}}},
			}
			test.given(a)
			err := a.run().replaceStuck(t.Context(), demo, a.status)
			require.Equal(t, test.err, err != nil)
			if test.err {
				require.ErrorIs(t, err, errThrottled)
			}
			require.Equal(t, test.want, a.calls)
		})
	}
}
