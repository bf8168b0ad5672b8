// Package handler implements the join function. It completes the launch hook of an instance once its node is ready, and has the instance
// replaced if that takes too long. During a roll it also holds back the next batch: by the instance's signal to CloudFormation, or by its
// launch hook during an instance refresh. The state machine drover-join-node calls it again until it returns an end.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// Clusters opens clusters: kube.Opener. The error is pool.ErrNoCluster if the cluster does not exist.
type Clusters interface {
	Open(ctx context.Context, cluster string) (Cluster, error)
}

// Cluster reads the nodes of one cluster: a subset of kube.Cluster.
type Cluster interface {
	Version() string
	PoolNodes(ctx context.Context, poolName string) ([]pool.Node, error)
	WaitNode(ctx context.Context, poolName, instance string, done func(*pool.Node) bool) (*pool.Node, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	State(ctx context.Context, instance string) (string, error)
	Describe(ctx context.Context, group string) (pool.Group, bool, error)
	Heartbeat(ctx context.Context, hook events.Lifecycle) (bool, error)
	Complete(ctx context.Context, hook events.Lifecycle, result pool.HookResult) (bool, error)
}

// Stacks reads and signals stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	Signal(ctx context.Context, stackName, resource, instance string, success bool) error
}

// State is the status of clusters: a subset of store.State.
type State interface {
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	AddDue(ctx context.Context, cluster string, at time.Time) error
}

// Handler joins nodes.
type Handler struct {
	Clusters Clusters
	Groups   Groups
	Stacks   Stacks
	State    State
	// Watch is how long one call polls. Limit is how long an instance may take to become a ready node.
	Watch, Limit time.Duration
	// SignalLimit is how long after Limit its signal may wait for drains, unless the stack's operation still runs. HoldTimeout is how long
	// an instance waits at its hook for drains, or for a cluster that does not answer. It is less than the hook's longest timeout.
	SignalLimit, HoldTimeout time.Duration
	Now                      func() time.Time
}

// work is one call.
type work struct {
	*Handler
	in   events.JoinRequest
	pool events.Pool
	// cluster is nil until open.
	cluster Cluster
	// nodes of the pool, as readNodes read them last.
	nodes []pool.Node
	// described is true once readUpdate has read the pool's stack. minDuringUpdate is how many instances a rolling update keeps in the
	// group, 0 without an update.
	described       bool
	minDuringUpdate int
	// surplus is true if the update needs no more signals for its present batch. isReplaced is true if the update replaces this instance.
	surplus, isReplaced bool
	// elapsed is the time since the execution started. waited is a lower bound of the time since the instance joined: an earlier call
	// that saw it join paused afterwards.
	elapsed, waited time.Duration
	// addonsWait is true if the add-ons of the cluster wait for a first node.
	addonsWait bool
	// template is the launch template version of the instance, once recordFailure has read it.
	template string
	result   events.JoinResult
}

// Handle polls for up to Watch and returns the state of the instance. It decides by the instance's lifecycle state
// alone, so a call that was cut off may be repeated.
func (h *Handler) Handle(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
	w := &work{Handler: h, in: in, elapsed: h.Now().Sub(in.Started)}
	if err := json.Unmarshal([]byte(in.NotificationMetadata), &w.pool); err != nil || w.pool.Cluster == "" || w.pool.Pool == "" {
		return events.JoinResult{}, fmt.Errorf("hook %s of %s does not name its pool: %q",
			in.LifecycleHookName, in.AutoScalingGroupName, in.NotificationMetadata)
	}
	if in.GivenUp != "" {
		w.result.Message = in.GivenUp
		state, err := h.Groups.State(ctx, in.EC2InstanceID)
		if err == nil && (state == pool.InService || state == pool.PendingProceed) {
			// The instance has joined, and only its signal is missing. The sweep has that sent.
			logging.From(ctx).Warn("signal omitted", "instance", in.EC2InstanceID, "message", in.GivenUp)
			return events.JoinResult{Outcome: events.JoinReady, Message: in.GivenUp}, nil
		}
		w.recordFailure(ctx)
		return events.JoinResult{Outcome: events.JoinAbandoned, Message: in.GivenUp}, nil
	}
	state, err := h.Groups.State(ctx, in.EC2InstanceID)
	if err != nil {
		return events.JoinResult{}, err
	}
	watching, cancel := context.WithTimeout(ctx, h.Watch)
	defer cancel()
	switch state {
	case pool.PendingWait:
		err = w.join(ctx, watching)
	case pool.PendingProceed, pool.InService:
		w.waited = backoff.JoinCalls.Pause(w.elapsed)
		w.result.Message = "the instance is in service"
		err = w.signal(ctx, watching)
	default:
		w.onTerminated(ctx)
	}
	logging.From(ctx).Info("instance checked", "instance", in.EC2InstanceID, "state", state, "node", w.result.Node,
		"outcome", w.result.Outcome, "message", w.result.Message)
	return w.result, err
}

// open opens the cluster, once.
func (w *work) open(ctx context.Context) (_ Cluster, err error) {
	if w.cluster == nil {
		w.cluster, err = w.Clusters.Open(ctx, w.pool.Cluster)
	}
	return w.cluster, err
}

// join waits until the node of the instance is ready, and completes the hook.
func (w *work) join(ctx, watching context.Context) error {
	// The heartbeat comes first, so that the hook stays open during this call.
	if waits, err := w.Groups.Heartbeat(ctx, w.in.Lifecycle); err != nil {
		logging.From(ctx).Warn("heartbeat failed", "instance", w.in.EC2InstanceID, "error", err.Error())
	} else if !waits {
		w.onTerminated(ctx)
		return nil
	}
	cluster, err := w.open(ctx)
	if errors.Is(err, pool.ErrNoCluster) {
		w.result.Message = err.Error()
		return w.complete(ctx, pool.Abandon, events.JoinAbandoned)
	}
	if err != nil {
		return w.onUnreachable(ctx, err)
	}
	// The last call polls for the whole of Watch: the cluster may not have answered before.
	left := w.Limit - w.elapsed
	node, err := cluster.WaitNode(watching, w.pool.Pool, w.in.EC2InstanceID, func(n *pool.Node) bool {
		return n.Missing(w.pool.Readiness) == ""
	})
	if node != nil {
		w.result.Node = node.Name
	}
	if err != nil {
		return w.onUnreachable(ctx, err)
	}
	switch missing := node.Missing(w.pool.Readiness); {
	case missing != "" && left <= w.Watch:
		w.result.Message = missing
		return w.abandon(ctx)
	case missing != "":
		w.result.Outcome, w.result.Message = events.JoinWaiting, missing
		return nil
	}
	if skew := pool.KubeletSkew(node.KubeletVersion, cluster.Version()); skew != "" {
		w.result.Message = skew
		return w.abandon(ctx)
	}
	w.result.Message = fmt.Sprintf("node %s is Ready (%s)", node.Name, node.KubeletVersion)
	w.recordReady(ctx)
	if w.isRefreshed() {
		// The node runs pods already. The refresh proceeds when the instance is in service.
		if proceed, err := w.mayProceed(ctx, watching); err != nil || !proceed && w.elapsed < w.HoldTimeout {
			return err
		}
	}
	if err := w.complete(ctx, pool.Continue, events.JoinReady); err != nil {
		return err
	}
	w.requestAddons(ctx)
	return w.signal(ctx, watching)
}

// onUnreachable has the instance wait while the cluster does not answer. It records that once the wait is long, or if
// the error is permanent.
func (w *work) onUnreachable(ctx context.Context, err error) error {
	w.result.Message = "the cluster's API does not answer: " + err.Error()
	if w.elapsed >= w.HoldTimeout {
		return w.abandon(ctx)
	}
	if w.elapsed >= w.Limit || fault.NameOf(err) == fault.Name(&fault.Internal{}) {
		w.recordProgress(ctx, status.NodeUnreachable)
	}
	w.wait(minUnreachableWaitSeconds)
	return nil
}

// abandon has the instance replaced. If it is to fail the update and that waits for drains, the instance waits at its hook, and may still
// join.
func (w *work) abandon(ctx context.Context) error {
	if w.recordFailure(ctx) {
		w.wait(minWaitSeconds)
		// The time that this call polled for the node counts as a part of the pause.
		w.result.WaitSeconds = max(minWaitSeconds, w.result.WaitSeconds-int64((w.Now().Sub(w.in.Started)-w.elapsed)/time.Second))
		return nil
	}
	return w.complete(ctx, pool.Abandon, events.JoinAbandoned)
}

// complete completes the launch hook.
func (w *work) complete(ctx context.Context, with pool.HookResult, outcome events.JoinOutcome) error {
	waited, err := w.Groups.Complete(ctx, w.in.Lifecycle, with)
	w.result.Outcome = outcome
	if err == nil && !waited && outcome != events.JoinReady {
		w.result.Outcome = events.JoinGone
	}
	return err
}

// isRefreshed reports whether instance refreshes roll the pool.
func (w *work) isRefreshed() bool {
	return w.pool.Update != nil && w.pool.Update.Strategy == events.InstanceRefresh
}

// stackName is the name of the pool's stack.
func (w *work) stackName() string { return names.Stack(w.pool.Cluster, names.PoolStack(w.pool.Pool)) }
