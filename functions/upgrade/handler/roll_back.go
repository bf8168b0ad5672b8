package handler

// The rollback of the control plane. EKS documents an API for it, and does not document that CloudFormation starts a rollback for a
// template of a lower version. So the function calls EKS first. CloudFormation then finds the version of the template.
// https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// rollBack has EKS roll the control plane back if a step needs that. It returns what to wait for.
func (c *call) rollBack(ctx context.Context, s upgrade.Step) (wait events.UpgradeResult, err error) {
	if s.Kind != upgrade.StepControlPlane || !s.NodesRolledBack {
		return wait, nil
	}
	name := names.EKSCluster(c.in.Cluster)
	eks, err := c.EKS.ControlPlane(ctx, name)
	switch {
	case err != nil || !isRollBack(s, eks.Version):
		return wait, err
	case eks.Status == "UPDATING":
		return busy("EKS has not finished with the control plane: its status is UPDATING", c.rollBackPause(s)), nil
	}
	refused, err := c.EKS.RollBack(ctx, name, s.KubernetesVersion)
	if err == nil && refused != "" {
		err = route.Stopf("EKS does not roll the control plane back to %s: %s", s.KubernetesVersion, refused)
	}
	if err != nil {
		return wait, err
	}
	return busy(fmt.Sprintf("EKS rolls the control plane back to %s", s.KubernetesVersion), c.rollBackPause(s)), nil
}

// maxRollBackPause is the longest pause between two reads of a control plane that EKS rolls back, which takes minutes.
const maxRollBackPause = 30 * time.Second

// rollBackPause is the pause until the control plane is read again. Only a rollback is awaited for that reason in a healthy upgrade.
func (c *call) rollBackPause(s upgrade.Step) time.Duration {
	if !s.NodesRolledBack {
		return backoff.MaxUpgradePause
	}
	return min(backoff.EKSCalls.Pause(c.Now().Sub(s.Opened)), maxRollBackPause)
}

// isRollBack reports whether a step needs a rollback of a control plane that runs this version.
func isRollBack(s upgrade.Step, version string) bool {
	return s.Kind == upgrade.StepControlPlane && s.NodesRolledBack && upgrade.Minor(version) > upgrade.Minor(s.KubernetesVersion)
}
