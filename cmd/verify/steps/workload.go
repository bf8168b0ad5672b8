package steps

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/kube"
)

// namespace of everything that the run creates in a cluster.
const namespace = "drover-verify"

// The resources of workloads.
var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobs            = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	budgets         = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// ensureObject creates an object, unless it exists.
func ensureObject(ctx context.Context, api *kube.Cluster, resource schema.GroupVersionResource, manifest string) error {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return fmt.Errorf("reading the manifest of %s: %w", resource.Resource, err)
	}
	client := api.Dynamic.Resource(resource).Namespace(object.GetNamespace())
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", resource.Resource, object.GetName(), err)
	}
	return nil
}

// putNamespace creates the namespace of the run.
func putNamespace(ctx context.Context, api *kube.Cluster) error {
	return ensureObject(ctx, api, namespaces, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "`+namespace+`"}}`)
}
