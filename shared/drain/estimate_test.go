package drain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecideNext(t *testing.T) {
	forced := Policy{Timeout: 600, OnTimeout: Force, DeleteEmptyDirData: true}
	d := Decide(now, Task{Policy: forced, Started: now}, view([]*corev1.Pod{pod("a")}, budget("web", 0)), 9)
	require.Equal(t, now.Add(600*time.Second), d.Next, "the deadline")
	d = Decide(now, Task{Policy: forced, Started: now}, view([]*corev1.Pod{pod("a", deletedAt(0))}), 9)
	require.Equal(t, now.Add(60*time.Second), d.Next, "then the pod is stuck")
	d = Decide(now, Task{Policy: patient, Started: now}, view([]*corev1.Pod{pod("a")}, budget("web", 0)), 9)
	require.Zero(t, d.Next, "only an event changes the decision")
	waits := patient
	waits.Timeout = 600
	d = Decide(now, Task{Policy: waits, Started: now}, view([]*corev1.Pod{pod("a")}, budget("web", 0)), 9)
	require.Zero(t, d.Next, "the policy Wait has no deadline")
}

func TestDecideEstimate(t *testing.T) {
	twoSlots := func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = b.Status.ExpectedPods - 2 }
	for name, c := range map[string]struct {
		view View
		want time.Duration
	}{
		"nothing":                        {view(nil), 0},
		"free pods end at the same time": {view([]*corev1.Pod{pod("a", grace(5)), pod("b", grace(20))}), 20 * time.Second},
		"one after the other":            {view([]*corev1.Pod{pod("a"), pod("b"), pod("c")}, budget("web", 1)), 90 * time.Second},
		"one after the other, with own grace periods": {
			view([]*corev1.Pod{pod("a", grace(30)), pod("b", grace(5)), pod("c", grace(1))}, budget("web", 1)), 36 * time.Second,
		},
		"in as many slots as the budget has": {
			view([]*corev1.Pod{pod("a"), pod("b", grace(5)), pod("c", grace(5)), pod("d", grace(5))}, budget("web", 0, twoSlots)), 30 * time.Second,
		},
		"of the longest slot": {
			view([]*corev1.Pod{pod("a", grace(20)), pod("b", grace(5)), pod("c", grace(18))}, budget("web", 0, twoSlots)), 23 * time.Second,
		},
		"a terminating pod's rest": {view([]*corev1.Pod{pod("a", deletedAt(-7*time.Second))}), 7 * time.Second},
		"unknown if a budget never allows any": {view([]*corev1.Pod{pod("a")}, budget("web", 0, func(b *policyv1.PodDisruptionBudget) {
			b.Status.DesiredHealthy = 10
		})), -1},
		"unknown if two budgets block": {view([]*corev1.Pod{pod("a")}, budget("web", 1), budget("web2", 1)), -1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Decide(now, Task{Policy: patient, Started: now}, c.view, 9).Estimate)
		})
	}
}

// A drain that waits for a pod on another node has no estimate. It would show 30 s for hours.
func TestDecideStalled(t *testing.T) {
	running, evicted := pod("a"), pod("b")
	one := func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods, b.Status.DesiredHealthy = 2, 1 }
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		allowed int32
		tried   time.Duration
		stalled bool
	}{
		"stalled if another node's replacement does not start": {[]*corev1.Pod{running}, 0, 0, true},
		"not while the budget allows a disruption":             {[]*corev1.Pod{running}, 1, 0, false},
		"not while a pod under the budget terminates": {
			[]*corev1.Pod{running, pod("b", deletedAt(-7*time.Second))}, 0, 0, false,
		},
		"not while a pod under the budget is evicted now": {[]*corev1.Pod{running, pod("c")}, 1, 0, false},
		"stalled while pods without the budget leave": {
			[]*corev1.Pod{running, pod("c", withLabel("app", "db"))}, 0, 0, true,
		},
		"not while the last evicted pod is being replaced": {[]*corev1.Pod{running}, 0, 29 * time.Second, false},
		"stalled if that takes too long":                   {[]*corev1.Pod{running}, 0, 31 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := view(c.pods, budget("web", c.allowed, one))
			if c.tried > 0 {
				v.Tries = map[types.UID]Try{evicted.UID: {Budget: "shop/web", Accepted: now.Add(-c.tried), Counted: true}}
			}
			var r Report
			Describe(&r, Decide(now, Task{Policy: patient, Started: now}, v, 9))
			require.Equal(t, c.stalled, r.Stalled)
			require.Equal(t, c.stalled, r.EstimateSeconds == nil)
		})
	}
	t.Run("not while an eviction under the budget has no response", func(t *testing.T) {
		v := view([]*corev1.Pod{running}, budget("web", 0, one))
		v.Tries = map[types.UID]Try{evicted.UID: {Budget: "shop/web", InFlight: true}}
		require.False(t, Decide(now, Task{Policy: patient, Started: now}, v, 9).Stalled)
		v.Tries = map[types.UID]Try{evicted.UID: {Budget: "shop/db", InFlight: true}}
		require.True(t, Decide(now, Task{Policy: patient, Started: now}, v, 9).Stalled)
	})
	t.Run("not if something has no estimate at all", func(t *testing.T) {
		never := func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods, b.Status.DesiredHealthy = 2, 2 }
		require.False(t, Decide(now, Task{Policy: patient, Started: now}, view([]*corev1.Pod{running}, budget("web", 0, never)), 9).Stalled)
	})
}
