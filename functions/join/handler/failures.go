package handler

// An instance that fails to join. The first one of an update is replaced. The second one fails the update, so that CloudFormation rolls
// back at once. Without that, CloudFormation would wait one hour for a signal that no instance sends. The rollback takes nodes out too,
// beginning with those of the failed batch that are still drained. So the failure is signalled when no node is drained. Until then the
// instance stays at its launch hook.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/roll"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

const updating, creating = stack.UpdateInProgress, stack.CreateInProgress

// failWhen begins the part of a node's message that says what the failure of the update waits for.
const failWhen = "; drover fails the update when "

// recordFailure records an instance that failed to join. If it is the second one of an update, it also fails the update. waits is true if
// that has to wait for drains; then the result says for which.
func (w *work) recordFailure(ctx context.Context) (waits bool) {
	group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
	w.template = roll.Template(group, w.in.EC2InstanceID)
	var operation, drains string
	if err == nil {
		if operation, err = w.failableOperation(ctx, group); operation == updating {
			drains = w.drainsBeforeFailure(ctx, group)
		}
	}
	message, fails := w.result.Message, false
	w.updateStatus(ctx, func(s *status.Status) {
		w.result.Message = message
		w.setNode(s, status.NodeNotJoined, message)
		fails = operation != "" && s.Converges() && roll.FailsUpdate(s.NotJoined(w.pool.Pool, s.Execution), w.template)
		if waits = fails && drains != ""; waits {
			w.result.Message += drains
			w.setNode(s, status.NodeNotJoined, w.result.Message)
		}
	})
	if fails && !waits {
		err = errors.Join(err, w.Stacks.Signal(ctx, w.stackName(), names.GroupResource, w.in.EC2InstanceID, false))
	}
	if err != nil {
		logging.From(ctx).Error("failing the update failed", "cluster", w.pool.Cluster, "pool", w.pool.Pool, "error", err.Error())
	}
	return waits
}

// failableOperation returns the status of the pool's stack if the instance may fail its operation, or "". A rollback needs signals too, but
// an instance of the rolled back version must not fail it. An instance that the update replaces says nothing about the update.
func (w *work) failableOperation(ctx context.Context, group pool.Group) (string, error) {
	if roll.IsOutdated(group, w.in.EC2InstanceID) {
		return "", nil
	}
	deployed, err := w.Stacks.Describe(ctx, w.stackName())
	if err != nil || deployed.Status != updating && deployed.Status != creating {
		return "", err
	}
	return deployed.Status, nil
}

// drainsBeforeFailure returns the drains that the failure of the update waits for, and for how long, as a part of the
// node's message; or "". The failure waits as long as the signal of an instance that joined would. During an instance
// refresh CloudFormation ignores signals, so it waits for nothing.
func (w *work) drainsBeforeFailure(ctx context.Context, group pool.Group) string {
	if w.isRefreshed() || w.elapsed > w.Limit+w.SignalLimit {
		return ""
	}
	gate := w.gate(group)
	until := gate.AtHooks()
	if w.in.GivenUp != "" {
		// The machine does not call again, and the cluster may be the reason. So the update is not failed during drains: a replacement
		// instance joins, or fails the update later.
		if until != "" {
			until = "; drover does not fail the update for it while " + until
		}
		return until
	}
	if until == "" {
		found, unreachable := w.readNodes(ctx)
		if until = unreachable; found {
			gate.Nodes = w.nodes
			until = gate.Draining()
		}
	}
	if until == "" {
		return ""
	}
	latest := w.in.Started.Add(w.Limit + w.SignalLimit).UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s%s, by %s at the latest", failWhen, until, latest)
}

// onTerminated ends the work for an instance that no longer waits at its hook. It no longer fails the update.
func (w *work) onTerminated(ctx context.Context) {
	w.result = events.JoinResult{Outcome: events.JoinGone, Message: "the instance is not waiting at the hook"}
	w.updateStatus(ctx, func(s *status.Status) {
		for i, n := range s.Nodes {
			if n.Instance == w.in.EC2InstanceID {
				s.Nodes[i].Message, _, _ = strings.Cut(n.Message, failWhen)
			}
		}
	})
}
