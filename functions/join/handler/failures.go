package handler

// An instance that fails to join. The first one of an update is replaced. The second one fails the update, so that CloudFormation rolls
// back at once. Without that, CloudFormation would wait one hour for a signal that no instance sends. The rollback also
// terminates nodes, first those of the failed batch whose drains have not finished. So join signals the failure only when no node is being
// drained. Until then the instance stays at its launch hook.

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

// failWhen starts the part of a node's message that names the drains that must end before join fails the update.
const failWhen = "; drover fails the update when "

// recordFailure records an instance that failed to join. If it is the second one of an update, it also fails the update. waits reports
// whether drains must end first; the result's message then names them.
func (c *call) recordFailure(ctx context.Context) (waits bool) {
	group, _, err := c.Groups.Describe(ctx, c.in.AutoScalingGroupName)
	c.template = roll.Template(group, c.in.EC2InstanceID)
	var operation, drains string
	if err == nil {
		if operation, err = c.operationToFail(ctx, group); operation == updating {
			drains = c.drainsBeforeFailure(ctx, group)
		}
	}
	message, fails := c.result.Message, false
	c.updateStatus(ctx, func(s *status.Status) {
		c.result.Message = message
		c.setNode(s, status.NodeNotJoined, message)
		fails = operation != "" && s.Converges() && roll.FailsUpdate(s.NotJoined(c.pool.Pool, s.Execution), c.template)
		if waits = fails && drains != ""; waits {
			c.result.Message += drains
			c.setNode(s, status.NodeNotJoined, c.result.Message)
		}
	})
	if fails && !waits {
		err = errors.Join(err, c.Stacks.Signal(ctx, c.stackName(), names.GroupResource, c.in.EC2InstanceID, false))
	}
	if err != nil {
		logging.From(ctx).Error("failing the update failed", "cluster", c.pool.Cluster, "pool", c.pool.Pool, "error", err.Error())
	}
	return waits
}

// operationToFail returns the status of the pool's stack if this instance may fail the stack's operation, or "" if
// not. It must not fail a rollback, because it has the template that is being rolled back. It must not fail an update
// that replaces it, because it does not have the new template.
func (c *call) operationToFail(ctx context.Context, group pool.Group) (string, error) {
	if roll.IsOutdated(group, c.in.EC2InstanceID) {
		return "", nil
	}
	deployed, err := c.Stacks.Describe(ctx, c.stackName())
	if err != nil || deployed.Status != updating && deployed.Status != creating {
		return "", err
	}
	return deployed.Status, nil
}

// drainsBeforeFailure returns the drains that the failure of the update waits for, and for how long, as a part of the node's message; or
// "". The failure waits as long as the signal of an instance that joined would. During an instance refresh CloudFormation ignores signals,
// so the failure waits for nothing.
func (c *call) drainsBeforeFailure(ctx context.Context, group pool.Group) string {
	if c.isRefreshed() || c.elapsed > c.Limit+c.SignalLimit {
		return ""
	}
	gate := c.gate(group)
	awaited := gate.AwaitedHooks()
	if c.in.GivenUp != "" {
		// The machine does not call again, perhaps because the cluster did not answer. So join does not fail the update during drains. A
		// replacement joins, or fails the update.
		if awaited != "" {
			awaited = "; drover does not fail the update for it until " + awaited
		}
		return awaited
	}
	if awaited == "" {
		found, unreachable := c.readNodes(ctx)
		if awaited = unreachable; found {
			gate.Nodes = c.nodes
			awaited = gate.AwaitedDrains()
		}
	}
	if awaited == "" {
		return ""
	}
	latest := c.in.Started.Add(c.Limit + c.SignalLimit).UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s%s, by %s at the latest", failWhen, awaited, latest)
}

// onTerminated ends the work for an instance that no longer waits at its hook. It also removes the announced failure of the update from the
// node's message.
func (c *call) onTerminated(ctx context.Context) {
	c.result = events.JoinResult{Outcome: events.JoinGone, Message: "the instance is not waiting at the hook"}
	c.updateStatus(ctx, func(s *status.Status) {
		for i, n := range s.Nodes {
			if n.Instance == c.in.EC2InstanceID {
				s.Nodes[i].Message, _, _ = strings.Cut(n.Message, failWhen)
			}
		}
	})
}
