package handler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/upgrade"
)

// A step back of the control plane begins with EKS. The template follows once EKS runs the version.
func TestRollBack(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*fixture)
		calls   []string
		outcome events.UpgradeOutcome
		message string
	}{
		"starts with EKS": {func(*fixture) {}, []string{"roll-back 1.35"}, events.UpgradeBusy, "EKS rolls the control plane back to 1.35"},
		"is refused by EKS": {
			func(l *fixture) { l.refusal = "not within 7 days" }, []string{"roll-back 1.35"}, events.UpgradeStopped,
			"EKS does not roll the control plane back to 1.35: not within 7 days",
		},
		"is complete once EKS runs the version": {
			func(l *fixture) { l.eks.Version = "1.35" }, nil, events.UpgradeGo, "control plane to 1.35",
		},
		"does not start twice":  {func(l *fixture) { l.eks.Status = "UPDATING" }, nil, events.UpgradeBusy, "its status is UPDATING"},
		"is not a step forward": {func(l *fixture) { l.record.Steps[0].NodesRolledBack = false }, nil, events.UpgradeGo, "control plane to 1.35"},
		"is no step of nodes": {
			func(l *fixture) { l.record.Steps[0].Kind = upgrade.StepNodes }, nil, events.UpgradeGo, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := leading()
			l.eks = preflight.ControlPlane{Version: "1.36", Status: "ACTIVE"}
			l.record.Step, l.record.Steps = 0, []upgrade.Step{{
				Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", NodesRolledBack: true, Started: noon.Add(-time.Minute), Opened: noon,
			}}
			test.change(l)
			h := l.handler()
			result, err := h.Handle(t.Context(), events.UpgradeRequest{
				Upgrade: events.Upgrade{Cluster: "demo"}, Action: events.UpgradeBegin, Execution: "mine",
			})
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
			var calls []string
			for _, call := range l.done {
				if strings.HasPrefix(call, "roll-back ") {
					calls = append(calls, call)
				}
			}
			require.Equal(t, test.calls, calls)
		})
	}
}

// The spec names another release during a step back of the control plane. The upgrade stops before EKS begins or after the stack shows the
// version, and not in between: planning compares nodes with the version of the stack.
func TestRollBackOfASupersededUpgrade(t *testing.T) {
	const superseded = "the spec now names release r9"
	for name, test := range map[string]struct {
		change  func(*fixture)
		outcome events.UpgradeOutcome
		message string
	}{
		"stops before EKS begins": {func(*fixture) {}, events.UpgradeStopped, superseded},
		"continues while EKS works": {
			func(l *fixture) { l.eks.Status = "UPDATING" }, events.UpgradeBusy, "its status is UPDATING",
		},
		"continues until the stack shows the version": {
			func(l *fixture) {
				l.eks.Version, l.preview = "1.35", plan.Plan{Changes: []plan.Change{{Stack: "control-plane", Operation: plan.Update}}}
			}, events.UpgradeGo, "control plane to 1.35",
		},
		"stops when the step is complete": {func(l *fixture) { l.eks.Version = "1.35" }, events.UpgradeStopped, superseded},
		"stops when planning refuses the change": {
			func(l *fixture) { l.eks.Version, l.reason = "1.35", "ChangeRefused" }, events.UpgradeStopped, superseded,
		},
		"stops during a step forward": {
			func(l *fixture) { l.record.Steps[0].NodesRolledBack, l.eks.Status = false, "UPDATING" }, events.UpgradeStopped, superseded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := leading()
			l.spec = fmt.Sprintf(fixtureSpec, "r9")
			l.eks = preflight.ControlPlane{Version: "1.36", Status: "ACTIVE"}
			l.record.Step, l.record.Steps = 0, []upgrade.Step{{
				Kind: upgrade.StepControlPlane, KubernetesVersion: "1.35", NodesRolledBack: true, Started: noon.Add(-time.Minute), Opened: noon,
			}}
			test.change(l)
			result, err := l.handle(t, events.UpgradeNext)
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
		})
	}
}
