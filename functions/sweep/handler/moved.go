package handler

// Control planes that are at another version than their stacks: EKS moves one whose version is supported no more, and people move them
// in its console. And those that EKS has an issue with, such as a subnet, a role or a key that is gone. No event tells of either, and the
// stack does not know.

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
)

// EKS is asked which version a control plane runs, and how it is: a subset of eks.Versions.
type EKS interface {
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
}

// moved asks EKS once for each cluster. No stack of it is being changed: while drover moves it the stack comes after EKS.
func (r *round) moved(ctx context.Context, cluster string) (findings []string, err error) {
	deployed := plan.KubernetesVersion(r.stacks[cluster])
	if deployed == "" {
		return nil, nil
	}
	eks, err := r.EKS.ControlPlane(ctx, names.EKSCluster(cluster))
	switch {
	case fault.Code(err) == "ResourceNotFoundException":
		return []string{fmt.Sprintf("EKS has no cluster %s though its stack is there: somebody deleted it. To make it anew, delete the stack "+
			"%s and the cluster's "+
			"log group, too, and run drover converge %s", names.EKSCluster(cluster), names.Stack(cluster, names.ControlPlane), cluster)}, nil
	case err != nil:
		return nil, err
	}
	if what, next := preflight.Moved(cluster, eks.Version, deployed); what != "" {
		findings = append(findings, what+". "+next)
	}
	// In an order of their own: the same issues are the same words.
	for _, issue := range slices.Compact(slices.Sorted(slices.Values(eks.Issues))) {
		findings = append(findings, "EKS reports an issue with the control plane: "+issue)
	}
	return findings, nil
}
