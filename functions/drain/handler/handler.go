// Package handler implements the drain function. It finds the node and the policy of its pool, drains for one slice,
// and returns what is left. The state machine drover-drain-node calls it again until no pod is left. The cluster and
// the request hold everything that a later call needs, so that any call may be repeated. shared/drain decides, and
// shared/kube/drainer acts.
package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Clusters opens clusters: kube.Opener. The error is pool.ErrNoCluster if the cluster does not exist.
type Clusters interface {
	Open(ctx context.Context, cluster string) (Cluster, error)
}

// Cluster finds and drains the nodes of one cluster: subsets of kube.Cluster and drainer.Drainer.
type Cluster interface {
	NodeOf(ctx context.Context, pool, instance string) (string, error)
	InstanceOf(ctx context.Context, node string) (string, error)
	Drain(ctx context.Context, node string, task drain.Task, forced func(pod string),
		blocked func(context.Context, drain.Report)) drain.Report
	Restore(ctx context.Context, node string, drained bool) error
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	PoolOfInstance(ctx context.Context, instance string) (events.HookMetadata, error)
	State(ctx context.Context, instance string) (string, error)
	PoolOfGroup(ctx context.Context, group string) (events.HookMetadata, error)
	Heartbeat(ctx context.Context, hook events.Lifecycle) (bool, error)
	Complete(ctx context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error)
}

// State is the status of clusters: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Handler drains nodes.
type Handler struct {
	Clusters Clusters
	Groups   Groups
	State    State
	// Slice is how long one call drains. JoinGrace is how long it waits for an instance that has not registered as a node.
	Slice, JoinGrace time.Duration
	Now              func() time.Time
	Metrics          io.Writer
}

// node is the node to drain.
type node struct {
	pool           events.HookMetadata
	name, instance string
	cluster        Cluster
}

// Handle drains until no pod is left or the slice is over. If there is a hook, it completes it as soon as the instance may terminate.
func (h *Handler) Handle(ctx context.Context, in events.DrainRequest) (events.DrainResult, error) {
	if in.Lifecycle != nil && !in.Restore {
		// The heartbeat comes first, so that the instance does not terminate during this call. If no instance waits at the hook, the event
		// was late or a duplicate.
		waits, err := h.Groups.Heartbeat(ctx, *in.Lifecycle)
		if err != nil { // the hook has time left, so the drain continues
			logging.From(ctx).Warn("heartbeat failed", "instance", in.EC2InstanceID, "error", err.Error())
		} else if !waits {
			result := resultOf(drain.Gone, "the instance is not waiting at the hook")
			if p, err := poolOf(in.Lifecycle); err == nil {
				h.recordProgress(ctx, node{pool: p, instance: in.EC2InstanceID}, result)
			}
			return result, nil
		}
	}
	n, result, err := h.find(ctx, in)
	var unreachable *fault.ClusterUnreachable
	switch {
	case errors.As(err, &unreachable):
		// A cluster that does not answer keeps its nodes, unless it is deleted: its API may never answer again.
		policy := h.policy(ctx, in, n.pool)
		if policy.ClusterDeleting && h.Now().Sub(in.Started) >= policy.Timeout.Duration() {
			return h.end(ctx, in, n, resultOf(drain.TimedOut, "the cluster is being deleted, and its API does not answer: "+err.Error()))
		}
		return h.continueLater(ctx, in, n, resultOf(drain.Remaining, err.Error())), nil
	case err != nil:
		return events.DrainResult{}, err
	case result.Outcome != "":
		return h.end(ctx, in, n, result)
	case in.Restore && h.isTerminating(ctx, in, n):
		return resultOf(drain.Done, "the instance is terminating: the drain of its terminate hook continues"), nil
	case in.Restore:
		result = resultOf(drain.Done, "the node is schedulable again")
		if err := n.cluster.Restore(ctx, n.name, false); err != nil {
			return h.continueLater(ctx, in, n, resultOf(drain.Remaining, err.Error())), nil
		}
		h.recordProgress(ctx, n, result)
		return result, nil
	}
	slice, cancel := context.WithTimeout(ctx, h.Slice)
	defer cancel()
	result.DrainReport = n.cluster.Drain(slice, n.name, drain.Task{Policy: h.policy(ctx, in, n.pool)},
		func(pod string) { h.reportForced(ctx, n, pod) }, func(ctx context.Context, report drain.Report) { h.recordBlocked(ctx, n, report) })
	if result.Outcome == drain.Remaining {
		return h.continueLater(ctx, in, n, result), nil
	}
	return h.end(ctx, in, n, result)
}

// isTerminating reports whether the instance of an aborted drain is terminating. The drain of its terminate hook has cordoned the node, and
// that node must stay cordoned. If the state cannot be read, it returns false: the drain of the hook checks the node again before it ends.
func (h *Handler) isTerminating(ctx context.Context, in events.DrainRequest, n node) bool {
	if in.Lifecycle != nil {
		return false
	}
	state, err := h.Groups.State(ctx, n.instance)
	return err == nil && strings.HasPrefix(state, pool.Terminating)
}

// deletionTimeout is how long a drain may take while its cluster is deleted: the pods of the last nodes have no other node, and end
// with their node. A pool with onTimeout Force keeps its own timeout, which the spec promised: at most 47 hours. A deletion waits for
// 49 hours.
const deletionTimeout = 5 * 60 // seconds

// The time of an instance after a spot interruption notice: two minutes, less the time that passed before the drain began. Pods get most of
// it.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
const (
	spotNotice       = 110 * time.Second
	spotLoadBalancer = 15 // seconds
)

// policy returns the policy of a pool, shortened for a spot interruption and for the deletion of the cluster.
func (h *Handler) policy(ctx context.Context, in events.DrainRequest, p events.HookMetadata) drain.Policy {
	policy := drain.PolicyWithoutPool
	if p.Drain != nil {
		policy = *p.Drain
	}
	if in.InstanceAction != "" {
		left := max(1, drain.Seconds((spotNotice-h.Now().Sub(in.Started))/time.Second))
		policy.LoadBalancerWait = min(policy.LoadBalancerWait, spotLoadBalancer)
		policy.PodGracePeriod = min(cmp.Or(policy.PodGracePeriod, left), left)
	}
	cluster, err := h.State.Status(ctx, p.Cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("reading the status failed", "cluster", p.Cluster, "error", err.Error())
	}
	if err == nil && cluster.Status.Phase == status.Deleting {
		policy.ClusterDeleting = true
		if policy.OnTimeout == drain.Wait {
			policy.OnTimeout = drain.Continue
		}
		if policy.OnTimeout != drain.Force || policy.Timeout == 0 {
			policy.Timeout = min(cmp.Or(policy.Timeout, deletionTimeout), deletionTimeout)
		}
	}
	return policy
}

// continueLater records what a slice left, and has the machine call again.
func (h *Handler) continueLater(ctx context.Context, in events.DrainRequest, n node, result events.DrainResult) events.DrainResult {
	result.Cluster, result.Pool, result.Node = n.pool.Cluster, n.pool.Pool, n.name
	result.WaitSeconds = h.wait(in, result.DrainReport)
	logging.From(ctx).Info("drain slice finished", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name,
		"instance", n.instance, "waits", result.Summary())
	h.recordProgress(ctx, n, result)
	return result
}

// end ends a drain: it completes the hook, or restores a node that stays.
func (h *Handler) end(ctx context.Context, in events.DrainRequest, n node, result events.DrainResult) (events.DrainResult, error) {
	result.Cluster, result.Pool, result.Node = n.pool.Cluster, n.pool.Pool, n.name
	logging.From(ctx).Info("drain ended", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name, "instance", n.instance,
		"outcome", result.Outcome, "message", result.Summary(), "pods", result.Pods, "stuck", result.Stuck,
		"returned", result.Returned)
	if result.Outcome == events.DrainRefused {
		return result, nil
	}
	h.recordProgress(ctx, n, result)
	switch {
	case in.Restore:
	case in.Lifecycle != nil:
		_, err := h.Groups.Complete(ctx, *in.Lifecycle, pool.Continue)
		return result, err
	case n.name != "" && result.Outcome != drain.Gone:
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return result, n.cluster.Restore(ctx, n.name, true)
	}
	return result, nil
}

// find finds the node to drain. If there is none, the result says why.
func (h *Handler) find(ctx context.Context, in events.DrainRequest) (node, events.DrainResult, error) {
	var n node
	var err error
	if in.Instance == "" && names.IsInstance(in.Node) {
		in.Instance = in.Node
	}
	switch {
	case in.Lifecycle != nil:
		n.instance = in.EC2InstanceID
		// The deployed policy applies: a user may change the policy of a drain that hangs. If the group is deleted or cannot be read, the
		// policy of the event applies.
		n.pool, err = h.Groups.PoolOfGroup(ctx, in.AutoScalingGroupName)
		if err != nil || n.pool.Cluster == "" {
			n.pool, err = poolOf(in.Lifecycle)
		}
	case in.InstanceID != "":
		n.instance = in.InstanceID
		n.pool, err = h.Groups.PoolOfInstance(ctx, n.instance)
		if err == nil && n.pool.Cluster == "" {
			return n, resultOf(drain.Gone, n.instance+" belongs to no pool of drover"), nil
		}
	case in.Cluster != "" && in.Instance != "":
		n.instance = in.Instance
		n.pool, err = h.Groups.PoolOfInstance(ctx, n.instance)
	case in.Cluster != "" && in.Node != "":
		n.pool.Cluster = in.Cluster
		if n.cluster, err = h.open(ctx, in.Cluster); err == nil {
			n.instance, err = n.cluster.InstanceOf(ctx, in.Node)
		}
		if err == nil && n.instance == "" {
			return n, resultOf(events.DrainRefused, "cluster "+in.Cluster+" has no node "+in.Node+" that runs on an instance"), nil
		}
		if err == nil {
			n.pool, err = h.Groups.PoolOfInstance(ctx, n.instance)
		}
	default:
		return n, resultOf(events.DrainRefused,
			`the input names no node: {"cluster": …, "node": …} or {"cluster": …, "instance": …}`), nil
	}
	if err == nil && in.Cluster != "" && n.pool.Cluster != in.Cluster {
		return n, resultOf(events.DrainRefused, n.instance+" belongs to no pool of cluster "+in.Cluster), nil
	}
	if err == nil && n.cluster == nil {
		n.cluster, err = h.open(ctx, n.pool.Cluster)
	}
	if errors.Is(err, pool.ErrNoCluster) {
		return n, resultOf(drain.Gone, err.Error()), nil
	}
	if err == nil {
		n.name, err = h.nodeOf(ctx, n)
	}
	if err == nil && n.name == "" {
		return n, resultOf(drain.Gone, n.instance+" has no node: it never joined, or the node was removed"), nil
	}
	return n, events.DrainResult{}, err
}

// open opens a cluster. Every error but pool.ErrNoCluster becomes *fault.ClusterUnreachable.
func (h *Handler) open(ctx context.Context, cluster string) (Cluster, error) {
	opened, err := h.Clusters.Open(ctx, cluster)
	if err != nil && !errors.Is(err, pool.ErrNoCluster) {
		return nil, &fault.ClusterUnreachable{Cause: err}
	}
	return opened, err
}

// nodeOf returns the node of an instance, or "". It waits up to JoinGrace for the node: pods on a node that registers late would be killed
// without eviction.
func (h *Handler) nodeOf(ctx context.Context, n node) (string, error) {
	const pause = 2 * time.Second
	for waited := time.Duration(0); ; waited += pause {
		name, err := n.cluster.NodeOf(ctx, n.pool.Pool, n.instance)
		if err != nil || name != "" || waited >= h.JoinGrace {
			return name, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// poolOf returns the pool that the event of a hook names.
func poolOf(hook *events.Lifecycle) (events.HookMetadata, error) {
	var pool events.HookMetadata
	if json.Unmarshal([]byte(hook.NotificationMetadata), &pool) != nil || pool.Cluster == "" {
		return pool, fmt.Errorf("hook %s of %s does not name its pool: %q", hook.LifecycleHookName, hook.AutoScalingGroupName,
			hook.NotificationMetadata)
	}
	return pool, nil
}

// Bounds of the pause between two slices, in seconds.
const (
	minWait         = 1
	terminatingWait = 30
)

// wait returns the pause until the next slice, in seconds. After a slice that evicted pods it is short: two seconds after an hour, half
// a minute after four hours, and the usual pause after twelve. While pods only terminate, it is at most half a minute in the first four
// hours. So a drain of 48 hours has fewer than the 25,000 events that an execution may have.
func (h *Handler) wait(in events.DrainRequest, report drain.Report) int64 {
	taken := h.Now().Sub(in.Started)
	elapsed, longest := int64(taken/time.Second), int64(backoff.DrainCalls.Pause(taken)/time.Second)
	short, limit := elapsed*elapsed/6_000_000, longest
	switch {
	case report.Evicted > 0:
		limit = short
	case report.Terminating > 0:
		limit = max(terminatingWait, short)
	}
	return max(minWait, min(limit, longest))
}

// reportForced logs and counts a pod that was deleted despite its budget. It does so at once, since the call may be cut off.
func (h *Handler) reportForced(ctx context.Context, n node, pod string) {
	logging.From(ctx).Warn("pod deleted despite its disruption budget", "cluster", n.pool.Cluster, "node",
		n.name, "pod", pod)
	if err := metrics.Count(h.Metrics, h.Now(), "PodsForced", "cluster", n.pool.Cluster); err != nil {
		logging.From(ctx).Error("writing a metric failed", "error", err.Error())
	}
}

// resultOf returns a result without counts of pods.
func resultOf(outcome drain.Outcome, message string) events.DrainResult {
	return events.DrainResult{DrainReport: drain.Report{Outcome: outcome, Message: message}}
}
