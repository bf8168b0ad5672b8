package drain_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/pool"
)

func TestDrain(t *testing.T) {
	noNode := func(w *world) { w.node = nil }
	for name, c := range map[string]struct {
		sample  string
		change  func(*events.DrainRequest)
		world   func(*world)
		outcome drain.Outcome
		message string
		// completed: the hook was completed; touched: the node was cordoned; held: the autoscaler still may not remove it.
		completed, touched, held bool
		closed                   bool // no cluster is opened
	}{
		"an empty node terminates": {sample: "drain-request-hook", outcome: drain.Done, completed: true, touched: true, held: true},
		"a node with pods stays": {
			sample: "drain-request-hook", world: (*world).waiting, outcome: drain.Remaining, touched: true, held: true,
		},
		"a duplicate event changes nothing": {
			sample: "drain-request-hook", world: func(w *world) {
				w.open["i-1"] = false
			}, outcome: drain.Gone, message: "is not waiting at the hook", closed: true,
		},
		"an instance that never joined terminates": {
			sample: "drain-request-hook", world: noNode, outcome: drain.Gone, message: "never joined", completed: true,
		},
		"an instance of a deleted cluster terminates": {
			sample: "drain-request-hook", world: func(w *world) {
				w.openErr = fmt.Errorf("demo: %w", pool.ErrNoCluster)
			}, outcome: drain.Gone, completed: true,
		},
		"a cluster that does not answer keeps its nodes": {
			sample: "drain-request-hook", world: func(w *world) {
				w.down = func() bool { return true }
			}, outcome: drain.Remaining, message: "listing nodes",
		},
		"a cluster that cannot be opened keeps its nodes": {
			sample: "drain-request-hook", world: func(w *world) {
				w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
			}, outcome: drain.Remaining, message: "AccessDenied",
		},
		"a failed heartbeat does not delay a drain": {
			sample: "drain-request-hook", world: func(w *world) {
				w.beatErr = errors.New("throttled")
			}, outcome: drain.Done, completed: true, touched: true, held: true,
		},
		"an unreadable pool does not delay a drain": {
			sample: "drain-request-hook", world: func(w *world) {
				w.poolErr, w.pools = errors.New("throttled"), nil
			}, outcome: drain.Done, completed: true, touched: true, held: true,
		},
		"the event has the pool of a deleted group": {
			sample: "drain-request-hook", world: func(w *world) { clear(w.pools) }, outcome: drain.Done, completed: true, touched: true, held: true,
		},
		"a pool without a policy is drained": {
			sample: "drain-request-hook", world: func(w *world) {
				w.pools["drover-demo-pool-workers"] = events.HookMetadata{Cluster: "demo", Pool: "workers"}
			}, outcome: drain.Done, completed: true, touched: true, held: true,
		},
		"a spot instance of another group is ignored": {
			sample: "drain-request-spot", change: func(in *events.DrainRequest) {
				in.InstanceID = "i-web"
			}, outcome: drain.Gone, message: "belongs to no pool of drover", closed: true,
		},
		"a spot instance without a group is ignored": {
			sample: "drain-request-spot", change: func(in *events.DrainRequest) {
				in.InstanceID = "i-other"
			}, outcome: drain.Gone, message: "belongs to no pool of drover", closed: true,
		},
		"a spot instance of a pool is drained and restored": {sample: "drain-request-spot", outcome: drain.Done, touched: true},
		"an operator names a node":                          {sample: "drain-request-by-hand", outcome: drain.Done, touched: true},
		"an operator names an instance": {
			sample: "drain-request-by-hand", change: func(in *events.DrainRequest) {
				in.Node, in.Instance = "", "i-1"
			}, outcome: drain.Done, touched: true,
		},
		"an operator names an instance as the node": {
			sample: "drain-request-by-hand", change: func(in *events.DrainRequest) { in.Node = "i-1" }, outcome: drain.Done, touched: true,
		},
		"a drain by an operator holds the autoscaler while pods stay": {
			sample: "drain-request-by-hand", world: (*world).waiting, outcome: drain.Remaining, touched: true, held: true,
		},
		"a node that does not exist": {
			sample: "drain-request-by-hand", change: func(in *events.DrainRequest) {
				in.Node = "n2"
			}, outcome: events.DrainRefused, message: "no node n2",
		},
		"an instance of another cluster": {
			sample: "drain-request-by-hand", change: func(in *events.DrainRequest) {
				in.Cluster, in.Node, in.Instance = "prod", "", "i-1"
			}, outcome: events.DrainRefused, message: "belongs to no pool of cluster prod", closed: true,
		},
		"an input without a node": {sample: "drain-request-by-hand", change: func(in *events.DrainRequest) {
			*in = events.DrainRequest{Started: start}
		}, outcome: events.DrainRefused, message: "names no node", closed: true},
		"a request to restore only restores the node": {
			sample: "drain-request-by-hand", change: func(in *events.DrainRequest) { in.Restore = true }, world: func(w *world) {
				w.node.Spec.Unschedulable = true
				w.node.Annotations = map[string]string{
					"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
					"drover.run/drain-settings":                            "exclude-from-external-load-balancers,scale-down-disabled,unschedulable",
				}
			}, outcome: drain.Done, message: "schedulable again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if c.world != nil {
				c.world(w)
			}
			got, err := w.handler(start).Handle(t.Context(), sample(t, c.sample, c.change))
			require.NoError(t, err)
			require.Equal(t, c.outcome, got.Outcome, got.Message)
			require.Contains(t, got.Message, c.message)
			require.Equal(t, c.completed, len(w.completed) == 1 && w.completed[0] == "i-1 CONTINUE", "%v", w.completed)
			require.Equal(t, c.closed, len(w.opened) == 0)
			require.Equal(t, c.outcome == drain.Remaining, got.WaitSeconds > 0)
			if w.node != nil {
				require.Equal(t, c.touched, w.node.Spec.Unschedulable)
				_, held := w.node.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]
				require.Equal(t, c.held, held)
			}
		})
	}
}

func TestDeployedPolicyApplies(t *testing.T) {
	w := newWorld()
	w.waiting()
	in := sample(t, "drain-request-hook", nil)
	got, err := w.handler(start).Handle(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, drain.Remaining, got.Outcome)
	require.Equal(t, []string{"shop/alone"}, got.Pods)
	pool := w.pools["drover-demo-pool-workers"]
	pool.Drain = &drain.Policy{Timeout: 60, OnTimeout: drain.Continue, UnmanagedPods: drain.WaitForUnmanaged}
	w.pools["drover-demo-pool-workers"] = pool
	w.began(time.Hour)
	got, err = w.handler(time.Now()).Handle(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, drain.TimedOut, got.Outcome)
	require.Equal(t, []string{"shop/alone"}, got.Pods, "what goes with the node is named")
	require.Equal(t, []string{"i-1 CONTINUE"}, w.completed)
	require.Equal(t, 2, w.beats, "each slice keeps the hook open")
}

// began moves the start of the node's drain into the past. All calls since then have reached the node.
func (w *world) began(ago time.Duration) {
	w.node.Annotations["drover.run/drain-began"] = time.Now().Add(-ago).UTC().Format(time.RFC3339Nano)
	w.node.Annotations["drover.run/drain-contact"] = time.Now().UTC().Format(time.RFC3339Nano)
}

// The autoscaler acts on "true" only. A user's own value of the annotation is restored with the node.
func TestAutoscalerAnnotationIsRestored(t *testing.T) {
	const key = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	for name, c := range map[string]struct {
		before, during *string
		after          string // "" is absent
	}{
		"nothing":                             {nil, nil, ""},
		"it may not":                          {new("true"), nil, "true"},
		"it may":                              {new("false"), nil, "false"},
		"a value that the autoscaler ignores": {new("no, thanks"), nil, "no, thanks"},
		"changed during the drain":            {nil, new("false"), "false"},
		"changed during the drain and set before": {new("false"), new("False"), "False"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.waiting()
			if c.before != nil {
				w.node.Annotations = map[string]string{key: *c.before}
			}
			in := sample(t, "drain-request-by-hand", nil)
			drained := func() {
				_, err := w.handler(start).Handle(t.Context(), in)
				require.NoError(t, err)
			}
			drained()
			require.Equal(t, "true", w.node.Annotations[key])
			since := w.node.Annotations["drover.run/draining-since"]
			if c.during != nil {
				w.node.Annotations[key] = *c.during
				drained()
				require.Equal(t, "true", w.node.Annotations[key])
			}
			require.Equal(t, since, w.node.Annotations["drover.run/draining-since"], "the time of the exclusion from load balancers is kept")
			in.Restore = true
			drained()
			want := map[string]string{}
			if c.after != "" {
				want[key] = c.after
			}
			require.Equal(t, want, w.node.Annotations)
		})
	}
	t.Run("keeps a value that was set during the drain", func(t *testing.T) {
		w := newWorld()
		w.waiting()
		in := sample(t, "drain-request-by-hand", nil)
		_, err := w.handler(start).Handle(t.Context(), in)
		require.NoError(t, err)
		w.node.Annotations[key] = "false"
		in.Restore = true
		_, err = w.handler(start).Handle(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, map[string]string{key: "false"}, w.node.Annotations)
	})
}

// Volumes have ten minutes to detach, even if the timeout for pods has passed.
func TestEmptyNodeWaitsForVolumesAfterTheTimeout(t *testing.T) {
	w := newWorld()
	w.pools["drover-demo-pool-workers"].Drain.OnTimeout = drain.Continue
	w.attach()
	w.node.Annotations = map[string]string{}
	w.began(2 * time.Hour)
	in := sample(t, "drain-request-hook", nil)
	got, err := w.handler(time.Now()).Handle(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, drain.Remaining, got.Outcome, got.Message)
	require.Equal(t, 1, got.Volumes)
	require.Empty(t, w.completed)
	w.attached = nil
	got, err = w.handler(time.Now()).Handle(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, drain.Done, got.Outcome, got.Message)
	require.Equal(t, []string{"i-1 CONTINUE"}, w.completed)
}

// A claim that a DaemonSet names is shared by all nodes: a network file system, which is not attached. An ephemeral volume is attached.
func TestVolumesOfDaemonSets(t *testing.T) {
	for name, c := range map[string]struct {
		source  corev1.VolumeSource
		volumes int
	}{
		"a shared claim has no attachment": {
			corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "efs"}}, 1,
		},
		"an ephemeral volume stays with its pod": {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, 0},
		"an emptyDir has no attachment":          {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pods = []corev1.Pod{managedPod("DaemonSet", "agent")}
			w.pods[0].Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: c.source}}
			w.attach()
			got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
			require.NoError(t, err)
			require.Equal(t, c.volumes, got.Volumes)
			require.Equal(t, c.volumes == 0, len(w.completed) == 1)
		})
	}
}

// If an execution was aborted or has failed, the sweep starts another.
func TestSecondExecutionKeepsTheTimeout(t *testing.T) {
	w := newWorld()
	w.waiting()
	pool := w.pools["drover-demo-pool-workers"]
	pool.Drain.OnTimeout = drain.Continue
	first := sample(t, "drain-request-hook", nil)
	first.Started = time.Now().Add(-5 * time.Hour)
	got, err := w.handler(time.Now()).Handle(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, drain.Remaining, got.Outcome, "the node is reached for the first time: %s", got.Message)

	second := first
	second.Started = time.Now()
	w.began(50 * time.Minute)
	got, err = w.handler(time.Now()).Handle(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, drain.Remaining, got.Outcome, "the time is not over: %s", got.Message)
	pool.Drain.Timeout = 49 * 60
	got, err = w.handler(time.Now()).Handle(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, drain.TimedOut, got.Outcome, got.Message)

	// A restored node starts a new drain.
	w = newWorld()
	w.waiting()
	w.pools["drover-demo-pool-workers"].Drain.OnTimeout = drain.Continue
	by := func(restore bool) events.DrainRequest {
		return sample(t, "drain-request-by-hand", func(in *events.DrainRequest) { in.Started, in.Restore = time.Now(), restore })
	}
	_, err = w.handler(time.Now()).Handle(t.Context(), by(false))
	require.NoError(t, err)
	w.began(50 * time.Minute)
	_, err = w.handler(time.Now()).Handle(t.Context(), by(true))
	require.NoError(t, err)
	require.NotContains(t, w.node.Annotations, "drover.run/drain-contact")
	w.pools["drover-demo-pool-workers"].Drain.Timeout = 49 * 60
	got, err = w.handler(time.Now()).Handle(t.Context(), by(false))
	require.NoError(t, err)
	require.Equal(t, drain.Remaining, got.Outcome, got.Message)
}

func TestHookWithoutAPool(t *testing.T) {
	t.Run("a hook that does not name its pool", func(t *testing.T) {
		w := newWorld()
		clear(w.pools)
		_, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", func(in *events.DrainRequest) {
			in.NotificationMetadata = "?"
		}))
		require.ErrorContains(t, err, `does not name its pool: "?"`)
	})
}

// An operator's drain was aborted, and its instance is terminating. The drain of its hook keeps the node cordoned.
func TestRestoreLeavesNodesDrainedAtTheirHook(t *testing.T) {
	for state, terminating := range map[string]bool{
		pool.InService: false, pool.Terminating: true, pool.TerminatingWait: true, pool.TerminatingProceed: true,
	} {
		t.Run(state, func(t *testing.T) {
			w := newWorld()
			w.waiting()
			w.states = map[string]string{"i-1": state}
			_, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
			require.NoError(t, err)
			require.True(t, w.node.Spec.Unschedulable)
			got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-by-hand", func(in *events.DrainRequest) { in.Restore = true }))
			require.NoError(t, err)
			require.Equal(t, drain.Done, got.Outcome)
			require.Equal(t, terminating, w.node.Spec.Unschedulable, got.Message)
			require.Equal(t, terminating, len(w.node.Annotations) > 0)
		})
	}
}

// An operator's drain continues while its instance terminates. After a permanent failure, the drain of a hook restores the node even if the
// instance no longer waits at the hook.
func TestHooksAndOtherDrains(t *testing.T) {
	t.Run("an operator's drain of a terminating instance", func(t *testing.T) {
		w := newWorld()
		w.waiting()
		w.states = map[string]string{"i-1": pool.TerminatingWait}
		got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-by-hand", nil))
		require.NoError(t, err)
		require.Equal(t, drain.Remaining, got.Outcome)
		require.True(t, w.node.Spec.Unschedulable)
		require.Zero(t, w.beats)
	})
	t.Run("a hook at which no instance waits", func(t *testing.T) {
		w := newWorld()
		w.waiting()
		_, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.True(t, w.node.Spec.Unschedulable)
		clear(w.open)
		got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", func(in *events.DrainRequest) { in.Restore = true }))
		require.NoError(t, err)
		require.Equal(t, drain.Done, got.Outcome)
		require.Equal(t, "the node is schedulable again", got.Message)
		require.False(t, w.node.Spec.Unschedulable)
		require.Empty(t, w.node.Annotations)
		require.Empty(t, w.completed)
	})
}

// The result of a slice names its node, because operators read the history of the execution.
func TestResultNamesItsNode(t *testing.T) {
	for _, want := range []drain.Outcome{drain.Done, drain.Remaining} {
		w := newWorld()
		if want == drain.Remaining {
			w.waiting()
		}
		got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.Equal(t, want, got.Outcome)
		require.Equal(t, "demo workers n1", got.Cluster+" "+got.Pool+" "+got.Node)
	}
}

// A pod that is deleted despite its budget is logged and counted at once, because the call may be cut off.
func TestForcedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.waiting() // blocked by an unmanaged pod
		pool := w.pools["drover-demo-pool-workers"]
		policy := *pool.Drain
		policy.Timeout, policy.OnTimeout = 1, drain.Force
		pool.Drain = &policy
		w.pools["drover-demo-pool-workers"] = pool
		var metrics bytes.Buffer
		h := w.handler(start)
		h.Metrics, h.Slice = &metrics, 3*time.Second
		got, err := h.Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.Equal(t, []string{"shop/alone"}, got.Forced)
		require.Equal(t, 1, strings.Count(metrics.String(), `"PodsForced":1`), metrics.String())
		require.Contains(t, metrics.String(), `"cluster":"demo"`)
	})
}
