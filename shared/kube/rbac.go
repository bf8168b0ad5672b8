package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
)

var (
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// The Kubernetes groups of drover's functions: their access entries in the control plane's template name them.
const (
	JoinGroup  = "drover:join"
	DrainGroup = "drover:drain"
	SweepGroup = "drover:sweep"
	// UpgradeGroup reads what the checks before and after an upgrade need: see package survey. It changes nothing.
	UpgradeGroup = "drover:upgrade"
)

// grants are the rules of each group.
var grants = map[string][]any{
	JoinGroup: {
		rule("", "nodes", "get", "list"),
	},
	SweepGroup: {
		rule("", "nodes", "get", "list"),
	},
	UpgradeGroup: {
		rule("", "nodes", "list"),
		rule("", "pods", "list"),
		rule("", "namespaces", "list"),
		rule("apps", "deployments", "list"),
		rule("apps", "statefulsets", "list"),
		rule("apps", "daemonsets", "list"),
		rule("policy", "poddisruptionbudgets", "list"),
		rule("discovery.k8s.io", "endpointslices", "list"),
		rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", "list"),
		rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list"),
	},
	DrainGroup: {
		rule("", "nodes", "get", "list", "patch"),
		rule("", "pods", "list", "watch", "delete"),
		rule("", "pods/eviction", "create"),
		rule("policy", "poddisruptionbudgets", "list", "watch"),
		rule("storage.k8s.io", "volumeattachments", "list", "watch"),
	},
}

func rule(group, resource string, verbs ...any) any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
}

// GrantRoles gives drover's functions their rights in a cluster, by server-side apply. A repeated call changes nothing.
func (c *Cluster) GrantRoles(ctx context.Context) error {
	for _, group := range slices.Sorted(maps.Keys(grants)) {
		role := object("ClusterRole", group)
		role.Object["rules"] = grants[group]
		binding := object("ClusterRoleBinding", group)
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group}
		binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}}
		if err := c.apply(ctx, clusterRoles, role); err != nil {
			return err
		}
		if err := c.apply(ctx, clusterRoleBindings, binding); err != nil {
			return err
		}
	}
	return nil
}

func object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "drover"}},
	}}
}

func (c *Cluster) apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	_, err := c.Dynamic.Resource(resource).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "drover", Force: true})
	if err != nil {
		return &fault.ClusterUnreachable{Cause: fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)}
	}
	return nil
}
