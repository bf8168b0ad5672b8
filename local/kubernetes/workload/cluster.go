// Package workload creates nodes and workloads with disruption budgets on the real API server of a local cluster, and
// watches their health.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-run/drover/local/kubernetes"
)

// Cluster is a connection to a local cluster.
type Cluster struct {
	core   corev1.CoreV1Interface
	apps   appsv1.AppsV1Interface
	policy policyv1.PolicyV1Interface
}

// Admin returns the configuration of a control plane's administrator, without a client limit.
func Admin(c *kubernetes.ControlPlane) *rest.Config {
	return &rest.Config{
		Host: c.Endpoint, QPS: -1,
		BearerToken: c.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA},
	}
}

// Open connects to the cluster of a kubeconfig file, without a client limit.
func Open(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return Connect(config)
}

// Connect connects to a cluster as its administrator. The connection is not shared.
func Connect(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "workload"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	core, coreErr := corev1.NewForConfigAndClient(config, client)
	apps, appsErr := appsv1.NewForConfigAndClient(config, client)
	policy, policyErr := policyv1.NewForConfigAndClient(config, client)
	if err := errors.Join(coreErr, appsErr, policyErr); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Cluster{core, apps, policy}, nil
}

// until polls until yes returns true. An error names what was awaited.
func until(ctx context.Context, every time.Duration, what string, yes func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := yes()
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
