package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// AnnotationDraining is the time since when a node is cordoned and out of load balancers for a drain.
const AnnotationDraining = "drover.run/draining-since"

// PoolNodes lists the nodes of a pool. If the API server does not respond or denies access, the error is
// *fault.ClusterUnreachable.
func (c *Cluster) PoolNodes(ctx context.Context, poolName string) ([]pool.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var list corev1.NodeList
	options := metav1.ListOptions{LabelSelector: names.LabelPool + "=" + poolName}
	if err := c.Core.Get().Resource("nodes").VersionedParams(&options, Parameters).Do(ctx).Into(&list); err != nil {
		return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("listing the nodes of pool %s: %w", poolName, err)}
	}
	all := make([]pool.Node, len(list.Items))
	for i := range list.Items {
		all[i] = convert(&list.Items[i])
	}
	return all, nil
}

// PoolNode returns the node of an instance of a pool, or nil if no such node has registered. A caller that knows the name of the node
// passes it, so that the API server need not list the pool. If the API server does not respond or denies access, the error is
// *fault.ClusterUnreachable.
func (c *Cluster) PoolNode(ctx context.Context, poolName, instance, name string) (*pool.Node, error) {
	if name != "" {
		node, err := c.node(ctx, name)
		if err == nil && node.Instance == instance {
			return &node, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("reading node %s: %w", name, err)}
		}
	}
	all, err := c.PoolNodes(ctx, poolName)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Instance == instance {
			return &all[i], nil
		}
	}
	return nil, nil
}

// node reads a node.
func (c *Cluster) node(ctx context.Context, name string) (pool.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var node corev1.Node
	err := c.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node)
	return convert(&node), err
}

// convert returns the node as data.
func convert(node *corev1.Node) pool.Node {
	n := pool.Node{
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
		options.LabelSelector = names.LabelPool + "=" + pool
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
