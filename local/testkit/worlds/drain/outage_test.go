package drain_test

// Outages: the synthesized drain-node machine, in virtual time, with the function and a hook that times out as Auto Scaling's does.

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/drain/handler"
	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // two days of virtual time log a lot
	m.Run()
}

// Timeouts of the terminate hook: of the pool's template, and Auto Scaling's own limit.
const (
	hookTimeout = 1800 * time.Second
	hookCap     = 48 * time.Hour
)

// hook is Auto Scaling's side of a drain: a world whose hook times out.
type hook struct {
	*world
	t       *testing.T
	start   time.Time
	last    time.Time
	ended   time.Duration // when the instance ended, and how
	how     string
	crashes int
	// One call in every, with its retries, crashes; 0 is none. events counts the execution's history.
	every, calls, events int
	// evicted and deleted are the expected numbers of pods.
	evicted, deleted int
}

func (h *hook) expire() {
	if h.how == "" && (time.Since(h.last) >= hookTimeout || time.Since(h.start) >= hookCap) {
		h.ended, h.how = time.Since(h.start), "the hook ran out of time"
		h.open["i-1"] = false
	}
}

func (h *hook) Heartbeat(ctx context.Context, l events.Lifecycle) (bool, error) {
	h.mu.Lock()
	h.expire()
	if h.open["i-1"] {
		require.LessOrEqual(h.t, time.Since(h.last), hookTimeout/2, "each heartbeat is within half of the hook's timeout")
		h.last = time.Now()
	}
	h.mu.Unlock()
	return h.world.Heartbeat(ctx, l)
}

func (h *hook) Complete(ctx context.Context, l events.Lifecycle, result pool.HookResult) (bool, error) {
	h.mu.Lock()
	h.expire()
	if h.how == "" {
		h.ended, h.how = time.Since(h.start), string(result)
	}
	h.mu.Unlock()
	return h.world.Complete(ctx, l, result)
}

// machine runs drain-node on the instance.
func (h *hook) machine(input string) asl.Outcome {
	definition, err := os.ReadFile("../../../../infra/testdata/machines/drain-node.asl.json")
	require.NoError(h.t, err)
	parsed, err := asl.Parse(definition)
	require.NoError(h.t, err)
	h.start, h.last = time.Now(), time.Now()
	function := &handler.Handler{
		Clusters: h, Groups: h, State: h, Slice: 50 * time.Second, JoinGrace: 10 * time.Second, Now: time.Now, Metrics: discard{},
	}
	return parsed.Run(h.t.Context(), asl.Execution{
		Name: "test", MachineName: "drover-drain-node", Input: json.RawMessage(input), Start: h.start,
	}, asl.Host{
		Tokens: &asl.Tokens{}, Random: func() float64 { return 0.5 }, Record: func(asl.Event) { h.events++ },
		Task: func(ctx context.Context, task asl.Task) (json.RawMessage, error) {
			switch task.Resource.Action {
			case "completeLifecycleAction":
				_, err := h.Complete(ctx, events.Lifecycle{EC2InstanceID: "i-1"}, pool.Continue)
				return json.RawMessage(`{}`), err
			case "recordLifecycleActionHeartbeat":
				if waits, err := h.Heartbeat(ctx, events.Lifecycle{EC2InstanceID: "i-1"}); err != nil || waits {
					return json.RawMessage(`{}`), err
				}
				return nil, &asl.Failure{Name: "AutoScaling.AutoScalingException", Cause: "No active Lifecycle Action found with instance ID i-1"}
			}
			var arguments struct{ Payload events.DrainRequest }
			if err := json.Unmarshal(task.Arguments, &arguments); err != nil {
				return nil, err
			}
			if h.isKilled(arguments.Payload) {
				return nil, &asl.Failure{Name: "Runtime.ExitError", Cause: "signal: killed"}
			}
			result, err := function.Handle(ctx, arguments.Payload)
			if err != nil {
				return nil, &asl.Failure{Name: "Internal", Cause: err.Error()}
			}
			return json.Marshal(map[string]any{"StatusCode": 200, "Payload": result})
		},
	})
}

// isKilled reports whether a call of the function is killed.
func (h *hook) isKilled(in events.DrainRequest) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.crashes > 0 && !in.Restore {
		h.crashes--
		return true
	}
	h.calls++
	return h.every > 0 && h.calls%h.every < 4 // a call and its three retries
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

const terminating = `{"AutoScalingGroupName":"drover-demo-pool-workers","LifecycleHookName":"terminate","EC2InstanceId":"i-1",` +
	`"NotificationMetadata":"{\"cluster\":\"demo\",\"pool\":\"workers\"}"}`

func TestOutages(t *testing.T) {
	for name, c := range map[string]struct {
		world func(*hook)
		// ended is the earliest time at which the instance may terminate; how is the cause.
		ended time.Duration
		how   string
	}{
		"an outage of the API server of ten minutes": {func(h *hook) {
			h.down = func() bool { return time.Since(h.start) < 10*time.Minute }
		}, 10 * time.Minute, "CONTINUE"},
		"an outage of five hours": {func(h *hook) {
			h.down = func() bool { return time.Since(h.start) < 5*time.Hour }
		}, 5 * time.Hour, "CONTINUE"},
		"an outage longer than the hook's limit": {func(h *hook) {
			h.down = func() bool { return true }
		}, hookCap, "the hook ran out of time"},
		"outages again and again": {func(h *hook) {
			h.down = func() bool { return time.Since(h.start) < 3*time.Hour && int(time.Since(h.start).Minutes())%20 > 1 }
			h.waiting()
			h.podsUntil(3 * time.Hour)
		}, 3 * time.Hour, "CONTINUE"},
		"an outage of EKS of hours": {func(h *hook) {
			h.openErr = errors.New("ServiceUnavailable")
			h.after(7*time.Hour, func() { h.openErr = nil })
		}, 7 * time.Hour, "CONTINUE"},
		"the function is killed again and again": {func(h *hook) { h.crashes = 20 }, 5 * time.Minute, "CONTINUE"},
		"the function is killed for a day":       {func(h *hook) { h.crashFor(24 * time.Hour) }, 24 * time.Hour, "CONTINUE"},
		"a pod never leaves, and the policy waits": {func(h *hook) {
			h.waiting()
		}, hookCap, "the hook ran out of time"},
		"a pod leaves after a day": {func(h *hook) {
			h.waiting()
			h.podsUntil(24 * time.Hour)
		}, 24 * time.Hour, "CONTINUE"},
		"an outage longer than the timeout, with Continue": {func(h *hook) {
			h.runs(drain.Continue)
			h.down = func() bool { return time.Since(h.start) < 2*time.Hour }
		}, 2 * time.Hour, "CONTINUE"},
		"the function is killed longer than the timeout, with Continue": {func(h *hook) {
			h.runs(drain.Continue)
			h.crashFor(2 * time.Hour)
		}, 2 * time.Hour, "CONTINUE"},
		"an outage during the drain, with Continue": {func(h *hook) {
			h.blockedUntil(2*time.Hour, drain.Continue)
			h.down = func() bool { return time.Since(h.start) > 5*time.Minute && time.Since(h.start) < 2*time.Hour }
		}, 2 * time.Hour, "CONTINUE"},
		"the function is killed during the drain, with Continue": {func(h *hook) {
			h.blockedUntil(2*time.Hour, drain.Continue)
			h.after(5*time.Minute, func() { h.crashFor(115 * time.Minute) })
		}, 2 * time.Hour, "CONTINUE"},
		"an outage longer than the timeout, with Force: a block of seconds": {func(h *hook) {
			h.blockedAfter(2*time.Hour, drain.Force)
			h.down = func() bool { return time.Since(h.start) < 2*time.Hour }
		}, 2 * time.Hour, "CONTINUE"},
		"an outage during the drain, with Force: a block of seconds": {func(h *hook) {
			h.blockedAfter(2*time.Hour, drain.Force)
			h.down = func() bool { return time.Since(h.start) > 5*time.Minute && time.Since(h.start) < 2*time.Hour }
		}, 2 * time.Hour, "CONTINUE"},
		"outages again and again, with Force": {func(h *hook) {
			h.blockedAfter(2*time.Hour, drain.Force)
			h.down = func() bool { return time.Since(h.start) < 2*time.Hour && int(time.Since(h.start).Seconds())%600 > 25 }
		}, 2 * time.Hour, "CONTINUE"},
		"an outage of half an hour in a drain of ten hours": {func(h *hook) {
			h.blockedAfter(10*time.Hour+5*time.Minute, drain.Force)
			h.pools["drover-demo-pool-workers"].Drain.Timeout = 10 * 60 * 60
			h.down = func() bool {
				return time.Since(h.start) > 9*time.Hour+35*time.Minute && time.Since(h.start) < 10*time.Hour+5*time.Minute
			}
		}, 10*time.Hour + 5*time.Minute, "CONTINUE"},
		"the instance terminates during the drain": {func(h *hook) {
			h.waiting()
			h.after(time.Hour, func() { h.open["i-1"], h.how, h.ended = false, "terminated by an operator", time.Since(h.start) })
		}, time.Hour, "terminated by an operator"},
		"the node is deleted during the drain": {func(h *hook) {
			h.waiting()
			h.after(time.Hour, func() { h.node = nil })
		}, time.Hour, "CONTINUE"},
		"the node joins late": {func(h *hook) {
			late := h.node
			h.node = nil
			h.waiting()
			h.after(5*time.Second, func() { h.node = late })
			h.podsUntil(time.Hour)
		}, time.Hour, "CONTINUE"},
		"it never joined": {func(h *hook) { h.node = nil }, 0, "CONTINUE"},
		"the cluster is deleted: five minutes at most": {func(h *hook) {
			h.waiting()
			h.status.Status.Phase = status.Deleting
		}, 5 * time.Minute, "CONTINUE"},
		"the cluster is deleted, with Force: the pool's own timeout": {func(h *hook) {
			h.waiting()
			h.pools["drover-demo-pool-workers"].Drain.OnTimeout = drain.Force
			h.deleted = 1
			h.status.Status.Phase = status.Deleting
		}, time.Hour, "CONTINUE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hook{world: newWorld(), t: t, start: time.Now()}
				c.world(h)
				got := h.machine(terminating)
				h.expire()
				require.Equal(t, asl.Succeeded, got.Status, "%s: %s", got.Error, got.Cause)
				require.Equal(t, c.how, h.how)
				require.GreaterOrEqual(t, h.ended, c.ended)
				if c.how == "CONTINUE" {
					require.LessOrEqual(t, h.ended, c.ended+c.ended/20+3*time.Minute, "a drain ends at most 5 %% late")
				}
				require.Empty(t, h.status.Status.Nodes, "no drain is in flight")
				require.Equal(t, h.evicted, h.evictions)
				require.Equal(t, h.deleted, h.deletions)
			})
		})
	}
}

// An execution may have 25,000 events. One more would fail it while the hook is open.
// https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html#service-limits-state-machine-executions
func TestExecutionHistoryLimit(t *testing.T) {
	for name, world := range map[string]func(*hook){
		"a pod is evicted again and again": func(h *hook) { h.pods, h.again = []corev1.Pod{managedPod("ReplicaSet", "web")}, true },
		"every other call fails": func(h *hook) {
			h.pods, h.again, h.every = []corev1.Pod{managedPod("ReplicaSet", "web")}, true, 5
		},
		"a pod never leaves": func(h *hook) { h.waiting() },
		"a pod terminates for ever": func(h *hook) {
			at := metav1.NewTime(h.start.Add(100 * time.Hour))
			h.pods = []corev1.Pod{managedPod("ReplicaSet", "web")}
			h.pods[0].DeletionTimestamp = &at
		},
		"the API server never answers": func(h *hook) { h.down = func() bool { return true } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hook{world: newWorld(), t: t, start: time.Now()}
				world(h)
				got := h.machine(terminating)
				h.expire()
				require.NotEqual(t, "States.Runtime", got.Error, got.Cause)
				require.Equal(t, "the hook ran out of time", h.how)
				require.Equal(t, hookCap, h.ended.Truncate(time.Hour), "not before Auto Scaling ends it anyway")
				require.Less(t, h.events, 20_000, "a fifth is spare")
			})
		})
	}
}

// crashFor makes every call of the function crash for some time.
func (h *hook) crashFor(after time.Duration) {
	h.crashes = 1 << 20
	h.after(after, func() { h.crashes = 0 })
}

// runs adds two pods that nothing blocks, and sets the policy.
func (h *hook) runs(then events.OnTimeout) {
	h.pods, h.evicted = []corev1.Pod{managedPod("ReplicaSet", "a"), managedPod("ReplicaSet", "b")}, 2
	h.pools["drover-demo-pool-workers"].Drain.OnTimeout = then
}

// blockedUntil blocks a pod for some time, and then replaces it with one that nothing blocks.
func (h *hook) blockedUntil(after time.Duration, then events.OnTimeout) {
	if h.evicted = 1; h.pods == nil {
		h.waiting()
	}
	h.pools["drover-demo-pool-workers"].Drain.OnTimeout = then
	h.after(after, func() {
		h.pods = []corev1.Pod{managedPod("ReplicaSet", "a")}
	})
}

// blockedAfter also blocks the pod for some seconds after the first list of pods at that time.
func (h *hook) blockedAfter(after time.Duration, then events.OnTimeout) {
	h.blockedUntil(hookCap, then)
	h.listed = func() {
		if time.Since(h.start) >= after {
			h.listed = nil
			h.blockedUntil(20*time.Second, then)
		}
	}
}

// podsUntil removes the pods after some time.
func (h *hook) podsUntil(after time.Duration) {
	h.after(after, func() {
		h.pods = []corev1.Pod{}
	})
}

func TestFailedDrainReleasesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hook{world: newWorld(), t: t}
		h.waiting()
		held := false
		h.after(3*time.Minute, func() { held, h.crashes = h.node.Spec.Unschedulable, 1<<10 })
		require.Equal(t, asl.Failed, h.machine(`{"cluster":"demo","node":"n1"}`).Status)
		require.True(t, held)
		require.False(t, h.node.Spec.Unschedulable)
		require.Empty(t, h.node.Annotations)
		require.Equal(t, map[string]string{names.LabelPool: "workers"}, h.node.Labels)
		require.Empty(t, h.status.Status.Nodes)
	})
}

// The status of a long drain is written only when it changes.
func TestLongDrainIsInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hook{world: newWorld(), t: t}
		h.waiting()
		h.podsUntil(3 * time.Hour)
		var then []status.Node
		h.after(2*time.Hour, func() { then = append(then, h.status.Status.Nodes...) })
		require.Equal(t, asl.Succeeded, h.machine(terminating).Status)
		require.Len(t, then, 1)
		require.Equal(t, status.Node{
			Name: "n1", Instance: "i-1", Pool: "workers", State: status.NodeBlocked, Since: then[0].Since,
			Message: "1 pod is left; blocked: shop/alone: no controller would replace it, and unmanagedPods is Wait",
			Blocked: []events.BlockedPod{{Pod: "shop/alone", Why: "no controller would replace it, and unmanagedPods is Wait"}},
		}, then[0])
		require.WithinDuration(t, h.start, then[0].Since, time.Minute)
		require.Equal(t, 2, h.wrote, "once when it begins to wait, once when it is over")
	})
	t.Run("a drain of one slice is not recorded", func(t *testing.T) {
		w := newWorld()
		got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.Equal(t, drain.Done, got.Outcome)
		require.Zero(t, w.wrote)
	})
	t.Run("a cluster that has no status gets none", func(t *testing.T) {
		w := newWorld()
		w.waiting()
		w.status = nil
		got, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.Equal(t, drain.Remaining, got.Outcome)
	})
	t.Run("a cluster that cannot be asked", func(t *testing.T) {
		w := newWorld()
		w.openErr = errors.New("AccessDenied: eks:DescribeCluster")
		_, err := w.handler(start).Handle(t.Context(), sample(t, "drain-request-hook", nil))
		require.NoError(t, err)
		require.Equal(t, status.NodeUnreachable, w.status.Status.Nodes[0].State)
		require.Contains(t, w.status.Status.Nodes[0].Message, "AccessDenied")
	})
}

// A blocked drain is recorded within seconds, not at the end of the slice. The end of the slice does not record it again.
func TestBlockedDrainIsRecordedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hook{world: newWorld(), t: t}
		h.waiting()
		h.podsUntil(5 * time.Minute)
		var nodes []status.Node
		var noted string
		var wrote []int
		h.after(6*time.Second, func() { wrote = append(wrote, h.wrote) })
		h.after(8*time.Second, func() {
			wrote, nodes, noted = append(wrote, h.wrote), append(nodes, h.status.Status.Nodes...), h.node.Annotations["drover.run/drain-waits-for"]
		})
		h.after(4*time.Minute, func() { wrote = append(wrote, h.wrote) })
		require.Equal(t, asl.Succeeded, h.machine(terminating).Status)
		require.Equal(t, []int{0, 1, 1}, wrote)
		require.Len(t, nodes, 1)
		require.Equal(t, status.NodeBlocked, nodes[0].State)
		require.Equal(t, h.start.Add(7*time.Second).UTC(), nodes[0].Since)
		require.Equal(t, []events.BlockedPod{{Pod: "shop/alone", Why: "no controller would replace it, and unmanagedPods is Wait"}},
			nodes[0].Blocked)
		require.Equal(t, nodes[0].Message, noted)
	})
}
