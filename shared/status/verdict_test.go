package status

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

// judge applies the verdict on a plan.
func judge(p events.PlanResult) func(*Status) {
	return func(s *Status) {
		v := Judge(&p)
		v.Apply(s, noon)
	}
}

func TestVerdictOnUnchangedPlan(t *testing.T) {
	upToDate := condition(Converged, "True", ReasonUpToDate, "")
	lacks := func(reason, message string) Condition { return condition(Converged, "False", reason, message) }
	pending := func(state string, spec bool, start *events.Upgrade) func(*Status) {
		return judge(events.PlanResult{Outcome: events.OutcomeUnchanged, Upgrade: &events.PlannedUpgrade{
			State: state, Spec: spec, Start: start, Release: "r3", Message: "to r3",
		}})
	}
	start := &events.Upgrade{Release: "r3"}
	rejected := events.Rejection{Reason: ReasonSpecInvalid, Message: "line 3"}
	invalid := condition(SpecAccepted, "False", ReasonSpecInvalid, "line 3")
	for name, test := range map[string]transition{
		"is Ready": {
			Status{Phase: Converging, PlannedVersion: "v1"}, judge(events.PlanResult{SpecVersion: "v2"}),
			Status{Phase: Ready, Message: AsSpecified, PlannedVersion: "v1", Conditions: conditions(upToDate)},
		},
		"accepts the spec that was planned": {
			Status{}, judge(events.PlanResult{Accepted: true}),
			Status{Phase: Ready, Message: AsSpecified, Conditions: conditions(upToDate, condition(SpecAccepted, "True", ReasonValid, ""))},
		},
		"names the spec that is not used": {
			Status{}, judge(events.PlanResult{Rejected: &rejected, Accepted: true}),
			Status{Phase: Ready, Message: unusedSpecPrefix + "line 3", Conditions: conditions(upToDate, invalid)},
		},
		"removes plan, failures and instances that did not join": {
			Status{
				Failures: 3, RetryAt: &evening, FailedTry: 2, GoodVersion: "v1", Plan: []Change{{Stack: "network"}},
				Nodes: []Node{{Instance: "i-1", State: NodeNotJoined}},
			},
			judge(events.PlanResult{}),
			Status{Phase: Ready, Message: AsSpecified, GoodVersion: "v1", Nodes: []Node{}, Conditions: conditions(upToDate)},
		},
		"names the nodes of a roll that are still being drained": {
			Status{Nodes: []Node{{Instance: "i-1", Name: "node-1", Pool: "a", State: NodeDraining, Roll: true}}}, judge(events.PlanResult{}),
			Status{
				Phase: Ready, Message: AsSpecified + ", but nodes are still being drained: node-1 of pool a is Draining",
				Conditions: conditions(upToDate),
				Nodes:      []Node{{Instance: "i-1", Name: "node-1", Pool: "a", State: NodeDraining, Roll: true}},
			},
		},
		"is Upgrading while an upgrade checks": {
			Status{Plan: []Change{{Stack: "network"}}}, pending("Checking", true, nil),
			Status{Phase: Upgrading, Message: "to r3", Conditions: conditions(upToDate)},
		},
		"is Upgrading while an upgrade runs": {
			Status{}, pending("Running", true, start), Status{Phase: Upgrading, Message: "to r3", Conditions: conditions(upToDate)},
		},
		"is Upgrading when an upgrade of the spec begins": {
			Status{}, pending(UpgradeScheduled, true, start),
			Status{Phase: Upgrading, Message: "to r3", Conditions: conditions(lacks(ReasonUpgradeScheduled, "to r3"))},
		},
		"is Upgrading when an upgrade of a channel begins": {
			Status{}, pending(UpgradeScheduled, false, start), Status{Phase: Upgrading, Message: "to r3", Conditions: conditions(upToDate)},
		},
		"is Ready without its release until an upgrade of the spec begins": {
			Status{}, pending(UpgradeScheduled, true, nil),
			Status{Phase: Ready, Message: ButRelease + "to r3", Conditions: conditions(lacks(ReasonUpgradeScheduled, ButRelease+"to r3"))},
		},
		"is Ready without its release until an upgrade of a channel begins": {
			Status{}, pending(UpgradeScheduled, false, nil),
			Status{Phase: Ready, Message: ButRelease + "to r3", Conditions: conditions(upToDate)},
		},
		"is Stopped after an upgrade of the spec was blocked": {
			Status{}, pending("Blocked", true, nil),
			Status{Phase: Stopped, Message: "to r3", Conditions: conditions(lacks(ReasonUpgradeBlocked, "to r3"))},
		},
		"is Stopped after an upgrade was stopped": {
			Status{}, pending("Stopped", false, nil), Status{Phase: Stopped, Message: "to r3", Conditions: conditions(upToDate)},
		},
		"names the cause that the stopped upgrade recorded": {
			Status{Upgrades: []Upgrade{
				{Phase: "Blocked", To: "r3", Message: "another phase"}, {Phase: "Stopped", To: "r2", Message: "another release"},
				{Phase: "Stopped", To: "r3"}, {Phase: "Stopped", To: "r3", Message: "no capacity"}, {Phase: "Stopped", To: "r3", Message: "older"},
			}},
			pending("Stopped", true, nil),
			Status{
				Phase: Stopped, Message: "no capacity", Conditions: conditions(lacks(ReasonUpgradeStopped, "no capacity")),
				Upgrades: []Upgrade{
					{Phase: "Blocked", To: "r3", Message: "another phase"}, {Phase: "Stopped", To: "r2", Message: "another release"},
					{Phase: "Stopped", To: "r3"}, {Phase: "Stopped", To: "r3", Message: "no capacity"}, {Phase: "Stopped", To: "r3", Message: "older"},
				},
			},
		},
		"keeps the message of a scheduled upgrade": {
			Status{Upgrades: []Upgrade{{Phase: UpgradeScheduled, To: "r3", Message: "recorded"}}}, pending(UpgradeScheduled, false, nil),
			Status{
				Phase: Ready, Message: ButRelease + "to r3", Conditions: conditions(upToDate),
				Upgrades: []Upgrade{{Phase: UpgradeScheduled, To: "r3", Message: "recorded"}},
			},
		},
		"names the upgrade rather than the spec that is not used": {
			Status{}, judge(events.PlanResult{Rejected: &rejected, Upgrade: &events.PlannedUpgrade{State: "Running", Message: "to r3"}}),
			Status{Phase: Upgrading, Message: "to r3", Conditions: conditions(upToDate, invalid)},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestVerdictOnStoppedPlan(t *testing.T) {
	stop := func(reason string, accepted bool, rejected *events.Rejection) func(*Status) {
		return judge(events.PlanResult{
			Outcome: events.OutcomeStopped, Reason: reason, Message: "no", SpecVersion: "v2", Accepted: accepted, Rejected: rejected,
		})
	}
	upToDate := condition(Converged, "True", ReasonUpToDate, "")
	for name, test := range map[string]transition{
		"is Stopped by a refused change": {
			Status{Phase: Pending, PlannedVersion: "v1", GoodVersion: "v1", Plan: []Change{{Stack: "network"}}, Failures: 1, RetryAt: &evening},
			stop(ReasonChangeRefused, true, nil),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2", GoodVersion: "v1", Plan: []Change{{Stack: "network"}},
				Conditions: conditions(condition(Converged, "False", ReasonChangeRefused, "no"), condition(SpecAccepted, "True", ReasonValid, "")),
			},
		},
		"has no last good spec when it is paused": {
			Status{GoodVersion: "v1"}, stop(ReasonPaused, true, nil),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2",
				Conditions: conditions(condition(Converged, "False", ReasonPaused, "no"), condition(SpecAccepted, "True", ReasonValid, "")),
			},
		},
		"names both the refused change and the newest spec": {
			Status{}, stop(ReasonChangeRefused, false, &events.Rejection{Reason: ReasonSpecInvalid, Message: "line 3"}),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2",
				Conditions: conditions(condition(Converged, "False", ReasonChangeRefused, "no"), condition(SpecAccepted, "False", ReasonSpecInvalid,
					"line 3")),
			},
		},
		"is Stopped by an invalid spec": {
			Status{}, stop(ReasonSpecInvalid, false, nil),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2",
				Conditions: conditions(condition(Converged, "False", ReasonSpecInvalid, "no"), condition(SpecAccepted, "False", ReasonSpecInvalid,
					"no")),
			},
		},
		"is Stopped by an unusable release when its cluster is not converged": {
			Status{Conditions: conditions(condition(Converged, "False", "StackFailed", "x"))}, stop(ReasonReleaseUnusable, false, nil),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2", Conditions: conditions(
					condition(Converged, "False", ReasonReleaseUnusable, "no"), condition(SpecAccepted, "False", ReasonReleaseUnusable, "no")),
			},
		},
		"is Ready without a spec when its cluster is converged": {
			Status{Conditions: conditions(upToDate)}, stop(ReasonSpecAbsent, false, nil),
			Status{
				Phase: Ready, Message: unusedSpecPrefix + "no", PlannedVersion: "v2",
				Conditions: conditions(upToDate, condition(SpecAccepted, "False", ReasonSpecAbsent, "no")),
			},
		},
		"is not Converged when a change of a converged cluster is refused": {
			Status{Conditions: conditions(upToDate)}, stop(ReasonChangeRefused, false, nil),
			Status{
				Phase: Stopped, Message: "no", PlannedVersion: "v2", Conditions: conditions(condition(Converged, "False", ReasonChangeRefused, "no")),
			},
		},
	} {
		t.Run(name, test.run)
	}
	t.Run("keeps failures and their retry when the verdict is a failure", func(t *testing.T) {
		v := Verdict{Phase: Failed, Message: "a stack", Condition: Condition{Type: Converged, Status: "False", Reason: "StackFailed"}}
		transition{
			Status{Failures: 2, RetryAt: &evening, FailedTry: 1, PlannedVersion: "v1"}, func(s *Status) { v.Apply(s, noon) },
			Status{
				Phase: Failed, Message: "a stack", Failures: 2, RetryAt: &evening, FailedTry: 1, PlannedVersion: "v1",
				Conditions: conditions(condition(Converged, "False", "StackFailed", "")),
			},
		}.run(t)
	})
}

func TestRecordUpgrade(t *testing.T) {
	one := Upgrade{To: "r3", Execution: "x", Message: "message"}
	record := func(r upgrade.Record, a UpgradeEnd) func(*Status) {
		return func(s *Status) { s.RecordUpgrade(one, &r, a, noon) }
	}
	running := record(upgrade.Record{State: upgrade.Running}, UpgradeEnd{})
	upgrading := condition(Upgraded, "False", ReasonUpgrading, "message")
	remembered := []Upgrade{one}
	with := func(change func(*Upgrade)) *Upgrade {
		u := one
		change(&u)
		return &u
	}
	checked := with(func(u *Upgrade) { u.Checks, u.Checked = []Check{{Name: "Room"}}, &noon })
	blocked := with(func(u *Upgrade) { u.Phase = string(upgrade.Blocked) })
	missed := with(func(u *Upgrade) { u.Phase = UpgradeMissed })
	scheduled := &Upgrade{Phase: UpgradeScheduled, To: "r4"}
	refused := condition(RequestAccepted, "False", ReasonUpgradeRefused, "")
	for name, test := range map[string]transition{
		"shows one in flight": {
			Status{Phase: Ready}, running, Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"keeps its checks": {
			Status{Phase: Upgrading, Upgrade: checked}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: checked, Conditions: conditions(upgrading)},
		},
		"does not keep the checks of another": {
			Status{Phase: Upgrading, Upgrade: with(func(u *Upgrade) { u.Checks, u.Execution = []Check{{Name: "Room"}}, "y" })}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"queues the one that was scheduled": {
			Status{Upgrade: scheduled}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, NextUpgrade: scheduled, Conditions: conditions(upgrading)},
		},
		"queues one that is delayed": {
			Status{Upgrade: &Upgrade{Phase: UpgradeDelayed, To: "r4"}}, running,
			Status{
				Phase: Upgrading, Message: "message", Upgrade: &one, NextUpgrade: &Upgrade{Phase: UpgradeDelayed, To: "r4"},
				Conditions: conditions(upgrading),
			},
		},
		"does not queue itself": {
			Status{Upgrade: &Upgrade{Phase: UpgradeScheduled, To: "r3"}}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"does not queue one that ended": {
			Status{Upgrade: &Upgrade{Phase: "Done", To: "r2"}}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"keeps one that is queued": {
			Status{Upgrade: scheduled, NextUpgrade: &Upgrade{To: "r5", Execution: "y"}}, running,
			Status{
				Phase: Upgrading, Message: "message", Upgrade: &one, NextUpgrade: &Upgrade{To: "r5", Execution: "y"}, Conditions: conditions(upgrading),
			},
		},
		"is queued no longer": {
			Status{NextUpgrade: &Upgrade{Execution: "x"}}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"accepts the request of an operator": {
			Status{Conditions: conditions(refused)}, record(upgrade.Record{State: upgrade.Checking, Origin: upgrade.OriginCommand}, UpgradeEnd{}),
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"accepts the request of a rollback": {
			Status{Conditions: conditions(refused)}, record(upgrade.Record{State: upgrade.Checking, Origin: upgrade.OriginRollback}, UpgradeEnd{}),
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(upgrading)},
		},
		"does not answer a request that came after its start": {
			Status{Conditions: conditions(refused)}, record(upgrade.Record{State: upgrade.Running, Origin: upgrade.OriginCommand}, UpgradeEnd{}),
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(refused, upgrading)},
		},
		"does not answer a request when the spec requested it": {
			Status{Conditions: conditions(refused)}, record(upgrade.Record{State: upgrade.Checking, Origin: upgrade.OriginSpec}, UpgradeEnd{}),
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Conditions: conditions(refused, upgrading)},
		},
		"changes nothing after the recorded end of the same upgrade": {
			Status{Phase: Ready, Message: "before", Upgrade: blocked, Upgrades: []Upgrade{*blocked}}, running,
			Status{Phase: Ready, Message: "before", Upgrade: blocked, Upgrades: []Upgrade{*blocked}},
		},
		"shows one whose start was recorded as missed": {
			Status{Upgrades: []Upgrade{*missed}}, running,
			Status{Phase: Upgrading, Message: "message", Upgrade: &one, Upgrades: []Upgrade{*missed}, Conditions: conditions(upgrading)},
		},
		"keeps the phase of a deletion": {
			Status{Phase: Deleting, Message: "deleting", Plan: []Change{{Stack: "network"}}},
			record(upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginSpec}, UpgradeEnd{Fence: 7}),
			Status{
				Phase: Deleting, Message: "deleting", Plan: []Change{{Stack: "network"}}, Upgrade: &one, Upgrades: remembered, Fence: 7,
				Conditions: conditions(condition(Upgraded, "False", ReasonUpgradeStopped, "message")),
			},
		},
		"keeps the phase of a deleted cluster": {
			Status{Phase: Deleted, Message: "deleted"}, running,
			Status{Phase: Deleted, Message: "deleted", Upgrade: &one, Conditions: conditions(upgrading)},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestRecordUpgradeEnds(t *testing.T) {
	one := Upgrade{To: "r3", Execution: "x", Message: "message"}
	planned := []Change{{Stack: "control-plane"}}
	converged := func(reason, message string) Condition {
		is := "False"
		if reason == ReasonUpToDate {
			is = "True"
		}
		return condition(Converged, is, reason, message)
	}
	ready := func() *Verdict {
		v := Judge(&events.PlanResult{})
		return &v
	}
	blocked, stopped := converged(ReasonUpgradeBlocked, "message"), converged(ReasonUpgradeStopped, "message")
	type want struct {
		phase     Phase
		message   string
		converged Condition
		plan      []Change
	}
	for name, test := range map[string]struct {
		phase     Phase
		converged Condition
		record    upgrade.Record
		after     UpgradeEnd
		want      want
	}{
		"an upgrade of the spec is blocked": {
			phase: Upgrading, converged: converged(ReasonUpToDate, ""),
			record: upgrade.Record{State: upgrade.Blocked, Origin: upgrade.OriginSpec}, after: UpgradeEnd{},
			want: want{Stopped, "message", blocked, planned},
		},
		"an upgrade of the spec is stopped": {
			phase: Upgrading, converged: converged(ReasonConverging, "step"),
			record: upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginSpec}, after: UpgradeEnd{},
			want: want{Stopped, "message", stopped, nil},
		},
		"an upgrade is stopped while an execution converges": {
			phase: Upgrading, converged: converged(ReasonConverging, "step"),
			record: upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginSpec}, after: UpgradeEnd{Busy: true},
			want: want{Stopped, "message", stopped, planned},
		},
		"an upgrade without an override is stopped, and its spec has changes": {
			phase: Upgrading, converged: converged(ReasonConverging, "step"),
			record: upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginCommand}, after: UpgradeEnd{},
			want: want{Stopped, "message", stopped, nil},
		},
		"an upgrade without an override is stopped, and its spec has none": {
			phase: Upgrading, converged: converged(ReasonConverging, "step"),
			record: upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginCommand},
			after:  UpgradeEnd{AfterUpgrade: AfterUpgrade{Verdict: ready()}}, want: want{Ready, AsSpecified, converged(ReasonUpToDate, ""), nil},
		},
		"an upgrade of an earlier cluster is stopped": {
			phase: Upgrading, converged: converged(ReasonUpToDate, ""),
			record: upgrade.Record{State: upgrade.Stopped, Origin: upgrade.OriginSpec}, after: UpgradeEnd{Earlier: true},
			want: want{Ready, AsSpecified, converged(ReasonUpToDate, ""), planned},
		},
		"an upgrade over the spec's release is stopped, and the cluster failed": {
			phase: Failed, converged: converged("StackFailed", "a stack"), record: upgrade.Record{
				State: upgrade.Stopped, Origin: upgrade.OriginCommand, Overridden: "r2",
			}, after: UpgradeEnd{},
			want: want{Failed, "before", converged("StackFailed", "a stack"), nil},
		},
		"an upgrade over the spec's release is stopped during a step": {
			phase: Upgrading, converged: converged("StackFailed", "a stack"), record: upgrade.Record{
				State: upgrade.Stopped, Origin: upgrade.OriginCommand, Overridden: "r2",
			}, after: UpgradeEnd{},
			want: want{Failed, "a stack", converged("StackFailed", "a stack"), nil},
		},
		"an upgrade over the spec's release is stopped, and an earlier one was blocked": {
			phase: Upgrading, converged: converged(ReasonUpgradeBlocked, "the nodes"), record: upgrade.Record{
				State: upgrade.Stopped, Origin: upgrade.OriginCommand, Overridden: "r2",
			},
			after: UpgradeEnd{}, want: want{Stopped, "the nodes", converged(ReasonUpgradeBlocked, "the nodes"), nil},
		},
		"an upgrade over the spec's release is stopped while an execution converges": {
			phase: Upgrading, converged: converged(ReasonConverging, "changing"), record: upgrade.Record{
				State: upgrade.Stopped, Origin: upgrade.OriginCommand, Overridden: "r2",
			},
			after: UpgradeEnd{Busy: true}, want: want{Converging, "changing", converged(ReasonConverging, "changing"), planned},
		},
		"an execution converges, and has a verdict": {
			phase: Upgrading, converged: converged("StackFailed", "a stack"), record: upgrade.Record{State: upgrade.Done},
			after: UpgradeEnd{Busy: true}, want: want{Failed, "a stack", converged("StackFailed", "a stack"), planned},
		},
		"an upgrade is done": {
			phase: Upgrading, converged: converged(ReasonUpToDate, ""), record: upgrade.Record{State: upgrade.Done, Origin: upgrade.OriginSpec},
			after: UpgradeEnd{}, want: want{Ready, AsSpecified, converged(ReasonUpToDate, ""), planned},
		},
		"an upgrade is done, and the plan has a verdict": {
			phase: Failed, converged: converged("StackFailed", "a stack"), record: upgrade.Record{State: upgrade.Done, Origin: upgrade.OriginSpec},
			after: UpgradeEnd{AfterUpgrade: AfterUpgrade{Verdict: ready()}}, want: want{Ready, AsSpecified, converged(ReasonUpToDate, ""), nil},
		},
		"an upgrade over the spec's release is done": {
			phase: Upgrading, converged: converged(ReasonUpToDate, ""),
			record: upgrade.Record{
				State: upgrade.Done, Origin: upgrade.OriginCommand, Overridden: "r2", Target: upgrade.Target{Release: "r3", KubernetesVersion: "1.37"},
			},
			after: UpgradeEnd{}, want: want{
				Ready, ButRelease + (&upgrade.Record{
					State: upgrade.Done, Origin: upgrade.OriginCommand, Overridden: "r2", Target: upgrade.Target{Release: "r3", KubernetesVersion: "1.37"},
				}).OverrideReason(upgrade.Target{}), converged(ReasonUpToDate, ""), planned,
			},
		},
		"an upgrade is done, and another execution recorded the phase": {
			phase: Ready, converged: converged(ReasonUpToDate, ""), record: upgrade.Record{State: upgrade.Done},
			after: UpgradeEnd{AfterUpgrade: AfterUpgrade{Verdict: ready()}}, want: want{Ready, "before", converged(ReasonUpToDate, ""), planned},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Phase: test.phase, Message: "before", Plan: planned, Conditions: conditions(test.converged)}
			s.RecordUpgrade(one, &test.record, test.after, noon)
			require.Equal(t, test.want, want{s.Phase, s.Message, *s.Condition(Converged), s.Plan})
			upgraded := map[upgrade.State]Condition{
				upgrade.Blocked: condition(Upgraded, "False", ReasonUpgradeBlocked, "message"),
				upgrade.Stopped: condition(Upgraded, "False", ReasonUpgradeStopped, "message"),
				upgrade.Done:    condition(Upgraded, "True", ReasonUpgraded, "message"),
			}
			require.Equal(t, upgraded[test.record.State], *s.Condition(Upgraded))
			require.Equal(t, []Upgrade{one}, s.Upgrades)
			require.Equal(t, &one, s.Upgrade)
		})
	}
	t.Run("the message of a Ready cluster names drains of a roll", func(t *testing.T) {
		s := Status{
			Phase: Upgrading, Conditions: conditions(converged(ReasonUpToDate, "")),
			Nodes: []Node{{Instance: "i-1", Name: "node-1", Pool: "a", State: NodeDraining, Roll: true}},
		}
		s.RecordUpgrade(one, &upgrade.Record{State: upgrade.Done}, UpgradeEnd{}, noon)
		require.Equal(t, Ready, s.Phase)
		require.Equal(t, AsSpecified+ButDrains+"node-1 of pool a is Draining", s.Message)
	})
	t.Run("a cluster that was never converged keeps its phase", func(t *testing.T) {
		s := Status{Phase: Upgrading, Message: "before"}
		s.RecordUpgrade(one, &upgrade.Record{State: upgrade.Done}, UpgradeEnd{}, noon)
		require.Equal(t, Upgrading, s.Phase)
		require.Equal(t, "before", s.Message)
		require.Nil(t, s.Condition(Converged))
	})
}
