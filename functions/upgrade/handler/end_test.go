package handler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/upgrade"
)

// stackOutputs is a control plane's stack.
type stackOutputs struct {
	Stacks
	stack.Deployed
}

func (d stackOutputs) Describe(context.Context, string) (stack.Deployed, error) {
	return d.Deployed, nil
}

// The message of a stopped upgrade has one next step, and reports each step correctly: a started step counts as completed only
// after its verification, although its changes exist.
func TestMessageOfAStoppedUpgrade(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const on = "To continue: `drover upgrade demo`, which starts drover-upgrade with {\"cluster\":\"demo\"}. To roll back: `drover " +
		"upgrade demo --rollback`"
	for name, test := range map[string]struct {
		change          func(*upgrade.Record)
		status, version string
		want            string
	}{
		"before it began": {func(r *upgrade.Record) {
			r.Steps[0].Started = time.Time{}
		}, "UPDATE_COMPLETE", "1.35", "No step is complete yet. Next: control plane to 1.36. " + on},
		"rolled back": {
			func(*upgrade.Record) {}, "UPDATE_ROLLBACK_COMPLETE", "1.35", "No step is complete yet. Next: control plane to 1.36. " + on,
		},
		"made": {
			func(*upgrade.Record) {}, "UPDATE_COMPLETE", "1.36", "Next: control plane to 1.36, which is complete but not verified yet. " + on,
		},
		"being made": {
			func(*upgrade.Record) {}, "UPDATE_IN_PROGRESS", "1.35",
			"Next: control plane to 1.36, which is still in progress: UPDATE_IN_PROGRESS. " + on,
		},
		"nodes": {
			func(r *upgrade.Record) { r.Step, r.Steps[1].Started = 1, at }, "UPDATE_COMPLETE", "1.36",
			"Completed and kept: control plane to 1.36. Next: nodes to the images of the release, which was started. " + on,
		},
		"a rollback": {
			func(r *upgrade.Record) { r.Origin, r.Steps[0].Started = upgrade.OriginRollback, time.Time{} }, "UPDATE_COMPLETE", "1.37",
			"No step is complete yet. Next: control plane to 1.36. To continue: `drover upgrade demo --rollback`, " +
				"which starts drover-upgrade with {\"cluster\":\"demo\",\"rollback\":true}. To undo the rollback: `drover upgrade demo --to r1`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &upgrade.Record{
				State: upgrade.Stopped, Origin: upgrade.OriginCommand, Stack: "arn", From: upgrade.Target{Release: "r1"},
				Steps: []upgrade.Step{
					{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36", Started: at}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
				},
			}
			test.change(r)
			h := &Handler{
				Stacks: stackOutputs{
					Deployed: stack.Deployed{ID: "arn", Status: test.status, Outputs: map[string]string{"KubernetesVersion": test.version}},
				},
			}
			under, err := h.callOf(r).interruptedStep(t.Context())
			require.NoError(t, err)
			require.Equal(t, "it was stopped. "+test.want, outcomeMessage("demo", r, "it was stopped", under))
			require.Equal(t, "no\nmend it\n"+test.want, outcomeMessage("demo", r, "no\nmend it", under), "as a line of its own")
		})
	}
}
