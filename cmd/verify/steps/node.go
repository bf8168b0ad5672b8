package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/aws/lambda"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/kube/relay"
)

// open signs in to a cluster with the caller's identity.
func (t *Target) open(ctx context.Context, cluster string) (*kube.Cluster, error) {
	return kube.NewClusters(t.cfg, kube.WithRelay(relay.To(lambda.New(t.cfg)))).Open(ctx, cluster)
}

// nodeReady waits for a node that its API server reports as Ready.
func (t *Target) nodeReady(ctx context.Context, log *runner.Log, cluster string) error {
	api, err := t.open(ctx, cluster)
	if err != nil {
		return err
	}
	return t.until(ctx, 5*time.Second, "a Ready node", func() (bool, error) {
		nodes, err := api.PoolNodes(ctx, poolName)
		if err != nil {
			return false, fmt.Errorf("asking the API server with your identity: %w", err)
		}
		for _, node := range nodes {
			if node.Ready {
				log.Found("the API server of %s reports node %s as Ready, kubelet %s", cluster, node.Name, node.KubeletVersion)
				return true, nil
			}
		}
		if len(nodes) == 0 {
			return false, errors.New("drover reports the cluster as Ready, but it has no node")
		}
		return false, nil
	})
}
