package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// EC2 gives a spot instance two minutes. The pods need most of them.
func TestPolicyOfASpotInterruption(t *testing.T) {
	for name, test := range map[string]struct {
		action                          string
		elapsed                         time.Duration
		grace, loadBalancer             events.Seconds
		wantGrace, wantLoadBalancerWait events.Seconds
	}{
		"shortens both times": {
			action: "terminate", elapsed: 30 * time.Second, grace: 600, loadBalancer: 300, wantGrace: 80, wantLoadBalancerWait: 15,
		},
		"keeps shorter times": {
			action: "terminate", elapsed: 30 * time.Second, grace: 20, loadBalancer: 5, wantGrace: 20, wantLoadBalancerWait: 5,
		},
		"limits pods without a limit": {action: "stop", wantGrace: 110},
		"leaves pods one second after the notice": {
			action: "terminate", elapsed: time.Hour, grace: 600, loadBalancer: 300, wantGrace: 1, wantLoadBalancerWait: 15,
		},
		"changes nothing for a recommendation": {
			elapsed: 30 * time.Second, grace: 600, loadBalancer: 300, wantGrace: 600, wantLoadBalancerWait: 300,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := drain.Policy{Timeout: 3600, OnTimeout: drain.Wait, PodGracePeriod: test.grace, LoadBalancerWait: test.loadBalancer}
			in := events.DrainRequest{InstanceAction: test.action, Started: noon.Add(-test.elapsed)}
			want := policy
			want.PodGracePeriod, want.LoadBalancerWait = test.wantGrace, test.wantLoadBalancerWait
			require.Equal(t, want, newWorld(t).handler().policy(t.Context(), in, events.HookMetadata{Cluster: "demo", Drain: &policy}))
		})
	}
}

// While a cluster is deleted, drains are short. A pool with Force keeps its own timeout, which the spec promised.
func TestPolicyOfADeletedCluster(t *testing.T) {
	for name, c := range map[string]struct {
		onTimeout            events.OnTimeout
		timeout, wantTimeout events.Seconds
		wantOnTimeout        events.OnTimeout
	}{
		"Wait":                      {drain.Wait, 0, 300, drain.Continue},
		"Wait, with a time":         {drain.Wait, 7200, 300, drain.Continue},
		"Wait, with a short one":    {drain.Wait, 60, 60, drain.Continue},
		"Continue":                  {drain.Continue, 7200, 300, drain.Continue},
		"Continue, in a short time": {drain.Continue, 60, 60, drain.Continue},
		"Force":                     {drain.Force, 7200, 7200, drain.Force},
		"Force, in a short time":    {drain.Force, 60, 60, drain.Force},
		"Force, with no time":       {drain.Force, 0, 300, drain.Force},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := events.HookMetadata{Cluster: "demo", Drain: &drain.Policy{OnTimeout: c.onTimeout, Timeout: c.timeout}}
			got := w.handler().policy(t.Context(), events.DrainRequest{}, pool)
			require.Equal(t, drain.Policy{OnTimeout: c.onTimeout, Timeout: c.timeout}, got, "a cluster that stays")
			w.set(t, func(s *status.Status) { s.Phase = status.Deleting })
			got = w.handler().policy(t.Context(), events.DrainRequest{}, pool)
			require.Equal(t, drain.Policy{OnTimeout: c.wantOnTimeout, Timeout: c.wantTimeout, ClusterDeleting: true}, got)
			require.Equal(t, c.timeout, pool.Drain.Timeout, "the pool is not changed")
		})
	}
}

func TestPolicyWithoutAStatus(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		logged bool
	}{
		"is the pool's if the cluster has none": {func(w *world) { w.objects.Delete(names.Status("demo")) }, false},
		"is the pool's if it cannot be read":    {func(w *world) { w.refuse("Get") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(t, func(s *status.Status) { s.Phase = status.Deleting })
			test.change(w)
			log := logs(t)
			require.Equal(t, deployedPolicy, w.handler().policy(t.Context(), events.DrainRequest{}, w.pools[group]))
			require.Equal(t, test.logged, log.Len() > 0, log)
		})
	}
}
