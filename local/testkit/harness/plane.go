package harness

// A simulated Kubernetes control plane. It stores objects in memory and reports every Deployment's pods as running.

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/kubernetes"
)

type plane struct{ client *fake.FakeDynamicClient }

func startPlane(context.Context, kubernetes.Options) (eks.ControlPlane, error) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "nodes"}: "NodeList",
		{Version: "v1", Resource: "pods"}:  "PodList",
	})
	client.PrependReactor("*", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if written, ok := action.(interface{ GetObject() runtime.Object }); ok {
			o := written.GetObject().(*unstructured.Unstructured).Object
			replicas, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
			o["status"] = map[string]any{"availableReplicas": replicas, "updatedReplicas": replicas}
		}
		return false, nil, nil // and continues to the memory
	})
	return &plane{client}, nil
}

func (p *plane) Address() (string, []byte) { return "https://127.0.0.1:1", []byte("authority") }
func (p *plane) Kubeconfig() string        { return "" }
func (p *plane) Client(string, []string) (dynamic.Interface, error) {
	return p.client, nil
}
func (p *plane) SetMinor(context.Context, string) error { return nil }
func (p *plane) Configure(context.Context, kubernetes.Settings) error {
	return nil
}
func (p *plane) Stop() {}
