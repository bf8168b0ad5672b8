package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/pool"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// PoolLabel is the label with the pool of a node.
const PoolLabel = "drover.run/pool"

// AnnotationDraining is the time since when a node is cordoned and out of load balancers for a drain.
const AnnotationDraining = "drover.run/draining-since"

// PoolNodes lists the nodes of a pool. If the API server does not respond or denies access, the error is
// *fault.ClusterUnreachable.
func (c *Cluster) PoolNodes(ctx context.Context, poolName string) ([]pool.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	list, err := c.Dynamic.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + poolName})
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

// WaitNode watches the node of an instance until the condition holds or ctx ends, and returns the last version; nil if no
// such node has registered. It lists again when the server closes the watch. If the API server does not respond or denies
// access, the error is *fault.ClusterUnreachable.
func (c *Cluster) WaitNode(ctx context.Context, poolName, instance string, done func(*pool.Node) bool) (*pool.Node, error) {
	var last *pool.Node
	for ctx.Err() == nil {
		list, err := c.Dynamic.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: PoolLabel + "=" + poolName})
		if err != nil {
			return last, c.unless(ctx, fmt.Errorf("listing the nodes of pool %s: %w", poolName, err))
		}
		for i := range list.Items {
			if last = found(last, &list.Items[i], instance); last != nil && done(last) {
				return last, nil
			}
		}
		watch, err := c.Dynamic.Resource(nodes).Watch(ctx, metav1.ListOptions{
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

// found returns the node if it is the instance's, or else the earlier version.
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
		KubeletVersion: node.Status.NodeInfo.KubeletVersion, Labels: node.Labels, Draining: node.Annotations[AnnotationDraining] != "",
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

// NodeOf returns the name of an instance's node, or "" if there is none. A pool limits the search to its nodes.
func (c *Cluster) NodeOf(ctx context.Context, pool, instance string) (string, error) {
	options := metav1.ListOptions{}
	if pool != "" {
		options.LabelSelector = PoolLabel + "=" + pool
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var list corev1.NodeList
	if err := c.Core.Get().Resource("nodes").VersionedParams(&options, Parameters).Do(ctx).Into(&list); err != nil {
		return "", &fault.ClusterUnreachable{Cause: fmt.Errorf("listing nodes: %w", err)}
	}
	for i := range list.Items {
		if strings.HasSuffix(list.Items[i].Spec.ProviderID, "/"+instance) { // aws:///<zone>/<instance id>
			return list.Items[i].Name, nil
		}
	}
	return "", nil
}

// InstanceOf returns the EC2 instance of a node, or "" if the node does not exist or has no instance.
func (c *Cluster) InstanceOf(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var node corev1.Node
	err := c.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", &fault.ClusterUnreachable{Cause: fmt.Errorf("reading node %s: %w", name, err)}
	}
	return node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:], nil
}
