package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

func TestNodeSince(t *testing.T) {
	var s Status
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "2 pods"}, noon)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "1 pod"}, evening)
	require.Equal(t, []Node{{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "1 pod", Since: noon}}, s.Nodes)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeBlocked}, evening)
	require.Equal(t, evening, s.Nodes[0].Since)
	require.True(t, s.HasDrain("i-1"))
	s.RemoveNode("i-1")
	require.False(t, s.HasDrain("i-1"))
	s.RemoveNode("i-1")
}

func TestOldNodesAreRemoved(t *testing.T) {
	var s Status
	s.SetNode(Node{Instance: "i-1", State: NodeDraining}, noon)
	s.SetNode(Node{Instance: "i-2", State: NodeDraining}, noon.Add(48*time.Hour))
	require.Len(t, s.Nodes, 2)
	s.SetNode(Node{Instance: "i-2", State: NodeDraining}, noon.Add(50*time.Hour))
	require.Len(t, s.Nodes, 1)
}

func TestFailedJoinsCountForTheirUpdate(t *testing.T) {
	s := Status{Phase: Converging, Execution: "x1"}
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeNotJoined}, noon)
	s.SetNode(Node{Instance: "i-2", Pool: "b", State: NodeNotJoined}, noon)
	s.SetNode(Node{Instance: "i-3", Pool: "a", State: NodeBlocked}, noon)
	s.Execution = "x2"
	s.SetNode(Node{Instance: "i-4", Pool: "a", State: NodeNotJoined}, evening)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeNotJoined}, evening) // recorded twice, listed once
	s.Phase = Ready
	s.SetNode(Node{Instance: "i-5", Pool: "a", State: NodeNotJoined}, evening)
	of := func(execution string) (ids []string) {
		for _, n := range s.NotJoined("a", execution) {
			ids = append(ids, n.Instance)
		}
		return ids
	}
	require.Equal(t, []string{"i-1"}, of("x1"))
	require.Equal(t, []string{"i-4"}, of("x2"))
	s.Phase = Upgrading
	s.SetNode(Node{Instance: "i-6", Pool: "a", State: NodeNotJoined}, evening)
	require.Equal(t, []string{"i-4", "i-6"}, of("x2"), "a step of an upgrade is an execution like any")
	s.ClearNotJoined()
	require.Len(t, s.Nodes, 1)
	require.Equal(t, "i-3", s.Nodes[0].Instance)
}

func TestNodesAreLimited(t *testing.T) {
	var s Status
	for i := range 500 {
		s.SetNode(Node{
			Instance: fmt.Sprint(i), State: NodeBlocked, Blocked: make([]events.BlockedPod, 50),
		}, noon.Add(time.Duration(i)*time.Second))
	}
	require.Len(t, s.Nodes, mostNodes)
	require.Equal(t, "499", s.Nodes[mostNodes-1].Instance, "the newest stay")
	require.Len(t, s.Nodes[0].Blocked, mostBlocked)
}

// An instance that did not join is drained before its termination. The status keeps the reason.
func TestDrainRemovesOnlyDrainStates(t *testing.T) {
	var s Status
	now := time.Now()
	s.SetNode(Node{Instance: "i-1", State: NodeNotJoined}, now)
	s.SetNode(Node{Instance: "i-2", State: NodeBlocked}, now)
	require.False(t, s.HasDrain("i-1"))
	require.True(t, s.HasDrain("i-2"))
	s.RemoveDrain("i-1")
	s.RemoveDrain("i-2")
	require.Len(t, s.Nodes, 1)
	require.Equal(t, "i-1", s.Nodes[0].Instance)
}

// A pool whose instances fail within seconds has many. They are counted for each version of the launch template and each
// execution, since the count decides whether an update fails.
func TestNewestFailedJoinsAreListed(t *testing.T) {
	s := Status{Phase: Converging, Execution: "x1"}
	fail := func(id, pool, template string, at int) {
		s.SetNode(Node{Instance: id, Pool: pool, State: NodeNotJoined, Template: template}, noon.Add(time.Duration(at)*time.Second))
	}
	fail("b", "b", "1", 0)
	fail("old", "a", "1", 0)
	for i := range 30 {
		fail(fmt.Sprint("new-", i), "a", "2", 1+i)
	}
	fail("new-29", "a", "2", 40) // recorded twice, listed once
	s.SetNode(Node{Instance: "drained", Pool: "a", State: NodeBlocked}, evening)
	var ids []string
	more := 0
	for _, n := range s.NotJoined("a", "x1") {
		ids = append(ids, n.Instance)
		more += n.More
	}
	require.Equal(t, []string{"old", "new-20", "new-21", "new-22", "new-23", "new-24", "new-25", "new-26", "new-27", "new-28", "new-29"}, ids)
	require.Equal(t, 20, more)
	require.Equal(t, 20, s.NotJoined("a", "x1")[1].More, "the oldest that is named says how many there were before it")
	require.Len(t, s.NotJoined("b", "x1"), 1)
	s.Execution = "x2"
	fail("late", "a", "2", 50)
	require.Len(t, s.NotJoined("a", "x1"), 11)
	require.Len(t, s.NotJoined("a", "x2"), 1)
}
