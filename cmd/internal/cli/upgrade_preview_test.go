package cli

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/preflight"
)

func TestRollTime(t *testing.T) {
	const short, long = 30 * time.Second, 2 * time.Minute
	tests := map[string]struct {
		drains             []time.Duration
		unavailable, surge api.Amount
		pause              string
		want               time.Duration
	}{
		"no nodes": {unavailable: "0", surge: "1", pause: "1m"},
		"one at a time, while the next boots": {
			drains: []time.Duration{short, short, short}, unavailable: "0", surge: "1", want: 3*leastBoot + short,
		},
		"drains longer than boots": {
			drains: []time.Duration{long, short, long}, unavailable: "0", surge: "1", want: leastBoot + 2*long + short,
		},
		"all nodes added at once": {
			drains: []time.Duration{short, long, short}, unavailable: "0", surge: "100%", want: leastBoot + long,
		},
		"all nodes unavailable at once": {
			drains: []time.Duration{short, long, short}, unavailable: "100%", surge: "0", want: long,
		},
		"all nodes unavailable, without surge nodes": {
			drains: []time.Duration{short, long, short}, unavailable: "100%", surge: "1", pause: "10m", want: long,
		},
		"one node that may be unavailable": {drains: []time.Duration{short}, unavailable: "1", surge: "1", want: leastBoot},
		"two at a time, with the long drains in one batch": {
			drains: []time.Duration{long, short, long, short}, unavailable: "0", surge: "2", want: leastBoot + long + short,
		},
		"one unavailable and one surge node": {
			drains: []time.Duration{short, short, short, short}, unavailable: "1", surge: "1", want: 3 * leastBoot,
		},
		"a percentage that rounds down to zero": {
			drains: []time.Duration{short, short}, unavailable: "10%", surge: "0", want: 2*leastBoot + short,
		},
		"a pause after each node but the last": {
			drains: []time.Duration{short, short, short}, unavailable: "1", surge: "0", pause: "10m", want: 3*leastBoot + 20*time.Minute,
		},
		"a pause after the surge, too": {
			drains: []time.Duration{short, short, short}, unavailable: "0", surge: "1", pause: "10m", want: 3*leastBoot + short + 30*time.Minute,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, rollTime(test.drains, api.Update{
				MaxUnavailable: test.unavailable, MaxSurge: test.surge, PauseTime: test.pause,
			}))
		})
	}
}

// An instance refresh replaces the nodes that may be unavailable while it adds surge nodes.
func TestRefreshTime(t *testing.T) {
	drains := []time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}
	require.Equal(t, 2*leastBoot, rollTime(drains, api.Update{Strategy: api.InstanceRefresh, MaxUnavailable: "1", MaxSurge: "1"}))
	require.Equal(t, 3*leastBoot, rollTime(drains, api.Update{MaxUnavailable: "1", MaxSurge: "1"}))
	require.Equal(t, 4*leastBoot+30*time.Second, rollTime(drains, api.Update{
		Strategy: api.InstanceRefresh, MaxUnavailable: "0", MaxSurge: "1",
	}))
}

func TestDrainTime(t *testing.T) {
	now := time.Now()
	pod := func(uid types.UID) *drain.Pod {
		return &drain.Pod{Name: "web", UID: uid, Managed: true, Ready: true, Grace: time.Minute}
	}
	leaving, ending, daemon := pod("1"), pod("2"), pod("3")
	ending.Deleted, daemon.Class = now.Add(20*time.Second), drain.Daemon
	waits := drain.Policy{LoadBalancerWait: 90, OnTimeout: drain.Wait, Timeout: 10}
	gives := func(then events.OnTimeout, after drain.Seconds) drain.Policy {
		return drain.Policy{LoadBalancerWait: 90, OnTimeout: then, Timeout: after}
	}
	for name, test := range map[string]struct {
		pods   []*drain.Pod
		policy drain.Policy
		want   time.Duration
	}{
		"waits for load balancers, then the pods": {[]*drain.Pod{leaving, daemon}, waits, 150 * time.Second},
		"is zero if no pod leaves":                {[]*drain.Pod{daemon}, waits, 0},
		"waits for a terminating pod":             {[]*drain.Pod{ending}, waits, 20 * time.Second},
		"is not longer with a terminating pod":    {[]*drain.Pod{ending, leaving}, waits, 150 * time.Second},
		"ends at the timeout with Continue":       {[]*drain.Pod{leaving}, gives(drain.Continue, 120), 2 * time.Minute},
		"includes the grace period with Force":    {[]*drain.Pod{leaving}, gives(drain.Force, 20), 80 * time.Second},
		"is not longer with a late Force":         {[]*drain.Pod{leaving}, gives(drain.Force, 600), 150 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			view := drain.View{Pods: map[types.UID]*drain.Pod{}}
			for _, pod := range test.pods {
				view.Pods[pod.UID] = pod
			}
			got := printPreview(io.Discard, drainer.Preview{Node: "n", Pool: "p", View: view}, test.policy)
			require.InDelta(t, test.want.Seconds(), got.Seconds(), 1)
		})
	}
}

// The dry run of a drain shows the result for each pod of a node.
func TestPreviewOfPods(t *testing.T) {
	pod := func(change func(*drain.Pod)) *drain.Pod {
		p := &drain.Pod{Namespace: "shop", Name: "p", UID: "p", Class: drain.Leaving, Managed: true, Grace: time.Minute}
		change(p)
		return p
	}
	alone, cordoned := pod(func(p *drain.Pod) { p.Managed = false }), time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		pod    *drain.Pod
		policy drain.Policy
		want   string
	}{
		"a pod with a controller": {pod(func(*drain.Pod) {}), drain.Policy{}, "leaves at once"},
		"a pod without a controller": {
			alone, drain.Policy{UnmanagedPods: drain.EvictUnmanaged}, "leaves at once, and nothing starts it again",
		},
		"a pod without a controller that blocks": {
			alone, drain.Policy{UnmanagedPods: drain.WaitForUnmanaged}, "BLOCKED: no controller would replace it, and unmanagedPods is Wait",
		},
		"a terminating pod without a controller": {
			pod(func(p *drain.Pod) { p.Managed, p.Deleted = false, time.Now().Add(time.Minute) }), drain.Policy{}, "is already terminating",
		},
		"a pod that tolerates the cordon": {
			pod(func(p *drain.Pod) {
				p.Tolerant = true
			}), drain.Policy{}, "leaves at once; it tolerates the cordon, and one that comes back ends with the node",
		},
		"a pod that returned to the cordoned node": {
			pod(func(p *drain.Pod) { p.Tolerant, p.Created = true, cordoned.Add(time.Minute) }), drain.Policy{},
			"stays: it tolerates the cordon, came back, and ends with the node",
		},
		"a mirror pod": {pod(func(p *drain.Pod) { p.Managed, p.Class = false, drain.Mirror }), drain.Policy{}, "stays: the kubelet's own"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			printPreview(&out, drainer.Preview{
				Node: "n", Pool: "p", View: drain.View{Cordoned: cordoned, Pods: map[types.UID]*drain.Pod{"p": test.pod}},
			}, test.policy)
			require.Regexp(t, `(?m)^  shop/p +1m0s +`+regexp.QuoteMeta(test.want)+`$`, out.String())
		})
	}
}

func TestReplacedPools(t *testing.T) {
	cluster := func(templates string, pools ...api.Pool) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.TemplateVersion, c.Spec.Pools = templates, pools
		return c
	}
	own, old, fresh := api.Pool{Name: "own", ImageID: "ami-own"}, api.Pool{Name: "a", ImageID: "ami-1"}, api.Pool{Name: "a", ImageID: "ami-2"}
	plan := &preflight.Plan{Before: cluster("v1", own, old), After: cluster("v1", own, fresh)}
	require.False(t, replaced(plan, own), "the pool has its own image")
	require.True(t, replaced(plan, fresh))
	plan.After.Spec.TemplateVersion = "v2"
	require.True(t, replaced(plan, own), "a template version changes the user data")
}

func TestTooLong(t *testing.T) {
	for name, test := range map[string]struct {
		longest  time.Duration
		strategy api.Strategy
		pause    string
		want     bool
	}{
		"an hour":                      {time.Hour, api.RollingUpdate, "", false},
		"a drain of more than an hour": {time.Hour + time.Second, api.RollingUpdate, "", true},
		"a drain and a pause of more than an hour": {40 * time.Minute, api.RollingUpdate, "30m", true},
		"an instance refresh, which has 36 hours":  {2 * time.Hour, api.InstanceRefresh, "30m", false},
		"a blocked drain, which may end at once":   {0, api.RollingUpdate, "30m", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, tooLong([]time.Duration{0, test.longest}, api.Update{Strategy: test.strategy, PauseTime: test.pause}))
		})
	}
	require.False(t, tooLong(nil, api.Update{}))
}
