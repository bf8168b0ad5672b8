package handler

// One sweep as a whole.

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
	"github.com/drover-run/drover/functions/sweep/sweep"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var errThrottled = errors.New("throttled")

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
	sweep.Machine
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
		return m.did("give back %s", sweep.DrainTarget(in))
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

// listed are objects of a bucket, by prefix.
type listed map[string][]store.Entry

func (l listed) List(_ context.Context, prefix string) ([]store.Entry, error) { return l[prefix], nil }

// scaling is Auto Scaling with groups and their hooks.
type scaling struct {
	Groups
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
	sweep.ChannelSpecs
	*swept
}

func (n noSpecs) List(context.Context, string) ([]store.Entry, error) {
	return nil, n.did("list specs")
}

func (n noSpecs) GetUnless(context.Context, string, string, int64) (store.Object, bool, error) {
	return store.Object{}, false, n.did("channels")
}

func TestSweepDoesTheRestWhateverFails(t *testing.T) {
	for _, failing := range []string{
		"groups", "list", "held", "broken", "list specs", "list status/", "list upgrades",
		"list waiters", "channels", "dues", "",
	} {
		t.Run(failing, func(t *testing.T) {
			s := &swept{failing: map[string]error{}}
			if failing != "" {
				s.failing[failing] = errThrottled
			}
			h := s.handler()
			h.State, h.Specs, h.Groups = broken{sweptState: sweptState{swept: s}}, noSpecs{swept: s}, scaling{swept: s}
			_, err := h.Handle(t.Context(), events.Sweep{})
			require.Equal(t, failing != "", errors.Is(err, errThrottled))
			want := []string{"list waiters/", "list specs", "list status/clusters/", "list upgrades/", "channels", "dues"}
			if failing == "list specs" || failing == "list" {
				want = []string{"list waiters/", "list specs", "list upgrades/", "channels", "dues"}
			}
			require.Equal(t, want, s.calls)
		})
	}
}

func TestSweepFailsWithAHook(t *testing.T) {
	s := &swept{failing: map[string]error{"hook g": errThrottled}}
	h := s.handler()
	group := pool.Group{Name: "g", Instances: []pool.Instance{{ID: "i-1", State: pool.TerminatingWait}}}
	h.State, h.Specs = broken{sweptState: sweptState{swept: s}}, noSpecs{swept: s}
	h.Groups = scaling{swept: s, all: []pool.Group{group}}
	_, err := h.Handle(t.Context(), events.Sweep{})
	require.ErrorIs(t, err, errThrottled)
	require.Contains(t, s.calls, "dues")
}
