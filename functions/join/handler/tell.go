package handler

// What people are told of an instance that does not join. Joining goes on when the status cannot be written.

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// tell the status of an instance that keeps people waiting.
func (w *work) tell(ctx context.Context, state status.NodeState) {
	w.update(ctx, func(s *status.Status) { w.set(s, state, w.result.Message) })
}

// set what a status says of the instance.
func (w *work) set(s *status.Status, state status.NodeState, message string) {
	s.SetNode(status.Node{
		Name: w.result.Node, Instance: w.in.EC2InstanceID, Pool: w.pool.Pool, State: state, Message: message, Template: w.template,
	}, w.Now())
}

// forget what was told.
func (w *work) forget(ctx context.Context) {
	w.update(ctx, func(s *status.Status) {
		addons := s.Condition(status.AddonsDeployed)
		w.awaited = addons != nil && addons.Status == "False"
		s.RemoveNode(w.in.EC2InstanceID)
	})
}

// wake has the sweep converge a cluster whose add-ons waited for its first node. Nodes that came in the same minute ask for it once. If
// it is not written, the audit finds them.
func (w *work) wake(ctx context.Context) {
	if !w.awaited {
		return
	}
	if err := w.State.AddDue(ctx, w.pool.Cluster, w.in.Started.Truncate(time.Minute)); err != nil {
		logging.From(ctx).Error("asking for the cluster's add-ons", "cluster", w.pool.Cluster, "error", err.Error())
	}
}

// update the status of a cluster that has one: a node is no reason to make one anew.
func (w *work) update(ctx context.Context, change func(*status.Status)) {
	_, err := w.State.Status(ctx, w.pool.Cluster)
	if err == nil {
		err = w.State.UpdateStatus(ctx, w.pool.Cluster, change)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("writing the status", "cluster", w.pool.Cluster, "instance", w.in.EC2InstanceID, "error", err.Error())
	}
}
