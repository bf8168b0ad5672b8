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
	"github.com/drover-run/drover/shared/pool"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// PoolLabel is the label by which nodes tell their pool.
const PoolLabel = "drover.run/pool"

// PoolNodes lists the nodes of a pool. An API that does not answer, or refuses, is *fault.ClusterUnreachable.
func (c *Cluster) PoolNodes(ctx context.Context, poolName string) ([]pool.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := c.api.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + poolName})
	if err != nil {
		return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("listing the nodes of pool %s: %w", poolName, err)}
	}
	var all []pool.Node
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
func (c *Cluster) WaitNode(ctx context.Context, poolName, instance string, done func(*pool.Node) bool) (*pool.Node, error) {
	var last *pool.Node
	for ctx.Err() == nil {
		list, err := c.api.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + poolName})
		if err != nil {
			return last, c.unless(ctx, fmt.Errorf("listing the nodes of pool %s: %w", poolName, err))
		}
		for i := range list.Items {
			if last = found(last, &list.Items[i], instance); last != nil && done(last) {
				return last, nil
			}
		}
		watch, err := c.api.Resource(nodes).Watch(ctx, metav1.ListOptions{
			LabelSelector: PoolLabel + "=" + poolName, ResourceVersion: list.GetResourceVersion(),
		})
		if err != nil {
			return last, c.unless(ctx, fmt.Errorf("watching the nodes of pool %s: %w", poolName, err))
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
func found(last *pool.Node, object *unstructured.Unstructured, instance string) *pool.Node {
	if n := read(object); n != nil && n.Instance == instance {
		return n
	}
	return last
}

// read a node; nil when it is none.
func read(object *unstructured.Unstructured) *pool.Node {
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
		return nil
	}
	n := &pool.Node{
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
