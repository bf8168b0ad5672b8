package handler

// Clusters whose deletion failed, and whose spec exists again.

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// verifyEmpty refuses to delete and recreate a stack that is protected, or is the network, while the EKS cluster exists. CloudFormation
// allows only another deletion of a stack whose deletion failed. Once the EKS cluster no longer exists, drover recreates the stack.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html#cfn-console-view-stack-data-resources-status-codes
func (c *call) verifyEmpty(ctx context.Context, deployed stack.Deployed) error {
	needed := c.change.Protected || c.change.Stack == names.Network // a cluster needs its network
	if !needed || len(deployed.Outputs) == 0 {                      // a stack whose creation failed has no outputs
		return nil
	}
	deleted, err := c.isClusterDeleted(ctx)
	if err != nil || deleted {
		return err
	}
	if !c.change.Protected {
		return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s is %s: %s: "+
			"its deletion was started outside drover, and the EKS cluster %s still exists. "+
			"drover cannot recreate the network of an existing cluster. To start over, delete the spec, which deletes the cluster with its "+
			"workloads, and upload the spec again when the cluster is deleted",
			c.change.StackName, deployed.Status, strings.TrimRight(deployed.StatusReason, ". "), names.EKSCluster(c.in.Cluster))}
	}
	return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s is %s: %s: the EKS cluster %s still exists, "+
		"and CloudFormation can only continue to delete such a stack. So drover changes neither this stack nor the later ones: "+
		"finish the deletion yourself, or set spec.deletionProtection to false, and drover deletes the cluster with its workloads and "+
		"recreates it",
		c.change.StackName, deployed.Status, strings.TrimRight(deployed.StatusReason, ". "), names.EKSCluster(c.in.Cluster))}
}

// isClusterDeleted reports whether CloudFormation has deleted the EKS cluster, even if deleting its stack failed.
func (c *call) isClusterDeleted(ctx context.Context) (bool, error) {
	control := names.Stack(c.in.Cluster, names.ControlPlane)
	deployed, err := c.Stacks.Describe(ctx, control)
	if err != nil || stack.Absent(deployed.Status) {
		return err == nil, err
	}
	return c.Stacks.Deleted(ctx, control, names.ClusterResource)
}
