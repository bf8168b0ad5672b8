package handler

// Control planes that are at another version than their stacks: EKS moves one whose version is supported no more, and people move them
// in its console. No event tells of it, and the stack does not know.

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
)

// EKS is asked which version a control plane runs: a subset of versions.Versions.
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
		return []string{fmt.Sprintf("EKS has no cluster %s though its stack is there: somebody deleted it. To make it anew, delete the stack %s and the cluster's "+
			"log group, too, and start drover-converge", names.EKSCluster(cluster), names.Stack(cluster, names.ControlPlane))}, nil
	case err != nil:
		return nil, err
	}
	if what, next := preflight.Moved(eks.Version, deployed); what != "" {
		findings = append(findings, what+". "+next)
	}
	return findings, nil
}
