package handler

// The node in the status of its cluster, while its drain is blocked or takes longer than a slice. Errors are logged: the drain continues
// without the status.

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

// recordProgress records what a slice left, or that the drain is over. It writes only changes, and creates no status.
func (h *Handler) recordProgress(ctx context.Context, n node, result events.DrainResult) {
	if n.instance == "" { // an operator named a node, and the cluster does not answer
		return
	}
	cluster, err := h.State.Status(ctx, n.pool.Cluster)
	if err == nil {
		change := func(s *status.Status) { s.RemoveDrain(n.instance) }
		if result.Outcome == drain.Remaining {
			change = func(s *status.Status) { s.SetNode(nodeStatus(n, result), h.Now()) }
		} else if !cluster.Status.HasDrain(n.instance) {
			return
		}
		err = h.State.UpdateStatus(ctx, n.pool.Cluster, change)
	}
	h.logWriteError(ctx, n, err)
}

// recordBlocked records what blocks a drain during a slice.
func (h *Handler) recordBlocked(ctx context.Context, n node, report drain.Report) {
	logging.From(ctx).Info("drain blocked", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name,
		"instance", n.instance, "waits", report.Summary())
	_, err := h.State.Status(ctx, n.pool.Cluster)
	if err == nil {
		err = h.State.UpdateStatus(ctx, n.pool.Cluster, func(s *status.Status) {
			s.SetNode(interim(s, nodeStatus(n, events.DrainResult{DrainReport: report}), report.Lasting && !report.Stalled), h.Now())
		})
	}
	h.logWriteError(ctx, n, err)
}

// interim returns the node as recorded during a slice. A block that is likely to end within the slice is recorded as Draining, unless the
// node is already recorded as Blocked. The end of the slice records the block if it is still there. Such blocks are:
//
//   - a budget that waits for another pod to be Ready: the report is stalled, or has an estimate;
//   - a failure of the API server: the report is not lasting.
//
// Otherwise each slowly starting pod and each control plane update would be recorded as Blocked. lasts is false if the report is stalled or
// not lasting. interim itself considers the estimate.
func interim(s *status.Status, node status.Node, lasts bool) status.Node {
	isBlocked := func(o status.Node) bool { return o.Instance == node.Instance && o.State == status.NodeBlocked }
	lasts = lasts && node.EstimateSeconds == nil
	if node.State == status.NodeBlocked && !lasts && !slices.ContainsFunc(s.Nodes, isBlocked) {
		node.State = status.NodeDraining
	}
	return node
}

// logWriteError logs that writing the status failed. A cluster without a status is no error.
func (h *Handler) logWriteError(ctx context.Context, n node, err error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("writing the status failed", "cluster", n.pool.Cluster, "instance", n.instance, "error", err.Error())
	}
}

// nodeStatus converts a result to the node of a status.
func nodeStatus(n node, result events.DrainResult) status.Node {
	node := status.Node{
		Name: n.name, Instance: n.instance, Pool: n.pool.Pool, State: status.NodeDraining, Message: result.Summary(),
		Blocked: result.Blocked, Pending: result.Pending, EstimateSeconds: result.EstimateSeconds,
	}
	switch {
	// A drain that continues has pods or volumes left. Without any, the slice could not reach or read the cluster.
	case result.Left == 0 && result.Volumes == 0:
		node.State = status.NodeUnreachable
	case len(result.Blocked) > 0 && result.Evicted == 0 && result.Terminating == 0:
		node.State = status.NodeBlocked
	}
	return node
}
