package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
)

// controlPlaneDrift compares the control plane with its stack. EKS upgrades a control plane whose version is no longer supported, and an
// operator may upgrade it in the console. EKS also reports issues, such as a deleted subnet, role or key. No event reports either, and the
// stack does not show it. Call it only while no stack of the cluster has an operation in flight: during an upgrade by drover, the stack
// has the version before.
//
// desired is the access that its endpoint should have, or nil if the plan changes the control plane.
func (r *auditRun) controlPlaneDrift(ctx context.Context, cluster string, desired *api.Access) (findings []string, err error) {
	deployed := plan.KubernetesVersion(r.stacks[cluster])
	if deployed == "" {
		return nil, nil
	}
	eks, err := r.EKS.ControlPlane(ctx, names.EKSCluster(cluster))
	switch {
	case fault.Code(err) == "ResourceNotFoundException":
		return []string{
			fmt.Sprintf("EKS has no cluster %s although its stack exists: it was deleted outside drover. To recreate it, delete the stack %s and "+
				"the cluster's log group, and run drover converge %s", names.EKSCluster(cluster), names.Stack(cluster, names.ControlPlane), cluster),
		}, nil
	case err != nil:
		return nil, err
	}
	if what, next := preflight.VersionChangedOutside(cluster, eks.Version, deployed); what != "" {
		findings = append(findings, what+". "+next)
	}
	if finding := accessDrift(cluster, eks.Access, desired); finding != "" {
		findings = append(findings, finding)
	}
	// Sorted, so that the same issues are the same text.
	for _, issue := range slices.Compact(slices.Sorted(slices.Values(eks.Issues))) {
		findings = append(findings, "EKS reports an issue with the control plane: "+issue)
	}
	return findings, nil
}

// accessChanged is in the finding of accessDrift.
const accessChanged = "it was changed outside drover, and drover does not change it back"

// accessDrift returns the finding about an endpoint that admits others than the spec says, or "". drover does not repair it: an operator
// may have closed the endpoint in an emergency, and the repair would open it to everyone. CloudFormation fails to make a change that EKS
// already has, so the command comes before a new spec.
func accessDrift(cluster string, actual api.Access, desired *api.Access) string {
	if desired == nil || actual.Equal(*desired) {
		return ""
	}
	return fmt.Sprintf("the API endpoint admits %s instead of %s: %s; to do so, run %s; then, to restrict it, set "+
		"spec.controlPlane.endpoint", actual, desired, accessChanged, desired.Command(names.EKSCluster(cluster)))
}
