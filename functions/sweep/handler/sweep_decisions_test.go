package handler

// What a sweep resumes, forgets, releases and starts, without an account.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/names"

	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

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

type sweptState struct {
	State
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

type sweptExecutions struct {
	Executions
	*swept
}

func (s sweptExecutions) Running(context.Context, string) (bool, error) {
	return s.running, s.failing["running"]
}

type sweptStacks struct {
	Stacks
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
		return m.did("give back %s", drained(in))
	case events.Lifecycle:
		return m.did("signal %s", in.EC2InstanceID)
	}
	return m.did("start %s", name)
}

func (s *swept) handler() *Handler {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &Handler{
		State: sweptState{swept: s}, Executions: sweptExecutions{swept: s}, Stacks: sweptStacks{swept: s}, Resume: s,
		DrainNode: machine{swept: s}, JoinNode: machine{swept: s, joins: true}, Upgrade: machine{swept: s}, Now: func() time.Time { return noon },
	}
}

func TestSweepLooksAfterWaiters(t *testing.T) {
	const resumed = `resume "token" false UPDATE_COMPLETE`
	for name, test := range map[string]struct {
		given    func(*swept)
		age      time.Duration
		changing bool
		err      error
		want     []string
	}{
		"resumes a step whose operation is over":           {func(s *swept) { s.began = true }, 0, false, nil, []string{resumed}},
		"leaves one alone whose operation runs":            {func(s *swept) { s.stack.Status = "UPDATE_IN_PROGRESS" }, 0, true, nil, nil},
		"leaves one alone whose operation may still begin": {func(*swept) {}, begins - 1, false, nil, nil},
		"has one look again whose operation never began": {
			func(*swept) {}, begins, false, nil, []string{`resume "" true UPDATE_COMPLETE`},
		},
		"resumes one that waits for any operation": {func(s *swept) {
			s.waiter.ClientRequestToken = ""
		}, 0, false, nil, []string{`resume "" false UPDATE_COMPLETE`}},
		"resumes one whose stack is deleted": {func(s *swept) {
			s.stack.Status = "DELETE_COMPLETE"
		}, 0, false, nil, []string{`resume "token" false DELETE_COMPLETE`}},
		"leaves one alone whose stack is about to be created": {func(s *swept) {
			s.stack.Status, s.began = stack.InReview, true
		}, begins, false, nil, nil},
		"forgets one whose execution is over": {func(s *swept) { s.running = false }, 0, false, nil, []string{"forget"}},
		"leaves one alone that is gone":       {func(s *swept) { s.waiter = store.Waiter{} }, 0, false, nil, nil},
		"leaves one alone when it cannot be read": {func(s *swept) {
			s.failing["waiter"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its execution cannot be read": {func(s *swept) {
			s.failing["running"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when its stack cannot be read": {func(s *swept) {
			s.failing["describe"] = errThrottled
		}, 0, false, errThrottled, nil},
		"leaves one alone when the stack's events cannot be read": {func(s *swept) {
			s.failing["began"] = errThrottled
		}, begins, false, errThrottled, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{running: true, stack: stack.Deployed{Status: "UPDATE_COMPLETE"}, failing: map[string]error{}}
			s.waiter = store.Waiter{
				Cluster: demo, Stack: names.Addons, StackName: names.Stack(demo, names.Addons), ClientRequestToken: "token", Execution: "x",
			}
			test.given(s)
			changing, err := s.handler().waiter(t.Context(), s.waiter.StackName, noon.Add(-test.age))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.changing, changing)
			require.Equal(t, test.want, s.calls)
		})
	}
}

func TestSweepReportsExecutionsThatEnded(t *testing.T) {
	for name, test := range map[string]struct {
		given    func(*swept)
		reported bool
		err      error
		want     []string
	}{
		"of a cluster that converged": {func(*swept) {}, true, nil, []string{"write demo", "release demo x"}},
		"of a cluster that was deleted": {func(s *swept) {
			s.status.Phase = status.Deleting
		}, true, nil, []string{"write demo", "release demo x"}},
		"but not over a report": {func(s *swept) {
			s.status.Phase = status.Ready
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not over another execution": {func(s *swept) {
			s.status.Execution = "y"
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not while it runs":           {func(s *swept) { s.running = true }, false, nil, nil},
		"but not without a lease":         {func(s *swept) { s.lease = store.Lease{Fence: 3} }, false, nil, nil},
		"or fails when that is not known": {func(s *swept) { s.failing["running"] = errThrottled }, false, errThrottled, nil},
		"or keeps the lease when it cannot be reported": {func(s *swept) {
			s.failing["write"] = errThrottled
		}, true, errThrottled, []string{"write demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{
				lease: store.Lease{Execution: "x"}, status: status.Status{Phase: status.Converging, Execution: "x"}, failing: map[string]error{},
			}
			test.given(s)
			phase := s.status.Phase
			require.ErrorIs(t, s.handler().holder(t.Context(), demo), test.err)
			require.Equal(t, test.want, s.calls)
			require.Equal(t, test.reported, s.status.Phase == status.Failed && phase != s.status.Phase)
		})
	}
	t.Run("of each cluster, whatever fails for another", func(t *testing.T) {
		s := &swept{held: []string{"a", "b"}, lease: store.Lease{Execution: "x"}, failing: map[string]error{"write a": errThrottled}}
		require.ErrorIs(t, s.handler().ended(t.Context()), errThrottled)
		require.Equal(t, []string{"write a", "write b", "release b x"}, s.calls)
	})
}

func TestSweepGivesBackNodes(t *testing.T) {
	node := events.DrainRequest{Cluster: demo, Node: "node-1"}
	atHook := events.DrainRequest{Lifecycle: &events.Lifecycle{EC2InstanceID: "i-1"}}
	for name, test := range map[string]struct {
		broken, drains map[string]events.DrainRequest
		failing        map[string]error
		want           []string
	}{
		"of a drain that was stopped": {map[string]events.DrainRequest{"m:x": node}, nil, nil, []string{"give back demo/node-1"}},
		"not of one that another drains": {
			map[string]events.DrainRequest{"m:x": node}, map[string]events.DrainRequest{"m:y": node}, nil, nil,
		},
		"not of one at its hook":           {map[string]events.DrainRequest{"m:x": atHook}, nil, nil, nil},
		"not of one that names no node":    {map[string]events.DrainRequest{"m:x": {Cluster: demo}}, nil, nil, nil},
		"not of one that gave a node back": {map[string]events.DrainRequest{"m:" + release + "x": node}, nil, nil, nil},
		"not when drains cannot be listed": {map[string]events.DrainRequest{"m:x": node}, nil, map[string]error{"list": errThrottled}, nil},
		"not when a drain that runs is unknown": {
			map[string]events.DrainRequest{"m:x": node}, map[string]events.DrainRequest{"m:y": {}}, map[string]error{"input m:y": errThrottled}, nil,
		},
		"not when it is unknown itself": {map[string]events.DrainRequest{"m:x": node}, nil, map[string]error{"input m:x": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{broken: test.broken, drains: test.drains, failing: test.failing}
			err := s.handler().cutOff(t.Context())
			require.Equal(t, test.failing != nil, errors.Is(err, errThrottled))
			require.Equal(t, test.want, s.calls)
		})
	}
}

func TestSweepSignalsInstances(t *testing.T) {
	group := pool.Group{Name: "g", Instances: []pool.Instance{{ID: "i-1", State: pool.InService}, {ID: "i-2", State: pool.PendingWait}}}
	hook := func(group, instance string) map[string]events.Lifecycle {
		return map[string]events.Lifecycle{"m:x": {AutoScalingGroupName: group, EC2InstanceID: instance}}
	}
	for name, test := range map[string]struct {
		joins map[string]events.Lifecycle
		since time.Time
		want  []string
	}{
		"in service whose join was stopped": {hook("g", "i-1"), noon, []string{"signal i-1"}},
		"not before they are in service":    {hook("g", "i-2"), noon, nil},
		"not of another group":              {hook("h", "i-1"), noon, nil},
		"not of a stack that does not move": {hook("g", "i-1"), time.Time{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{joins: test.joins, since: test.since}
			require.NoError(t, s.handler().unsignalled(t.Context(), group))
			require.Equal(t, test.want, s.calls)
		})
	}
	t.Run("of pools that a waiter, or their processes, say are changing", func(t *testing.T) {
		suspended := group
		suspended.SuspendedAt = map[string]time.Time{}
		for _, process := range suspends {
			suspended.SuspendedAt[process] = noon
		}
		for name, test := range map[string]struct {
			group    pool.Group
			changing bool
			want     []string
		}{
			"neither":   {group, false, nil},
			"waiter":    {group, true, []string{"signal i-1"}},
			"processes": {suspended, false, []string{"signal i-1"}},
		} {
			s := &swept{joins: hook("g", "i-1"), since: noon, stack: stack.Deployed{Status: "UPDATE_IN_PROGRESS"}}
			h := s.handler()
			h.DrainNode = machine{swept: &swept{}}
			require.NoError(t, h.lifecycle(t.Context(), []pool.Group{test.group}, map[string]bool{"g": test.changing}))
			require.Equal(t, test.want, s.calls, name)
		}
	})
}

func TestAuditChecksScheduledUpgrades(t *testing.T) {
	in := func(d time.Duration) *time.Time { at := noon.Add(d); return &at }
	scheduled := func(at, checked *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "At", At: at, Checked: checked}
	}
	unread := scheduled(in(time.Hour), nil)
	unread.Checks = []status.Check{{Name: preflight.UpgradePossible, Message: "there is no release r2"}}
	delayed := scheduled(in(time.Hour), nil)
	delayed.Phase = status.UpgradeDelayed
	for name, test := range map[string]struct {
		phase   status.Phase
		upgrade *status.Upgrade
		starts  int32
		checked bool
	}{
		"when they are known of":              {status.Ready, scheduled(in(72*time.Hour), nil), 0, true},
		"when the cluster stopped":            {status.Stopped, scheduled(in(72*time.Hour), nil), 0, true},
		"once":                                {status.Ready, scheduled(in(72*time.Hour), in(-time.Hour)), 0, false},
		"again in the last day":               {status.Ready, scheduled(in(notice), in(-time.Hour)), 0, true},
		"once in the last day":                {status.Ready, scheduled(in(time.Hour), in(-23*time.Hour)), 0, false},
		"not once they begin":                 {status.Ready, scheduled(in(0), nil), 0, false},
		"not without a time":                  {status.Ready, scheduled(nil, nil), 0, false},
		"not when they are late":              {status.Ready, delayed, 0, false},
		"not while their release is not read": {status.Ready, unread, 0, false},
		"not while the cluster converges":     {status.Converging, scheduled(in(time.Hour), nil), 0, false},
		"not while the cluster is upgraded":   {status.Upgrading, scheduled(in(time.Hour), nil), 0, false},
		"not while the cluster is deleted":    {status.Deleting, scheduled(in(time.Hour), nil), 0, false},
		"not beyond the bound of an audit":    {status.Ready, scheduled(in(time.Hour), nil), maxStarts, false},
		"not when there is none":              {status.Ready, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{}
			r := &round{Handler: s.handler(), now: noon}
			r.starts.Store(test.starts)
			require.NoError(t, r.ahead(t.Context(), demo, &status.Status{Phase: test.phase, Upgrade: test.upgrade}))
			require.Equal(t, test.checked, len(s.calls) > 0)
		})
	}
}

func TestUpgradesThatAreLate(t *testing.T) {
	at := noon.Add(-upgrade.Delayed)
	other := noon.Add(-time.Minute)
	u := func(phase string, at *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r2", Origin: "At", At: at, Message: "before"}
	}
	for name, test := range map[string]struct {
		upgrade, next *status.Upgrade
		want, behind  string
	}{
		"is delayed":                 {u(status.UpgradeScheduled, &at), nil, status.UpgradeDelayed, ""},
		"is delayed behind another":  {u("Running", nil), u(status.UpgradeScheduled, &at), "Running", status.UpgradeDelayed},
		"stays missed":               {u(status.UpgradeMissed, &at), nil, status.UpgradeMissed, ""},
		"is another of another time": {u(status.UpgradeScheduled, &other), nil, status.UpgradeScheduled, ""},
		"is none without a time":     {u(status.UpgradeScheduled, nil), nil, status.UpgradeScheduled, ""},
		"is none that began":         {u("Running", &at), nil, "Running", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swept{status: status.Status{Upgrade: test.upgrade, NextUpgrade: test.next}}
			require.NoError(t, s.handler().late(t.Context(), demo, at, "waits"))
			require.Equal(t, test.want, s.status.Upgrade.Phase)
			if test.next != nil {
				require.Equal(t, test.behind, s.status.NextUpgrade.Phase)
			}
			require.Nil(t, s.status.Condition(status.Upgraded))
		})
	}
	t.Run("is not late before half an hour", func(t *testing.T) {
		s := &swept{}
		require.NoError(t, s.handler().late(t.Context(), demo, at.Add(1), "waits"))
		require.Empty(t, s.calls)
	})
	t.Run("keeps an execution that waits, and forgets one that is over", func(t *testing.T) {
		for running, kept := range map[bool]string{true: "x", false: ""} {
			theirs := u(status.UpgradeScheduled, &at)
			theirs.Execution = "y"
			mine := u(status.UpgradeScheduled, &at)
			mine.Execution = "x"
			s := &swept{running: running, status: status.Status{Upgrade: theirs, NextUpgrade: mine}}
			r := &round{Handler: s.handler(), now: noon}
			waits, err := r.tells(t.Context(), demo, *mine)
			require.NoError(t, err)
			require.Equal(t, running, waits)
			require.Equal(t, []string{"y", kept}, []string{s.status.Upgrade.Execution, s.status.NextUpgrade.Execution})
		}
		began := u("Running", nil)
		began.Execution = "x"
		s := &swept{status: status.Status{Upgrade: began}}
		_, err := (&round{Handler: s.handler(), now: noon}).tells(t.Context(), demo, *began)
		require.NoError(t, err)
		require.Equal(t, "x", s.status.Upgrade.Execution)
		_, err = (&round{Handler: s.handler(), now: noon}).tells(t.Context(), demo, status.Upgrade{})
		require.NoError(t, err)
	})
	t.Run("is ended when its execution is over", func(t *testing.T) {
		for running, calls := range map[bool]int{true: 0, false: 1} {
			s := &swept{running: running}
			require.NoError(t, s.handler().leader(t.Context(), demo, "x"))
			require.Len(t, s.calls, calls)
		}
	})
}

func TestSpecsThatNobodyActedOn(t *testing.T) {
	accepted, converged := condition(status.SpecAccepted, "True", "Valid"), condition(status.Converged, "False", "StackFailed")
	s := func(change func(*status.Status)) *status.Status {
		s := &status.Status{Phase: status.Failed, ObservedVersion: "v2", SpecVersion: "v1", Conditions: []status.Condition{accepted, converged}}
		change(s)
		return s
	}
	because := func(reason string) func(*status.Status) {
		return func(s *status.Status) { s.Phase, s.SpecVersion = status.Stopped, ""; s.Conditions[1].Reason = reason }
	}
	for name, test := range map[string]struct {
		status             *status.Status
		unacted, undeleted bool
	}{
		"failed":                 {s(func(*status.Status) {}), true, true},
		"failed before":          {s(func(s *status.Status) { s.Conditions = s.Conditions[:1] }), true, true},
		"stopped by an operator": {s(func(s *status.Status) { s.Conditions[1].Reason = status.ReasonExecutionEnded }), false, false},
		"converging":             {s(func(s *status.Status) { s.Phase = status.Converging }), false, false},
		"acted on":               {s(func(s *status.Status) { s.SpecVersion = "v2" }), false, true},
		"without a spec":         {s(func(s *status.Status) { s.ObservedVersion = "" }), false, true},
		"with a bad spec":        {s(func(s *status.Status) { s.Conditions[0].Status = "False" }), false, true},
		"never judged":           {s(func(s *status.Status) { s.Conditions = nil }), false, true},
		"protected":              {s(because(status.ReasonDeletionProtected)), true, false},
		"never there":            {s(because(status.ReasonSpecAbsent)), true, false},
		"aborted":                {s(because(status.ReasonExecutionEnded)), true, false},
		"refused":                {s(because(status.ReasonChangeRefused)), true, true},
		"failed to be deleted":   {s(func(s *status.Status) { s.SpecVersion = "" }), true, false},
		"stopped for no reason": {s(func(s *status.Status) {
			s.Phase, s.SpecVersion, s.Conditions = status.Stopped, "", s.Conditions[:1]
		}), true, false},
	} {
		require.Equal(t, test.unacted, unacted(test.status), name)
		require.Equal(t, test.undeleted, undeleted(test.status), name)
	}
}
