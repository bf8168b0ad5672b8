package kube

// The health of all nodes of a cluster, to find nodes that stay NotReady.

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
)

// Health lists the nodes of drover's pools in a cluster, with one call. api comes from its control plane stack. If the API server does not
// respond, the error is *fault.ClusterUnreachable.
func (c *Clusters) Health(ctx context.Context, cluster string, api stack.API) ([]pool.NodeHealth, error) {
	opened, err := c.connect(ctx, cluster, api, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return opened.Health(ctx)
}

// Health lists the nodes of drover's pools.
func (c *Cluster) Health(ctx context.Context) ([]pool.NodeHealth, error) {
	// Version 0 reads from the API server's cache.
	options := metav1.ListOptions{LabelSelector: names.LabelPool, ResourceVersion: "0"}
	var list corev1.NodeList
	if err := c.Core.Get().Resource("nodes").VersionedParams(&options, Parameters).Do(ctx).Into(&list); err != nil {
		return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("listing nodes: %w", err)}
	}
	var all []pool.NodeHealth
	for i := range list.Items {
		node := &list.Items[i]
		h := pool.NodeHealth{
			Name: node.Name, Instance: node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:], // aws:///<zone>/<instance id>
			Pool: node.Labels[names.LabelPool], Cordoned: node.Spec.Unschedulable, KubeletVersion: node.Status.NodeInfo.KubeletVersion,
			Since: node.CreationTimestamp.Time, Message: "it has no Ready condition",
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				h.Ready, h.Since, h.Message = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.Time, condition.Message
			}
		}
		all = append(all, h)
	}
	return all, nil
}
