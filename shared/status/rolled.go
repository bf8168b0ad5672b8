package status

// Nodes that a finished roll replaced and that are still being drained. The stacks match the spec, but the roll has not ended.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ButDrains starts the clause that is added to the message of a Ready cluster while such nodes are being drained.
const ButDrains = ", but nodes are still being drained: "

// replacedByRoll is the message of such a node until more is known about it.
const replacedByRoll = "the update of its pool replaced it, and its drain has not finished"

// RecordRolledNodes records the nodes that rolls replaced and that are still being drained. Nodes that are being drained for
// another reason stay as they are.
func (s *Status) RecordRolledNodes(nodes []Node, now time.Time) {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Roll = false
	}
	for _, n := range nodes {
		i := slices.IndexFunc(s.Nodes, func(o Node) bool { return o.Instance == n.Instance && o.State != NodeNotJoined })
		if i >= 0 {
			s.Nodes[i].Roll = true
			continue
		}
		n.State, n.Message, n.Roll = NodeDraining, replacedByRoll, true
		s.SetNode(n, now)
	}
	s.MentionDrains()
}

// DrainsRoll reports whether a node that a roll replaced is still being drained.
func (s *Status) DrainsRoll() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Roll })
}

// MentionDrains makes the message of a Ready cluster name the nodes that a roll replaced and that are still being drained.
func (s *Status) MentionDrains() {
	if s.Phase != Ready {
		return
	}
	s.Message = WithoutDrains(s.Message)
	const most = 5
	var named []string
	for _, n := range s.Nodes {
		if n.Roll {
			named = append(named, fmt.Sprintf("%s of pool %s is %s", cmp.Or(n.Name, n.Instance), n.Pool, n.State))
		}
	}
	if len(named) == 0 {
		return
	}
	if len(named) > most {
		named = append(named[:most], fmt.Sprintf("and %d more", len(named)-most))
	}
	s.Message += ButDrains + strings.Join(named, ", ")
}

// WithoutDrains returns a message without what MentionDrains added.
func WithoutDrains(message string) string {
	before, _, _ := strings.Cut(message, ButDrains)
	return before
}
