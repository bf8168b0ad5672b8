package kube

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
)

var persistentVolumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}

// ebs finds the id of an EBS volume in what drivers make of it: the CSI driver's handle is the id, the in-tree
// driver's a URL that ends in it.
var ebs = regexp.MustCompile(`vol-[0-9a-f]+$`)

// RetainedVolumes lists the IDs of EBS volumes whose PersistentVolume has the reclaim policy Retain.
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming
func (c *Cluster) RetainedVolumes(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	list, err := c.Dynamic.Resource(persistentVolumes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, &fault.ClusterUnreachable{Cause: fmt.Errorf("listing the persistent volumes: %w", err)}
	}
	var retained []string
	for _, item := range list.Items {
		var pv corev1.PersistentVolume
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pv); err != nil {
			return nil, fmt.Errorf("reading persistent volume %s: %w", item.GetName(), err)
		}
		if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			continue
		}
		handle := ""
		switch {
		case pv.Spec.CSI != nil:
			handle = pv.Spec.CSI.VolumeHandle
		case pv.Spec.AWSElasticBlockStore != nil:
			handle = pv.Spec.AWSElasticBlockStore.VolumeID
		}
		if id := ebs.FindString(handle); id != "" {
			retained = append(retained, id)
		}
	}
	slices.Sort(retained)
	return slices.Compact(retained), nil
}
