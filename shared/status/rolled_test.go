package status

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadyNamesTheDrainsOfARoll(t *testing.T) {
	s := Status{Phase: Converging, Message: "changing 1 of 5 stacks"}
	s.SetNode(Node{Instance: "i-scaled-in", Pool: "a", State: NodeBlocked}, noon)
	s.SetNode(Node{Instance: "i-old", Name: "old", Pool: "a", State: NodeDraining}, noon)
	s.RecordRolledNodes([]Node{{Instance: "i-old", Pool: "a"}, {Instance: "i-old2", Pool: "a"}}, noon)
	require.Equal(t, "changing 1 of 5 stacks", s.Message, "the message of another phase stays")

	v := Verdict{Phase: Ready, Message: AsSpecified, Condition: Condition{Type: Converged, Status: "True", Reason: ReasonUpToDate}}
	v.Apply(&s, noon)
	require.Equal(t, AsSpecified+ButDrains+"old of pool a is Draining, i-old2 of pool a is Draining", s.Message)
	require.True(t, s.DrainsRoll())
	s.SetNode(Node{Instance: "i-old", Name: "old", Pool: "a", State: NodeBlocked}, evening)
	require.Equal(t, AsSpecified+ButDrains+"i-old2 of pool a is Draining, old of pool a is Blocked", s.Message)
	s.RemoveDrain("i-old")
	require.Equal(t, AsSpecified+ButDrains+"i-old2 of pool a is Draining", s.Message)
	s.RemoveNode("i-old2")
	require.Equal(t, AsSpecified, s.Message)
	require.False(t, s.DrainsRoll())
	require.Len(t, s.Nodes, 1, "a node that is being drained for another reason stays")

	s.RecordRolledNodes([]Node{{Instance: "i-old", Pool: "a"}}, evening)
	s.RecordRolledNodes(nil, evening)
	require.Equal(t, AsSpecified, s.Message, "the group has no such instance now")
	require.Equal(t, AsSpecified, WithoutDrains(AsSpecified+ButDrains+"x"))
}
