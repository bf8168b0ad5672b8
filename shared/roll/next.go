// Package roll decides whether the next batch of a roll may go. It is pure.
//
// A rolling update and an instance refresh replace nodes batch by batch. Neither waits for the drains of the previous batch. So drover
// itself delays the next batch:
//
//   - change delays the first batch (FirstBatch) while nodes of the pool are being drained or launching.
//   - join delays each later batch (Gate): it delays the signal, or the end of the launch hook, of an instance that has joined.
package roll

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/pool"
)

// Gate is the gate before the next batch, for one instance that has joined its pool.
type Gate struct {
	Group    pool.Group
	Instance string
	// Refresh reports whether an instance refresh rolls the pool, and not a rolling update.
	Refresh   bool
	Readiness *events.PoolReadiness
	// Nodes are the pool's nodes. Only AwaitedNodes and Signals need them.
	Nodes []pool.Node
}

// template returns the launch template version of the instance; "" if it is not in the group, or the version no longer exists.
func (g *Gate) template() string { return Template(g.Group, g.Instance) }

// Template returns the launch template version of an instance of a group, or "".
func Template(group pool.Group, instance string) string {
	for _, i := range group.Instances {
		if i.ID == instance {
			return i.TemplateVersion
		}
	}
	return ""
}

// IsOutdated reports whether an instance has an older launch template than its group. Then the update in progress replaces it, too.
func IsOutdated(group pool.Group, instance string) bool {
	own := Template(group, instance)
	return own != "" && group.TemplateVersion != "" && own != group.TemplateVersion
}

// IsRolling reports whether the group has instances of another launch template version than this one.
func (g *Gate) IsRolling() bool {
	own := g.template()
	return own != "" && slices.ContainsFunc(g.Group.Instances, func(other pool.Instance) bool { return other.TemplateVersion != own })
}

// IsLastBatch reports whether an instance refresh has no instance left to replace: those of an older launch template are terminating, and
// all others are current. There is no next batch to hold back. The refresh ends although nodes are still being drained, and a newer spec
// can be planned. That spec may be what the drains need. See ADR 20.
func (g *Gate) IsLastBatch() bool {
	isOutdated := func(i pool.Instance) bool {
		return strings.HasPrefix(i.State, pool.Terminating) && i.TemplateVersion != g.Group.TemplateVersion
	}
	return g.Refresh && g.Group.TemplateVersion != "" && len(g.Group.ToRefresh()) == 0 && slices.ContainsFunc(g.Group.Instances, isOutdated)
}

// AwaitedGroup returns what the batch waits for, judged by the group alone, or "". It waits while another instance is being drained. In a
// rolling update this instance must be in service, since CloudFormation terminates the next instances as soon as it receives the signal.
func (g *Gate) AwaitedGroup() string {
	if leaving := g.AwaitedHooks(); leaving != "" {
		return leaving
	}
	isMember := slices.ContainsFunc(g.Group.Instances, func(i pool.Instance) bool { return i.ID == g.Instance })
	if !g.Refresh && isMember && !g.Group.IsInService(g.Instance) {
		return "it is in service"
	}
	return ""
}

// AwaitedHooks returns the wait for the drains of other instances at their terminate hooks, or "".
func (g *Gate) AwaitedHooks() string {
	leaving := slices.DeleteFunc(g.Group.Draining(), func(id string) bool { return id == g.Instance })
	if len(leaving) == 0 {
		return ""
	}
	return wait(leaving, "has been drained", "have been drained")
}

// AwaitedNodes returns what the batch waits for by the nodes of the pool, or "".
//
//  1. The node of this instance must still be ready.
//  2. No drain of another node may be in flight while its instance is in service, for an operator or a spot interruption.
//  3. The other nodes that the roll brought must be ready: another batch of the same kind would take more of the old nodes away. A node
//     without a Node object does not count. Its instance has terminated, as spot instances do, and Auto Scaling replaces it later.
func (g *Gate) AwaitedNodes() string {
	if missing := g.node(g.Instance).Missing(g.Readiness); missing != "" {
		return "it is Ready again: " + missing
	}
	if draining := g.AwaitedDrains(); draining != "" {
		return draining
	}
	if !g.IsRolling() {
		return ""
	}
	own := g.template()
	return g.namesOf("is Ready again", "are Ready again", func(n pool.Node) bool {
		return Template(g.Group, n.Instance) == own && n.Missing(g.Readiness) != ""
	})
}

// AwaitedDrains returns the wait for nodes that are being drained while their instances are in service, or "".
func (g *Gate) AwaitedDrains() string {
	return g.namesOf("has been drained", "have been drained", func(n pool.Node) bool { return n.Draining })
}

// namesOf returns the wait for the other nodes in service that match, or "". one and several are the state that they must reach.
func (g *Gate) namesOf(one, several string, matches func(pool.Node) bool) string {
	var all []string
	for _, n := range g.Nodes {
		if n.Instance != g.Instance && g.Group.IsInService(n.Instance) && matches(n) {
			all = append(all, n.Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return wait(all, one, several)
}

// wait lists names, followed by the state that one or several of them must reach.
func wait(all []string, one, several string) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0] + " " + one
	}
	return strings.Join(all, ", ") + " " + several
}

// node returns the node of an instance, or nil.
func (g *Gate) node(instance string) *pool.Node {
	if i := slices.IndexFunc(g.Nodes, func(n pool.Node) bool { return n.Instance == instance }); i >= 0 {
		return &g.Nodes[i]
	}
	return nil
}
