package steps

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/names"
)

// upgrade moves the cluster to the newer release, under the workload's budget.
func (t *Target) upgrade(ctx context.Context, log *runner.Log, cluster string) error {
	err := t.underBudget(ctx, log, cluster, func() error {
		_, err := t.drover(ctx, log, "upgrade", cluster, "--to", t.newer.name, "--watch")
		return err
	})
	if err != nil {
		return err
	}
	return t.requireVersion(ctx, log, cluster, t.newer.kubernetes)
}

// rollBack moves the cluster back to the older release, under the workload's budget.
func (t *Target) rollBack(ctx context.Context, log *runner.Log, cluster string) error {
	err := t.underBudget(ctx, log, cluster, func() error {
		_, err := t.drover(ctx, log, "upgrade", cluster, "--rollback", "--watch")
		return err
	})
	if err != nil {
		return err
	}
	return t.requireVersion(ctx, log, cluster, t.older.kubernetes)
}

// requireVersion fails unless the control plane and all nodes have a minor version.
func (t *Target) requireVersion(ctx context.Context, log *runner.Log, cluster, minor string) error {
	out, err := eks.NewFromConfig(t.cfg).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(names.EKSCluster(cluster))})
	if err != nil {
		return fmt.Errorf("reading the version of the control plane: %w", err)
	}
	if version := aws.ToString(out.Cluster.Version); version != minor {
		return fmt.Errorf("the control plane has version %s, not %s", version, minor)
	}
	api, err := t.open(ctx, cluster)
	if err != nil {
		return err
	}
	return t.until(ctx, 5*time.Second, "a node of version "+minor, func() (bool, error) {
		nodes, err := api.PoolNodes(ctx, poolName)
		if err != nil {
			return false, err
		}
		for _, node := range nodes {
			if !strings.HasPrefix(node.KubeletVersion, "v"+minor+".") {
				return false, fmt.Errorf("node %s has kubelet %s, not %s", node.Name, node.KubeletVersion, minor)
			}
			if node.Ready {
				log.Found("the control plane has version %s, and node %s kubelet %s", minor, node.Name, node.KubeletVersion)
				return true, nil
			}
		}
		return false, nil
	})
}
