package apiserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-run/drover/shared/kube/survey"
	"github.com/drover-run/drover/shared/preflight"
)

// The checks of an upgrade read the same facts here as from a real API server.
func TestSurvey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, cluster := serve(t)
		addNode(t, client, "n1")
		s.Run(App{Name: "web", Replicas: 3, MaxUnavailable: 1, Start: time.Minute})
		webhook := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
		_, err := client.Resource(webhook).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "guard"},
			"webhooks": []any{map[string]any{
				"name": "guard.example", "failurePolicy": "Fail", "clientConfig": map[string]any{
					"service": map[string]any{"namespace": "default", "name": "guard"},
				},
				"rules": []any{
					map[string]any{"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}},
				},
			}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		web := func() preflight.Workload {
			found, err := survey.Of(t.Context(), cluster)
			require.NoError(t, err)
			require.Len(t, found.Nodes, 1)
			require.Len(t, found.Budgets, 1)
			require.Len(t, found.Webhooks, 1)
			require.Zero(t, found.Webhooks[0].Endpoints)
			require.Len(t, found.Workloads, 1)
			return found.Workloads[0]
		}
		time.Sleep(readyWork + time.Second)
		require.Equal(t, preflight.Workload{Kind: "Deployment", Namespace: "default", Name: "web", Desired: 3}, web())
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, web().Ready)

		s.Down(time.Minute)
		_, err = survey.Of(t.Context(), cluster)
		require.ErrorContains(t, err, "the API server is down")
	})
}
