package handler

// How an execution takes over the upgrade of one that a removal of drover ended.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

// interrupted is a cluster at r1 whose upgrade to r2 was interrupted by a removal of drover, in a state. Another execution converges it.
func interrupted(state upgrade.State) *fixture {
	l := waiting()
	l.record = leading().record
	l.record.State, l.record.Step, l.record.Steps[0].Ended, l.record.Execution = state, 0, time.Time{}, "theirs"
	if state == upgrade.Checking {
		l.record.Steps[0].Started = time.Time{}
	}
	return l
}

func TestTakeOver(t *testing.T) {
	const busyBy = "the cluster is being converged by x"
	for name, test := range map[string]struct {
		state   upgrade.State
		given   func(*fixture)
		outcome events.UpgradeOutcome
		message string
		// owner is the execution of the written record; empty if none was written.
		owner string
	}{
		"takes over a running upgrade before it waits for the cluster": {
			upgrade.Running, func(*fixture) {}, events.UpgradeBusy, busyBy, "mine",
		},
		"takes over an upgrade whose checks ran": {upgrade.Checking, func(*fixture) {}, events.UpgradeBusy, busyBy, "mine"},
		"waits on with what it took over": {
			upgrade.Running, func(l *fixture) { l.record.Execution = "mine" }, events.UpgradeBusy, busyBy, "",
		},
		"leaves it to the execution that took it over": {
			upgrade.Running, func(l *fixture) { l.record.Execution = "other" }, events.UpgradeNothing, "another execution continues it", "",
		},
		"does nothing without a record": {
			upgrade.Running, func(l *fixture) { l.record = nil }, events.UpgradeNothing, "the upgrade has ended", "",
		},
		"does nothing when it ended with another execution": {
			upgrade.Stopped, func(l *fixture) { l.record.Execution = "other" }, events.UpgradeNothing, "the upgrade has ended", "",
		},
		"records an end that the status may lack": {
			upgrade.Stopped, func(*fixture) {}, events.UpgradeStopped, "execution theirs ended with the status ABORTED", "",
		},
		"ends it when the cluster has the release": {
			upgrade.Checking, func(l *fixture) {
				l.stack.Tags["drover:release"], l.stack.Outputs["KubernetesVersion"] = "r2@sha2", "1.36"
			},
			events.UpgradeStopped, "the cluster is at release r2", "mine",
		},
		"ends it for a newer spec": {
			upgrade.Running, func(l *fixture) { l.spec = fmt.Sprintf(fixtureSpec, "r9") },
			events.UpgradeStopped, "the spec now names release r9", "mine",
		},
		"ends that of a deleted cluster": {
			upgrade.Running, func(l *fixture) { l.record.Stack = "stack-0" }, events.UpgradeStopped, ofDeletedCluster, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := interrupted(test.state)
			test.given(l)
			result, err := l.check(t, func(in *events.UpgradeRequest) {
				in.Continues, in.Origin, in.Key = "theirs", string(upgrade.OriginAt), "at noon r2"
				in.Started = noon.Add(-2 * upgrade.MissedAfter) // it is never missed
			})
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
			owner := ""
			if l.written != nil {
				owner = l.written.Execution
			}
			require.Equal(t, test.owner, owner)
		})
	}
	for _, failing := range []string{"write", "status", "describe"} {
		t.Run("is repeated when this fails: "+failing, func(t *testing.T) {
			l := interrupted(upgrade.Running)
			l.failing[failing] = errThrottled
			_, err := l.check(t, func(in *events.UpgradeRequest) { in.Continues = "theirs" })
			require.ErrorIs(t, err, errThrottled)
		})
	}
}

func TestStopAfterTakingOver(t *testing.T) {
	for owner, state := range map[string]upgrade.State{"mine": upgrade.Stopped, "theirs": upgrade.Stopped, "other": upgrade.Running} {
		l := interrupted(upgrade.Running)
		l.record.Execution = owner
		in := events.UpgradeRequest{Action: events.UpgradeStop, Execution: "mine", Error: upgradeStopped, Cause: "it was superseded"}
		in.Cluster, in.Continues = "demo", "theirs"
		_, err := l.handler().Handle(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, state, l.record.State, owner)
	}
}
