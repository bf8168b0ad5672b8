package drainer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/kube"
)

func (d *Drainer) podsOf(node string) source[corev1.Pod] {
	onNode := fields.OneTermEqualSelector("spec.nodeName", node).String()
	return newSource(d.cluster.Core, "pods", onNode, func(l *corev1.PodList) []corev1.Pod {
		return l.Items
	})
}

func (d *Drainer) allBudgets() source[policyv1.PodDisruptionBudget] {
	return newSource(d.cluster.Policy, "poddisruptionbudgets", "", func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget {
		return l.Items
	})
}

// allAttachments lists the attachments of all nodes: the API cannot select them by node.
func (d *Drainer) allAttachments() source[storagev1.VolumeAttachment] {
	return newSource(d.cluster.Storage, "volumeattachments", "", func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment {
		return l.Items
	})
}

func newSource[T, L any, PL interface {
	*L
	runtime.Object
	metav1.ListInterface
}](client rest.Interface, resource, fields string, items func(PL) []T) source[T] {
	return source[T]{
		list: func(ctx context.Context) ([]T, string, error) {
			ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
			defer cancel()
			list := PL(new(L))
			err := client.Get().Resource(resource).VersionedParams(&metav1.ListOptions{FieldSelector: fields}, kube.Parameters).Do(ctx).Into(list)
			if err != nil {
				return nil, "", fmt.Errorf("listing %s: %w", resource, err)
			}
			return items(list), list.GetResourceVersion(), nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			w, err := client.Get().Resource(resource).VersionedParams(&metav1.ListOptions{
				FieldSelector: fields, ResourceVersion: version, Watch: true,
			}, kube.Parameters).Watch(ctx)
			if err != nil {
				return nil, fmt.Errorf("watching %s: %w", resource, err)
			}
			return w, nil
		},
	}
}
