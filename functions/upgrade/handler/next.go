package handler

// After each execution of drover-converge: verify the open step, and open the next.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// maxTries limits the executions of drover-converge for one step that succeed and leave the step incomplete.
const maxTries = 3

// next verifies the open step and opens the next. A step that is complete counts, even if the spec no longer names the target.
func next(ctx context.Context, c *call) (events.UpgradeResult, error) {
	if err := c.loadOwned(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	if c.record.Step >= len(c.record.Steps) {
		return c.startStep(ctx)
	}
	unwanted, err := c.supersededBy(ctx)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	s := c.record.Steps[c.record.Step]
	wait, missing, err := c.completeStep(ctx)
	var stopped *route.StopError
	if unwanted != nil && (err == nil || errors.As(err, &stopped)) {
		finish := false
		if err == nil && (wait.Outcome != "" || missing != "") {
			finish, err = c.mustFinish(ctx, s)
		}
		if !finish && (err == nil || errors.As(err, &stopped)) {
			return events.UpgradeResult{}, unwanted
		}
	}
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case c.Now().Sub(s.Opened) > s.Kind.Limit() && (wait.Outcome != "" || missing != ""):
		return events.UpgradeResult{}, route.Stopf("the step %q exceeded its limit of %s: %s", route.StepName(s), s.Kind.Limit(),
			cmp.Or(missing, wait.Message))
	case wait.Outcome != "":
		return wait, c.recordProgress(ctx, nil, wait.Message)
	case missing != "":
		return c.retryStep(ctx, missing)
	}
	return c.startStep(ctx)
}

// completeStep verifies the open step, and opens the next one in the record. Otherwise it returns what to wait for, or what is missing.
func (c *call) completeStep(ctx context.Context) (wait events.UpgradeResult, missing string, err error) {
	wait, missing, err = c.verifyStep(ctx)
	if err == nil && missing == "" && wait.Outcome == "" {
		wait, err = c.waitForOldNodes(ctx)
	}
	if err != nil || missing != "" || wait.Outcome != "" {
		return wait, missing, err
	}
	c.record.Steps[c.record.Step].Ended = c.Now().UTC()
	c.record.Step, c.record.Try = c.record.Step+1, 0
	c.openStep()
	return wait, "", c.write(ctx)
}

// mustFinish reports whether EKS rolls the control plane back, or has done so, and the stack does not show it yet. An upgrade that stopped
// here would leave a stack that states a newer version than the control plane runs, and the next plan would give nodes that version.
func (c *call) mustFinish(ctx context.Context, s upgrade.Step) (bool, error) {
	if s.Kind != upgrade.StepControlPlane || !s.NodesRolledBack {
		return false, nil
	}
	eks, err := c.EKS.ControlPlane(ctx, names.EKSCluster(c.in.Cluster))
	return err == nil && (eks.Status == "UPDATING" || !isRollBack(s, eks.Version)), err
}

// retryStep starts another execution for an incomplete step, unless another execution converges the cluster.
func (c *call) retryStep(ctx context.Context, missing string) (events.UpgradeResult, error) {
	holder, err := c.State.Holder(ctx, c.in.Cluster, c.Executions.Running)
	switch {
	case err != nil:
		return events.UpgradeResult{}, err
	case holder != "":
		message := "the cluster is being converged by " + holder
		return busy(message, backoff.MaxUpgradePause), c.recordProgress(ctx, nil, message)
	case c.record.Try == maxTries-1 && c.record.Steps[c.record.Step].NodesRolledBack && strings.HasPrefix(missing, "EKS "):
		return events.UpgradeResult{}, route.Stopf("EKS did not roll the control plane back in %d attempts; "+
			"`aws eks list-updates --name %s` shows them: %s", maxTries, names.EKSCluster(c.in.Cluster), missing)
	case c.record.Try == maxTries-1:
		return events.UpgradeResult{}, route.Stopf("converging succeeded %d times, but %s", maxTries, missing)
	}
	c.record.Try++
	if err := c.write(ctx); err != nil {
		return events.UpgradeResult{}, err
	}
	return c.startStep(ctx)
}

// supersededBy returns why the newest spec no longer wants this upgrade; nil if it does. The upgrade stops after the execution of a step.
func (c *call) supersededBy(ctx context.Context) (*route.StopError, error) {
	spec, _, err := c.Checker.NewestSpec(ctx, c.in.Cluster)
	var unusable *route.StopError
	switch {
	case errors.As(err, &unusable):
		return unusable, nil
	case err != nil:
		return nil, err
	}
	if why := c.record.SupersededReason(spec); why != "" {
		return &route.StopError{Message: why}, nil
	}
	return nil, nil
}

// newestSpec reads the newest spec; nil if there is none or it is invalid.
func (c *call) newestSpec(ctx context.Context) (*api.Cluster, error) {
	spec, _, err := c.Checker.NewestSpec(ctx, c.in.Cluster)
	var unusable *route.StopError
	if errors.As(err, &unusable) {
		return nil, nil
	}
	return spec, err
}

// verifyStep verifies that planning finds no change, and that EKS runs the version of the step. It returns what is missing. While EKS
// updates the control plane it returns a wait: an execution would fail.
func (c *call) verifyStep(ctx context.Context) (wait events.UpgradeResult, missing string, err error) {
	s := c.record.Steps[c.record.Step]
	eks, err := c.EKS.ControlPlane(ctx, names.EKSCluster(c.in.Cluster))
	if err != nil {
		return wait, "", err
	}
	if eks.Status == "UPDATING" {
		return busy("EKS has not finished with the control plane: its status is UPDATING", c.rollBackPause(s)), "", nil
	}
	p, reason, message, err := c.Planner.Preview(ctx, c.in.Cluster)
	switch {
	case err != nil:
		return wait, "", err
	case reason != "":
		return wait, "", route.Stopf("%s: %s", reason, message)
	case isRollBack(s, eks.Version):
		return wait, fmt.Sprintf("EKS reports that the control plane runs %s, not %s", eks.Version, s.KubernetesVersion), nil
	case len(p.Changes) > 0:
		return wait, "changes are left: " + describeChanges(p), nil
	case eks.Version != s.KubernetesVersion:
		return wait, fmt.Sprintf("EKS reports that the control plane runs %s, not %s", eks.Version, s.KubernetesVersion), nil
	case eks.Status != "ACTIVE":
		return wait, "EKS has not finished with the control plane: its status is " + eks.Status, nil
	}
	return wait, "", nil
}

func describeChanges(p plan.Plan) string {
	var all []string
	for _, c := range p.Changes {
		all = append(all, fmt.Sprintf("%s of %s", strings.ToLower(string(c.Operation)), c.Stack))
	}
	return strings.Join(all, ", ")
}
