package handler

// Clusters whose deletion began, did not get through, and is not wanted any more.

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// holdsNothing refuses to finish the deletion of what is protected and may still hold a cluster: CloudFormation takes no other operation
// on a stack that it could not delete. Once the EKS cluster is gone, nothing is lost with the rest, and it is made anew.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html#cfn-console-view-stack-data-resources-status-codes
func (s *step) holdsNothing(ctx context.Context, now stack.Deployed) error {
	kept := s.change.Protected || s.change.Stack == names.Network // without which no cluster lives
	if !kept || len(now.Outputs) == 0 {                           // only a stack that came to be has outputs
		return nil
	}
	gone, err := s.clusterGone(ctx)
	if err != nil || gone {
		return err
	}
	if !s.change.Protected {
		return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s is %s: %s: somebody began to delete it, and the EKS cluster %s is still there: "+
			"a network cannot be made "+
			"anew under a cluster: delete the spec, and upload it again when the cluster is gone",
			s.change.StackName, now.Status, strings.TrimRight(now.StatusReason, ". "), names.EKSCluster(s.in.Cluster))}
	}
	return &fault.ChangeRefused{Cause: fmt.Errorf("stack %s is %s: %s: the EKS cluster %s is still there, and CloudFormation can only go on "+
		"deleting such a stack, "+
		"so it is not adopted again, nor is what comes after it: finish the deletion by hand, or set spec.deletionProtection to false, and the "+
		"cluster is made anew",
		s.change.StackName, now.Status, strings.TrimRight(now.StatusReason, ". "), names.EKSCluster(s.in.Cluster))}
}

// clusterGone says whether the EKS cluster of a stack that could not be deleted is gone.
func (s *step) clusterGone(ctx context.Context) (bool, error) {
	control := names.Stack(s.in.Cluster, names.ControlPlane)
	now, err := s.Stacks.Describe(ctx, control)
	if err != nil || stack.Absent(now.Status) {
		return err == nil, err
	}
	return s.Stacks.Deleted(ctx, control, names.ClusterResource)
}
