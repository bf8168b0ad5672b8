package workload

// Nodes that KWOK plays, for clusters without a local EC2 that boots them.

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is a node to create.
type Node struct {
	Name string
	// Pods limits its pods.
	Pods   int
	Labels map[string]string
}

// AddNodes creates nodes and waits until pods can be scheduled on them.
func (c *Cluster) AddNodes(ctx context.Context, nodes ...Node) error {
	for _, n := range nodes {
		room := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods: resource.MustParse(strconv.Itoa(n.Pods)),
		}
		labels := map[string]string{corev1.LabelHostname: n.Name}
		for key, value := range n.Labels {
			labels[key] = value
		}
		if _, err := c.core.Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: map[string]string{"local.drover.run/network": "ready"}},
			Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
		}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("add node %s: %w", n.Name, err)
		}
	}
	for _, n := range nodes {
		if err := until(ctx, 50*time.Millisecond, "node "+n.Name+" to be usable", func() (bool, error) {
			node, err := c.core.Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			// The node lifecycle controller removes the not-ready taint.
			return ready(node) && len(node.Spec.Taints) == 0, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func ready(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// RemoveNodes deletes nodes. Kubernetes collects the pods on them.
func (c *Cluster) RemoveNodes(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := c.core.Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: %w", name, err)
		}
	}
	return nil
}

// Reset removes what drains leave on nodes and makes them schedulable or not.
func (c *Cluster) Reset(ctx context.Context, schedulable bool, names ...string) error {
	for _, name := range names {
		node, err := c.core.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reset node %s: %w", name, err)
		}
		annotations := map[string]any{}
		for key := range node.Annotations {
			if key != "local.drover.run/network" {
				annotations[key] = nil
			}
		}
		labels := map[string]any{"node.kubernetes.io/exclude-from-external-load-balancers": nil}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": annotations, "labels": labels},
			"spec":     map[string]any{"unschedulable": !schedulable, "taints": nil},
		})
		if err != nil {
			return err
		}
		if _, err := c.core.Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("reset node %s: %w", name, err)
		}
	}
	return nil
}
