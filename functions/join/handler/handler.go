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
	Waiting(ctx context.Context, instance string) (bool, error)
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
	Now          func() time.Time
}

// Handle watches for a while and says what became of the instance.
func (h *Handler) Handle(ctx context.Context, in events.JoinRequest) (events.JoinResult, error) {
	var pool events.Pool
	if err := json.Unmarshal([]byte(in.NotificationMetadata), &pool); err != nil || pool.Cluster == "" || pool.Pool == "" {
		return events.JoinResult{}, fmt.Errorf("hook %s of %s does not say which pool it is of: %q",
			in.LifecycleHookName, in.AutoScalingGroupName, in.NotificationMetadata)
	}
	log := boundary.Log(ctx).With("cluster", pool.Cluster, "pool", pool.Pool, "instance", in.EC2InstanceID)
	waiting, err := h.Groups.Waiting(ctx, in.EC2InstanceID)
	if err != nil {
		return events.JoinResult{}, err
	}
	if !waiting {
		log.Info("the instance waits no more")
		return events.JoinResult{Outcome: events.JoinGone, Message: "the instance does not wait at the hook"}, nil
	}
	left := h.Limit - h.Now().Sub(in.Started)
	cluster, err := h.Clusters.Open(ctx, pool.Cluster)
	if errors.Is(err, kube.ErrNoCluster) {
		return h.end(ctx, in, groups.Abandon, events.JoinResult{Outcome: events.JoinAbandoned, Message: err.Error()})
	}
	if err != nil {
		return events.JoinResult{}, err
	}
	watching, cancel := context.WithTimeout(ctx, max(0, min(h.Watch, left)))
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
		// The signal first: after the hook is completed, nobody would come back to send it.
		if err := h.Stacks.Signal(ctx, names.Stack(pool.Cluster, names.PoolStack(pool.Pool)), names.GroupResource, in.EC2InstanceID); err != nil {
			return result, err
		}
		result.Outcome = events.JoinReady
		return h.end(ctx, in, groups.Continue, result)
	case left <= h.Watch:
		result.Outcome = events.JoinAbandoned
		return h.end(ctx, in, groups.Abandon, result)
	}
	log.Info("not yet", "node", result.Node, "message", result.Message)
	return result, nil
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
