// Package handler lets an instance into service once it is a node that is Ready, and has it replaced if it will not
// become one.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// Clusters opens clusters: a subset of kube.Clusters.
type Clusters interface {
	Open(ctx context.Context, cluster string) (*kube.Cluster, error)
}

// Groups is Auto Scaling: a subset of groups.Groups.
type Groups interface {
	State(ctx context.Context, instance string) (string, error)
	Leaving(ctx context.Context, group string) ([]string, error)
	Complete(ctx context.Context, hook events.Lifecycle, result groups.Result) (bool, error)
}

// Stacks tells CloudFormation: a subset of stacks.Stacks.
type Stacks interface {
	Signal(ctx context.Context, stackName, resource, instance string) error
}

// Handler joins nodes.
type Handler struct {
	Clusters Clusters
	Groups   Groups
	Stacks   Stacks
	// Watch is how long one call watches; Limit is how long an instance may take, less than the hook's own time.
	Watch, Limit time.Duration
	// SignalLimit is how long after that its signal may wait for the pool's drains: nobody waits for it longer.
	SignalLimit time.Duration
	Now         func() time.Time
}

// Handle watches for a while and says what became of the instance. What it does next it reads from the instance's lifecycle
// state, so it may be cut off anywhere and called again.
func (h *Handler) Handle(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
	var pool events.Pool
	if err := json.Unmarshal([]byte(in.NotificationMetadata), &pool); err != nil || pool.Cluster == "" || pool.Pool == "" {
		return events.JoinResult{}, fmt.Errorf("hook %s of %s does not say which pool it is of: %q",
			in.LifecycleHookName, in.AutoScalingGroupName, in.NotificationMetadata)
	}
	state, err := h.Groups.State(ctx, in.EC2InstanceID)
	if err != nil {
		return events.JoinResult{}, err
	}
	watching, cancel := context.WithTimeout(ctx, h.Watch)
	defer cancel()
	switch state {
	case groups.PendingWait:
		result, err := h.join(ctx, watching, in, pool)
		if err != nil || result.Outcome != events.JoinReady {
			return result, err
		}
		return h.signal(ctx, watching, in, pool, result)
	case groups.PendingProceed, groups.InService:
		return h.signal(ctx, watching, in, pool, events.JoinResult{Message: "the instance is in service"})
	}
	boundary.Log(ctx).Info("the instance waits no more", "instance", in.EC2InstanceID, "state", state)
	return events.JoinResult{Outcome: events.JoinGone, Message: "the instance does not wait at the hook"}, nil
}

// join watches the instance become a node, and completes the hook.
func (h *Handler) join(ctx, watching context.Context, in events.JoinRequest, pool events.Pool) (events.JoinResult, error) {
	left := h.Limit - h.Now().Sub(in.Started)
	cluster, err := h.Clusters.Open(ctx, pool.Cluster)
	if errors.Is(err, kube.ErrNoCluster) {
		return h.end(ctx, in, groups.Abandon, events.JoinResult{Outcome: events.JoinAbandoned, Message: err.Error()})
	}
	if err != nil {
		return events.JoinResult{}, err
	}
	watching, cancel := context.WithTimeout(watching, max(0, left))
	defer cancel()
	node, err := cluster.WaitNode(watching, pool.Pool, in.EC2InstanceID)
	var unreachable *fault.ClusterUnreachable
	if err != nil && !errors.As(err, &unreachable) {
		return events.JoinResult{}, err
	}
	result := events.JoinResult{Outcome: events.JoinWaiting, Message: what(node, err)}
	if node != nil {
		result.Node = node.Name
	}
	switch {
	case node != nil && node.Ready:
		if wrong := skew(node.KubeletVersion, cluster.Version); wrong != "" {
			result.Outcome, result.Message = events.JoinAbandoned, wrong
			return h.end(ctx, in, groups.Abandon, result)
		}
		result.Outcome = events.JoinReady
		return h.end(ctx, in, groups.Continue, result)
	case left <= h.Watch:
		result.Outcome = events.JoinAbandoned
		return h.end(ctx, in, groups.Abandon, result)
	}
	boundary.Log(ctx).Info("not yet", "instance", in.EC2InstanceID, "node", result.Node, "message", result.Message)
	return result, nil
}

// Pauses between two looks at the pool's drains.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// signal tells CloudFormation of a new node once no other of the pool is being drained: the next batch of a rolling update
// goes by it, and CloudFormation itself does not wait for terminate hooks.
func (h *Handler) signal(ctx, watching context.Context, in events.JoinRequest, pool events.Pool, result events.JoinResult) (events.JoinResult, error) {
	result.Outcome = events.JoinReady
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		leaving, err := h.Groups.Leaving(ctx, in.AutoScalingGroupName)
		if err != nil {
			return result, err
		}
		if len(leaving) == 0 {
			return result, h.Stacks.Signal(ctx, names.Stack(pool.Cluster, names.PoolStack(pool.Pool)), names.GroupResource, in.EC2InstanceID)
		}
		waits := fmt.Sprintf("its signal waits until %s are drained", strings.Join(leaving, ", "))
		if h.Now().Sub(in.Started) > h.Limit+h.SignalLimit {
			boundary.Log(ctx).Warn("not signalled", "instance", in.EC2InstanceID, "message", waits)
			result.Message += "; not signalled: " + waits
			return result, nil
		}
		select {
		case <-time.After(pause):
		case <-watching.Done():
			result.Outcome = events.JoinWaiting
			result.Message += "; " + waits
			return result, ctx.Err()
		}
	}
}

// end completes the hook.
func (h *Handler) end(ctx context.Context, in events.JoinRequest, with groups.Result, result events.JoinResult) (events.JoinResult, error) {
	waited, err := h.Groups.Complete(ctx, in.Lifecycle, with)
	if err == nil && !waited && result.Outcome != events.JoinReady {
		result.Outcome = events.JoinGone
	}
	boundary.Log(ctx).Info("completed the hook", "instance", in.EC2InstanceID, "node", result.Node,
		"result", with, "outcome", result.Outcome, "message", result.Message)
	return result, err
}

// what was seen of a node, for people.
func what(node *kube.Node, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case node == nil:
		return "the instance has not registered as a node: read its console output"
	case !node.Ready:
		return fmt.Sprintf("node %s is not Ready: %s", node.Name, node.Message)
	}
	return fmt.Sprintf("node %s is Ready (%s)", node.Name, node.KubeletVersion)
}

// oldest is how many minors a kubelet may be behind its API server.
// https://kubernetes.io/releases/version-skew-policy/#kubelet
const oldest = 3

// skew says what is wrong with a kubelet's version beside the control plane's, or nothing.
func skew(kubelet, controlPlane string) string {
	node, err := minor(strings.TrimPrefix(kubelet, "v"))
	server, err2 := minor(controlPlane)
	if err := errors.Join(err, err2); err != nil {
		return err.Error()
	}
	switch {
	case node > server:
		return fmt.Sprintf("the kubelet is %s, newer than the control plane (%s): use an image for %s or older", kubelet, controlPlane, controlPlane)
	case node < server-oldest:
		return fmt.Sprintf("the kubelet is %s, more than %d minors behind the control plane (%s): use a newer image", kubelet, oldest, controlPlane)
	}
	return ""
}

func minor(version string) (int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, fmt.Errorf("%q is no Kubernetes version", version)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("%q is no Kubernetes version", version)
	}
	return n, nil
}
