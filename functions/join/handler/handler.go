// Package handler lets an instance into service once it is a node that can be used, and has it replaced if it will not become
// one. While the pool is rolled it holds the next batch back: by the instance's signal to CloudFormation, or by its launch hook
// when an instance refresh does the rolling.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/aws/autoscaling"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// Clusters opens clusters: a subset of kube.Clusters.
type Clusters interface {
	Open(ctx context.Context, cluster string) (*kube.Cluster, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	State(ctx context.Context, instance string) (string, error)
	Describe(ctx context.Context, group string) (pool.Group, bool, error)
	Heartbeat(ctx context.Context, hook events.Lifecycle) (bool, error)
	Complete(ctx context.Context, hook events.Lifecycle, result autoscaling.Result) (bool, error)
}

// Stacks tells CloudFormation: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	Signal(ctx context.Context, stackName, resource, instance string, success bool) error
}

// State is where people read of what does not join: a subset of store.State.
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
	// Watch is how long one call watches; Limit is how long an instance may take to become a node.
	Watch, Limit time.Duration
	// SignalLimit is how long after that its signal may wait for the pool's drains: who waits longer still changes the stack. HoldLimit is
	// how long an instance waits at its hook, for drains or for a cluster that cannot be asked: less than the hook's most.
	SignalLimit, HoldLimit time.Duration
	Now                    func() time.Time
}

// work is one call.
type work struct {
	*Handler
	in   events.JoinRequest
	pool events.Pool
	// cluster once it was opened.
	cluster *kube.Cluster
	// nodes of the pool, as they were seen last.
	nodes []pool.Node
	// described says that the pool's stack was; during is how many instances a rolling update that goes on wants its group to have
	// meanwhile, 0 when there is none. spare says that it waits for fewer nodes than there are, replaced that it replaces this one, too.
	described, spare, replaced bool
	during                     int
	// elapsed since the execution started. waited since the instance joined, at least: when it did so in an earlier call
	// there was a pause after it.
	elapsed, waited time.Duration
	// awaited says that the cluster's add-ons wait for a first node.
	awaited bool
	// template is the version of the launch template that the instance was launched with, once that was looked at.
	template string
	result   events.JoinResult
}

// Handle watches for a while and says what became of the instance. What it does next it reads from the instance's lifecycle
// state, so it may be cut off anywhere and called again.
func (h *Handler) Handle(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
	w := &work{Handler: h, in: in, elapsed: h.Now().Sub(in.Started)}
	if err := json.Unmarshal([]byte(in.NotificationMetadata), &w.pool); err != nil || w.pool.Cluster == "" || w.pool.Pool == "" {
		return events.JoinResult{}, fmt.Errorf("hook %s of %s does not say which pool it is of: %q",
			in.LifecycleHookName, in.AutoScalingGroupName, in.NotificationMetadata)
	}
	if in.GivenUp != "" {
		w.result.Message = in.GivenUp
		state, err := h.Groups.State(ctx, in.EC2InstanceID)
		if err == nil && (state == pool.InService || state == pool.PendingProceed) {
			// It did join, and only its signal is missing: the sweep has that sent.
			logging.From(ctx).Warn("not signalled", "instance", in.EC2InstanceID, "message", in.GivenUp)
			return events.JoinResult{Outcome: events.JoinReady, Message: in.GivenUp}, nil
		}
		w.failed(ctx)
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
		w.waited = w.between()
		w.result.Message = "the instance is in service"
		err = w.signal(ctx, watching)
	default:
		w.gone(ctx)
	}
	logging.From(ctx).Info("looked", "instance", in.EC2InstanceID, "state", state, "node", w.result.Node, "outcome", w.result.Outcome,
		"message", w.result.Message)
	return w.result, err
}

// open the cluster, once.
func (w *work) open(ctx context.Context) (_ *kube.Cluster, err error) {
	if w.cluster == nil {
		w.cluster, err = w.Clusters.Open(ctx, w.pool.Cluster)
	}
	return w.cluster, err
}

// join watches the instance become a node, and completes the hook.
func (w *work) join(ctx, watching context.Context) error {
	// First of all: the hook stays open for as long as this goes on.
	if waits, err := w.Groups.Heartbeat(ctx, w.in.Lifecycle); err != nil {
		logging.From(ctx).Warn("no heartbeat", "instance", w.in.EC2InstanceID, "error", err.Error())
	} else if !waits {
		w.gone(ctx)
		return nil
	}
	cluster, err := w.open(ctx)
	if errors.Is(err, kube.ErrNoCluster) {
		w.result.Message = err.Error()
		return w.complete(ctx, autoscaling.Abandon, events.JoinAbandoned)
	}
	if err != nil {
		return w.blind(ctx, err)
	}
	// The last look is a whole one however little is left: the cluster may not have been there to be asked until now.
	left := w.Limit - w.elapsed
	node, err := cluster.WaitNode(watching, w.pool.Pool, w.in.EC2InstanceID, func(n *pool.Node) bool {
		return n.Missing(w.pool.Readiness) == ""
	})
	if node != nil {
		w.result.Node = node.Name
	}
	if err != nil {
		return w.blind(ctx, err)
	}
	switch lacks := node.Missing(w.pool.Readiness); {
	case lacks != "" && left <= w.Watch:
		w.result.Message = lacks
		return w.giveUp(ctx)
	case lacks != "":
		w.result.Outcome, w.result.Message = events.JoinWaiting, lacks
		return nil
	}
	if wrong := pool.KubeletSkew(node.KubeletVersion, cluster.Version); wrong != "" {
		w.result.Message = wrong
		return w.giveUp(ctx)
	}
	w.result.Message = fmt.Sprintf("node %s is Ready (%s)", node.Name, node.KubeletVersion)
	w.forget(ctx)
	if w.refreshed() {
		// The node takes pods already; the refresh goes on when its instance is in service.
		if free, err := w.free(ctx, watching); err != nil || !free && w.elapsed < w.HoldLimit {
			return err
		}
	}
	if err := w.complete(ctx, autoscaling.Continue, events.JoinReady); err != nil {
		return err
	}
	w.wake(ctx)
	return w.signal(ctx, watching)
}

// blind is what to do while the cluster cannot be asked: it keeps its instances, and says so when that lasts, or when it will
// not pass by itself.
func (w *work) blind(ctx context.Context, err error) error {
	w.result.Message = "the cluster cannot be asked: " + err.Error()
	if w.elapsed >= w.HoldLimit {
		return w.giveUp(ctx)
	}
	if w.elapsed >= w.Limit || fault.NameOf(err) == fault.Name(&fault.Internal{}) {
		w.tell(ctx, status.NodeUnreachable)
	}
	w.wait(leastBlindWait)
	return nil
}

// giveUp an instance: it is replaced. While the update that it fails has to wait for drains, so does it; if its node comes to it after all,
// it joins.
func (w *work) giveUp(ctx context.Context) error {
	if w.failed(ctx) {
		w.wait(leastWait)
		// That it has just watched for its node counts.
		w.result.WaitSeconds = max(leastWait, w.result.WaitSeconds-int64((w.Now().Sub(w.in.Started)-w.elapsed)/time.Second))
		return nil
	}
	return w.complete(ctx, autoscaling.Abandon, events.JoinAbandoned)
}

// complete the hook.
func (w *work) complete(ctx context.Context, with autoscaling.Result, outcome events.JoinOutcome) error {
	waited, err := w.Groups.Complete(ctx, w.in.Lifecycle, with)
	w.result.Outcome = outcome
	if err == nil && !waited && outcome != events.JoinReady {
		w.result.Outcome = events.JoinGone
	}
	return err
}

// refreshed says whether the pool is rolled by instance refreshes.
func (w *work) refreshed() bool {
	return w.pool.Update != nil && w.pool.Update.Strategy == events.InstanceRefresh
}

// stack of the pool.
func (w *work) stack() string { return names.Stack(w.pool.Cluster, names.PoolStack(w.pool.Pool)) }
