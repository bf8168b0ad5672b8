package handler

// What people are told of an instance that does not join. Joining goes on when the status cannot be written.

import (
	"context"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// tell the status of an instance that keeps people waiting.
func (w *work) tell(ctx context.Context, state status.NodeState) {
	w.update(ctx, func(s *status.Status) {
		s.SetNode(status.Node{Name: w.result.Node, Instance: w.in.EC2InstanceID, Pool: w.pool.Pool, State: state, Message: w.result.Message, Template: w.template}, w.Now())
	})
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
		boundary.Log(ctx).Error("asking for the cluster's add-ons", "cluster", w.pool.Cluster, "error", err.Error())
	}
}

// update the status of a cluster that has one: a node is no reason to make one anew.
func (w *work) update(ctx context.Context, change func(*status.Status)) {
	_, err := w.State.Status(ctx, w.pool.Cluster)
	if err == nil {
		err = w.State.UpdateStatus(ctx, w.pool.Cluster, change)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		boundary.Log(ctx).Error("writing the status", "cluster", w.pool.Cluster, "instance", w.in.EC2InstanceID, "error", err.Error())
	}
}

// enough instances of a pool that did not join have an update fail: one may have had bad luck, and is replaced.
const enough = 2

// failed tells of an instance that did not join, and CloudFormation too when it is not the first of an update: it rolls back at
// once, instead of waiting for an hour for a signal that no instance will send. Those of a launch template that the update replaces say nothing of it.
func (w *work) failed(ctx context.Context) {
	group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
	w.template = version(group, w.in.EC2InstanceID)
	w.tell(ctx, status.NodeNotJoined)
	if err == nil && !behind(group, w.in.EC2InstanceID) {
		err = w.fail(ctx)
	}
	if err != nil {
		boundary.Log(ctx).Error("failing the update", "cluster", w.pool.Cluster, "pool", w.pool.Pool, "error", err.Error())
	}
}

// fail the update under way, if enough instances of what it brings did not join.
func (w *work) fail(ctx context.Context) error {
	cluster, err := w.State.Status(ctx, w.pool.Cluster)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s := cluster.Status
	if !s.Converges() || len(alike(s.NotJoined(w.pool.Pool, s.Execution), w.template)) < enough {
		return nil
	}
	deployed, err := w.Stacks.Describe(ctx, w.stack())
	// A rollback goes by signals, too, and must not be failed by instances of what it rolls back.
	if err != nil || deployed.Status != "UPDATE_IN_PROGRESS" && deployed.Status != "CREATE_IN_PROGRESS" {
		return err
	}
	return w.Stacks.Signal(ctx, w.stack(), names.GroupResource, w.in.EC2InstanceID, false)
}

// alike are those nodes that may be of a version of the launch template: of some nobody knows.
func alike(nodes []status.Node, template string) (same []status.Node) {
	for _, n := range nodes {
		if template == "" || n.Template == "" || n.Template == template {
			same = append(same, n)
		}
	}
	return same
}

// boot is how long it takes at most until one that takes the place of another waits at its hook.
const boot = 5 * time.Minute

// failedLately counts instances of the pool and of a version of the launch template that did not join, and in whose place others may be coming now.
func (w *work) failedLately(ctx context.Context, template string) (n int) {
	cluster, err := w.State.Status(ctx, w.pool.Cluster)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			boundary.Log(ctx).Warn("reading the status", "cluster", w.pool.Cluster, "error", err.Error())
		}
		return 0
	}
	for _, node := range alike(cluster.Status.Nodes, template) {
		if node.State == status.NodeNotJoined && node.Pool == w.pool.Pool && w.Now().Sub(node.Since) <= w.Limit+boot {
			n++
		}
	}
	return n
}
