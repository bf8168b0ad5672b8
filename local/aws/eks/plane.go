package eks

// The Kubernetes API of a cluster as EKS uses it: the real control plane, and the creation of objects in it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/kubernetes"
)

var (
	nodeResource           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podResource            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaceResource      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceResource        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	serviceAccountResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	deploymentResource     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	daemonSetResource      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	budgetResource         = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	clusterRoleResource    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterBindingResource = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	roleBindingResource    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

// realPlane is a control plane of local/kubernetes.
type realPlane struct{ *kubernetes.ControlPlane }

func startReal(ctx context.Context, o kubernetes.Options) (ControlPlane, error) {
	plane, err := kubernetes.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return realPlane{plane}, nil
}

func (p realPlane) Address() (string, []byte) { return p.Endpoint, p.CA }

// Interrupt makes the API server refuse connections for some time.
func (s *Service) Interrupt(ctx context.Context, name string, downtime time.Duration) error {
	s.mu.Lock()
	c, ok := s.clusters[name]
	var plane ControlPlane
	if ok {
		plane = c.plane
	}
	s.mu.Unlock()
	interruptible, ok := plane.(interface {
		Interrupt(ctx context.Context, downtime time.Duration) error
	})
	if !ok {
		return fmt.Errorf("the API server of %s cannot be interrupted: it does not run", name)
	}
	return interruptible.Interrupt(ctx, downtime)
}

// Running returns the names of the clusters whose API server should be reachable.
func (s *Service) Running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name, c := range s.clusters {
		if c.plane != nil && (c.Status == active || c.Status == updating) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func (p realPlane) Kubeconfig() string { return p.AdminKubeconfig }

func (p realPlane) Client(user string, groups []string) (dynamic.Interface, error) {
	return dynamic.NewForConfig(&rest.Config{
		Host: p.Endpoint, QPS: -1,
		BearerToken: p.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: p.CA},
		Impersonate: rest.ImpersonationConfig{UserName: user, Groups: groups},
	})
}

// patience is the real time for which EKS and kubelets retry while an API server is unreachable, for example during a version update.
const (
	patience  = 2 * time.Minute
	retryPoll = 250 * time.Millisecond
)

// patiently retries do while the API server is unreachable. Any response, including an error, ends the retries.
func patiently(ctx context.Context, do func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := do()
		var status apierrors.APIStatus
		answered := errors.As(err, &status) && status.Status().Code < 500
		if err == nil || answered || time.Now().After(deadline) || (&clock.Clock{}).Timer(ctx, retryPoll) != nil {
			return err
		}
	}
}

// ensure creates an object or updates an existing one.
func ensure(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, object map[string]any) error {
	return patiently(ctx, func() error { return ensureOnce(ctx, client, resource, object) })
}

func ensureOnce(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, object map[string]any) error {
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	api := client.Resource(resource).Namespace(o.GetNamespace())
	// It reads the object first. For an existing service, whose address is in use, the API server would report an invalid address on creation.
	existing, err := api.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, o, metav1.CreateOptions{FieldManager: "eks"})
		return wrapObject(err, "creating", o)
	}
	if err != nil {
		return wrapObject(err, "reading", o)
	}
	o.SetResourceVersion(existing.GetResourceVersion())
	_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: "eks"})
	return wrapObject(err, "updating", o)
}

func wrapObject(err error, doing string, o *unstructured.Unstructured) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, o.GetKind(), o.GetName(), err)
}

// remove deletes an object. An absent object is no error.
func remove(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string) error {
	background := metav1.DeletePropagationBackground
	err := patiently(ctx, func() error {
		return client.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// binding is a (Cluster)RoleBinding of a ClusterRole to a group.
func binding(kind, namespace, name, role, group string) map[string]any {
	metadata := map[string]any{"name": name, "labels": map[string]any{"eks.amazonaws.com/managed-by": "eks"}}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}},
	}
}

// Administrator returns the Kubernetes API of a cluster and a kubeconfig file, for observers without an access entry. It returns
// ResourceNotFoundException if the cluster has no API.
func (s *Service) Administrator(name string) (client dynamic.Interface, kubeconfig string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(name)
	if err != nil {
		return nil, "", err
	}
	if c.admin == nil || c.Status == deleting {
		return nil, "", notFound("No API server of cluster %s: it is %s.", name, c.Status)
	}
	return c.admin, c.plane.Kubeconfig(), nil
}
