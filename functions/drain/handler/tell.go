package handler

// What people are told of a drain that takes longer than a slice, or that something blocks. It goes on when the status cannot be written.

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// tell what a slice came to: what remains, or that nothing does. Only what is new is written, and a node is no reason to make a
// status anew.
func (h *Handler) tell(ctx context.Context, n node, result events.DrainResult) {
	if n.instance == "" { // somebody named a node of a cluster that cannot be asked
		return
	}
	cluster, err := h.State.Status(ctx, n.pool.Cluster)
	if err == nil {
		change := func(s *status.Status) { s.Drained(n.instance) }
		if result.Outcome == drain.Remaining {
			change = func(s *status.Status) { s.SetNode(described(n, result), h.Now()) }
		} else if !cluster.Status.Drains(n.instance) {
			return
		}
		err = h.State.UpdateStatus(ctx, n.pool.Cluster, change)
	}
	h.written(ctx, n, err)
}

// blocked tells what blocks a drain in the middle of a slice.
func (h *Handler) blocked(ctx context.Context, n node, report drain.Report) {
	logging.From(ctx).Info("blocked", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name, "instance", n.instance, "waits",
		report.Summary())
	_, err := h.State.Status(ctx, n.pool.Cluster)
	if err == nil {
		err = h.State.UpdateStatus(ctx, n.pool.Cluster, func(s *status.Status) {
			s.SetNode(soFar(s, described(n, events.DrainResult{DrainReport: report}), report.Stalled), h.Now())
		})
	}
	h.written(ctx, n, err)
}

// soFar is a node in the middle of a slice. Two kinds of blocks are often over by the end of the slice, which then
// decides: a budget that waits for another pod to be Ready (stalled, or with an estimate), and failures of the API
// server. Without this, each slowly starting pod and each control plane update would be reported as Blocked.
func soFar(s *status.Status, node status.Node, stalled bool) status.Node {
	known := func(o status.Node) bool { return o.Instance == node.Instance && o.State == status.NodeBlocked }
	lasts := node.EstimateSeconds == nil && !stalled && slices.ContainsFunc(node.Blocked, func(b events.BlockedPod) bool {
		return !drain.Passes(b.Why)
	})
	if node.State == status.NodeBlocked && !lasts && !slices.ContainsFunc(s.Nodes, known) {
		node.State = status.NodeDraining
	}
	return node
}

// written logs that the status could not be. A cluster without one gets none.
func (h *Handler) written(ctx context.Context, n node, err error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("writing the status", "cluster", n.pool.Cluster, "instance", n.instance, "error", err.Error())
	}
}

// described is a node as the status has it.
func described(n node, result events.DrainResult) status.Node {
	node := status.Node{
		Name: n.name, Instance: n.instance, Pool: n.pool.Pool, State: status.NodeDraining, Message: result.Summary(),
		Blocked: result.Blocked, Pending: result.Pending, EstimateSeconds: result.EstimateSeconds,
	}
	switch {
	case result.Left == 0 && result.Volumes == 0:
		node.State = status.NodeUnreachable
	case len(result.Blocked) > 0 && result.Evicted == 0 && result.Terminating == 0:
		node.State = status.NodeBlocked
	}
	return node
}
