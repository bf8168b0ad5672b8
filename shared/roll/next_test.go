package roll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// gate returns the gate of i-0. states are those of the instances of its group. The last instance is old. All nodes became Ready in their
// order.
func gate(states ...string) *Gate {
	g := &Gate{Group: group(len(states), states...), Instance: "i-0"}
	g.Group.Instances[len(states)-1].TemplateVersion = "1"
	for n, i := range g.Group.Instances {
		g.Nodes = append(g.Nodes, pool.Node{
			Name: "node-" + i.ID, Instance: i.ID, Ready: true, ReadySince: noon.Add(time.Duration(n) * time.Second),
		})
	}
	return g
}

func TestGate(t *testing.T) {
	const serves, drained, old = pool.InService, pool.TerminatingWait, pool.InService
	for name, test := range map[string]struct {
		gate            *Gate
		change          func(*Gate)
		byGroup, byNode string
	}{
		"opens when all is well":             {gate(serves, serves, old), func(*Gate) {}, "", ""},
		"waits for other drains":             {gate(serves, serves, drained), func(*Gate) {}, "i-2 has been drained", ""},
		"does not wait for its own drain":    {gate(drained, serves, old), func(g *Gate) { g.Refresh = true }, "", ""},
		"waits to be in service":             {gate(pool.PendingProceed, serves, old), func(*Gate) {}, "it is in service", ""},
		"waits at the hook during a refresh": {gate(pool.PendingWait, serves, old), func(g *Gate) { g.Refresh = true }, "", ""},
		"waits for its own node": {gate(serves, serves, old), func(g *Gate) {
			g.Nodes[0].Ready = false
		}, "", "it is Ready again: node node-i-0 is not Ready: "},
		"waits for a node drained by hand": {gate(serves, serves, old), func(g *Gate) {
			g.Nodes[2].Draining = true
		}, "", "node-i-2 has been drained"},
		"waits for new nodes to be Ready": {gate(serves, serves, old), func(g *Gate) {
			g.Nodes[1].Ready = false
		}, "", "node-i-1 is Ready again"},
		"does not wait for old nodes":         {gate(serves, serves, old), func(g *Gate) { g.Nodes[2].Ready = false }, "", ""},
		"does not wait for a terminated node": {gate(serves, serves, old), func(g *Gate) { g.Nodes = g.Nodes[:1] }, "", ""},
		"does not wait without a roll": {gate(serves, serves, old), func(g *Gate) {
			g.Group.Instances[2].TemplateVersion = "2"
			g.Nodes[1].Ready = false
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.change(test.gate)
			require.Equal(t, test.byGroup, test.gate.AwaitedGroup())
			if test.byGroup == "" {
				require.Equal(t, test.byNode, test.gate.AwaitedNodes())
			}
		})
	}
	t.Run("does not wait for an instance outside the group", func(t *testing.T) {
		g := gate(serves, old)
		g.Instance = "i-9"
		require.Empty(t, g.AwaitedGroup(), "the instance has terminated")
		require.False(t, g.IsRolling(), "its launch template version is not known")
	})
	t.Run("names each node that it waits for", func(t *testing.T) {
		g := gate(serves, serves, serves, old)
		g.Nodes[1].Draining, g.Nodes[2].Draining, g.Nodes[3].Draining = true, true, true
		g.Group.Instances[3].State = pool.TerminatingProceed
		require.Equal(t, "node-i-1, node-i-2 have been drained", g.AwaitedNodes(), "instances that terminate do not count")
		g.Group.Instances[1].State, g.Group.Instances[2].State = drained, pool.Terminating
		require.Equal(t, "i-1, i-2 have been drained", g.AwaitedGroup())
	})
}

func TestLastBatch(t *testing.T) {
	last := gate(pool.InService, pool.InService, pool.TerminatingWait)
	require.False(t, last.IsLastBatch(), "a rolling update counts signals")
	last.Refresh = true
	require.True(t, last.IsLastBatch())
	more := gate(pool.InService, pool.InService, pool.InService)
	more.Refresh = true
	require.False(t, more.IsLastBatch(), "an old instance is left")
	more.Group.Instances[2].TemplateVersion = "2"
	require.False(t, more.IsLastBatch(), "no roll")
	last.Group.Instances[2].TemplateVersion = "2"
	require.False(t, last.IsLastBatch(), "a drain of a current instance is not of the roll")
	leaves := gate(pool.TerminatingWait)
	leaves.Refresh = true
	require.True(t, leaves.IsLastBatch())
	leaves.Group.TemplateVersion = ""
	require.False(t, leaves.IsLastBatch(), "the group's version is not known")
}

func TestOutdatedInstance(t *testing.T) {
	g := gate(pool.InService, pool.InService).Group
	require.False(t, IsOutdated(g, "i-0"))
	require.True(t, IsOutdated(g, "i-1"))
	require.False(t, IsOutdated(g, "i-9"), "it is not in the group")
	g.Instances[1].TemplateVersion = ""
	require.False(t, IsOutdated(g, "i-1"), "its version no longer exists")
	g.Instances[1].TemplateVersion = "1"
	g.TemplateVersion = ""
	require.False(t, IsOutdated(g, "i-1"), "the group's version is not known")
}

func TestSignals(t *testing.T) {
	const serves, launches = pool.InService, pool.PendingWait
	for name, test := range map[string]struct {
		states           []string
		instance         string
		during           int
		replaced, held   int
		counted, surplus bool
		needed           bool
	}{
		"do not matter without an update":         {states: []string{serves, serves, serves, serves}, instance: "i-0"},
		"do not matter if the group did not grow": {states: []string{serves, serves, serves, serves}, instance: "i-0", during: 4},
		"of the first node are needed": {
			states: []string{serves, serves, serves, serves}, instance: "i-0", during: 3, counted: true, needed: true,
		},
		"of the last node that counts are needed": {
			states: []string{serves, serves, serves, serves}, instance: "i-1", during: 3, counted: true, needed: true,
		},
		"of a node that an autoscaler added wait": {
			states: []string{serves, serves, serves, serves}, instance: "i-2", during: 3, counted: true, surplus: true,
		},
		"wait for a node that launches": {
			states: []string{serves, serves, launches, serves}, instance: "i-1", during: 3, counted: true,
		},
		"do not wait for the replacement of an instance that failed": {
			states: []string{serves, serves, launches, serves}, instance: "i-1", during: 3, replaced: 1, counted: true, needed: true,
		},
		"wait for an instance that waits to fail the update": {
			states: []string{serves, serves, launches, serves}, instance: "i-1", during: 3, replaced: 1, held: 1, counted: true,
		},
		"of the first do not wait for one that comes": {
			states: []string{serves, serves, launches, serves}, instance: "i-0", during: 3, counted: true, needed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate(test.states...)
			g.Instance, g.Group.Min = test.instance, 2
			s, counted := g.Signals(test.during)
			require.Equal(t, test.counted, counted)
			if counted {
				require.Equal(t, test.surplus, s.IsSurplus())
				require.Equal(t, test.needed, s.IsNeeded(test.replaced, test.held))
			}
		})
	}
	for name, test := range map[string]struct {
		change          func(*Gate)
		counted         bool
		needed, earlier int
	}{
		"count each old instance as one less":        {func(g *Gate) { g.Group.Instances[3].TemplateVersion = "1" }, true, 1, 2},
		"count the minimum when it is more":          {func(g *Gate) { g.Group.Min = 4 }, true, 3, 2},
		"do not matter when the minimum is all":      {func(g *Gate) { g.Group.Min = 5 }, false, 0, 0},
		"do not matter when the node is not known":   {func(g *Gate) { g.Nodes = g.Nodes[:2] }, false, 0, 0},
		"count no node that is not Ready":            {func(g *Gate) { g.Nodes[0].Ready = false }, true, 2, 1},
		"count no node that was Ready later":         {func(g *Gate) { g.Nodes[0].ReadySince = noon.Add(time.Hour) }, true, 2, 1},
		"count no instance without a node":           {func(g *Gate) { g.Nodes = g.Nodes[1:] }, true, 2, 1},
		"count no instance that is not in service":   {func(g *Gate) { g.Group.Instances[0].State = pool.Terminating }, true, 2, 1},
		"count an instance of another version apart": {func(g *Gate) { g.Group.Instances[0].TemplateVersion = "3" }, true, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate(serves, serves, serves, serves, serves)
			g.Instance, g.Group.Min = "i-2", 2
			test.change(g)
			s, counted := g.Signals(3)
			require.Equal(t, test.counted, counted)
			require.Equal(t, []int{test.needed, test.earlier}, []int{s.Needed, s.Earlier})
		})
	}
	g := gate(serves, serves)
	require.False(t, g.MayAddNodes(), "the desired capacity is what CloudFormation raised")
	g.Group.Min = 1
	require.True(t, g.MayAddNodes())
	require.Equal(t, "i-1, i-2 have joined", Signals{Launching: []string{"i-1", "i-2"}}.AwaitedLaunches())
	require.Equal(t, "i-1 has joined", Signals{Launching: []string{"i-1"}}.AwaitedLaunches())
}

func TestFailures(t *testing.T) {
	failed := func(instance, of, template string, ago time.Duration) status.Node {
		return status.Node{Instance: instance, Pool: of, Template: template, State: status.NodeNotJoined, Since: noon.Add(-ago)}
	}
	nodes := []status.Node{
		failed("i-1", "a", "2", time.Minute), failed("i-2", "a", "", time.Minute), failed("i-3", "a", "1", time.Minute),
		failed("i-4", "b", "2", time.Minute), failed("i-5", "a", "2", time.Hour), failed("i-6", "a", "2", time.Hour),
		{Instance: "i-7", Pool: "a", State: status.NodeUnreachable},
	}
	replaced, held := Failures(nodes, "a", "2", []string{"i-5"}, 20*time.Minute, noon)
	require.Equal(t, []int{2, 1}, []int{replaced, held}, "an unknown template may be any; old failures have been replaced")

	require.False(t, FailsUpdate(nodes[:1], "2"), "one may be an accident")
	require.True(t, FailsUpdate(nodes[:2], "2"))
	require.False(t, FailsUpdate([]status.Node{nodes[0], nodes[2]}, "2"), "another template says nothing")
	require.True(t, FailsUpdate([]status.Node{nodes[0], nodes[2]}, ""))
}
