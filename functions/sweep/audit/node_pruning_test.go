package audit

// Which nodes the audit removes from a status.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditRemovesNodes(t *testing.T) {
	long, brief := noon.Add(-staleAfter-1), noon.Add(-staleAfter)
	draining := status.Node{Name: "node-1", Instance: "i-1", Pool: "a", State: "Draining", Since: long}
	recent := draining
	recent.Since = brief
	notJoined := status.Node{Instance: "i-1", Pool: "a", State: status.NodeNotJoined, Since: noon.Add(-1)}
	of := func(execution string, since time.Time) status.Node {
		n := notJoined
		n.Execution, n.Since = execution, since
		return n
	}
	service := []pool.Instance{{ID: "i-2", State: pool.InService}}
	drain := func(in events.DrainRequest) map[string]events.DrainRequest {
		return map[string]events.DrainRequest{"m:x": in}
	}
	for name, test := range map[string]struct {
		node    status.Node
		drains  map[string]events.DrainRequest
		group   []pool.Instance
		failing map[string]error
		kept    bool
	}{
		"whose drain is over":    {node: draining, group: service},
		"not before ten minutes": {node: recent, group: service, kept: true},
		"not while their instance is being drained": {
			node: draining, drains: drain(events.DrainRequest{InstanceID: "i-1"}), group: service, kept: true,
		},
		"not while they are being drained by name": {
			node: draining, drains: drain(events.DrainRequest{Cluster: demo, Node: "node-1"}), group: service, kept: true,
		},
		"not for a drain of another cluster": {
			node: draining, drains: drain(events.DrainRequest{Cluster: "other", Node: "node-1"}), group: service,
		},
		"not while they wait at the launch hook":    {node: draining, group: joining("i-1"), kept: true},
		"although their instance is in service":     {node: draining, group: []pool.Instance{{ID: "i-1", State: pool.InService}}},
		"although another waits at the launch hook": {node: draining, group: joining("i-3")},
		"not when drains are unknown": {
			node: draining, group: service, failing: map[string]error{"list": errThrottled}, kept: true,
		},
		"not when one drain is unknown": {
			node: draining, drains: drain(events.DrainRequest{}), group: service, failing: map[string]error{"input m:x": errThrottled}, kept: true,
		},
		"not when that cannot be written":        {node: draining, group: service, failing: map[string]error{"write": errThrottled}},
		"that did not join a pool which is full": {node: notJoined, group: service},
		"not while their pool is short":          {node: notJoined, group: joining("i-2"), kept: true},
		"not those of an execution":              {node: of("x", notJoined.Since), group: service, kept: true},
		"not those of now":                       {node: of("", noon), group: service, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &status.Status{Phase: status.Ready, Nodes: []status.Node{test.node}}, failing: test.failing}
			r := a.run()
			r.groups[names.Group(demo, "a")] = pool.Group{Desired: 1, Instances: test.group}
			r.DrainNode = sweeptest.Machine{Account: &sweeptest.Account{Drains: test.drains, Failing: test.failing}}
			r.drains = work.RunningDrains(t.Context(), r.DrainNode)
			read := *a.status
			err := r.pruneNodes(t.Context(), demo, &read)
			require.Equal(t, test.failing != nil, err != nil)
			require.Equal(t, test.kept, len(a.status.Nodes) == 1)
			require.Equal(t, !test.kept, len(a.calls) == 1)
		})
	}
	t.Run("reports what it could not learn of the others", func(t *testing.T) {
		a := &auditFixture{status: &status.Status{Nodes: []status.Node{draining, notJoined}}}
		r := a.run()
		r.groups[names.Group(demo, "a")] = pool.Group{Desired: 1, Instances: service}
		r.DrainNode = sweeptest.Machine{Account: &sweeptest.Account{Failing: map[string]error{"list": errThrottled}}}
		r.drains = work.RunningDrains(t.Context(), r.DrainNode)
		read := *a.status
		require.ErrorIs(t, r.pruneNodes(t.Context(), demo, &read), errThrottled)
		require.Equal(t, []status.Node{draining}, a.status.Nodes)
	})
	t.Run("not the recent ones among them", func(t *testing.T) {
		later := recent
		later.Name, later.Instance = "node-2", "i-2"
		a := &auditFixture{status: &status.Status{Nodes: []status.Node{draining, later}}}
		r := a.run()
		r.DrainNode = sweeptest.Machine{Account: &sweeptest.Account{}}
		r.drains = work.RunningDrains(t.Context(), r.DrainNode)
		read := *a.status
		require.NoError(t, r.pruneNodes(t.Context(), demo, &read))
		require.Equal(t, []status.Node{later}, a.status.Nodes)
	})
	t.Run("no longer names them in the message", func(t *testing.T) {
		rolled := draining
		rolled.Roll = true
		a := &auditFixture{status: &status.Status{Phase: status.Ready, Message: "as specified", Nodes: []status.Node{rolled}}}
		a.status.MentionDrains()
		require.Contains(t, a.status.Message, "node-1")
		r := a.run()
		r.DrainNode = sweeptest.Machine{Account: &sweeptest.Account{}}
		r.drains = work.RunningDrains(t.Context(), r.DrainNode)
		read := *a.status
		require.NoError(t, r.pruneNodes(t.Context(), demo, &read))
		require.Equal(t, "as specified", a.status.Message)
	})
	t.Run("lists drains once, and only for long ones", func(t *testing.T) {
		r := (&auditFixture{status: &status.Status{}}).run()
		r.drains = func() (map[string]bool, error) { return nil, errThrottled }
		require.NoError(t, r.pruneNodes(t.Context(), demo, &status.Status{Nodes: []status.Node{recent, of("x", long)}}))
	})
}

// joining is an instance at its launch hook.
func joining(id string) []pool.Instance {
	return []pool.Instance{{ID: id, State: pool.PendingWait}}
}
