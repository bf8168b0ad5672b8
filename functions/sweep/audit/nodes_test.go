package audit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestUnhealthyNodesAreReplaced(t *testing.T) {
	notReady := func(i int, since time.Duration) pool.NodeHealth {
		return pool.NodeHealth{Name: fmt.Sprint("node-", i), Instance: fmt.Sprint("i-", i), Pool: "a", Since: noon.Add(-since)}
	}
	ready := func(i int) pool.NodeHealth {
		h := notReady(i, time.Hour)
		h.Ready = true
		return h
	}
	cordoned := notReady(1, time.Hour)
	cordoned.Cordoned = true
	for name, test := range map[string]struct {
		// nodes of as many instances, less missing ones.
		nodes   []pool.NodeHealth
		missing int
		given   func(*auditFixture, *auditRun)
		want    []string
		err     error
	}{
		"one at a time, the longest first": {
			nodes: []pool.NodeHealth{
				notReady(1, time.Hour), notReady(2, 2*time.Hour), ready(3), ready(4), ready(5), ready(6), ready(7),
			}, want: []string{"nodes", "replace i-2"},
		},
		"when it is listed last": {
			nodes: []pool.NodeHealth{
				notReady(1, 2*time.Hour), notReady(2, time.Hour), ready(3), ready(4), ready(5), ready(6), ready(7),
			}, want: []string{"nodes", "replace i-1"},
		},
		"not before patience is over; the next sweep looks again": {
			nodes: []pool.NodeHealth{notReady(1, notReadyLimit-1), ready(2)}, want: []string{"nodes", "inspect demo"},
		},
		"does not look again before the next audit can find it in time": {
			nodes: []pool.NodeHealth{notReady(1, notReadyLimit-period), ready(2)}, want: []string{"nodes"},
		},
		"not at a cordoned node": {
			nodes: []pool.NodeHealth{{Name: "n", Instance: "i-1", Pool: "a", Since: noon.Add(1 - notReadyLimit), Cordoned: true}, ready(2)},
			want:  []string{"nodes"},
		},
		"not in a paused cluster": {
			nodes: []pool.NodeHealth{notReady(1, notReadyLimit-1), ready(2)}, given: func(a *auditFixture, _ *auditRun) {
				a.status.Phase, a.status.Conditions = status.Stopped, []status.Condition{condition(status.Converged, "False", status.ReasonPaused)}
			}, want: []string{"nodes"},
		},
		"an error of the request is returned": {
			nodes: []pool.NodeHealth{notReady(1, notReadyLimit-1), ready(2)}, given: func(a *auditFixture, _ *auditRun) {
				a.failing["inspect demo"] = errThrottled
			}, want: []string{"nodes", "inspect demo"}, err: errThrottled,
		},
		"once patience is over":       {nodes: []pool.NodeHealth{notReady(1, notReadyLimit), ready(2)}, want: []string{"nodes", "replace i-1"}},
		"not while they are cordoned": {nodes: []pool.NodeHealth{cordoned, ready(2)}, want: []string{"nodes"}},
		"when they never came":        {nodes: []pool.NodeHealth{ready(1)}, missing: 1, want: []string{"nodes", "replace i-2"}},
		"not when many are not Ready": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), notReady(2, time.Hour), ready(3), ready(4), ready(5)}, want: []string{"nodes"},
		},
		"up to a third": {
			nodes: []pool.NodeHealth{
				notReady(1, time.Hour), notReady(2, time.Hour), ready(3), ready(4), ready(5), ready(6),
			}, want: []string{"nodes", "replace i-1"},
		},
		"one node of two":     {nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, want: []string{"nodes", "replace i-1"}},
		"the only node, once": {nodes: []pool.NodeHealth{notReady(1, time.Hour)}, want: []string{"nodes", "write", "replace i-1"}},
		"not the only node again": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour)}, given: func(a *auditFixture, _ *auditRun) {
				a.status.Replaced = &status.Replaced{Count: 1, At: noon.Add(-period)}
			}, want: []string{"nodes"},
		},
		"again after a longer pause": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour)}, given: func(a *auditFixture, _ *auditRun) {
				a.status.Replaced = &status.Replaced{Count: 1, At: noon.Add(-2 * period)}
			},
			want: []string{"nodes", "write", "replace i-1"},
		},
		"not while one joins or leaves": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(_ *auditFixture, r *auditRun) {
				group := r.groups[names.Group(demo, "a")]
				group.Instances = append(group.Instances, pool.Instance{ID: "i-9", State: pool.PendingWait})
				r.groups[group.Name] = group
			}, want: []string{"nodes"},
		},
		"while a node joins another pool": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(_ *auditFixture, r *auditRun) {
				r.stacks[demo]["pool-b"] = stack.Deployed{Status: "CREATE_COMPLETE"}
				name := names.Group(demo, "b")
				r.groups[name] = pool.Group{Name: name, Instances: []pool.Instance{{ID: "i-9", State: pool.PendingWait}}}
			}, want: []string{"nodes", "replace i-1"},
		},
		"not while the cluster is paused": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(a *auditFixture, _ *auditRun) {
				a.status.Phase, a.status.Conditions = status.Stopped, []status.Condition{condition(status.Converged, "False", status.ReasonPaused)}
			}, want: []string{"nodes"},
		},
		"not while their pool's stack is broken": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(_ *auditFixture, r *auditRun) {
				r.stacks[demo]["pool-a"] = stack.Deployed{Status: "UPDATE_ROLLBACK_FAILED"}
			},
			want: []string{"nodes"},
		},
		"not without a control plane": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)},
			given: func(_ *auditFixture, r *auditRun) { delete(r.stacks[demo], names.ControlPlane) },
		},
		"not when they cannot be seen": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(a *auditFixture, _ *auditRun) {
				a.failing["nodes"] = errors.New("no route")
			}, want: []string{"nodes"},
		},
		"the error of the replacement is returned": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour), ready(2)}, given: func(a *auditFixture, _ *auditRun) {
				a.failing["replace"] = errThrottled
			}, want: []string{"nodes", "replace i-1"}, err: errThrottled,
		},
		"not the only node when that cannot be recorded": {
			nodes: []pool.NodeHealth{notReady(1, time.Hour)}, given: func(a *auditFixture, _ *auditRun) {
				a.failing["write"] = errThrottled
			}, want: []string{"nodes", "write"}, err: errThrottled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &status.Status{Phase: status.Ready}, nodes: test.nodes, failing: map[string]error{}}
			r := a.run()
			r.stacks[demo] = map[string]stack.Deployed{
				names.ControlPlane: {Status: "CREATE_COMPLETE", Outputs: map[string]string{"ClusterEndpoint": "https://x"}},
				"pool-a":           {Status: "CREATE_COMPLETE"},
			}
			group := pool.Group{Name: names.Group(demo, "a")}
			for i := range len(test.nodes) + test.missing {
				group.Instances = append(group.Instances, pool.Instance{ID: fmt.Sprint("i-", i+1), State: pool.InService})
			}
			r.groups[group.Name] = group
			if test.given != nil {
				test.given(a, r)
			}
			_, err := r.replaceNodes(t.Context(), demo, a.status)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, a.calls)
		})
	}
	t.Run("of each pool one", func(t *testing.T) {
		var nodes []pool.NodeHealth
		pools := map[string]pool.Group{}
		for p := range 2 {
			name := fmt.Sprint("p", p)
			group := pool.Group{}
			for i := range 4 {
				n := pool.NodeHealth{Name: "n", Instance: fmt.Sprint(name, i), Pool: name, Ready: i > 0, Since: noon.Add(-time.Hour)}
				nodes, group.Instances = append(nodes, n), append(group.Instances, pool.Instance{ID: n.Instance, State: pool.InService})
			}
			pools[name] = group
		}
		instances, findings, alone := chooseUnhealthy(nodes, pools, noon)
		require.Equal(t, []string{"p00", "p10"}, instances)
		require.Len(t, findings, 2)
		require.False(t, alone)
	})
	t.Run("the only one less and less often", func(t *testing.T) {
		for n, test := range []struct {
			last  *status.Replaced
			again bool
			count int
		}{
			{nil, true, 1},
			{&status.Replaced{Count: 2, At: noon.Add(-4*period + period/2 + 1)}, false, 2},
			{&status.Replaced{Count: 2, At: noon.Add(-4*period + period/2)}, true, 3},
			{&status.Replaced{Count: 20, At: noon.Add(-23 * time.Hour)}, false, 20},
			{&status.Replaced{Count: 20, At: noon.Add(-24 * time.Hour)}, true, 21},
			{&status.Replaced{Count: 20, At: noon.Add(-48 * time.Hour)}, true, 1},
		} {
			a := &auditFixture{status: &status.Status{Replaced: test.last}}
			next, err := a.run().countReplacement(t.Context(), demo, a.status)
			require.NoError(t, err)
			require.Equal(t, test.again, next.IsZero(), n)
			require.Equal(t, test.count, a.status.Replaced.Count, n)
		}
	})
}
