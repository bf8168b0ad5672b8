package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// PoolLabel is the label by which nodes tell their pool.
const PoolLabel = "drover.run/pool"

// Node is what drover needs to know of a node.
type Node struct {
	Name string
	// Ready is the Ready condition.
	Ready bool
	// Message is the Ready condition's, for people.
	Message string
	// KubeletVersion such as v1.36.3-eks-abc.
	KubeletVersion string
	Labels         map[string]string
	// True are the types of the conditions that are.
	True []string
}

// WaitNode watches until the node of an instance is what is waited for or ctx ends, and returns what it saw last; nil when no
// such node has registered. It lists again when the server closes the watch. An API that does not answer, or refuses, is
// *fault.ClusterUnreachable.
func (c *Cluster) WaitNode(ctx context.Context, pool, instance string, done func(*Node) bool) (*Node, error) {
	var last *Node
	for ctx.Err() == nil {
		list, err := c.api.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + pool})
		if err != nil {
			return last, c.unless(ctx, fmt.Errorf("listing the nodes of pool %s: %w", pool, err))
		}
		for i := range list.Items {
			if last = found(last, &list.Items[i], instance); last != nil && done(last) {
				return last, nil
			}
		}
		watch, err := c.api.Resource(nodes).Watch(ctx, metav1.ListOptions{
			LabelSelector: PoolLabel + "=" + pool, ResourceVersion: list.GetResourceVersion(),
		})
		if err != nil {
			return last, c.unless(ctx, fmt.Errorf("watching the nodes of pool %s: %w", pool, err))
		}
		for event := range watch.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if last = found(last, object, instance); last != nil && done(last) {
				watch.Stop()
				return last, nil
			}
		}
	}
	return last, nil
}

// unless hides an error that only says that the time for watching is over.
func (c *Cluster) unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return &fault.ClusterUnreachable{Cause: err}
}

// found reads a node if it is the instance's, else returns what was known.
func found(last *Node, object *unstructured.Unstructured, instance string) *Node {
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil ||
		!strings.HasSuffix(node.Spec.ProviderID, "/"+instance) { // aws:///<zone>/<instance id>
		return last
	}
	n := &Node{Name: node.Name, KubeletVersion: node.Status.NodeInfo.KubeletVersion, Labels: node.Labels}
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			n.True = append(n.True, string(condition.Type))
		}
		if condition.Type == corev1.NodeReady {
			n.Ready, n.Message = condition.Status == corev1.ConditionTrue, condition.Message
		}
	}
	return n
}
