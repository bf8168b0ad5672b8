package handler

// What the check of an upgrade answers before it claims anything.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func (l *fixture) NextUpgrade(context.Context, string, *upgrade.Record) (*upgrade.Decision, error) {
	return nil, nil
}

// waiting is a cluster at r1 whose spec names r2, and which another execution converges.
func waiting() *fixture {
	l := leading()
	l.record = &upgrade.Record{Execution: "earlier", Stack: "stack-1", State: upgrade.Done, Target: l.record.From}
	l.stack.Tags["drover:release"], l.stack.Outputs["KubernetesVersion"], l.eks.Version = "r1@sha1", "1.35", "1.35"
	l.holder = "x"
	return l
}

func (l *fixture) check(t *testing.T, change func(*events.UpgradeRequest)) (events.UpgradeResult, error) {
	t.Helper()
	in := events.UpgradeRequest{Action: events.UpgradeCheck, Execution: "mine", Started: noon}
	in.Cluster, in.Release = "demo", "r2"
	change(&in)
	return l.handler().Handle(t.Context(), in)
}

func TestCheckOfAnUpgrade(t *testing.T) {
	const busyBy = "the cluster is being converged by x"
	mine := func(l *fixture, state upgrade.State) {
		l.record = leading().record
		l.record.State, l.record.Step, l.record.Steps[0].Ended = state, 0, time.Time{}
	}
	theirs := func(l *fixture, state upgrade.State) {
		mine(l, state)
		l.record.Execution, l.running = "theirs", true
	}
	other := fmt.Sprintf(fixtureSpec, "r9")
	for name, test := range map[string]struct {
		given   func(*fixture)
		change  func(*events.UpgradeRequest)
		outcome events.UpgradeOutcome
		message string
		err     error
	}{
		"waits while the cluster is converged": {given: func(*fixture) {}, outcome: events.UpgradeBusy, message: busyBy},
		"fails when that is unknown":           {given: func(l *fixture) { l.failing["holder"] = errThrottled }, err: errThrottled},
		"waits while the control plane changes": {
			given: func(l *fixture) { l.stack.Status = "UPDATE_IN_PROGRESS" }, outcome: events.UpgradeBusy,
			message: "is being changed (UPDATE_IN_PROGRESS)",
		},
		"waits while the control plane is recreated": {
			given: func(l *fixture) { l.stack.Status = "ROLLBACK_COMPLETE" }, outcome: events.UpgradeBusy, message: "ROLLBACK_COMPLETE",
		},
		"does nothing when the cluster is there": {
			given: func(l *fixture) {
				l.stack.Tags["drover:release"], l.stack.Outputs["KubernetesVersion"] = "r2@sha2", "1.36"
			},
			outcome: events.UpgradeNothing, message: "the cluster is at release r2",
		},
		"stops one that it claimed, for a newer spec": {
			given: func(l *fixture) { mine(l, upgrade.Checking); l.spec = other }, outcome: events.UpgradeStopped,
			message: "the spec now names release r9",
		},
		"checks one that it claimed again": {given: func(l *fixture) { mine(l, upgrade.Checking) }, outcome: events.UpgradeBusy, message: busyBy},
		"claims again what it claimed and ended": {
			given: func(l *fixture) { mine(l, upgrade.Stopped); l.spec = other }, outcome: events.UpgradeBusy, message: busyBy,
		},
		"leaves it to the execution that makes it": {
			given: func(l *fixture) { theirs(l, upgrade.Running) }, outcome: events.UpgradeNothing, message: "theirs already makes this upgrade",
		},
		"waits for another upgrade": {
			given: func(l *fixture) { theirs(l, upgrade.Running) }, change: func(in *events.UpgradeRequest) { in.Release = "r3" },
			outcome: events.UpgradeBusy, message: ": theirs",
		},
		"waits for the upgrade of the cluster before": {
			given: func(l *fixture) { theirs(l, upgrade.Running); l.record.Stack = "stack-0" }, outcome: events.UpgradeBusy, message: ": theirs",
		},
		"does not wait for one that ended": {
			given: func(l *fixture) { theirs(l, upgrade.Stopped) }, outcome: events.UpgradeBusy, message: busyBy,
		},
		"does not wait for one whose execution is over": {
			given: func(l *fixture) { theirs(l, upgrade.Running); l.running = false }, outcome: events.UpgradeBusy, message: busyBy,
		},
		"fails when another execution is unknown": {
			given: func(l *fixture) { theirs(l, upgrade.Running); l.failing["running"] = errThrottled }, err: errThrottled,
		},
		"fails when another's cluster is unknown": {
			given: func(l *fixture) { theirs(l, upgrade.Running); l.failing["describe"] = errThrottled }, err: errThrottled,
		},
		"fails when the record cannot be read": {given: func(l *fixture) { l.failing["record"] = errThrottled }, err: errThrottled},
		"stops one whose execution is over": {
			given: func(*fixture) {}, change: func(in *events.UpgradeRequest) {
				in.Ended = "y"
			}, outcome: events.UpgradeStopped, message: "execution y ended with the status ABORTED",
		},
		"fails when it is unknown how that ended": {
			given: func(l *fixture) { l.failing["ended"] = errThrottled }, change: func(in *events.UpgradeRequest) { in.Ended = "y" },
			err: errThrottled,
		},
		"waits on before it is missed": {
			given: func(*fixture) {}, change: func(in *events.UpgradeRequest) { in.Started = noon.Add(-upgrade.MissedAfter + 1) },
			outcome: events.UpgradeBusy, message: busyBy,
		},
		"misses it in the end": {
			given: func(*fixture) {}, change: func(in *events.UpgradeRequest) { in.Started = noon.Add(-upgrade.MissedAfter) },
			outcome: events.UpgradeStopped, message: "the upgrade did not begin, because the cluster was busy for 2h0m0s: " + busyBy,
		},
		"misses it though the spec is unusable": {
			given:  func(l *fixture) { l.stack.Status = "UPDATE_IN_PROGRESS" },
			change: func(in *events.UpgradeRequest) { in.Started = noon.Add(-upgrade.MissedAfter) }, outcome: events.UpgradeStopped,
			message: "did not begin",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := waiting()
			test.given(l)
			if test.change == nil {
				test.change = func(*events.UpgradeRequest) {}
			}
			result, err := l.check(t, test.change)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
		})
	}
	t.Run("records how late it is", func(t *testing.T) {
		for late, phase := range map[time.Duration]string{0: status.UpgradeScheduled, upgrade.DelayedAfter - 1: status.UpgradeScheduled,
			upgrade.DelayedAfter: status.UpgradeDelayed, upgrade.MissedAfter: status.UpgradeMissed} {
			l := waiting()
			_, err := l.check(t, func(in *events.UpgradeRequest) { in.Started = noon.Add(-late) })
			require.NoError(t, err)
			require.Equal(t, phase, l.status.Upgrade.Phase)
		}
	})
	t.Run("counts from its time, or from its start if that is earlier", func(t *testing.T) {
		early, late := noon.Add(-time.Hour), noon
		for want, in := range map[time.Time]events.UpgradeRequest{
			early: {Upgrade: events.Upgrade{Due: early}, Started: late}, late: {Started: late},
		} {
			require.Equal(t, want, dueAt(in))
		}
		require.Equal(t, early, dueAt(events.UpgradeRequest{Upgrade: events.Upgrade{Due: late}, Started: early}))
	})
}

func TestUpgradeThatDoesNotBegin(t *testing.T) {
	there := func() *fixture {
		l := waiting()
		l.stack.Tags["drover:release"], l.stack.Outputs["KubernetesVersion"] = "r2@sha2", "1.36"
		l.status.NextUpgrade = &status.Upgrade{Execution: "mine", Phase: status.UpgradeScheduled}
		return l
	}
	nothing := func(*events.UpgradeRequest) {}
	t.Run("is removed from the status", func(t *testing.T) {
		l := there()
		_, err := l.check(t, nothing)
		require.NoError(t, err)
		require.Nil(t, l.status.NextUpgrade)
	})
	t.Run("is not removed while it waits", func(t *testing.T) {
		l := waiting()
		_, err := l.check(t, nothing)
		require.NoError(t, err)
		l.done = nil
		l.status.NextUpgrade = &status.Upgrade{Execution: "mine", Phase: status.UpgradeScheduled}
		l.status.Upgrade = &status.Upgrade{Execution: "theirs", Phase: "Running"}
		_, err = l.check(t, nothing)
		require.NoError(t, err)
		require.NotNil(t, l.status.NextUpgrade)
	})
	t.Run("leaves that of another execution", func(t *testing.T) {
		l := there()
		l.status.NextUpgrade.Execution = "theirs"
		_, err := l.check(t, nothing)
		require.NoError(t, err)
		require.NotNil(t, l.status.NextUpgrade)
	})
	t.Run("writes no status without a record", func(t *testing.T) {
		l := there()
		l.record = nil
		_, err := l.check(t, nothing)
		require.NoError(t, err)
		require.Empty(t, l.done)
	})
	t.Run("fails when that cannot be written", func(t *testing.T) {
		l := there()
		l.failing["status"] = errThrottled
		_, err := l.check(t, nothing)
		require.ErrorIs(t, err, errThrottled)
	})
	t.Run("is removed by a check alone", func(t *testing.T) {
		l := leading()
		l.record.Execution = "theirs"
		l.status.NextUpgrade = &status.Upgrade{Execution: "mine", Phase: status.UpgradeScheduled}
		in := events.UpgradeRequest{Action: events.UpgradeStop, Execution: "mine"}
		in.Cluster = "demo"
		_, err := l.handler().Handle(t.Context(), in)
		require.NoError(t, err)
		require.Empty(t, l.done)
	})
}

func TestEarlyCheckIsRecorded(t *testing.T) {
	scheduled := status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Spec"}
	for name, test := range map[string]struct {
		change func(*status.Upgrade)
		want   bool
	}{
		"of the upgrade that is scheduled": {func(*status.Upgrade) {}, true},
		"not once it begins":               {func(u *status.Upgrade) { u.Phase = "Checking" }, false},
		"not of another release":           {func(u *status.Upgrade) { u.To = "r3" }, false},
		"not of another origin":            {func(u *status.Upgrade) { u.Origin = "Channel" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, u := waiting(), scheduled
			test.change(&u)
			l.status.Upgrade, l.stack.Status = &u, "ROLLBACK_COMPLETE" // a finding, which needs no facts
			_, err := l.check(t, func(in *events.UpgradeRequest) { in.CheckOnly, in.Origin = true, "Spec" })
			require.NoError(t, err)
			require.Equal(t, test.want, u.Checked != nil)
		})
	}
	l := waiting()
	l.stack.Status = "ROLLBACK_COMPLETE"
	_, err := l.check(t, func(in *events.UpgradeRequest) { in.CheckOnly, in.Origin = true, "Spec" })
	require.NoError(t, err)
	require.Nil(t, l.status.Upgrade, "a withdrawn upgrade stays absent")
}

// factsOf gathers facts for the final checks.
type factsOf struct {
	Facts
	facts *preflight.Facts
	err   error
}

func (f factsOf) After(context.Context, *preflight.Plan) (*preflight.Facts, error) {
	return f.facts, f.err
}

func TestUpgradeIsFinished(t *testing.T) {
	well := preflight.Facts{ControlPlane: preflight.ControlPlane{Version: "1.36", Status: "ACTIVE"}, Forbidden: true,
		Addons: []preflight.Addon{
			{Name: "vpc-cni", Version: "v1.21.1-eksbuild.1", Status: "ACTIVE"}, {Name: "coredns", Version: "v1.13.2-eksbuild.1", Status: "ACTIVE"},
		}}
	unwell := well
	unwell.ControlPlane.Version = "1.35"
	for name, test := range map[string]struct {
		facts   preflight.Facts
		given   func(*fixture)
		failing error
		outcome events.UpgradeOutcome
		err     error
		want    []string
	}{
		"when its result is well": {
			facts: well, given: func(*fixture) {}, outcome: events.UpgradeDone, want: []string{"sound", "write Done 2 0", "status"},
		},
		"not before alarms are on": {
			facts: well, given: func(l *fixture) { l.failing["sound"] = errThrottled }, err: errThrottled, want: []string{"sound"},
		},
		"not before that is recorded": {
			facts: well, given: func(l *fixture) { l.failing["write"] = errThrottled }, err: errThrottled, want: []string{"sound", "write Done 2 0"},
		},
		"not while its result is not well": {facts: unwell, given: func(*fixture) {}, outcome: events.UpgradeBusy, want: []string{"status"}},
		"stops when that lasts": {
			facts: unwell, given: func(l *fixture) { l.record.Steps[1].Ended = noon.Add(-settleTime) }, outcome: events.UpgradeStopped,
			want: []string{"status"},
		},
		"not when that cannot be recorded": {
			facts: unwell, given: func(l *fixture) { l.failing["status"] = errThrottled }, err: errThrottled, want: []string{"status"},
		},
		"not when its result cannot be checked": {facts: well, given: func(*fixture) {}, failing: errThrottled, err: errThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			l := leading()
			l.record.Step, l.record.Steps[1].Ended = 2, noon.Add(-settleTime+1)
			test.given(l)
			h := l.handler()
			h.Facts = factsOf{facts: &test.facts, err: test.failing}
			in := events.UpgradeRequest{Action: events.UpgradeFinish, Execution: "mine"}
			in.Cluster = "demo"
			result, err := h.Handle(t.Context(), in)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Equal(t, test.want, l.done)
		})
	}
}
