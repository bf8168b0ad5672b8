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

func TestTheLeastTimeOfAPool(t *testing.T) {
	const short, long = 30 * time.Second, 2 * time.Minute
	tests := map[string]struct {
		drains             []time.Duration
		unavailable, surge api.Amount
		pause              string
		want               time.Duration
	}{
		"no nodes":                                     {nil, "0", "1", "1m", 0},
		"one by one, while the next boots":             {[]time.Duration{short, short, short}, "0", "1", "", 3*leastBoot + short},
		"drains that take longer than boots":           {[]time.Duration{long, short, long}, "0", "1", "", leastBoot + 2*long + short},
		"all at once":                                  {[]time.Duration{short, long, short}, "0", "100%", "", leastBoot + long},
		"all out at once":                              {[]time.Duration{short, long, short}, "100%", "0", "", long},
		"all out at once: none is added for that":      {[]time.Duration{short, long, short}, "100%", "1", "10m", long},
		"of one that may be out, too":                  {[]time.Duration{short}, "1", "1", "", leastBoot},
		"two at a time: the long ones may go together": {[]time.Duration{long, short, long, short}, "0", "2", "", leastBoot + long + short},
		"some leave and some are added":                {[]time.Duration{short, short, short, short}, "1", "1", "", 3 * leastBoot},
		"of a percentage of few nothing may be left":   {[]time.Duration{short, short}, "10%", "0", "", 2*leastBoot + short},
		"a pause after each node, but not the last":    {[]time.Duration{short, short, short}, "1", "0", "10m", 3*leastBoot + 20*time.Minute},
		"and one after the surge": {
			[]time.Duration{short, short, short}, "0", "1", "10m", 3*leastBoot + short + 30*time.Minute,
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

// An instance refresh begins with what may be out, while it adds what may be added.
func TestTheLeastTimeOfARefresh(t *testing.T) {
	drains := []time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}
	require.Equal(t, 2*leastBoot, rollTime(drains, api.Update{Strategy: api.InstanceRefresh, MaxUnavailable: "1", MaxSurge: "1"}))
	require.Equal(t, 3*leastBoot, rollTime(drains, api.Update{MaxUnavailable: "1", MaxSurge: "1"}))
	require.Equal(t, 4*leastBoot+30*time.Second, rollTime(drains, api.Update{
		Strategy: api.InstanceRefresh, MaxUnavailable: "0", MaxSurge: "1",
	}))
}

func TestTheLeastTimeOfADrain(t *testing.T) {
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
		"load balancers first, then the pods":            {[]*drain.Pod{leaving, daemon}, waits, 150 * time.Second},
		"nothing is to leave: nobody waits":              {[]*drain.Pod{daemon}, waits, 0},
		"what is ending already ends":                    {[]*drain.Pod{ending}, waits, 20 * time.Second},
		"beside others it takes no longer":               {[]*drain.Pod{ending, leaving}, waits, 150 * time.Second},
		"a drain that goes on without them ends in time": {[]*drain.Pod{leaving}, gives(drain.Continue, 120), 2 * time.Minute},
		"one that deletes them, when those end":          {[]*drain.Pod{leaving}, gives(drain.Force, 20), 80 * time.Second},
		"and never later than without that":              {[]*drain.Pod{leaving}, gives(drain.Force, 600), 150 * time.Second},
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

// Of each pod of a node the dry run of a drain says what becomes of it.
func TestWhatADryRunSaysOfAPod(t *testing.T) {
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
		"one that is started again elsewhere": {pod(func(*drain.Pod) {}), drain.Policy{}, "leaves at once"},
		"one without a controller": {
			alone, drain.Policy{UnmanagedPods: drain.EvictUnmanaged}, "leaves at once, and nothing starts it again",
		},
		"one that may not leave therefore": {
			alone, drain.Policy{UnmanagedPods: drain.WaitForUnmanaged}, "BLOCKED: nothing would start it again, and unmanagedPods is Wait",
		},
		"one that is gone soon, whosever it is": {
			pod(func(p *drain.Pod) { p.Managed, p.Deleted = false, time.Now().Add(time.Minute) }), drain.Policy{}, "is ending already",
		},
		"one that may come back": {
			pod(func(p *drain.Pod) {
				p.Tolerant = true
			}), drain.Policy{}, "leaves at once; it tolerates the cordon, and one that comes back ends with the node",
		},
		"one that came back": {
			pod(func(p *drain.Pod) { p.Tolerant, p.Created = true, cordoned.Add(time.Minute) }), drain.Policy{},
			"stays: it came back to the cordoned node, which it tolerates, and ends with it",
		},
		"one that stays": {pod(func(p *drain.Pod) { p.Managed, p.Class = false, drain.Mirror }), drain.Policy{}, "stays: the kubelet's own"},
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

func TestPoolsThatStay(t *testing.T) {
	cluster := func(templates string, pools ...api.Pool) *api.Cluster {
		c := &api.Cluster{}
		c.Spec.TemplateVersion, c.Spec.Pools = templates, pools
		return c
	}
	own, old, fresh := api.Pool{Name: "own", ImageID: "ami-own"}, api.Pool{Name: "a", ImageID: "ami-1"}, api.Pool{Name: "a", ImageID: "ami-2"}
	plan := &preflight.Plan{Before: cluster("v1", own, old), After: cluster("v1", own, fresh)}
	require.False(t, replaced(plan, own), "its image is its own")
	require.True(t, replaced(plan, fresh))
	plan.After.Spec.TemplateVersion = "v2"
	require.True(t, replaced(plan, own), "other templates make other user data")
}

func TestRollsThatCloudFormationTakesBack(t *testing.T) {
	for name, test := range map[string]struct {
		longest  time.Duration
		strategy api.Strategy
		pause    string
		want     bool
	}{
		"an hour":                             {time.Hour, api.RollingUpdate, "", false},
		"a drain of more":                     {time.Hour + time.Second, api.RollingUpdate, "", true},
		"a drain and a pause of more":         {40 * time.Minute, api.RollingUpdate, "30m", true},
		"an instance refresh has 36 of them":  {2 * time.Hour, api.InstanceRefresh, "30m", false},
		"what blocks may go the next instant": {0, api.RollingUpdate, "30m", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, tooLong([]time.Duration{0, test.longest}, api.Update{Strategy: test.strategy, PauseTime: test.pause}))
		})
	}
	require.False(t, tooLong(nil, api.Update{}))
}
