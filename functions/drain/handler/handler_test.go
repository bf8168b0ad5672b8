package handler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

var errThrottled = errors.New("throttled")

// outcome is the effect of a call.
type outcome struct {
	drained, completed bool
	restored           string // the call of Restore
	recorded           int    // nodes in the status
}

func (w *world) require(t *testing.T, want outcome) {
	t.Helper()
	require.Equal(t, want.drained, len(w.drains) == 1 && w.drains[0] == "n1", "drains: %v", w.drains)
	require.Equal(t, want.completed, len(w.completed) == 1 && w.completed[0] == "i-1 CONTINUE", "completed: %v", w.completed)
	require.Equal(t, want.restored, append(w.restores, "")[0])
	require.Len(t, w.recordedNodes(t), want.recorded)
}

func TestDrainAtTheHook(t *testing.T) {
	remaining := drain.Report{Outcome: drain.Remaining, Left: 1}
	for name, test := range map[string]struct {
		world  func(*world)
		change func(*events.DrainRequest)
		want   drain.Outcome
		says   string
		does   outcome
	}{
		"completes it once the node is empty": {want: drain.Done, does: outcome{drained: true, completed: true}},
		"keeps it open while pods remain": {
			world: func(w *world) { w.report = remaining }, want: drain.Remaining, does: outcome{drained: true, recorded: 1},
		},
		"completes it after the timeout": {
			world: func(w *world) { w.report.Outcome = drain.TimedOut }, want: drain.TimedOut, does: outcome{drained: true, completed: true},
		},
		"completes it once the node is deleted": {
			world: func(w *world) { w.report.Outcome = absent }, want: absent, does: outcome{drained: true, completed: true},
		},
		"completes it if the instance never joined": {
			world: func(w *world) { w.nodes = nil }, want: absent, says: "i-1 has no node", does: outcome{completed: true},
		},
		"completes it if the cluster is deleted": {
			world: func(w *world) { w.openErr = fmt.Errorf("demo: %w", pool.ErrNoCluster) }, want: absent, says: "demo: ",
			does: outcome{completed: true},
		},
		"does nothing if no instance waits": {
			world: func(w *world) { clear(w.waiting) }, want: absent, says: "is not waiting at the hook", does: outcome{},
		},
		"continues after a failed heartbeat": {
			world: func(w *world) { w.heartbeatErr = errThrottled; clear(w.waiting) }, want: drain.Done,
			does: outcome{drained: true, completed: true},
		},
		"keeps it open while the cluster cannot be opened": {
			world: func(w *world) { w.openErr = errors.New("AccessDenied") }, want: drain.Remaining, says: "AccessDenied",
			does: outcome{recorded: 1},
		},
		"keeps it open while the API server does not answer": {
			world: func(w *world) { w.findErr = &fault.ClusterUnreachable{Cause: errors.New("no route")} }, want: drain.Remaining, says: "no route",
			does: outcome{recorded: 1},
		},
		"only restores the node if asked to": {
			change: func(in *events.DrainRequest) { in.Restore = true }, want: drain.Done, says: "schedulable again",
			does: outcome{restored: "n1 drained=false"},
		},
		"completes nothing if that node does not exist": {
			world: func(w *world) { w.nodes = nil }, change: func(in *events.DrainRequest) { in.Restore = true }, want: absent,
			says: "has no node", does: outcome{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if test.world != nil {
					test.world(w)
				}
				got, err := w.handle(t, hookSample, test.change)
				require.NoError(t, err)
				require.Equal(t, test.want, got.Outcome)
				require.Contains(t, got.Message, test.says)
				require.Equal(t, test.want == drain.Remaining, got.WaitSeconds > 0)
				w.require(t, test.does)
				in := sample(t, hookSample, test.change)
				require.Equal(t, !in.Restore, w.heartbeats == 1)
			})
		})
	}
	t.Run("drains for one slice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.handle(t, hookSample, nil)
			require.NoError(t, err)
			require.Equal(t, 50*time.Second, w.deadline)
			require.Equal(t, []string{"demo"}, w.opened)
			require.Equal(t, "demo workers n1", got.Cluster+" "+got.Pool+" "+got.Node)
		})
	})
	t.Run("returns the error of completing it", func(t *testing.T) {
		w := newWorld(t)
		w.completeErr = errThrottled
		_, err := w.handle(t, hookSample, nil)
		require.ErrorIs(t, err, errThrottled)
	})
	t.Run("removes a node from the status whose instance stopped waiting", func(t *testing.T) {
		w := newWorld(t)
		w.set(t, func(s *status.Status) {
			s.SetNode(status.Node{Instance: "i-1", State: status.NodeDraining}, noon)
			s.SetNode(status.Node{Instance: "i-2", State: status.NodeDraining}, noon)
		})
		clear(w.waiting)
		_, err := w.handle(t, hookSample, nil)
		require.NoError(t, err)
		require.Len(t, w.recordedNodes(t), 1)
		require.Equal(t, "i-2", w.recordedNodes(t)[0].Instance)
	})
	t.Run("ignores a duplicate event without a pool", func(t *testing.T) {
		w := newWorld(t)
		clear(w.waiting)
		got, err := w.handle(t, hookSample, func(in *events.DrainRequest) { in.NotificationMetadata = "{}" })
		require.NoError(t, err)
		require.Equal(t, absent, got.Outcome)
	})
}

// A deletion does not wait for an API that never answers, such as that of an EKS cluster whose stack was deleted outside drover.
func TestUnreachableClusterThatIsDeleted(t *testing.T) {
	forced := drain.Policy{OnTimeout: drain.Force, Timeout: 7200}
	for name, test := range map[string]struct {
		phase   status.Phase
		policy  drain.Policy
		elapsed time.Duration
		want    drain.Outcome
	}{
		"is drained until the time of a deletion is over": {status.Deleting, deployedPolicy, 5*time.Minute - 1, drain.Remaining},
		"is not drained after it":                         {status.Deleting, deployedPolicy, 5 * time.Minute, drain.TimedOut},
		"is drained for the pool's time with Force":       {status.Deleting, forced, 2*time.Hour - 1, drain.Remaining},
		"is not drained after that":                       {status.Deleting, forced, 2 * time.Hour, drain.TimedOut},
		"is drained if the cluster stays":                 {status.Failed, forced, 40 * time.Hour, drain.Remaining},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(t, func(s *status.Status) { s.Phase = test.phase })
			w.pools[group] = events.HookMetadata{Cluster: "demo", Pool: "workers", Drain: &test.policy}
			w.findErr = &fault.ClusterUnreachable{Cause: errors.New("Unauthorized")}
			got, err := w.handle(t, hookSample, func(in *events.DrainRequest) { in.Started = noon.Add(-test.elapsed) })
			require.NoError(t, err)
			require.Equal(t, test.want, got.Outcome)
			require.Contains(t, got.Message, "Unauthorized")
			ended := test.want == drain.TimedOut
			w.require(t, outcome{completed: ended, recorded: map[bool]int{false: 1}[ended]})
		})
	}
	t.Run("ends the restore of a node", func(t *testing.T) {
		w := newWorld(t)
		w.set(t, func(s *status.Status) { s.Phase = status.Deleting })
		w.openErr = errors.New("Unauthorized")
		got, err := w.handle(t, byHandSample, func(in *events.DrainRequest) {
			in.Started, in.Restore = noon.Add(-time.Hour), true
		})
		require.NoError(t, err)
		require.Equal(t, drain.TimedOut, got.Outcome)
		w.require(t, outcome{})
	})
}

func TestPoolOfTheHook(t *testing.T) {
	const ofEvent = 3600
	for name, test := range map[string]struct {
		world func(*world)
		want  events.Seconds
	}{
		"is the deployed one":                          {func(*world) {}, deployedPolicy.Timeout},
		"is that of the event if the group is deleted": {func(w *world) { clear(w.pools) }, ofEvent},
		"is that of the event if it cannot be read":    {func(w *world) { w.poolErr = errThrottled }, ofEvent},
		"has drover's own policy if it was created so": {
			func(w *world) { w.pools[group] = events.HookMetadata{Cluster: "demo", Pool: "workers"} }, drain.PolicyWithoutPool.Timeout,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			got, err := w.handle(t, hookSample, nil)
			require.NoError(t, err)
			require.Equal(t, drain.Done, got.Outcome)
			require.Equal(t, test.want, w.policy.Timeout)
		})
	}
	for _, metadata := range []string{"?", "{}"} {
		t.Run("is an error if neither names it: "+metadata, func(t *testing.T) {
			w := newWorld(t)
			clear(w.pools)
			_, err := w.handle(t, hookSample, func(in *events.DrainRequest) { in.NotificationMetadata = metadata })
			require.ErrorContains(t, err, fmt.Sprintf("does not name its pool: %q", metadata))
			require.Empty(t, w.completed)
		})
	}
}

func TestDrainOfASpotInstance(t *testing.T) {
	t.Run("drains the node of a pool, and restores it", func(t *testing.T) {
		w := newWorld(t)
		got, err := w.handle(t, spotSample, nil)
		require.NoError(t, err)
		require.Equal(t, drain.Done, got.Outcome)
		w.require(t, outcome{drained: true, restored: "n1 drained=true"})
		require.Zero(t, w.heartbeats)
	})
	for _, instance := range []string{"i-web", "i-other"} {
		t.Run("ignores an instance outside drover's pools: "+instance, func(t *testing.T) {
			w := newWorld(t)
			got, err := w.handle(t, spotSample, func(in *events.DrainRequest) { in.InstanceID = instance })
			require.NoError(t, err)
			require.Equal(t, absent, got.Outcome)
			require.Contains(t, got.Message, "belongs to no pool of drover")
			require.Empty(t, w.opened)
			w.require(t, outcome{})
		})
	}
	t.Run("fails if its pool cannot be read", func(t *testing.T) {
		w := newWorld(t)
		w.poolErr = errThrottled
		_, err := w.handle(t, spotSample, nil)
		require.ErrorIs(t, err, errThrottled)
	})
}

func TestDrainByAnOperator(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*events.DrainRequest)
		world  func(*world)
		want   drain.Outcome
		says   string
		does   outcome
	}{
		"drains a node, and restores it": {want: drain.Done, does: outcome{drained: true, restored: "n1 drained=true"}},
		"drains the node of an instance": {
			change: func(in *events.DrainRequest) { in.Node, in.Instance = "", "i-1" }, want: drain.Done,
			does: outcome{drained: true, restored: "n1 drained=true"},
		},
		"accepts an instance as the node": {
			change: func(in *events.DrainRequest) { in.Node = "i-1" }, want: drain.Done, does: outcome{drained: true, restored: "n1 drained=true"},
		},
		"leaves the node cordoned while pods remain": {
			world: func(w *world) { w.report = drain.Report{Outcome: drain.Remaining, Left: 1} }, want: drain.Remaining,
			does: outcome{drained: true, recorded: 1},
		},
		"restores the node after the timeout": {
			world: func(w *world) { w.report.Outcome = drain.TimedOut }, want: drain.TimedOut,
			does: outcome{drained: true, restored: "n1 drained=true"},
		},
		"does not restore a deleted node": {
			world: func(w *world) { w.report.Outcome = absent }, want: absent, does: outcome{drained: true},
		},
		"drains the node of a terminating instance": {
			world: func(w *world) { w.states["i-1"] = pool.TerminatingWait }, want: drain.Done,
			does: outcome{drained: true, restored: "n1 drained=true"},
		},
		"refuses a node that does not exist": {
			change: func(in *events.DrainRequest) { in.Node = "n2" }, want: events.DrainRefused, says: "cluster demo has no node n2",
			does: outcome{},
		},
		"refuses an instance of another cluster": {
			change: func(in *events.DrainRequest) { in.Cluster, in.Node, in.Instance = "prod", "", "i-1" }, want: events.DrainRefused,
			says: "i-1 belongs to no pool of cluster prod", does: outcome{},
		},
		"refuses a node of another cluster's pool": {
			world: func(w *world) { w.pools[group] = events.HookMetadata{Cluster: "prod", Pool: "workers"} }, want: events.DrainRefused,
			says: "i-1 belongs to no pool of cluster demo", does: outcome{},
		},
		"refuses a request without a cluster": {
			change: func(in *events.DrainRequest) { in.Cluster = "" }, want: events.DrainRefused, says: "names no node", does: outcome{},
		},
		"refuses an instance without a cluster": {
			change: func(in *events.DrainRequest) { in.Cluster, in.Node, in.Instance = "", "", "i-1" }, want: events.DrainRefused,
			says: "names no node", does: outcome{},
		},
		"refuses a request without a node": {
			change: func(in *events.DrainRequest) { in.Node = "" }, want: events.DrainRefused, says: "names no node", does: outcome{},
		},
		"ends if the cluster is deleted": {
			world: func(w *world) { w.openErr = pool.ErrNoCluster }, want: absent, says: pool.ErrNoCluster.Error(), does: outcome{},
		},
		"waits for a cluster that cannot be opened": {
			world: func(w *world) { w.openErr = errors.New("AccessDenied") }, want: drain.Remaining, says: "AccessDenied", does: outcome{},
		},
		"waits for an API server that does not answer": {
			world: func(w *world) { w.findErr = &fault.ClusterUnreachable{Cause: errors.New("no route")} }, want: drain.Remaining,
			says: "no route", does: outcome{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.world != nil {
				test.world(w)
			}
			got, err := w.handle(t, byHandSample, test.change)
			require.NoError(t, err)
			require.Equal(t, test.want, got.Outcome)
			require.Contains(t, got.Message, test.says)
			w.require(t, test.does)
			require.Zero(t, w.heartbeats)
			require.LessOrEqual(t, len(w.opened), 1)
		})
	}
	for name, world := range map[string]func(*world){
		"restoring the node": func(w *world) { w.restoreErr = errThrottled },
		"reading the pool":   func(w *world) { w.poolErr = errThrottled },
		"reading the node":   func(w *world) { w.findErr = errThrottled },
	} {
		t.Run("returns the error of "+name, func(t *testing.T) {
			w := newWorld(t)
			world(w)
			_, err := w.handle(t, byHandSample, nil)
			require.ErrorIs(t, err, errThrottled)
		})
	}
}

func TestRestoreOfANode(t *testing.T) {
	for name, test := range map[string]struct {
		world func(*world)
		want  drain.Outcome
		says  string
		does  outcome
	}{
		"restores it": {func(*world) {}, drain.Done, "schedulable again", outcome{restored: "n1 drained=false"}},
		"removes it from the status": {func(w *world) {
			_ = w.state.UpdateStatus(context.Background(), "demo", func(s *status.Status) {
				s.SetNode(status.Node{Instance: "i-1", State: status.NodeBlocked}, noon)
			})
		}, drain.Done, "", outcome{restored: "n1 drained=false"}},
		"leaves it to the drain of its hook": {
			func(w *world) { w.states["i-1"] = pool.TerminatingWait }, drain.Done, "the drain of its terminate hook continues", outcome{},
		},
		"restores it if the instance's state is unknown": {
			func(w *world) { w.states["i-1"], w.stateErr = pool.TerminatingWait, errThrottled }, drain.Done, "schedulable again",
			outcome{restored: "n1 drained=false"},
		},
		"retries later if that fails": {
			func(w *world) { w.restoreErr = errThrottled }, drain.Remaining, "throttled", outcome{restored: "n1 drained=false", recorded: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			got, err := w.handle(t, byHandSample, func(in *events.DrainRequest) { in.Restore = true })
			require.NoError(t, err)
			require.Equal(t, test.want, got.Outcome)
			require.Contains(t, got.Message, test.says)
			w.require(t, test.does)
		})
	}
	t.Run("of a hook ignores the instance's state", func(t *testing.T) {
		w := newWorld(t)
		w.states["i-1"] = pool.TerminatingWait
		_, err := w.handle(t, hookSample, func(in *events.DrainRequest) { in.Restore = true })
		require.NoError(t, err)
		w.require(t, outcome{restored: "n1 drained=false"})
	})
}

func TestDrainWaitsForTheNode(t *testing.T) {
	for name, test := range map[string]struct {
		polls int
		want  drain.Outcome
		took  time.Duration
	}{
		"drains it once it registers":             {3, drain.Done, 6 * time.Second},
		"drains it at the last moment":            {5, drain.Done, 10 * time.Second},
		"for ten seconds, so that it never joins": {6, absent, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.polls = test.polls
				begin := time.Now()
				got, err := w.handle(t, hookSample, nil)
				require.NoError(t, err)
				require.Equal(t, test.want, got.Outcome)
				require.Equal(t, test.took, time.Since(begin))
			})
		})
	}
	t.Run("until the call ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.polls = 9
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := w.handler().Handle(ctx, sample(t, hookSample, nil))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Empty(t, w.completed)
		})
	})
}

// A pod that is deleted despite its budget is counted at once, because the call may be cut off.
func TestForcedPod(t *testing.T) {
	t.Run("is counted", func(t *testing.T) {
		w := newWorld(t)
		w.pods = []string{"shop/web-1"}
		_, err := w.handle(t, hookSample, nil)
		require.NoError(t, err)
		require.Contains(t, w.metrics.String(), `"PodsForced":1`)
		require.Contains(t, w.metrics.String(), `"cluster":"demo"`)
	})
	t.Run("does not fail the drain if it cannot be counted", func(t *testing.T) {
		w := newWorld(t)
		w.pods = []string{"shop/web-1"}
		log := logs(t)
		h := w.handler()
		h.Metrics = failing{}
		got, err := h.Handle(t.Context(), sample(t, hookSample, nil))
		require.NoError(t, err)
		require.Equal(t, drain.Done, got.Outcome)
		require.Contains(t, log.String(), "writing a metric failed")
	})
}

func TestWaits(t *testing.T) {
	for name, c := range map[string]struct {
		report  drain.Report
		elapsed time.Duration
		want    int64
	}{
		"one second after evictions":                      {drain.Report{Evicted: 1}, 20 * time.Minute, 1},
		"half a minute after evictions for hours":         {drain.Report{Evicted: 1}, 4 * time.Hour, 34},
		"the longest pause after evictions for days":      {drain.Report{Evicted: 1}, 48 * time.Hour, 300},
		"as after evictions while pods terminate, too":    {drain.Report{Evicted: 1, Terminating: 1}, 20 * time.Minute, 1},
		"the longest pause while pods terminate for days": {drain.Report{Terminating: 1}, 48 * time.Hour, 300},
		"half a minute while pods terminate":              {drain.Report{Terminating: 1}, time.Hour, 30},
		"one second at the start of terminations":         {drain.Report{Terminating: 1}, 30 * time.Second, 1},
		"one second at the start":                         {drain.Report{}, 0, 1},
		"a twentieth of the elapsed time":                 {drain.Report{}, 10 * time.Minute, 30},
		"at most five minutes":                            {drain.Report{}, 47 * time.Hour, 300},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Handler{Now: func() time.Time { return noon.Add(c.elapsed) }}
			require.Equal(t, c.want, h.wait(events.DrainRequest{Started: noon}, c.report))
		})
	}
}
