package handler

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a day of virtual time logs a lot
	m.Run()
}

// Metadata of hooks.
const (
	rolling = `{"cluster":"demo","pool":"workers"}`
	pauses  = `{"cluster":"demo","pool":"workers","update":{"strategy":"RollingUpdate","pauseSeconds":600}}`
	refresh = `{"cluster":"demo","pool":"workers","update":{"strategy":"InstanceRefresh","pauseSeconds":600}}`
	demands = `{"cluster":"demo","pool":"workers","readiness":{"labels":{"gpu":"up"},"conditions":["DriverReady"]}}`
)

// joinCase is an instance that joins, and what the machine does.
type joinCase struct {
	pool    string
	world   func(*world)
	outcome events.JoinOutcome
	message string
	// result of the hook, and when; the signals sent; the instance's state in the status at the end.
	result   pool.HookResult
	ended    time.Duration
	signals  []signal
	recorded status.NodeState
}

// requireJoins runs the machine for each case.
func requireJoins(t *testing.T, cases map[string]joinCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.world(w)
				got := w.run(c.pool)
				require.Equal(t, c.outcome, got.Outcome)
				require.Contains(t, got.Message, c.message)
				require.Equal(t, c.result, w.result)
				soon := func(want, got time.Duration) {
					require.GreaterOrEqual(t, got, want)
					require.LessOrEqual(t, got, want+want/30+3*time.Second, "changes are noticed at most 3 %% late")
				}
				soon(c.ended, w.ended)
				require.Len(t, w.signals, len(c.signals))
				for i, want := range c.signals {
					require.Equal(t, want.success, w.signals[i].success)
					soon(want.after, w.signals[i].after)
				}
				recorded := status.NodeState("")
				if w.status != nil {
					if i := slices.IndexFunc(w.status.Status.Nodes, func(n status.Node) bool { return n.Instance == "i-new" }); i >= 0 {
						recorded = w.status.Status.Nodes[i].State
						require.Contains(t, w.status.Status.Nodes[i].Message, strings.TrimSuffix(c.message, "; it counts when"))
					}
				}
				require.Equal(t, c.recorded, recorded)
			})
		})
	}
}

// failing is a world whose node never registers.
func failing(w *world) { w.registers = never }

// TestJoin is about the hook: when the node is usable, and when it never is.
func TestJoin(t *testing.T) {
	requireJoins(t, map[string]joinCase{
		"Ready at once": {
			pool: rolling, world: func(*world) {}, outcome: events.JoinReady, message: "node n1 is Ready (v1.36.3)", result: pool.Continue,
			signals: []signal{{true, 0 * time.Second}},
		},
		"Ready after a while": {
			pool: rolling, world: func(w *world) {
				w.registers, w.ready = time.Minute, 3*time.Minute
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 3 * time.Minute,
			signals: []signal{{true, 180 * time.Second}},
		},
		"registers late": {
			pool: rolling, world: func(w *world) {
				w.registers, w.ready = 13*time.Minute, 13*time.Minute+30*time.Second
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 13*time.Minute + 30*time.Second,
			signals: []signal{{true, 810 * time.Second}},
		},
		"never registers": {
			pool: rolling, world: failing, outcome: events.JoinAbandoned, message: "has not registered", result: pool.Abandon,
			ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
		"never Ready": {
			pool: rolling, world: func(w *world) {
				w.ready = never
			},
			outcome: events.JoinAbandoned, message: "node n1 is not Ready: no network", result: pool.Abandon, ended: 14 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"a kubelet that is too new": {
			pool: rolling, world: func(w *world) {
				w.kubelet = "v1.37.0"
			}, outcome: events.JoinAbandoned, message: "newer than the control plane", result: pool.Abandon, recorded: status.NodeNotJoined,
		},
		"the node has the pool's labels and conditions": {
			pool: demands, world: func(w *world) {
				w.ready, w.labels, w.conditions = time.Minute, map[string]string{"gpu": "up"}, []string{"DriverReady"}
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: time.Minute,
			signals: []signal{{true, 60 * time.Second}},
		},
		"a label has another value": {
			pool: demands, world: func(w *world) {
				w.labels, w.conditions = map[string]string{"gpu": "down"}, []string{"DriverReady"}
			},
			outcome: events.JoinAbandoned, message: "does not have the label gpu=up", result: pool.Abandon, ended: 14 * time.Minute,
			recorded: status.NodeNotJoined,
		},
		"a condition is not True": {
			pool: demands, world: func(w *world) {
				w.labels = map[string]string{"gpu": "up"}
			},
			outcome: events.JoinAbandoned, message: "its condition DriverReady, which its pool waits for, is not True", result: pool.Abandon,
			ended: 14 * time.Minute, recorded: status.NodeNotJoined,
		},
		"the API server is unreachable for ten minutes": {
			pool: rolling, world: func(w *world) {
				w.away = 10 * time.Minute
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 10 * time.Minute,
			signals: []signal{{true, 10 * time.Minute}},
		},
		"the API server is unreachable until just before the limit": {
			pool: rolling, world: func(w *world) {
				w.away, w.registers, w.ready = 14*time.Minute-5*time.Second, 14*time.Minute, 14*time.Minute+5*time.Second
			}, outcome: events.JoinReady, message: "is Ready", result: pool.Continue,
			ended: 14*time.Minute + 5*time.Second, signals: []signal{{true, 14*time.Minute + 5*time.Second}},
		},
		"the API server is unreachable for hours": {
			pool: rolling, world: func(w *world) {
				w.away, w.registers, w.ready = 5*time.Hour, 5*time.Hour+10*time.Second, 5*time.Hour+20*time.Second
			},
			outcome: events.JoinReady, message: "is Ready", result: pool.Continue, ended: 5*time.Hour + 20*time.Second,
			signals: []signal{{true, 5*time.Hour + 20*time.Second}},
		},
		"the API server is unreachable forever": {
			pool: rolling, world: func(w *world) {
				w.away = never
			},
			outcome: events.JoinAbandoned, message: "the cluster's API does not answer", result: pool.Abandon, ended: 24 * time.Hour,
			recorded: status.NodeNotJoined,
		},
		"a permission is missing": {
			pool: rolling, world: func(w *world) {
				w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
			},
			outcome: events.JoinAbandoned, message: "AccessDenied: eks:DescribeCluster", result: pool.Abandon, ended: 24 * time.Hour,
			recorded: status.NodeNotJoined,
		},
		"the cluster is deleted": {
			pool: rolling, world: func(w *world) { w.openErr = pool.ErrNoCluster }, outcome: events.JoinAbandoned, message: "does not exist",
			result: pool.Abandon,
		},
		"the instance terminates": {pool: rolling, world: func(w *world) {
			w.state = "Terminating:Wait"
		}, outcome: events.JoinGone, message: "is not waiting"},
		"the instance is in no group": {
			pool: rolling, world: func(w *world) { w.state = "" }, outcome: events.JoinGone, message: "is not waiting",
		},
		"the hook is being completed": {pool: rolling, world: func(w *world) {
			w.state = pool.PendingProceed
			w.after(950*time.Millisecond, func() { w.state = pool.InService })
		}, outcome: events.JoinReady, message: "in service", signals: []signal{{true, time.Second}}},
	})
}

// The function reads Auto Scaling less often the longer a drain takes.
func TestPollingOfLongDrain(t *testing.T) {
	for lasts, reads := range map[time.Duration]int{10 * time.Second: 6, 10 * time.Minute: 105, time.Hour: 175} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.leaving["i-old"] = lasts
			require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
			require.InDelta(t, lasts, w.signals[0].after, float64(3*time.Second+lasts/30))
			require.Less(t, w.reads, reads, lasts)
		})
	}
}

func TestWaitingAddons(t *testing.T) {
	for name, c := range map[string]struct {
		addons string // the condition's status
		world  func(*world)
		due    bool
	}{
		"the add-ons wait":                     {"False", func(*world) {}, true},
		"the add-ons wait, and no node joins":  {"False", func(w *world) { w.registers = never }, false},
		"the add-ons are deployed":             {"True", func(*world) {}, false},
		"the add-ons have no condition":        {"", func(*world) {}, false},
		"the cluster has no status":            {"", func(w *world) { w.status = nil }, false},
		"the add-ons wait, and a node is late": {"False", func(w *world) { w.registers, w.ready = 5*time.Minute, 6*time.Minute }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(42 * time.Second) // into a minute
				w := newWorld(t)
				if c.addons != "" {
					w.status.Status.Set(status.Condition{Type: status.AddonsDeployed, Status: c.addons}, time.Now())
				}
				c.world(w)
				w.run(`{"cluster":"demo","pool":"workers"}`)
				var want []string
				if c.due {
					want = []string{names.Due(w.start.Truncate(time.Minute), "demo")}
				}
				require.Equal(t, want, w.due)
			})
		})
	}
}

// The status names an unreachable cluster: at once if the error is permanent, otherwise after a while.
func TestStatusOfUnreachableCluster(t *testing.T) {
	for name, c := range map[string]struct {
		world    func(*world)
		at       time.Duration
		recorded bool
	}{
		"a permission is missing":           {func(w *world) { w.openErr = errors.New("AccessDenied") }, time.Minute, true},
		"the API server is away":            {func(w *world) { w.away = 10 * time.Minute }, 9 * time.Minute, false},
		"the API server is away for longer": {func(w *world) { w.away = time.Hour }, 16 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.world(w)
				var then []status.Node
				w.after(c.at, func() { then, w.openErr = slices.Clone(w.status.Status.Nodes), nil })
				require.Equal(t, events.JoinReady, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
				require.Equal(t, c.recorded, len(then) == 1 && then[0].State == status.NodeUnreachable, "%v", then)
				require.Empty(t, w.status.Status.Nodes, "the cluster answers")
			})
		})
	}
}

// The function failed after the hook was completed. The instance has joined, and does not fail the update.
func TestOmittedSignal(t *testing.T) {
	w := newWorld(t)
	w.state = pool.InService
	w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
	h := &Handler{Groups: w, Stacks: stackFake{w}, State: state{w}, Now: time.Now}
	got, err := h.Handle(t.Context(), events.JoinRequest{GivenUp: "Throttled: rate exceeded", Lifecycle: events.Lifecycle{
		EC2InstanceID: "i-new", NotificationMetadata: `{"cluster":"demo","pool":"workers"}`,
	}})
	require.NoError(t, err)
	require.Equal(t, events.JoinReady, got.Outcome)
	require.Empty(t, w.signals)
	require.Len(t, w.status.Status.Nodes, 1)
}

func TestHookWithoutPool(t *testing.T) {
	_, err := (&Handler{Now: time.Now}).Handle(t.Context(), events.JoinRequest{Lifecycle: events.Lifecycle{NotificationMetadata: "?"}})
	require.ErrorContains(t, err, `does not name its pool: "?"`)
}
