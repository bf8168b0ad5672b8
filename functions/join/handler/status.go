package handler

// The instance in the status of its cluster. An error here is logged: joining continues without the status.

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// recordProgress records the state of an instance that has not joined.
func (w *work) recordProgress(ctx context.Context, state status.NodeState) {
	w.updateStatus(ctx, func(s *status.Status) { w.setNode(s, state, w.result.Message) })
}

// setNode sets the instance in a status.
func (w *work) setNode(s *status.Status, state status.NodeState, message string) {
	s.SetNode(status.Node{
		Name: w.result.Node, Instance: w.in.EC2InstanceID, Pool: w.pool.Pool, State: state, Message: message, Template: w.template,
	}, w.Now())
}

// recordReady removes the instance from the status, and reads whether add-ons wait for a node.
func (w *work) recordReady(ctx context.Context) {
	w.updateStatus(ctx, func(s *status.Status) {
		addons := s.Condition(status.AddonsDeployed)
		w.addonsWait = addons != nil && addons.Status == "False"
		s.RemoveNode(w.in.EC2InstanceID)
	})
}

// requestAddons has the next sweep converge a cluster whose add-ons waited for the first node. Nodes of the same
// minute make one request. If the request is lost, the audit finds the add-ons.
func (w *work) requestAddons(ctx context.Context) {
	if !w.addonsWait {
		return
	}
	if err := w.State.AddDue(ctx, w.pool.Cluster, w.in.Started.Truncate(time.Minute)); err != nil {
		logging.From(ctx).Error("requesting the add-ons failed", "cluster", w.pool.Cluster, "error", err.Error())
	}
}

// updateStatus updates the status of a cluster that has one. It creates none.
func (w *work) updateStatus(ctx context.Context, change func(*status.Status)) {
	_, err := w.State.Status(ctx, w.pool.Cluster)
	if err == nil {
		err = w.State.UpdateStatus(ctx, w.pool.Cluster, change)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("writing the status failed", "cluster", w.pool.Cluster, "instance", w.in.EC2InstanceID, "error", err.Error())
	}
}
