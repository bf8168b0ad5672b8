package handler

// The gate before the next batch of a roll. shared/roll decides; this file reads what it needs, and waits. A rolling update proceeds when
// it receives the signal of a new instance. An instance refresh proceeds when a new instance leaves its launch hook.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/roll"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/store"
)

// Pauses between two calls, in seconds.
const (
	minUnreachableWaitSeconds = 10
	// maxPauseSeconds is less than half of the launch hook's timeout, so that the heartbeat of each call is in time.
	maxPauseSeconds = 400
)

// After the end of the launch hook, Auto Scaling puts the instance in service within moments. join reads the group again after each
// serviceInterval, for up to serviceLimit. That costs less than another call by the machine, and the next batch begins sooner.
const (
	serviceInterval = 200 * time.Millisecond
	serviceLimit    = time.Second
)

// settledSeconds is how long a surplus signal is held while nothing happens in the group, in addition to the pool's pause.
const settledSeconds = 600

// bootTime is the longest time from the end of a failed instance until its replacement waits at the launch hook.
const bootTime = 5 * time.Minute

// wait sets the result so that the machine calls again after a pause.
func (c *call) wait(minSeconds int64) {
	c.result.Outcome = events.JoinWaiting
	c.result.WaitSeconds = max(minSeconds, int64(backoff.JoinPause(c.elapsed, c.result.Node != "")/time.Second))
	c.result.PausedSeconds = c.in.PausedSeconds
}

// signal signals success to the pool's stack if the next batch may go. Otherwise it has the machine wait. It stops waiting after
// SignalLimit. If the signal is surplus or the stack's operation still runs, it stops after HoldTimeout.
func (c *call) signal(ctx context.Context) error {
	if !c.isRefreshed() {
		proceed, err := c.mayProceed(ctx)
		switch {
		case err != nil:
			return err
		case proceed:
		case c.elapsed <= c.Limit+c.SignalLimit, c.elapsed <= c.HoldTimeout && (c.waitsForCount || c.isStackInProgress(ctx)):
			return nil
		default:
			logging.From(ctx).Warn("signal omitted", "instance", c.in.EC2InstanceID, "message", c.result.Message)
			c.result = events.JoinResult{Outcome: events.JoinReady, Node: c.result.Node, Message: "not signalled: " + c.result.Message}
			return nil
		}
	}
	c.result.Outcome = events.JoinReady
	if c.willBeReplaced {
		c.result.Message += "; the update will replace it too, so it sends no signal"
		return nil
	}
	return c.Stacks.Signal(ctx, c.stackName(), names.GroupResource, c.in.EC2InstanceID, true)
}

// isStackInProgress reports whether an operation of the pool's stack runs. If the stack cannot be read, it returns true. CloudFormation
// fails an update after one hour without signals. If it waits for terminate hooks too, that hour begins with the end of the last drain, and
// the update still needs the signals.
func (c *call) isStackInProgress(ctx context.Context) bool {
	deployed, err := c.Stacks.Describe(ctx, c.stackName())
	if err != nil {
		logging.From(ctx).Warn("reading the stack failed", "cluster", c.pool.Cluster, "pool", c.pool.Pool, "error", err.Error())
	}
	return err != nil || stack.InProgress(deployed.Status)
}

// gate returns the gate for a group.
func (c *call) gate(group pool.Group) *roll.Gate {
	return &roll.Gate{
		Group: group, Instance: c.in.EC2InstanceID, Refresh: c.isRefreshed(), Readiness: c.pool.Readiness, Nodes: c.nodes,
	}
}

// describeGroup reads the group of the instance. If this call completed the launch hook, it waits until the instance is in service.
func (c *call) describeGroup(ctx context.Context) (pool.Group, error) {
	for waited := time.Duration(0); ; waited += serviceInterval {
		group, _, err := c.Groups.Describe(ctx, c.in.AutoScalingGroupName)
		isPending := func(i pool.Instance) bool { return i.ID == c.in.EC2InstanceID && i.State == pool.PendingProceed }
		if err != nil || !c.completed || waited >= serviceLimit || !slices.ContainsFunc(group.Instances, isPending) {
			return group, err
		}
		select {
		case <-ctx.Done():
			return group, ctx.Err()
		case <-time.After(serviceInterval):
		}
	}
}

// mayProceed reports whether the next batch may go. If not, the result says what it waits for, and when to call again.
func (c *call) mayProceed(ctx context.Context) (bool, error) {
	group, err := c.describeGroup(ctx)
	if err != nil {
		return false, err
	}
	gate := c.gate(group)
	if c.willBeReplaced = !gate.Refresh && roll.IsOutdated(group, c.in.EC2InstanceID); c.willBeReplaced {
		return true, nil
	}
	if gate.IsLastBatch() {
		return true, nil
	}
	awaited, err := c.awaitedByBatch(ctx, gate)
	if err != nil {
		return false, err
	}
	if awaited == "" {
		return !c.startPause(gate), nil
	}
	c.wait(0)
	if awaited == roll.AwaitedSignal && c.isSettled(gate) {
		c.result.WaitSeconds, c.result.PausedSeconds = 0, 0
		return true, nil
	}
	c.result.Message += "; " + c.delayReason() + " waits until " + awaited
	return false, nil
}

// isSettled reports whether nothing has happened in the group for so long that the update may need a surplus signal: see roll.Signals. It
// counts the pauses of the machine, so that an outage of the function does not count.
func (c *call) isSettled(gate *roll.Gate) bool {
	limit := int64(settledSeconds)
	if c.pool.Update != nil {
		limit += c.pool.Update.PauseSeconds
	}
	switch {
	case !gate.IsSettled():
		c.result.PausedSeconds = 0
	case c.in.PausedSeconds >= limit:
		return true
	default:
		c.result.PausedSeconds += c.result.WaitSeconds
	}
	return false
}

// delayReason names what delays the next batch, for the message.
func (c *call) delayReason() string {
	if c.isRefreshed() {
		return "its launch hook"
	}
	return "its signal"
}

// awaitedByBatch returns what the next batch waits for, or "". It reads only what it needs: first the group decides, then the nodes, then
// the number of signals.
func (c *call) awaitedByBatch(ctx context.Context, gate *roll.Gate) (awaited string, err error) {
	if awaited := gate.AwaitedGroup(); awaited != "" {
		return awaited, nil
	}
	found, unreachable := c.readNodes(ctx)
	if unreachable != "" {
		return unreachable, nil
	}
	gate.Nodes = c.nodes
	if found {
		if awaited := gate.AwaitedNodes(); awaited != "" {
			return awaited, nil
		}
	}
	if gate.Refresh {
		return "", nil
	}
	if awaited, err = c.signalGate(ctx, gate); err == nil {
		c.waitsForCount = awaited != ""
	}
	return awaited, err
}

// signalGate returns why CloudFormation does not need this signal yet, or "" if it does.
func (c *call) signalGate(ctx context.Context, gate *roll.Gate) (string, error) {
	if !gate.MayAddNodes() {
		return "", nil
	}
	if err := c.readUpdate(ctx); err != nil {
		return "", err
	}
	signals, counted := gate.Signals(c.minDuringUpdate)
	switch {
	case !counted:
		return "", nil
	case signals.IsSurplus():
		return roll.AwaitedSignal, nil
	case signals.IsNeeded(0, 0):
		return "", nil
	}
	if signals.IsNeeded(c.recentFailures(ctx, gate, signals.Launching)) {
		return "", nil
	}
	return signals.AwaitedLaunches(), nil
}

// readUpdate reads, once, how many instances the rolling update keeps in the group.
func (c *call) readUpdate(ctx context.Context) error {
	if c.described {
		return nil
	}
	deployed, err := c.Stacks.Describe(ctx, c.stackName())
	if err != nil {
		return err
	}
	c.described, c.minDuringUpdate = true, 0
	inService, err := strconv.Atoi(deployed.Parameters[render.MinInstancesInService])
	batch, err2 := strconv.Atoi(deployed.Parameters[render.MaxBatchSize])
	if err == nil && err2 == nil && inService > 0 && stack.InProgress(deployed.Status) {
		c.minDuringUpdate = inService + batch
	}
	return nil
}

// recentFailures counts the instances that failed to join, by the status: see roll.Failures.
func (c *call) recentFailures(ctx context.Context, gate *roll.Gate, launching []string) (replaced, held int) {
	cluster, err := c.State.Status(ctx, c.pool.Cluster)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			logging.From(ctx).Warn("reading the status failed", "cluster", c.pool.Cluster, "error", err.Error())
		}
		return 0, 0
	}
	template := roll.Template(gate.Group, c.in.EC2InstanceID)
	return roll.Failures(cluster.Status.Nodes, c.pool.Pool, template, launching, c.Limit+bootTime, c.Now())
}

// readNodes reads the nodes of the pool. It returns found = false if the cluster does not exist. If the cluster does not answer, it returns
// what to wait for.
func (c *call) readNodes(ctx context.Context) (found bool, unreachable string) {
	cluster, err := c.open(ctx)
	if errors.Is(err, pool.ErrNoCluster) {
		return false, ""
	}
	var nodes []pool.Node
	if err == nil {
		nodes, err = cluster.PoolNodes(ctx, c.pool.Pool)
	}
	if err != nil {
		return false, "the cluster's API answers again; it failed with: " + err.Error()
	}
	c.nodes = nodes
	return true, ""
}

// startPause starts or continues the pool's pause, and reports whether it is still running. Only a group that is being rolled pauses.
func (c *call) startPause(gate *roll.Gate) bool {
	if c.pool.Update == nil || c.in.PausedSeconds >= c.pool.Update.PauseSeconds || !gate.IsRolling() {
		return false
	}
	c.result.Outcome = events.JoinWaiting
	c.result.WaitSeconds = min(maxPauseSeconds, c.pool.Update.PauseSeconds-c.in.PausedSeconds)
	c.result.PausedSeconds = c.in.PausedSeconds + c.result.WaitSeconds
	c.result.Message += fmt.Sprintf("; %s waits for the pool's pause of %d s", c.delayReason(), c.pool.Update.PauseSeconds)
	return true
}
