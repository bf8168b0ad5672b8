package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-run/drover/events"
)

func TestDescribe(t *testing.T) {
	var r Report
	var many []*corev1.Pod
	for i := range 70 {
		many = append(many, pod(fmt.Sprintf("p%02d", i)))
	}
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view(many, budget("web", 0)), 9))
	require.Equal(t, 70, r.Left)
	require.Len(t, r.Pods, events.MaxNamed)
	require.Len(t, r.Blocked, events.MaxNamed)
	require.Contains(t, r.Summary(), "70 pods are left, 0 of them terminating; blocked: shop/p00: its disruption budget allows no disruption "+
		"now (shop/web); ")
	require.Less(t, len(r.Summary()), 1000)
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view([]*corev1.Pod{pod("a", deletedAt(0)), pod("b", deletedAt(0))}), 9))
	require.Equal(t, "2 pods are left, 2 of them terminating (shop/a, shop/b)", r.Summary())
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view(nil), 9))
	require.Equal(t, "no pods are left", r.Summary())
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view([]*corev1.Pod{pod("a")}, budget("web", 1), budget("web2", 1)), 9))
	require.Nil(t, r.EstimateSeconds, "unknown")
	hung := []*corev1.Pod{
		pod("c", deletedAt(time.Hour)), pod("a", deletedAt(time.Hour)), pod("d", deletedAt(time.Hour)), pod("b", deletedAt(time.Hour)),
		pod("e", deletedAt(time.Hour)),
	}
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view(hung), 9))
	require.Equal(t, []string{"shop/a", "shop/b", "shop/c", "shop/d", "shop/e"}, r.Stuck)
	Describe(&r, Decide(now, Task{Policy: patient, Started: now}, view(nil), 9))
	require.Nil(t, r.EstimateSeconds)
	r.Volumes = 2
	require.Equal(t, "2 volumes are still attached", r.Summary())
}

func TestDescribeTimes(t *testing.T) {
	left := []*Pod{{Namespace: "shop", Name: "a"}}
	for name, test := range map[string]struct {
		decision Decision
		begins   bool
		estimate int64 // -1: none
	}{
		"begins later":                     {Decision{Left: left, EvictionsFrom: now, Estimate: 90 * time.Second}, true, 90},
		"does not begin without pods":      {Decision{EvictionsFrom: now, Estimate: 90 * time.Second}, false, -1},
		"estimates whole seconds":          {Decision{Left: left, Estimate: 2*time.Second - 1}, false, 1},
		"estimates no time":                {Decision{Left: left}, false, 0},
		"estimates no open end":            {Decision{Left: left, Estimate: -1}, false, -1},
		"estimates no end while it stalls": {Decision{Left: left, Stalled: true}, false, -1},
		"estimates no time without a pod":  {Decision{}, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var r Report
			Describe(&r, test.decision)
			require.Equal(t, test.begins, r.EvictionsFrom != nil)
			require.Equal(t, test.estimate >= 0, r.EstimateSeconds != nil)
			if r.EstimateSeconds != nil {
				require.Equal(t, test.estimate, *r.EstimateSeconds)
			}
		})
	}
}

func TestDescribeLasting(t *testing.T) {
	blocked := func(codes ...Code) (d Decision) {
		for _, code := range codes {
			d.Blocked = append(d.Blocked, Blocked{Why: Reason{Code: code}})
		}
		return d
	}
	for name, test := range map[string]struct {
		decision Decision
		want     bool
	}{
		"with a reason that lasts":        {blocked(BudgetEmpty), true},
		"with one that lasts, and others": {blocked(Conflict, Unmanaged, Overload), true},
		"not with reasons that pass":      {blocked(Conflict, Overload), false},
		"not without a reason":            {blocked(), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{Lasting: true}
			Describe(&r, test.decision)
			require.Equal(t, test.want, r.Lasting)
		})
	}
}
