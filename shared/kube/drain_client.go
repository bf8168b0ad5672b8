package kube

// Typed clients of the few kinds that draining reads: hundreds of pods change within a second or two, and protobuf costs
// both sides a fraction of what JSON does. Without client-go's whole clientset, which would double the function's size.

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// typed are the clients by API group, and the connection that they share.
type typed struct {
	core, policy, storage rest.Interface
	http                  *http.Client
}

var (
	drainScheme = newDrainScheme()
	parameters  = runtime.NewParameterCodec(drainScheme)
	serializers = serializer.NewCodecFactory(drainScheme).WithoutConversion()
)

func newDrainScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: no input leads here
		}
	}
	return scheme
}

// newTyped shares one connection between the clients.
func newTyped(config *rest.Config) (typed, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return typed{}, err
	}
	of := func(group schema.GroupVersion, path string) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath = &group, path
		c.NegotiatedSerializer = serializers
		c.ContentType = runtime.ContentTypeProtobuf
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		return rest.RESTClientForConfigAndClient(c, client)
	}
	t := typed{http: client}
	for _, each := range []struct {
		client *rest.Interface
		group  schema.GroupVersion
		path   string
	}{
		{&t.core, corev1.SchemeGroupVersion, "/api"},
		{&t.policy, policyv1.SchemeGroupVersion, "/apis"},
		{&t.storage, storagev1.SchemeGroupVersion, "/apis"},
	} {
		if *each.client, err = of(each.group, each.path); err != nil {
			return typed{}, err
		}
	}
	return t, nil
}

// Sources of what draining watches.

func (c *Cluster) podsOf(node string) source[corev1.Pod] {
	return from(c.typed.core, "pods", fields.OneTermEqualSelector("spec.nodeName", node).String(), func(l *corev1.PodList) []corev1.Pod {
		return l.Items
	})
}

func (c *Cluster) allBudgets() source[policyv1.PodDisruptionBudget] {
	return from(c.typed.policy, "poddisruptionbudgets", "", func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget {
		return l.Items
	})
}

// allAttachments are those of all nodes: the API cannot select them by node.
func (c *Cluster) allAttachments() source[storagev1.VolumeAttachment] {
	return from(c.typed.storage, "volumeattachments", "", func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment {
		return l.Items
	})
}

func from[T, L any, PL interface {
	*L
	runtime.Object
	metav1.ListInterface
}](client rest.Interface, resource, fields string, items func(PL) []T) source[T] {
	return source[T]{
		list: func(ctx context.Context) ([]T, string, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			list := PL(new(L))
			err := client.Get().Resource(resource).VersionedParams(&metav1.ListOptions{FieldSelector: fields}, parameters).Do(ctx).Into(list)
			if err != nil {
				return nil, "", fmt.Errorf("listing %s: %w", resource, err)
			}
			return items(list), list.GetResourceVersion(), nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			w, err := client.Get().Resource(resource).VersionedParams(&metav1.ListOptions{
				FieldSelector: fields, ResourceVersion: version, Watch: true,
			}, parameters).Watch(ctx)
			if err != nil {
				return nil, fmt.Errorf("watching %s: %w", resource, err)
			}
			return w, nil
		},
	}
}
