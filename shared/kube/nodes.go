package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	// Name, and the EC2 instance that it is on.
	Name, Instance string
	// Ready is the Ready condition, ReadySince when it last became what it is.
	Ready      bool
	ReadySince time.Time
	// Message is the Ready condition's, for people.
	Message string
	// KubeletVersion such as v1.36.3-eks-abc.
	KubeletVersion string
	Labels         map[string]string
	// True are the types of the conditions that are.
	True []string
	// Draining says that drover takes its pods off it.
	Draining bool
}

// PoolNodes lists the nodes of a pool. An API that does not answer, or refuses, is *fault.ClusterUnreachable.
func (c *Cluster) PoolNodes(ctx context.Context, pool string) ([]Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := c.api.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + pool})
	if err != nil {
		return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("listing the nodes of pool %s: %w", pool, err)}
	}
	var all []Node
	for i := range list.Items {
		if n := read(&list.Items[i]); n != nil {
			all = append(all, *n)
		}
	}
	return all, nil
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
	if n := read(object); n != nil && n.Instance == instance {
		return n
	}
	return last
}

// read a node; nil when it is none.
func read(object *unstructured.Unstructured) *Node {
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
		return nil
	}
	n := &Node{
		Name: node.Name, Instance: node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:], // aws:///<zone>/<instance id>
		KubeletVersion: node.Status.NodeInfo.KubeletVersion, Labels: node.Labels, Draining: node.Annotations[annotationSince] != "",
	}
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			n.True = append(n.True, string(condition.Type))
		}
		if condition.Type == corev1.NodeReady {
			n.Ready, n.Message, n.ReadySince = condition.Status == corev1.ConditionTrue, condition.Message, condition.LastTransitionTime.Time
		}
	}
	return n
}
