// Package handler drains a node: it finds the node and its pool's policy, works on it for a while, and says what is left. What
// it knows is in the cluster and in the request, so that any call can be the last one or the first.
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
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/drainer"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/metrics"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Clusters opens clusters: a subset of kube.Clusters.
type Clusters interface {
	Open(ctx context.Context, cluster string) (*kube.Cluster, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	PoolOf(ctx context.Context, instance string) (events.Pool, error)
	State(ctx context.Context, instance string) (string, error)
	Pool(ctx context.Context, group string) (events.Pool, error)
	Heartbeat(ctx context.Context, hook events.Lifecycle) (bool, error)
	Complete(ctx context.Context, hook events.Lifecycle, result autoscaling.Result) (bool, error)
}

// State is where people read of drains that take time: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Handler drains nodes.
type Handler struct {
	Clusters Clusters
	Groups   Groups
	State    State
	// Slice is how long one call works, Late how long it waits for an instance to become a node that is none yet.
	Slice, Late time.Duration
	Now         func() time.Time
	Metrics     io.Writer
}

// node that is to be drained.
type node struct {
	pool           events.Pool
	name, instance string
	cluster        *kube.Cluster
}

// Handle works on a drain until nothing is left or the slice is over. It completes the hook, if there is one, as soon as the
// node may go.
func (h *Handler) Handle(ctx context.Context, in events.DrainRequest) (events.DrainResult, error) {
	if in.Lifecycle != nil && !in.Release {
		// First of all: however long the rest takes, the instance does not end meanwhile. A hook that nobody waits at any more
		// belongs to an event that came late or twice.
		waits, err := h.Groups.Heartbeat(ctx, *in.Lifecycle)
		if err != nil { // the hook has time, and the pods had better leave meanwhile
			logging.From(ctx).Warn("no heartbeat", "instance", in.EC2InstanceID, "error", err.Error())
		} else if !waits {
			result := ended(drain.Gone, "the instance does not wait at the hook")
			if pool, err := said(in.Lifecycle); err == nil {
				h.tell(ctx, node{pool: pool, instance: in.EC2InstanceID}, result)
			}
			return result, nil
		}
	}
	n, result, err := h.find(ctx, in)
	var unreachable *fault.ClusterUnreachable
	switch {
	case errors.As(err, &unreachable):
		// A cluster that cannot be asked keeps its nodes, for however long.
		result = ended(drain.Remaining, err.Error())
		return h.remains(ctx, in, n, result), nil
	case err != nil:
		return events.DrainResult{}, err
	case result.Outcome != "":
		return h.end(ctx, in, n, result)
	case in.Release && h.goes(ctx, in, n):
		return ended(drain.Done, "the instance goes: who drains it at its hook has the node"), nil
	case in.Release:
		result = ended(drain.Done, "the node is as it was before")
		if err := drainer.New(n.cluster).Release(ctx, n.name, false); err != nil {
			return h.remains(ctx, in, n, ended(drain.Remaining, err.Error())), nil
		}
		h.tell(ctx, n, result)
		return result, nil
	}
	slice, cancel := context.WithTimeout(ctx, h.Slice)
	defer cancel()
	result.DrainReport = drainer.New(n.cluster).Drain(slice, n.name, drain.Task{Policy: h.policy(ctx, in, n.pool)},
		func(pod string) { h.forced(ctx, n, pod) }, func(ctx context.Context, report drain.Report) { h.blocked(ctx, n, report) })
	if result.Outcome == drain.Remaining {
		return h.remains(ctx, in, n, result), nil
	}
	return h.end(ctx, in, n, result)
}

// goes says that an instance is on its way out while a drain that was not of its hook is given up: the one at the
// hook has cordoned the node itself by now, and must not find it open again. When nobody can tell, that drain looks
// once more before it ends.
func (h *Handler) goes(ctx context.Context, in events.DrainRequest, n node) bool {
	if in.Lifecycle != nil {
		return false
	}
	state, err := h.Groups.State(ctx, n.instance)
	return err == nil && strings.HasPrefix(state, pool.Terminating)
}

// farewell is how long a drain may take while the whole cluster is deleted: there is nowhere to go for the pods of the last nodes, and
// what their budgets protect goes all the same. Only pods that are to be deleted against their budgets have the pool's own time before
// that, which the spec promised them: never more than 47 hours, and a deletion waits for 49.
const farewell = 5 * 60 // seconds

// What is left to an instance that EC2 takes back: two minutes from its warning, of which some have passed when the drain begins.
// Most of it is the pods'.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
const (
	spotNotice       = 110 * time.Second
	spotLoadBalancer = 15 // seconds
)

// policy of a pool. While its whole cluster is deleted nothing is worth waiting for for long; and what EC2 takes back does not wait.
func (h *Handler) policy(ctx context.Context, in events.DrainRequest, pool events.Pool) drain.Policy {
	policy := drain.LegacyPolicy
	if pool.Drain != nil {
		policy = *pool.Drain
	}
	if in.InstanceAction != "" {
		left := max(1, drain.Seconds((spotNotice-h.Now().Sub(in.Started))/time.Second))
		policy.LoadBalancerWait = min(policy.LoadBalancerWait, spotLoadBalancer)
		policy.PodGracePeriod = min(cmp.Or(policy.PodGracePeriod, left), left)
	}
	cluster, err := h.State.Status(ctx, pool.Cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		logging.From(ctx).Error("reading the status", "cluster", pool.Cluster, "error", err.Error())
	}
	if err == nil && cluster.Status.Phase == status.Deleting {
		policy.Deletes = true
		if policy.OnTimeout == drain.Wait {
			policy.OnTimeout = drain.Continue
		}
		if policy.OnTimeout != drain.Force || policy.Timeout == 0 {
			policy.Timeout = min(cmp.Or(policy.Timeout, farewell), farewell)
		}
	}
	return policy
}

// remains is the result of a slice that leaves something to do.
func (h *Handler) remains(ctx context.Context, in events.DrainRequest, n node, result events.DrainResult) events.DrainResult {
	result.Cluster, result.Pool, result.Node = n.pool.Cluster, n.pool.Pool, n.name
	result.WaitSeconds = h.wait(in, result.DrainReport)
	logging.From(ctx).Info("not yet", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name, "instance", n.instance, "waits",
		result.Summary())
	h.tell(ctx, n, result)
	return result
}

// end of a drain: the hook is completed, or the node that stays is given back.
func (h *Handler) end(ctx context.Context, in events.DrainRequest, n node, result events.DrainResult) (events.DrainResult, error) {
	result.Cluster, result.Pool, result.Node = n.pool.Cluster, n.pool.Pool, n.name
	logging.From(ctx).Info("ended", "cluster", n.pool.Cluster, "pool", n.pool.Pool, "node", n.name, "instance", n.instance,
		"outcome", result.Outcome, "message", result.Summary(), "pods", result.Pods, "stuck", result.Stuck,
		"returned", result.Returned)
	if result.Outcome == events.DrainRefused {
		return result, nil
	}
	h.tell(ctx, n, result)
	switch {
	case in.Release:
	case in.Lifecycle != nil:
		_, err := h.Groups.Complete(ctx, *in.Lifecycle, autoscaling.Continue)
		return result, err
	case n.name != "" && result.Outcome != drain.Gone:
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return result, drainer.New(n.cluster).Release(ctx, n.name, true)
	}
	return result, nil
}

// find the node. Without one, the result says why.
func (h *Handler) find(ctx context.Context, in events.DrainRequest) (node, events.DrainResult, error) {
	var n node
	var err error
	if in.Instance == "" && names.IsInstance(in.Node) {
		in.Instance = in.Node
	}
	switch {
	case in.Lifecycle != nil:
		n.instance = in.EC2InstanceID
		// As it is deployed now: who changes the policy of a drain that hangs wants it to be heard. The event has it as it was,
		// for a group that is gone already, or that nobody can ask about.
		n.pool, err = h.Groups.Pool(ctx, in.AutoScalingGroupName)
		if err != nil || n.pool.Cluster == "" {
			n.pool, err = said(in.Lifecycle)
		}
	case in.InstanceID != "":
		n.instance = in.InstanceID
		n.pool, err = h.Groups.PoolOf(ctx, n.instance)
		if err == nil && n.pool.Cluster == "" {
			return n, ended(drain.Gone, n.instance+" is in no pool of drover's"), nil
		}
	case in.Cluster != "" && in.Instance != "":
		n.instance = in.Instance
		n.pool, err = h.Groups.PoolOf(ctx, n.instance)
	case in.Cluster != "" && in.Node != "":
		n.pool.Cluster = in.Cluster
		if n.cluster, err = h.open(ctx, in.Cluster); err == nil {
			n.instance, err = n.cluster.InstanceOf(ctx, in.Node)
		}
		if err == nil && n.instance == "" {
			return n, ended(events.DrainRefused, "cluster "+in.Cluster+" has no node "+in.Node+" that is on an instance"), nil
		}
		if err == nil {
			n.pool, err = h.Groups.PoolOf(ctx, n.instance)
		}
	default:
		return n, ended(events.DrainRefused, `the input names no node: {"cluster": …, "node": …} or {"cluster": …, "instance": …}`), nil
	}
	if err == nil && in.Cluster != "" && n.pool.Cluster != in.Cluster {
		return n, ended(events.DrainRefused, n.instance+" is in no pool of cluster "+in.Cluster), nil
	}
	if err == nil && n.cluster == nil {
		n.cluster, err = h.open(ctx, n.pool.Cluster)
	}
	if errors.Is(err, kube.ErrNoCluster) {
		return n, ended(drain.Gone, err.Error()), nil
	}
	if err == nil {
		n.name, err = h.nodeOf(ctx, n)
	}
	if err == nil && n.name == "" {
		return n, ended(drain.Gone, n.instance+" is no node: it never joined, or is gone"), nil
	}
	return n, events.DrainResult{}, err
}

// open a cluster. One that cannot be opened for whatever reason, but is there, is not reached.
func (h *Handler) open(ctx context.Context, cluster string) (*kube.Cluster, error) {
	opened, err := h.Clusters.Open(ctx, cluster)
	if err != nil && !errors.Is(err, kube.ErrNoCluster) {
		return nil, &fault.ClusterUnreachable{Cause: err}
	}
	return opened, err
}

// nodeOf an instance, "" when there is none. One that is late gets a moment: pods that come to it at the last minute would end
// without a word.
func (h *Handler) nodeOf(ctx context.Context, n node) (string, error) {
	const pause = 2 * time.Second
	for waited := time.Duration(0); ; waited += pause {
		name, err := n.cluster.NodeOf(ctx, n.pool.Pool, n.instance)
		if err != nil || name != "" || waited >= h.Late {
			return name, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// said is what the event says of its pool.
func said(hook *events.Lifecycle) (events.Pool, error) {
	var pool events.Pool
	if json.Unmarshal([]byte(hook.NotificationMetadata), &pool) != nil || pool.Cluster == "" {
		return pool, fmt.Errorf("hook %s of %s does not say which pool it is of: %q", hook.LifecycleHookName, hook.AutoScalingGroupName,
			hook.NotificationMetadata)
	}
	return pool, nil
}

// Waits between slices, in seconds.
const (
	leastWait  = 1
	endingWait = 30 // a slice sees the end of pods at once
)

// wait until the next slice: as long as a drain may be left alone, but hardly at all while pods leave, which a slice
// sees at once, unless that takes hours. However it goes, 48 hours have less than the 25,000 events that an execution
// may have: one more would end it, and leave the hook to its own time.
func (h *Handler) wait(in events.DrainRequest, report drain.Report) int64 {
	taken := h.Now().Sub(in.Started)
	elapsed, between := int64(taken/time.Second), int64(drain.Between(taken)/time.Second)
	leaving, most := elapsed*elapsed/6_000_000, between // two seconds after an hour, half a minute after four, and as any after twelve
	switch {
	case report.Evicted > 0:
		most = leaving
	case report.Terminating > 0:
		most = max(endingWait, leaving)
	}
	return max(leastWait, min(most, between))
}

// forced tells whoever reads logs and metrics of a pod, at once: the call may be cut off before its result has it.
func (h *Handler) forced(ctx context.Context, n node, pod string) {
	logging.From(ctx).Warn("deleted against its disruption budget, after the pool's timeout", "cluster", n.pool.Cluster, "node",
		n.name, "pod", pod)
	if err := metrics.Count(h.Metrics, h.Now(), "PodsForced", "cluster", n.pool.Cluster); err != nil {
		logging.From(ctx).Error("writing a metric", "error", err.Error())
	}
}

func ended(outcome drain.Outcome, message string) events.DrainResult {
	return events.DrainResult{DrainReport: drain.Report{Outcome: outcome, Message: message}}
}
