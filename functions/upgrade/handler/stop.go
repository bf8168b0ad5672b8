package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
	"github.com/drover-run/drover/shared/upgrade/route"
)

// stop ends an upgrade that failed. Completed steps stay. For an upgrade that has ended already it writes the status again, as an earlier
// call may have failed before that. It does nothing if another execution has claimed the upgrade.
func stop(ctx context.Context, c *call) (result events.UpgradeResult, err error) {
	why := failureReason(c.in.Error, c.in.Cause)
	if c.record, c.etag, err = c.State.Upgrade(ctx, c.in.Cluster); err != nil {
		return events.UpgradeResult{}, err
	}
	if c.record == nil || !c.mayStop(c.record.Execution) {
		return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: why}, nil
	}
	if !c.record.State.Final() {
		if err := c.closeRecord(ctx, route.EndState(c.record)); err != nil {
			return events.UpgradeResult{}, err
		}
	}
	interrupted, err := c.interruptedStep(ctx)
	if err != nil {
		return events.UpgradeResult{}, err
	}
	message := outcomeMessage(c.in.Cluster, c.record, why, interrupted)
	return events.UpgradeResult{Outcome: events.UpgradeStopped, Message: message}, c.recordStop(ctx, message)
}

// mayStop reports whether this execution may stop the upgrade of an execution: its own, or the one that it ends or continues.
func (c *call) mayStop(owner string) bool {
	return owner == cmp.Or(c.in.Ended, c.in.Execution) || c.in.Continues != "" && owner == c.in.Continues
}

// interruptedStep describes how far the open step came. It returns "" for a step that was not started or was rolled back. A step that was
// started may be almost complete, but counts only once it is verified.
func (c *call) interruptedStep(ctx context.Context) (string, error) {
	if c.record.Step >= len(c.record.Steps) || c.record.Steps[c.record.Step].Started.IsZero() {
		return "", nil
	}
	s := c.record.Steps[c.record.Step]
	if s.Kind != upgrade.StepControlPlane {
		return "which was started", nil
	}
	deployed, err := c.Stacks.Describe(ctx, names.Stack(c.in.Cluster, names.ControlPlane))
	switch {
	case err != nil || deployed.ID != c.record.Stack:
		return "", err
	case stack.InProgress(deployed.Status):
		return "which is still in progress: " + deployed.Status, nil
	case deployed.Outputs["KubernetesVersion"] == s.KubernetesVersion:
		return "which is complete but not verified yet", nil
	}
	return "", nil
}

// outcomeMessage describes how an upgrade ended.
func outcomeMessage(cluster string, r *upgrade.Record, why, interrupted string) string {
	switch r.State {
	case upgrade.Done:
		return fmt.Sprintf("the cluster is at %s", r.Target)
	case upgrade.Blocked:
		return why + ". Nothing was changed"
	}
	end := ". "
	if strings.Contains(why, "\n") {
		end = "\n"
	}
	return why + end + resumeHint(cluster, r, interrupted)
}

// resumeHint lists completed steps and the next one, and gives the commands that continue the upgrade or roll it
// back. For an operator at the console it gives the machine's input, too.
func resumeHint(cluster string, r *upgrade.Record, interrupted string) string {
	var done []string
	for _, s := range r.Steps[:min(r.Step, len(r.Steps))] {
		done = append(done, route.StepName(s))
	}
	following := "the final checks"
	if r.Step < len(r.Steps) {
		following = route.StepName(r.Steps[r.Step])
	}
	if interrupted != "" {
		following += ", " + interrupted
	}
	completed := ""
	switch {
	case len(done) > 0:
		completed = "Completed and kept: " + strings.Join(done, ", ") + ". "
	case interrupted == "":
		completed = "No step is complete yet. "
	}
	command, input := fmt.Sprintf("`drover upgrade %s`", cluster), fmt.Sprintf(`{"cluster":%q}`, cluster)
	back := fmt.Sprintf("To roll back: `drover upgrade %s --rollback`", cluster)
	if r.Origin == upgrade.OriginRollback { // without flags, drover upgrade leads to the spec's release
		command, input = fmt.Sprintf("`drover upgrade %s --rollback`", cluster), fmt.Sprintf(`{"cluster":%q,"rollback":true}`, cluster)
		back = fmt.Sprintf("To undo the rollback: `drover upgrade %s --to %s`", cluster, r.From.Release)
	}
	return fmt.Sprintf("%sNext: %s. To continue: %s, which starts drover-upgrade with %s. %s", completed, following, command, input, back)
}

// upgradeStopped is the error name that an earlier action of this function returned, if it stopped the upgrade.
const upgradeStopped = status.ReasonUpgradeStopped

// failureReason reads the error of a failed state. The text is the description of an execution if drover-converge failed, Lambda's error
// object if a function failed, and plain text otherwise.
func failureReason(name, text string) string {
	var cause struct {
		Error        string `json:"Error"`
		Cause        string `json:"Cause"`
		Status       string `json:"Status"`
		ExecutionARN string `json:"ExecutionArn"`
		ErrorMessage string `json:"errorMessage"`
	}
	_ = json.Unmarshal([]byte(text), &cause) // plain text leaves it empty
	switch {
	case name == upgradeStopped:
		return text
	case name == "States.Timeout":
		return "a step exceeded its time limit. What it started continues: see drover status"
	case cause.ExecutionARN != "":
		if cause.Cause == "" {
			return fmt.Sprintf("%s is %s", cause.ExecutionARN, cause.Status)
		}
		return cause.Cause
	case cause.ErrorMessage != "":
		return name + ": " + cause.ErrorMessage
	case text == "":
		return name
	}
	return name + ": " + text
}
