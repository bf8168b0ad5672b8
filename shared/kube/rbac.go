package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/fault"
)

var (
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// JoinGroup is the Kubernetes group of the join function: its access entry in the control plane's template names it.
const JoinGroup = "drover:join"

// GrantRoles gives drover's own functions the little they need in a cluster, by server-side apply: the same every time,
// and a no-op when it is there already.
func (c *Cluster) GrantRoles(ctx context.Context) error {
	role := object("ClusterRole", JoinGroup)
	role.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"get", "list", "watch"},
	}}
	binding := object("ClusterRoleBinding", JoinGroup)
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": JoinGroup}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": JoinGroup}}
	if err := c.apply(ctx, clusterRoles, role); err != nil {
		return err
	}
	return c.apply(ctx, clusterRoleBindings, binding)
}

func object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "drover"}},
	}}
}

func (c *Cluster) apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.api.Resource(resource).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "drover", Force: true})
	if err != nil {
		return &fault.ClusterUnreachable{Cause: fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)}
	}
	return nil
}
