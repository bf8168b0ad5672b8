// Package handler implements the join function. It completes the launch hook of an instance when its node is Ready. If that takes too long,
// it abandons the hook, and Auto Scaling replaces the instance. During a roll it delays the next batch: it holds the instance's signal to
// CloudFormation or, in an instance refresh, the launch hook. drover-join-node calls it again until the outcome is final.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
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
	PoolNode(ctx context.Context, poolName, instance, name string) (*pool.Node, error)
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
	// Limit is how long an instance may take to become a ready node. After an outage of the cluster, the node has Grace to
	// register.
	Limit, Grace time.Duration
	// SignalLimit is how long, after Limit, the instance's signal may wait for drains. While the stack's operation runs, HoldTimeout applies
	// instead. HoldTimeout is how long an instance waits at its hook for drains, or for a cluster that does not answer. It is less than the
	// hook's longest timeout.
	SignalLimit, HoldTimeout time.Duration
	Now                      func() time.Time
}

// call is one call.
type call struct {
	*Handler
	in   events.JoinRequest
	pool events.HookMetadata
	// cluster is nil until open.
	cluster Cluster
	// completed reports whether this call has completed the launch hook.
	completed bool
	// nodes of the pool, as readNodes read them last.
	nodes []pool.Node
	// described reports whether readUpdate has read the pool's stack. minDuringUpdate is how many instances a rolling update keeps in the
	// group, 0 without an update.
	described       bool
	minDuringUpdate int
	// waitsForCount reports whether the update needs no more signals for its present batch. willBeReplaced reports whether the
	// update replaces this instance.
	waitsForCount, willBeReplaced bool
	// elapsed is the time since the execution started.
	elapsed time.Duration
	// addonsWait reports whether the add-ons of the cluster wait for a first node.
	addonsWait bool
	// template is the launch template version of the instance, once recordFailure has read it.
	template string
	result   events.JoinResult
}

// Handle checks the instance once and returns its state, and when to check it again. A call takes about a second, so
// that an instance that boots does not hold one of the concurrent executions that all functions share. Handle decides
// by the instance's lifecycle state, so a call that was cut off may be repeated.
func (h *Handler) Handle(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
	c := &call{Handler: h, in: in, elapsed: h.Now().Sub(in.Started)}
	if err := json.Unmarshal([]byte(in.NotificationMetadata), &c.pool); err != nil || c.pool.Cluster == "" || c.pool.Pool == "" {
		return events.JoinResult{}, fmt.Errorf("hook %s of %s does not name its pool: %q",
			in.LifecycleHookName, in.AutoScalingGroupName, in.NotificationMetadata)
	}
	if in.GivenUp != "" {
		c.result.Message = in.GivenUp
		state, err := h.Groups.State(ctx, in.EC2InstanceID)
		if err == nil && (state == pool.InService || state == pool.PendingProceed) {
			// The instance has joined, and only its signal is missing. The sweep starts an execution that sends it.
			logging.From(ctx).Warn("signal omitted", "instance", in.EC2InstanceID, "message", in.GivenUp)
			return events.JoinResult{Outcome: events.JoinReady, Message: in.GivenUp}, nil
		}
		c.recordFailure(ctx)
		return events.JoinResult{Outcome: events.JoinAbandoned, Message: in.GivenUp}, nil
	}
	state, err := h.Groups.State(ctx, in.EC2InstanceID)
	if err != nil {
		return events.JoinResult{}, err
	}
	switch state {
	case pool.PendingWait:
		err = c.join(ctx)
	case pool.PendingProceed, pool.InService:
		c.result.Message = "the instance is in service"
		err = c.signal(ctx)
	default:
		c.onTerminated(ctx)
	}
	logging.From(ctx).Info("instance checked", "instance", in.EC2InstanceID, "state", state, "node", c.result.Node,
		"outcome", c.result.Outcome, "message", c.result.Message)
	return c.result, err
}

// open opens the cluster, once.
func (c *call) open(ctx context.Context) (_ Cluster, err error) {
	if c.cluster == nil {
		c.cluster, err = c.Clusters.Open(ctx, c.pool.Cluster)
	}
	return c.cluster, err
}

// join completes the hook if the node of the instance is ready, or if it is not ready in time.
func (c *call) join(ctx context.Context) error {
	// The heartbeat comes first, so that the hook stays open during this call.
	if waits, err := c.Groups.Heartbeat(ctx, c.in.Lifecycle); err != nil {
		logging.From(ctx).Warn("heartbeat failed", "instance", c.in.EC2InstanceID, "error", err.Error())
	} else if !waits {
		c.onTerminated(ctx)
		return nil
	}
	cluster, err := c.open(ctx)
	if errors.Is(err, pool.ErrNoCluster) {
		c.result.Message = err.Error()
		return c.complete(ctx, pool.Abandon, events.JoinAbandoned)
	}
	if err != nil {
		return c.onUnreachable(ctx, err)
	}
	node, err := cluster.PoolNode(ctx, c.pool.Pool, c.in.EC2InstanceID, c.in.Node)
	if err != nil {
		return c.onUnreachable(ctx, err)
	}
	if node != nil {
		c.result.Node = node.Name
	}
	if missing := node.Missing(c.pool.Readiness); missing != "" {
		c.result.Message = missing
		return c.onMissing(ctx)
	}
	if skew := pool.KubeletSkew(node.KubeletVersion, cluster.Version()); skew != "" {
		c.result.Message = skew
		return c.abandon(ctx)
	}
	c.result.Message = fmt.Sprintf("node %s is Ready (%s)", node.Name, node.KubeletVersion)
	c.recordReady(ctx)
	if c.isRefreshed() {
		// The node runs pods already. The refresh proceeds when the instance is in service.
		if proceed, err := c.mayProceed(ctx); err != nil || !proceed && c.elapsed < c.HoldTimeout {
			return err
		}
	}
	if err := c.complete(ctx, pool.Continue, events.JoinReady); err != nil {
		return err
	}
	c.requestAddons(ctx)
	return c.signal(ctx)
}

// onMissing has the instance wait for its node until Limit. If the cluster or the function did not answer before, the node has Grace to
// register.
func (c *call) onMissing(ctx context.Context) error {
	since := c.in.MissingSince
	if since.IsZero() {
		since = c.Now()
	}
	if c.elapsed >= c.Limit && c.Now().Sub(since) >= c.Grace {
		return c.abandon(ctx)
	}
	c.wait(0)
	c.result.MissingSince = since
	return nil
}

// onUnreachable has the instance wait while the cluster does not answer. It records that once the wait is long, or if
// the error is permanent.
func (c *call) onUnreachable(ctx context.Context, err error) error {
	c.result.Message = "the cluster's API does not answer: " + err.Error()
	if c.elapsed >= c.HoldTimeout {
		return c.abandon(ctx)
	}
	if c.elapsed >= c.Limit || fault.NameOf(err) == fault.Name(&fault.Internal{}) {
		c.recordProgress(ctx, status.NodeUnreachable)
	}
	c.wait(minUnreachableWaitSeconds)
	return nil
}

// abandon has the instance replaced. If the instance must fail the update but drains have to end first, it stays at its hook, and may still
// join.
func (c *call) abandon(ctx context.Context) error {
	if c.recordFailure(ctx) {
		c.wait(0)
		c.result.MissingSince = c.in.MissingSince
		return nil
	}
	return c.complete(ctx, pool.Abandon, events.JoinAbandoned)
}

// complete completes the launch hook.
func (c *call) complete(ctx context.Context, with pool.HookResult, outcome events.JoinOutcome) error {
	waited, err := c.Groups.Complete(ctx, c.in.Lifecycle, with)
	c.result.Outcome = outcome
	c.completed = err == nil && waited
	if err == nil && !waited && outcome != events.JoinReady {
		c.result.Outcome = events.JoinGone
	}
	return err
}

// isRefreshed reports whether instance refreshes roll the pool.
func (c *call) isRefreshed() bool {
	return c.pool.Update != nil && c.pool.Update.Strategy == events.InstanceRefresh
}

// stackName is the name of the pool's stack.
func (c *call) stackName() string { return names.Stack(c.pool.Cluster, names.PoolStack(c.pool.Pool)) }
