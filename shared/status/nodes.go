package status

// Nodes that keep people waiting: those that are being drained for longer than a moment, and what blocks them; and instances
// that did not become nodes.

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
	// NodeBlocked: something keeps its pods from leaving.
	NodeBlocked NodeState = "Blocked"
	// NodeUnreachable: nobody can be asked about it; it is kept meanwhile.
	NodeUnreachable NodeState = "Unreachable"
	// NodeNotJoined: the instance did not become a node that can be used, and was replaced; or it will be, once it has
	// failed its pool's update.
	NodeNotJoined NodeState = "NotJoined"
)

// NodeStates lists them.
func NodeStates() []NodeState {
	return []NodeState{NodeDraining, NodeBlocked, NodeUnreachable, NodeNotJoined}
}

// Node is what is known of an instance that keeps people waiting.
type Node struct {
	// Name in Kubernetes; empty when the instance is no node.
	Name     string    `json:"name,omitempty"`
	Instance string    `json:"instance"`
	Pool     string    `json:"pool"`
	State    NodeState `json:"state"`
	Message  string    `json:"message,omitempty"`
	// Blocked are pods that cannot leave now, with the disruption budgets that are in the way; not all when there are many.
	Blocked []events.BlockedPod `json:"blocked,omitempty"`
	// Pending are pods that no node can run, so that the budgets of Blocked allow nothing.
	Pending []events.PendingPod `json:"pending,omitempty"`
	// EstimateSeconds of the time left, when the node was looked at last; absent when nobody can tell.
	EstimateSeconds *int64 `json:"estimateSeconds,omitempty"`
	// Since when it is in this state.
	Since time.Time `json:"since"`
	// Execution that converged the cluster then, if one did.
	Execution string `json:"execution,omitempty"`
	// Template is the version of the launch template of an instance that did not join, if it was known.
	Template string `json:"template,omitempty"`
	// Roll says that a finished roll of its pool replaced it: the cluster's message names it until its drain is over.
	Roll bool `json:"roll,omitempty"`
	// More is how many others that did not join were told of before this one, and are named no more.
	More int `json:"more,omitempty"`
}

const (
	// mostBlocked bounds the pods named of one node, mostNodes the nodes of a cluster.
	mostBlocked, mostNodes = 10, 200
	// mostNotJoined bounds the instances named that did not join a pool: an error can end dozens in a minute. It is of
	// one execution and one version of the launch template, for join counts by those; and not smaller than what may be
	// on its way in their place at a time.
	mostNotJoined = 10
	// drainEnds is when a drain is over whatever anybody does: what is older was left behind.
	drainEnds = 49 * time.Hour
)

// Converges says whether Execution converges the cluster: to what its spec says, or as a step of an upgrade.
func (s *Status) Converges() bool { return s.Phase == Converging || s.Phase == Upgrading }

// SetNode adds or replaces what is known of an instance. Since stays when its state does.
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

// Drains says whether anything is known of an instance that is being drained.
func (s *Status) Drains(instance string) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Instance == instance && n.State != NodeNotJoined })
}

// Drained forgets what kept a drain. That the instance did not join stays: it is drained because of that.
func (s *Status) Drained(instance string) {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Instance == instance && n.State != NodeNotJoined })
	s.MentionDrains()
}

// RemoveNode forgets an instance.
func (s *Status) RemoveNode(instance string) {
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.Instance == instance })
	s.MentionDrains()
}

// Joined forgets the instances that did not join: the cluster is what it should be without them.
func (s *Status) Joined() {
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
