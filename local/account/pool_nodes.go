package account

import (
	"context"
	"fmt"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/drover-run/drover/shared/names"
)

var nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// PoolNodes returns the instance IDs of a pool's nodes by name.
func PoolNodes(ctx context.Context, client dynamic.Interface, pool string) (map[string]string, error) {
	list, err := client.Resource(nodeResource).List(ctx, metav1.ListOptions{LabelSelector: names.LabelPool + "=" + pool})
	if err != nil {
		return nil, fmt.Errorf("asking the API server for the nodes of pool %s: %w", pool, err)
	}
	instances := map[string]string{}
	for _, node := range list.Items {
		provider, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
		instances[node.GetName()] = path.Base(provider)
	}
	return instances, nil
}

// CheckRolled returns an error unless each node of a pool is new and uses the image. old are the previous nodes'
// instance IDs by name.
func (a *Account) CheckRolled(ctx context.Context, client dynamic.Interface, pool, image string, old map[string]string) error {
	now, err := PoolNodes(ctx, client, pool)
	if err != nil {
		return err
	}
	if len(now) < len(old) {
		return fmt.Errorf("pool %s has %d nodes after the roll, and had %d", pool, len(now), len(old))
	}
	for name, id := range now {
		instance, err := a.EC2.Instance(id)
		if err != nil {
			return err
		}
		if old[name] == id || instance.ImageID != image {
			return fmt.Errorf("node %s (%s) of pool %s is still there, on image %s", name, id, pool, instance.ImageID)
		}
	}
	return nil
}

// AwaitRolled waits for at most a minute until CheckRolled finds no error. Auto Scaling ends an instance after its drain, so a node can
// outlive the stack's update for a moment.
func (a *Account) AwaitRolled(ctx context.Context, client dynamic.Interface, pool, image string, old map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := a.CheckRolled(ctx, client, pool, image, old)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
