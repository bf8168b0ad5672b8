package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

func TestANodeRemembersSinceWhenItIsAsItIs(t *testing.T) {
	var s Status
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "2 pods"}, noon)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "1 pod"}, evening)
	require.Equal(t, []Node{{Instance: "i-1", Pool: "a", State: NodeDraining, Message: "1 pod", Since: noon}}, s.Nodes)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeBlocked}, evening)
	require.Equal(t, evening, s.Nodes[0].Since)
	require.True(t, s.Drains("i-1"))
	s.RemoveNode("i-1")
	require.False(t, s.Drains("i-1"))
	s.RemoveNode("i-1")
}

func TestWhatWasLeftBehindIsForgotten(t *testing.T) {
	var s Status
	s.SetNode(Node{Instance: "i-1", State: NodeDraining}, noon)
	s.SetNode(Node{Instance: "i-2", State: NodeDraining}, noon.Add(48*time.Hour))
	require.Len(t, s.Nodes, 2)
	s.SetNode(Node{Instance: "i-2", State: NodeDraining}, noon.Add(50*time.Hour))
	require.Len(t, s.Nodes, 1)
}

func TestInstancesThatDidNotJoinCountForTheirUpdate(t *testing.T) {
	s := Status{Phase: Converging, Execution: "x1"}
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeNotJoined}, noon)
	s.SetNode(Node{Instance: "i-2", Pool: "b", State: NodeNotJoined}, noon)
	s.SetNode(Node{Instance: "i-3", Pool: "a", State: NodeBlocked}, noon)
	s.Execution = "x2"
	s.SetNode(Node{Instance: "i-4", Pool: "a", State: NodeNotJoined}, evening)
	s.SetNode(Node{Instance: "i-1", Pool: "a", State: NodeNotJoined}, evening) // told twice is once
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
	s.Joined()
	require.Len(t, s.Nodes, 1)
	require.Equal(t, "i-3", s.Nodes[0].Instance)
}

func TestAStatusStaysSmall(t *testing.T) {
	var s Status
	for i := range 500 {
		s.SetNode(Node{Instance: fmt.Sprint(i), State: NodeBlocked, Blocked: make([]events.BlockedPod, 50)}, noon.Add(time.Duration(i)*time.Second))
	}
	require.Len(t, s.Nodes, mostNodes)
	require.Equal(t, "499", s.Nodes[mostNodes-1].Instance, "the newest stay")
	require.Len(t, s.Nodes[0].Blocked, mostBlocked)
}

// An instance that did not join is drained too, on its way out: people still are to know why it went.
func TestADrainForgetsOnlyWhatDrainsTell(t *testing.T) {
	var s Status
	now := time.Now()
	s.SetNode(Node{Instance: "i-1", State: NodeNotJoined}, now)
	s.SetNode(Node{Instance: "i-2", State: NodeBlocked}, now)
	require.False(t, s.Drains("i-1"))
	require.True(t, s.Drains("i-2"))
	s.Drained("i-1")
	s.Drained("i-2")
	require.Len(t, s.Nodes, 1)
	require.Equal(t, "i-1", s.Nodes[0].Instance)
}
