package handler

// The gate before the next batch of a roll. shared/roll decides; this file reads what it needs, and waits. A rolling update proceeds when
// it receives the signal of a new instance. An instance refresh proceeds when a new instance leaves its launch hook.

import (
	"context"
	"errors"
	"fmt"
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

// bootTime is the longest time from the end of a failed instance until its replacement waits at the launch hook.
const bootTime = 5 * time.Minute

// wait sets the result so that the machine calls again after a pause.
func (w *work) wait(minSeconds int64) {
	w.result.Outcome = events.JoinWaiting
	w.result.WaitSeconds = max(minSeconds, int64(backoff.JoinCalls.Pause(w.elapsed)/time.Second))
	w.result.PausedSeconds = w.in.PausedSeconds
}

// signal signals success to the pool's stack if the next batch may go. Otherwise it has the machine wait. It stops waiting after
// SignalLimit. If the signal is surplus or the stack's operation still runs, it stops after HoldTimeout.
func (w *work) signal(ctx context.Context) error {
	if !w.isRefreshed() {
		proceed, err := w.mayProceed(ctx)
		switch {
		case err != nil:
			return err
		case proceed:
		case w.elapsed <= w.Limit+w.SignalLimit, w.elapsed <= w.HoldTimeout && (w.surplus || w.isStackInProgress(ctx)):
			return nil
		default:
			logging.From(ctx).Warn("signal omitted", "instance", w.in.EC2InstanceID, "message", w.result.Message)
			w.result = events.JoinResult{Outcome: events.JoinReady, Node: w.result.Node, Message: "not signalled: " + w.result.Message}
			return nil
		}
	}
	w.result.Outcome = events.JoinReady
	if w.isReplaced {
		w.result.Message += "; the update will replace it too, so it sends no signal"
		return nil
	}
	return w.Stacks.Signal(ctx, w.stackName(), names.GroupResource, w.in.EC2InstanceID, true)
}

// isStackInProgress reports whether an operation of the pool's stack runs. If the stack cannot be read, it returns true. CloudFormation
// fails an update after one hour without signals. If it waits for terminate hooks too, that hour begins with the end of the last drain, and
// the update still needs the signals.
func (w *work) isStackInProgress(ctx context.Context) bool {
	deployed, err := w.Stacks.Describe(ctx, w.stackName())
	if err != nil {
		logging.From(ctx).Warn("reading the stack failed", "cluster", w.pool.Cluster, "pool", w.pool.Pool, "error", err.Error())
	}
	return err != nil || stack.InProgress(deployed.Status)
}

// gate returns the gate for a group.
func (w *work) gate(group pool.Group) *roll.Gate {
	return &roll.Gate{
		Group: group, Instance: w.in.EC2InstanceID, Refresh: w.isRefreshed(), Readiness: w.pool.Readiness, Nodes: w.nodes,
	}
}

// mayProceed reports whether the next batch may go. If not, the result says what it waits for, and when to call again.
func (w *work) mayProceed(ctx context.Context) (bool, error) {
	group, _, err := w.Groups.Describe(ctx, w.in.AutoScalingGroupName)
	if err != nil {
		return false, err
	}
	gate := w.gate(group)
	if w.isReplaced = !gate.Refresh && roll.IsOutdated(group, w.in.EC2InstanceID); w.isReplaced {
		return true, nil
	}
	if gate.IsLastBatch() {
		return true, nil
	}
	until, err := w.blockedUntil(ctx, gate)
	if err != nil {
		return false, err
	}
	if until == "" {
		return !w.startPause(gate), nil
	}
	w.wait(0)
	w.result.Message += "; " + w.delayed() + " waits until " + until
	return false, nil
}

// delayed names what delays the next batch, for the message.
func (w *work) delayed() string {
	if w.isRefreshed() {
		return "its launch hook"
	}
	return "its signal"
}

// blockedUntil returns what the next batch waits for, or "". It reads no more than it needs: first the group decides, then the nodes, then
// the number of signals.
func (w *work) blockedUntil(ctx context.Context, gate *roll.Gate) (until string, err error) {
	if until := gate.ByGroup(); until != "" {
		return until, nil
	}
	found, unreachable := w.readNodes(ctx)
	if unreachable != "" {
		return unreachable, nil
	}
	gate.Nodes = w.nodes
	if found {
		if until := gate.ByNodes(); until != "" {
			return until, nil
		}
	}
	if gate.Refresh {
		return "", nil
	}
	if until, err = w.signalGate(ctx, gate); err == nil {
		w.surplus = until != ""
	}
	return until, err
}

// signalGate returns why CloudFormation does not need this signal yet, or "" if it does.
func (w *work) signalGate(ctx context.Context, gate *roll.Gate) (string, error) {
	if !gate.MayAddNodes() {
		return "", nil
	}
	if err := w.readUpdate(ctx); err != nil {
		return "", err
	}
	signals, counted := gate.Signals(w.minDuringUpdate)
	switch {
	case !counted:
		return "", nil
	case signals.IsSurplus():
		return roll.SurplusWait, nil
	case signals.IsNeeded(0, 0):
		return "", nil
	}
	if signals.IsNeeded(w.recentFailures(ctx, gate, signals.Launching)) {
		return "", nil
	}
	return signals.LaunchWait(), nil
}

// readUpdate reads, once, how many instances the rolling update keeps in the group.
func (w *work) readUpdate(ctx context.Context) error {
	if w.described {
		return nil
	}
	deployed, err := w.Stacks.Describe(ctx, w.stackName())
	if err != nil {
		return err
	}
	w.described, w.minDuringUpdate = true, 0
	inService, err := strconv.Atoi(deployed.Parameters[render.MinInstancesInService])
	batch, err2 := strconv.Atoi(deployed.Parameters[render.MaxBatchSize])
	if err == nil && err2 == nil && inService > 0 && stack.InProgress(deployed.Status) {
		w.minDuringUpdate = inService + batch
	}
	return nil
}

// recentFailures counts the instances that failed to join, by the status: see roll.Failures.
func (w *work) recentFailures(ctx context.Context, gate *roll.Gate, launching []string) (replaced, held int) {
	cluster, err := w.State.Status(ctx, w.pool.Cluster)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			logging.From(ctx).Warn("reading the status failed", "cluster", w.pool.Cluster, "error", err.Error())
		}
		return 0, 0
	}
	template := roll.Template(gate.Group, w.in.EC2InstanceID)
	return roll.Failures(cluster.Status.Nodes, w.pool.Pool, template, launching, w.Limit+bootTime, w.Now())
}

// readNodes reads the nodes of the pool. It returns found = false if the cluster does not exist. If the cluster does not answer, it returns
// what to wait for.
func (w *work) readNodes(ctx context.Context) (found bool, unreachable string) {
	cluster, err := w.open(ctx)
	if errors.Is(err, pool.ErrNoCluster) {
		return false, ""
	}
	var nodes []pool.Node
	if err == nil {
		nodes, err = cluster.PoolNodes(ctx, w.pool.Pool)
	}
	if err != nil {
		return false, "the cluster's API answers: " + err.Error()
	}
	w.nodes = nodes
	return true, ""
}

// startPause starts or continues the pool's pause, and reports whether it is still running. Only a group that is being rolled pauses.
func (w *work) startPause(gate *roll.Gate) bool {
	if w.pool.Update == nil || w.in.PausedSeconds >= w.pool.Update.PauseSeconds || !gate.IsRolling() {
		return false
	}
	w.result.Outcome = events.JoinWaiting
	w.result.WaitSeconds = min(maxPauseSeconds, w.pool.Update.PauseSeconds-w.in.PausedSeconds)
	w.result.PausedSeconds = w.in.PausedSeconds + w.result.WaitSeconds
	w.result.Message += fmt.Sprintf("; %s waits for the pool's pause of %d s", w.delayed(), w.pool.Update.PauseSeconds)
	return true
}
