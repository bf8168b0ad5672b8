package handler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// While the failure of an update waits for drains, the status names the instance, the reason, the drains and the latest time.
func TestStatusOfFailingUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
		w.kubelet, w.leaving["i-old"], w.leaving["i-old2"] = "v1.37.0", 20*time.Minute, 30*time.Minute
		var then, later []status.Node
		w.after(10*time.Minute, func() { then = slices.Clone(w.status.Status.Nodes) })
		w.after(25*time.Minute, func() { later = slices.Clone(w.status.Status.Nodes) })
		require.Equal(t, events.JoinAbandoned, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
		const why = "the kubelet is v1.37.0, newer than the control plane (1.36): use an image for 1.36 or older"
		until := w.start.Add(74 * time.Minute).UTC().Format(time.RFC3339)
		require.Len(t, then, 2)
		require.Equal(t, "i-new", then[1].Instance)
		require.Equal(t, status.NodeNotJoined, then[1].State)
		require.Contains(t, []string{ // a group's instances come in any order
			why + "; drover fails the update when i-old, i-old2 have been drained, by " + until + " at the latest",
			why + "; drover fails the update when i-old2, i-old have been drained, by " + until + " at the latest",
		}, then[1].Message)
		require.Equal(t, why+"; drover fails the update when i-old2 has been drained, by "+until+" at the latest", later[1].Message)
		require.Equal(t, then[1].Since, later[1].Since)
		require.Equal(t, why, w.status.Status.Nodes[1].Message, "the wait is over")
	})
	t.Run("until its instance terminates", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			const first = "why; drover fails the update when i-old has been drained"
			w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Message: first}, time.Now())
			w.kubelet, w.leaving["i-old"] = "v1.37.0", time.Hour
			w.after(10*time.Minute, func() {
				require.Contains(t, w.status.Status.Nodes[1].Message, "; drover fails the update when i-old has been drained")
				w.state = pool.TerminatingWait
			})
			require.Equal(t, events.JoinGone, w.run(`{"cluster":"demo","pool":"workers"}`).Outcome)
			require.Empty(t, w.signals)
			require.Equal(t, status.NodeNotJoined, w.status.Status.Nodes[1].State)
			require.NotContains(t, w.status.Status.Nodes[1].Message, "the update is failed when")
			require.Equal(t, first, w.status.Status.Nodes[0].Message, "the other instance may still wait")
		})
	})
}

// The machine calls the function once after it abandoned the instance. During drains, that call does not fail the update: a replacement
// instance follows. It reads no cluster.
func TestStatusAfterGivingUp(t *testing.T) {
	const why = "Runtime.ExitError: it crashed"
	for name, c := range map[string]struct {
		world   func(*world)
		message string
		signals int
	}{
		"the first": {func(*world) {}, why, 0},
		"the second": {
			func(w *world) {
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
			}, why, 1,
		},
		"the second, of an unknown launch template": {
			func(w *world) {
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined, Template: "1"}, time.Now())
			}, why, 1,
		},
		"the second, during drains": {
			func(w *world) {
				w.status.Status.SetNode(status.Node{Instance: "i-first", Pool: "workers", State: status.NodeNotJoined}, time.Now())
				w.leaving["i-old"] = time.Hour
			}, why + "; drover does not fail the update for it until i-old has been drained", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.state = ""
			c.world(w)
			h := &Handler{Groups: w, Stacks: stackFake{w}, State: state{w}, Limit: 14 * time.Minute, SignalLimit: time.Hour, Now: time.Now}
			got, err := h.Handle(t.Context(), events.JoinRequest{GivenUp: why, Started: time.Now(), Lifecycle: events.Lifecycle{
				AutoScalingGroupName: "drover-demo-pool-workers",
				EC2InstanceID:        "i-new", NotificationMetadata: `{"cluster":"demo","pool":"workers"}`,
			}})
			require.NoError(t, err)
			require.Equal(t, events.JoinAbandoned, got.Outcome)
			nodes := w.status.Status.Nodes
			require.Equal(t, "i-new "+c.message, nodes[len(nodes)-1].Instance+" "+nodes[len(nodes)-1].Message)
			require.Len(t, w.signals, c.signals)
		})
	}
}
