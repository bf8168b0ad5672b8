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
func (c *call) recordProgress(ctx context.Context, state status.NodeState) {
	c.updateStatus(ctx, func(s *status.Status) { c.setNode(s, state, c.result.Message) })
}

// setNode sets the instance in a status.
func (c *call) setNode(s *status.Status, state status.NodeState, message string) {
	s.SetNode(status.Node{
		Name: c.result.Node, Instance: c.in.EC2InstanceID, Pool: c.pool.Pool, State: state, Message: message, Template: c.template,
	}, c.Now())
}

// recordReady removes the instance from the status, and reads whether add-ons wait for a node.
func (c *call) recordReady(ctx context.Context) {
	c.updateStatus(ctx, func(s *status.Status) {
		addons := s.Condition(status.AddonsDeployed)
		c.addonsWait = addons != nil && addons.Status == "False"
		s.RemoveNode(c.in.EC2InstanceID)
	})
}

// requestAddons has the next sweep converge a cluster whose add-ons waited for the first node. Nodes of the same
// minute make one request. If the request is lost, the audit finds the add-ons.
func (c *call) requestAddons(ctx context.Context) {
	if !c.addonsWait {
		return
	}
	if err := c.State.AddDue(ctx, c.pool.Cluster, c.in.Started.Truncate(time.Minute)); err != nil {
		logging.From(ctx).Error("requesting the add-ons failed", "cluster", c.pool.Cluster, "error", err.Error())
	}
}

// updateStatus updates the status of a cluster that has one. It creates none.
func (c *call) updateStatus(ctx context.Context, change func(*status.Status)) {
	_, err := c.State.Status(ctx, c.pool.Cluster)
	if err == nil {
		err = c.State.UpdateStatus(ctx, c.pool.Cluster, change)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("writing the status failed", "cluster", c.pool.Cluster, "instance", c.in.EC2InstanceID, "error", err.Error())
	}
}
