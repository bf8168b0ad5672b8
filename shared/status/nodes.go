package status

// Nodes that users wait for: those that take long to drain, with what blocks them, and instances that did not become nodes.

import (
	"slices"
	"time"

	"github.com/drover-run/drover/events"
)

// NodeState says what a node waits for; docs/runbook.md explains each.
type NodeState string

// The states of nodes.
const (
	// NodeDraining: its pods leave.
	NodeDraining NodeState = "Draining"
	// NodeBlocked: something prevents its pods from leaving.
	NodeBlocked NodeState = "Blocked"
	// NodeUnreachable: its state cannot be read, so the node stays.
	NodeUnreachable NodeState = "Unreachable"
	// NodeNotJoined: the instance did not become a usable node. It was replaced. During an update of its pool it is replaced later, after it
	// has failed the update.
	NodeNotJoined NodeState = "NotJoined"
)

// NodeStates lists them.
func NodeStates() []NodeState {
	return []NodeState{NodeDraining, NodeBlocked, NodeUnreachable, NodeNotJoined}
}

// Node is an instance that takes long to drain or did not join.
type Node struct {
	// Name in Kubernetes; empty if the instance is no node.
	Name     string    `json:"name,omitempty"`
	Instance string    `json:"instance"`
	Pool     string    `json:"pool"`
	State    NodeState `json:"state"`
	Message  string    `json:"message,omitempty"`
	// Blocked are pods that cannot leave now, with the disruption budgets that block them. It lists at most mostBlocked
	// pods, so counts from it may be too low.
	Blocked []events.BlockedPod `json:"blocked,omitempty"`
	// Pending are pods that no node can run, so that the budgets of Blocked allow nothing.
	Pending []events.PendingPod `json:"pending,omitempty"`
	// EstimateSeconds is the estimated time left at the last check; absent if unknown.
	EstimateSeconds *int64 `json:"estimateSeconds,omitempty"`
	// Since is when it entered this state.
	Since time.Time `json:"since"`
	// Execution that converged the cluster at that time, if any.
	Execution string `json:"execution,omitempty"`
	// Template is the version of the launch template of an instance that did not join, if known.
	Template string `json:"template,omitempty"`
	// Roll reports whether a finished roll of its pool replaced it. The cluster's message names it until its drain ends.
	Roll bool `json:"roll,omitempty"`
	// More counts the earlier instances that did not join and are no longer listed.
	More int `json:"more,omitempty"`
}

const (
	// mostBlocked limits the pods that are listed for one node, mostNodes the nodes of a cluster.
	mostBlocked, mostNodes = 10, 200
	// mostNotJoined limits the listed instances of one pool, execution and template version, because an error can end dozens in a minute. join
	// counts by the same three. It is at least the number of replacements that launch at the same time.
	mostNotJoined = 10
	// drainEnds is the age at which every drain has ended. Older entries are stale.
	drainEnds = 49 * time.Hour
)

// Converges reports whether Execution converges the cluster: to its spec, or as a step of an upgrade.
func (s *Status) Converges() bool { return s.Phase == Converging || s.Phase == Upgrading }

// SetNode adds or replaces the entry of an instance. Since changes only with the state.
func (s *Status) SetNode(n Node, now time.Time) {
	n.Since = now.UTC()
	n.Blocked = n.Blocked[:min(len(n.Blocked), mostBlocked)]
	if s.Converges() {
		n.Execution = s.Execution
	}
	kept := slices.DeleteFunc(slices.Clone(s.Nodes), func(o Node) bool {
		if o.Instance == n.Instance {
			n.Roll = n.State != NodeNotJoined && (n.Roll || o.Roll)
			if o.State == n.State {
				n.Since, n.Execution, n.More = o.Since, o.Execution, o.More
			}
			return true
		}
		return now.Sub(o.Since) > drainEnds
	})
	s.Nodes = append(kept, n)
	slices.SortStableFunc(s.Nodes, func(a, b Node) int { return a.Since.Compare(b.Since) })
	s.Nodes = s.Nodes[max(0, len(s.Nodes)-mostNodes):]
	s.bound(n)
	s.MentionDrains()
}

// bound limits the entries of instances that did not join for the same reason as n. It removes the oldest, and counts
// them in More.
func (s *Status) bound(n Node) {
	alike := func(o Node) bool {
		return o.State == NodeNotJoined && o.Pool == n.Pool && o.Execution == n.Execution && o.Template == n.Template
	}
	over, more := -mostNotJoined, 0
	for _, o := range s.Nodes {
		if alike(o) {
			over++
		}
	}
	if n.State != NodeNotJoined || over <= 0 {
		return
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(o Node) bool {
		if over <= 0 || !alike(o) {
			return false
		}
		over, more = over-1, more+1+o.More
		return true
	})
	s.Nodes[slices.IndexFunc(s.Nodes, alike)].More += more
}

// HasDrain reports whether the status has an entry about the drain of an instance.
func (s *Status) HasDrain(instance string) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Instance == instance && n.State != NodeNotJoined })
}

// RemoveDrain removes the entry about a drain. The entry of an instance that did not join stays, because that is why the instance is
// drained.
func (s *Status) RemoveDrain(instance string) {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Instance == instance && n.State != NodeNotJoined })
	s.MentionDrains()
}

// RemoveNode removes all entries of an instance.
func (s *Status) RemoveNode(instance string) {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Instance == instance })
	s.MentionDrains()
}

// ClearNotJoined removes the instances that did not join: the cluster has its desired state without them.
func (s *Status) ClearNotJoined() {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.State == NodeNotJoined })
}

// NotJoined lists the instances of a pool that did not join while the execution converged the cluster.
func (s *Status) NotJoined(pool, execution string) []Node {
	var out []Node
	for _, n := range s.Nodes {
		if n.State == NodeNotJoined && n.Pool == pool && n.Execution == execution {
			out = append(out, n)
		}
	}
	return out
}

// HasUnreachable reports whether the state of a node of a pool cannot be read.
func (s *Status) HasUnreachable(pool string) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.State == NodeUnreachable && n.Pool == pool })
}
