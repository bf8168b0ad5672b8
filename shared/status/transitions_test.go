package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
)

// transition is one test case: the status before a transition and after it.
type transition struct {
	before Status
	do     func(*Status)
	after  Status
}

func (c transition) run(t *testing.T) {
	t.Helper()
	s := c.before
	c.do(&s)
	require.Equal(t, c.after, s)
}

// condition is a condition whose status changed at noon.
func condition(kind, is, reason, message string) Condition {
	return Condition{Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: noon}
}

func conditions(all ...Condition) []Condition { return all }

func TestAcceptSpec(t *testing.T) {
	v2 := Upload{Version: "v2", UploadedAt: noon}
	accept := func(s *Status) { s.AcceptSpec(v2, api.SpecWarnings{}, false, noon) }
	pause := func(s *Status) { s.AcceptSpec(v2, api.SpecWarnings{}, true, noon) }
	valid := condition(SpecAccepted, "True", ReasonValid, "")
	const next = "a newer spec was accepted: drover applies it after the stacks that are changing now"
	const paused = "spec.paused is true: drover finishes the stacks that are changing now, and starts nothing else"
	tests := map[string]transition{
		"keeps the result when planning handled the version": {
			Status{Phase: Ready, Message: AsSpecified, PlannedVersion: "v2"}, accept,
			Status{Phase: Ready, Message: AsSpecified, PlannedVersion: "v2", ObservedVersion: "v2"},
		},
		"names the next spec while stacks change": {
			Status{Phase: Converging, PlannedVersion: "v1"}, accept,
			Status{Phase: Converging, Message: next, PlannedVersion: "v1", ObservedVersion: "v2", Conditions: conditions(valid)},
		},
		"names the next spec during a deletion": {
			Status{Phase: Deleting}, accept, Status{Phase: Deleting, Message: next, ObservedVersion: "v2", Conditions: conditions(valid)},
		},
		"announces the pause while stacks change": {
			Status{Phase: Converging}, pause,
			Status{Phase: Converging, Message: paused, ObservedVersion: "v2", Conditions: conditions(valid)},
		},
		"keeps the message of an upgrade": {
			Status{Phase: Upgrading, Message: "step 1 of 3"}, accept,
			Status{Phase: Upgrading, Message: "step 1 of 3", ObservedVersion: "v2", Conditions: conditions(valid)},
		},
		"keeps the message of an upgrade when the spec is paused": {
			Status{Phase: Upgrading, Message: "step 1 of 3"}, pause,
			Status{Phase: Upgrading, Message: "step 1 of 3", ObservedVersion: "v2", Conditions: conditions(valid)},
		},
		"records each kind of warning as a condition of its own": {
			Status{Phase: Ready},
			func(s *Status) {
				s.AcceptSpec(v2, api.SpecWarnings{
					Access: []string{"f"}, Network: []string{"a", "b"}, Addons: []string{"c"}, Isolation: []string{"d"}, Kubelet: []string{"e"},
				}, false, noon)
			},
			Status{Phase: Pending, Message: "the spec was accepted", ObservedVersion: "v2", Conditions: conditions(
				condition(AccessGranted, "False", ReasonNoAccess, "f"),
				condition(AddonsSchedulable, "False", ReasonNoPoolForAddons, "c"),
				condition(KubeletFieldsKnown, "False", ReasonUnknownKubeletField, "e"),
				condition(NetworkUsable, "False", ReasonPublicAddresses, "a\nb"),
				condition(PodsIsolated, "False", ReasonPodsReachMetadata, "d"), valid)},
		},
		"records only the warning that the spec has": {
			Status{Phase: Ready, Conditions: conditions(condition(AddonsSchedulable, "False", ReasonNoPoolForAddons, "c"))},
			func(s *Status) { s.AcceptSpec(v2, api.SpecWarnings{Network: []string{"a"}}, false, noon) },
			Status{Phase: Pending, Message: "the spec was accepted", ObservedVersion: "v2", Conditions: conditions(
				condition(NetworkUsable, "False", ReasonPublicAddresses, "a"), valid)},
		},
		"removes the warnings of the spec before": {
			Status{Phase: Ready, Conditions: conditions(condition(AddonsSchedulable, "False", ReasonNoPoolForAddons, "a"),
				condition(NetworkUsable, "False", ReasonPublicAddresses, "b"))}, accept,
			Status{Phase: Pending, Message: "the spec was accepted", ObservedVersion: "v2", Conditions: conditions(valid)},
		},
	}
	for _, phase := range []Phase{Pending, Ready, Stopped, Failed, Deleted} {
		tests["is Pending after "+string(phase)] = transition{
			Status{Phase: phase, Message: "before", PlannedVersion: "v1"}, accept,
			Status{Phase: Pending, Message: "the spec was accepted", PlannedVersion: "v1", ObservedVersion: "v2", Conditions: conditions(valid)},
		}
	}
	for name, test := range tests {
		test.after.Accepted = &v2
		t.Run(name, test.run)
	}
}

func TestRecordAccepted(t *testing.T) {
	at := func(version string, second int) *Upload {
		return &Upload{version, noon.Add(time.Duration(second) * time.Second), map[string]string{"upload": version}}
	}
	for name, test := range map[string]struct {
		before *Upload
		upload *Upload
		want   *Upload
	}{
		"records the first":                   {nil, at("v1", 1), at("v1", 1)},
		"records a newer one":                 {at("v1", 1), at("v2", 2), at("v2", 2)},
		"keeps a newer one":                   {at("v2", 2), at("v1", 1), at("v2", 2)},
		"records the last read of one second": {at("v1", 1), at("v2", 1), at("v2", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Accepted: test.before}
			s.RecordAccepted(*test.upload)
			require.Equal(t, test.want, s.Accepted)
			require.Equal(t, test.want.Version, s.AcceptedVersion())
		})
	}
	require.Empty(t, (&Status{}).AcceptedVersion())
}

func TestRejectSpec(t *testing.T) {
	reject := func(s *Status) { s.RejectSpec("v2", ReasonSpecInvalid, "line 3", noon) }
	invalid := condition(SpecAccepted, "False", ReasonSpecInvalid, "line 3")
	none := "no usable spec was uploaded yet"
	converged := func(reason string) Condition { return condition(Converged, "False", reason, "") }
	for name, test := range map[string]transition{
		"stops a cluster without a good spec": {
			Status{Phase: Pending}, reject, Status{Phase: Stopped, Message: none, ObservedVersion: "v2", Conditions: conditions(invalid)},
		},
		"keeps the phase of a cluster with a good spec": {
			Status{Phase: Ready, Message: AsSpecified, PlannedVersion: "v1"}, reject,
			Status{Phase: Ready, Message: AsSpecified, PlannedVersion: "v1", ObservedVersion: "v2", Conditions: conditions(invalid)},
		},
		"keeps the phase while stacks change": {
			Status{Phase: Converging, Message: "changing"}, reject,
			Status{Phase: Converging, Message: "changing", ObservedVersion: "v2", Conditions: conditions(invalid)},
		},
		"keeps the phase of a deletion": {
			Status{Phase: Deleting, Message: "deleting"}, reject,
			Status{Phase: Deleting, Message: "deleting", ObservedVersion: "v2", Conditions: conditions(invalid)},
		},
		"keeps the phase of a failed deletion": {
			Status{Phase: Failed, Message: "a stack", Conditions: conditions(converged("StackFailed"))}, reject,
			Status{Phase: Failed, Message: "a stack", ObservedVersion: "v2", Conditions: conditions(converged("StackFailed"), invalid)},
		},
		"keeps the phase of a finished deletion": {
			Status{Phase: Deleted, Message: "deleted", Conditions: conditions(converged(ReasonDeleted))}, reject,
			Status{Phase: Deleted, Message: "deleted", ObservedVersion: "v2", Conditions: conditions(converged(ReasonDeleted), invalid)},
		},
		"keeps the phase of a protected cluster": {
			Status{Phase: Stopped, Message: "protected", Conditions: conditions(converged(ReasonDeletionProtected))}, reject,
			Status{
				Phase: Stopped, Message: "protected", ObservedVersion: "v2", Conditions: conditions(converged(ReasonDeletionProtected), invalid),
			},
		},
		"stops a cluster that failed before its first plan": {
			Status{Phase: Failed, Message: "denied"}, reject,
			Status{Phase: Stopped, Message: none, ObservedVersion: "v2", Conditions: conditions(invalid)},
		},
		"stops a cluster whose deletion was superseded": {
			Status{Phase: Stopped, Conditions: conditions(converged(ReasonDeleting))}, reject,
			Status{Phase: Stopped, Message: none, ObservedVersion: "v2", Conditions: conditions(converged(ReasonDeleting), invalid)},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestWithdrawSpec(t *testing.T) {
	withdraw := func(s *Status) { s.WithdrawSpec("it was deleted", noon) }
	absent := condition(SpecAccepted, "False", ReasonSpecAbsent, "it was deleted")
	const deleted = "the spec was deleted before drover created anything"
	ready := condition(Converged, "True", ReasonUpToDate, "")
	for name, test := range map[string]transition{
		"deletes a cluster that waits for its first plan": {
			Status{Phase: Pending, ObservedVersion: "v1"}, withdraw, Status{Phase: Deleted, Message: deleted, Conditions: conditions(absent)},
		},
		"deletes a cluster that never had a good spec": {
			Status{Phase: Stopped, ObservedVersion: "v1"}, withdraw, Status{Phase: Deleted, Message: deleted, Conditions: conditions(absent)},
		},
		"keeps a cluster that failed": {
			Status{Phase: Failed, Message: "denied", ObservedVersion: "v1"}, withdraw,
			Status{Phase: Failed, Message: "denied", Conditions: conditions(absent)},
		},
		"keeps a cluster that was planned": {
			Status{Phase: Stopped, PlannedVersion: "v1"}, withdraw, Status{Phase: Stopped, PlannedVersion: "v1", Conditions: conditions(absent)},
		},
		"keeps a cluster that was converged": {
			Status{Phase: Pending, Conditions: conditions(ready)}, withdraw, Status{Phase: Pending, Conditions: conditions(ready, absent)},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestBeginAndFail(t *testing.T) {
	converged := func(reason, message string) []Condition {
		return conditions(condition(Converged, "False", reason, message))
	}
	begin := func(upgrading bool) func(*Status) {
		return func(s *Status) { s.BeginConverge("x", upgrading, "changing 2 of 5 stacks", noon) }
	}
	fail := func(s *Status) { s.FailUnreported("demo", "x", noon) }
	ended := func(failures int, retry time.Duration, advice string) Status {
		message := "execution x ended without a report: " + advice
		s := Status{Phase: Failed, Message: message, Execution: "x", Failures: failures, Conditions: converged(ReasonExecutionEnded, message)}
		if at := noon.Add(retry); retry > 0 {
			s.RetryAt = &at
		}
		return s
	}
	failed := ended(1, time.Minute, "drover continues; to prevent that, set spec.paused")
	a, b := Change{Stack: "pool-a"}, Change{Stack: "network"}
	for name, test := range map[string]transition{
		"a converge begins after a failure": {
			Status{Phase: Failed, Message: "a stack", RetryAt: &noon, Failures: 2}, begin(false),
			Status{
				Phase: Converging, Message: "changing 2 of 5 stacks", Execution: "x", Failures: 2,
				Conditions: converged(ReasonConverging, "changing 2 of 5 stacks"),
			},
		},
		"a step of an upgrade begins": {
			Status{Phase: Upgrading}, begin(true), Status{
				Phase: Upgrading, Message: "changing 2 of 5 stacks", Execution: "x", Conditions: converged(ReasonConverging, "changing 2 of 5 stacks"),
			},
		},
		"a deletion begins, and continues with the next stacks": {
			Status{Phase: Ready, GoodVersion: "v1", Plan: []Change{a}},
			func(s *Status) { s.BeginDeletion("x", []Change{b}, "deleting 1 of 5 stacks", noon) },
			Status{
				Phase: Deleting, Message: "deleting 1 of 5 stacks", Execution: "x", Plan: []Change{a, b},
				Conditions: converged(ReasonDeleting, "deleting 1 of 5 stacks"),
			},
		},
		"a deletion is refused": {
			Status{Phase: Ready, GoodVersion: "v1"}, func(s *Status) { s.RefuseDeletion(ReasonDeletionProtected, "it is protected", noon) },
			Status{
				Phase: Stopped, Message: "it is protected", GoodVersion: "v1", Conditions: converged(ReasonDeletionProtected, "it is protected"),
			},
		},
		"a converge ends without a report": {Status{Phase: Converging, Execution: "x"}, fail, failed},
		"a deletion ends without a report": {Status{Phase: Deleting, Execution: "x"}, fail, failed},
		"the pauses grow": {
			Status{Phase: Converging, Execution: "x", Failures: 3}, fail,
			ended(4, 15*time.Minute, "drover continues; to prevent that, set spec.paused"),
		},
		"an operator acts in the end": {
			Status{Phase: Converging, Execution: "x", Failures: 8, RetryAt: &noon}, fail, ended(9, 0, "run drover converge demo to continue"),
		},
		"another execution's end is ignored": {
			Status{Phase: Converging, Execution: "y"}, fail, Status{Phase: Converging, Execution: "y"},
		},
		"the end after a verdict is ignored": {Status{Phase: Ready, Execution: "x"}, fail, Status{Phase: Ready, Execution: "x"}},
		"the end of a step of an upgrade is left to the upgrade": {
			Status{Phase: Upgrading, Execution: "x"}, fail, Status{Phase: Upgrading, Execution: "x"},
		},
		"the desired state is reached": {
			Status{
				Phase: Converging, Plan: []Change{a}, Drift: []string{"stack network"},
				Nodes: []Node{{Instance: "i-1", State: NodeNotJoined}, {Instance: "i-2", State: NodeDraining}},
				Conditions: conditions(Condition{
					Type: InSync, Status: "False", Reason: ReasonDrifted, Message: "stack network\nnode i-3",
				}),
			},
			func(s *Status) { s.RecordConverged(noon) },
			Status{
				Phase: Converging, Nodes: []Node{{Instance: "i-2", State: NodeDraining}},
				Conditions: conditions(Condition{Type: InSync, Status: "False", Reason: ReasonDrifted, Message: "node i-3"}),
			},
		},
		"the desired state is reached, and planning found the only drift": {
			Status{
				Drift:      []string{"stack network"},
				Conditions: conditions(Condition{Type: InSync, Status: "False", Reason: ReasonDrifted, Message: "stack network"}),
			},
			func(s *Status) { s.RecordConverged(noon) },
			Status{Nodes: []Node(nil), Conditions: conditions(condition(InSync, "True", ReasonInSync, ""))},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestPlanUpgrade(t *testing.T) {
	next := &Upgrade{Phase: UpgradeScheduled, To: "r3"}
	done := Upgrade{Phase: "Done", To: "r2", Message: "at r2"}
	plan := func(next *Upgrade) func(*Status) { return func(s *Status) { s.PlanUpgrade(next, noon) } }
	upgraded := conditions(condition(Upgraded, "True", ReasonUpgraded, "at r2"))
	waiting := &Upgrade{Phase: UpgradeScheduled, To: "r4", Execution: "x"}
	for name, test := range map[string]transition{
		"shows the pending upgrade":     {Status{Upgrade: &done}, plan(next), Status{Upgrade: next}},
		"keeps the last upgrade":        {Status{Upgrade: &done}, plan(nil), Status{Upgrade: &done}},
		"keeps a cluster without one":   {Status{}, plan(nil), Status{}},
		"keeps the upgrade of a waiter": {Status{Upgrade: waiting}, plan(nil), Status{Upgrade: waiting}},
		"shows the last upgrade when the pending one was withdrawn": {
			Status{Upgrade: &Upgrade{Phase: UpgradeScheduled, To: "r3"}, Upgrades: []Upgrade{done}}, plan(nil),
			Status{Upgrade: &done, Upgrades: []Upgrade{done}, Conditions: upgraded},
		},
		"shows the last upgrade when a refused one was withdrawn": {
			Status{
				Upgrade: &Upgrade{Phase: "Blocked", To: "r1"}, Upgrades: []Upgrade{done},
				Conditions: conditions(Condition{Type: Upgraded, Status: "False", Reason: ReasonUpgradeBlocked}),
			},
			plan(nil), Status{Upgrade: &done, Upgrades: []Upgrade{done}, Conditions: upgraded},
		},
		"keeps an upgrade that its execution blocked": {
			Status{Upgrade: &Upgrade{Phase: "Blocked", Execution: "x"}}, plan(nil), Status{Upgrade: &Upgrade{Phase: "Blocked", Execution: "x"}},
		},
		"removes the queued upgrade":      {Status{NextUpgrade: next}, plan(nil), Status{}},
		"removes a missed queued upgrade": {Status{NextUpgrade: &Upgrade{Phase: UpgradeMissed, Execution: "x"}}, plan(nil), Status{}},
		"keeps a queued upgrade's waiter": {Status{NextUpgrade: waiting}, plan(next), Status{Upgrade: next, NextUpgrade: waiting}},
		"records a missed upgrade's cause": {
			Status{}, plan(&Upgrade{Phase: UpgradeMissed, Message: "late"}),
			Status{
				Upgrade: &Upgrade{
					Phase: UpgradeMissed, Message: "late",
				}, Conditions: conditions(condition(Upgraded, "False", ReasonUpgradeMissed, "late")),
			},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestQueueUpgrade(t *testing.T) {
	next, waiting := &Upgrade{Phase: UpgradeScheduled, To: "r3"}, &Upgrade{Phase: UpgradeScheduled, To: "r4", Execution: "x"}
	queue := func(s *Status) { s.QueueUpgrade(next) }
	for name, test := range map[string]transition{
		"is recorded":             {Status{}, queue, Status{NextUpgrade: next}},
		"replaces an earlier one": {Status{NextUpgrade: &Upgrade{To: "r2"}}, queue, Status{NextUpgrade: next}},
		"replaces a missed one": {
			Status{NextUpgrade: &Upgrade{Phase: UpgradeMissed, Execution: "x"}}, queue, Status{NextUpgrade: next},
		},
		"waits for one that has an execution": {Status{NextUpgrade: waiting}, queue, Status{NextUpgrade: waiting}},
		"is removed when no upgrade follows":  {Status{NextUpgrade: next}, func(s *Status) { s.QueueUpgrade(nil) }, Status{}},
		"stays when its execution waits to begin": {Status{NextUpgrade: waiting}, func(s *Status) {
			s.QueueUpgrade(nil)
		}, Status{NextUpgrade: waiting}},
	} {
		t.Run(name, test.run)
	}
}

func TestRecordWaiting(t *testing.T) {
	one := func(phase string) Upgrade {
		return Upgrade{Phase: phase, From: "r1", FromVersion: "1.35", To: "r3", Execution: "x", Message: "busy"}
	}
	after := func(phase string) Upgrade {
		u := one(phase)
		u.From, u.FromVersion = "r2", "1.36"
		return u
	}
	record := func(phase string) func(*Status) { return func(s *Status) { s.RecordWaiting(one(phase), noon) } }
	scheduled, missed := one(UpgradeScheduled), one(UpgradeMissed)
	queued, missedNext := after(UpgradeScheduled), after(UpgradeMissed)
	other := func(phase string) *Upgrade {
		return &Upgrade{Phase: phase, To: "r2", ToVersion: "1.36", Execution: "y"}
	}
	late := conditions(condition(Upgraded, "False", ReasonUpgradeMissed, "busy"))
	for name, test := range map[string]transition{
		"shows the first upgrade":  {Status{}, record(UpgradeScheduled), Status{Upgrade: &scheduled}},
		"replaces a finished one":  {Status{Upgrade: other("Done")}, record(UpgradeScheduled), Status{Upgrade: &scheduled}},
		"replaces a scheduled one": {Status{Upgrade: other(UpgradeScheduled)}, record(UpgradeScheduled), Status{Upgrade: &scheduled}},
		"replaces itself": {
			Status{Upgrade: &Upgrade{Phase: "Checking", Execution: "x"}}, record(UpgradeScheduled), Status{Upgrade: &scheduled},
		},
		"follows one that checks": {
			Status{Upgrade: other("Checking")}, record(UpgradeScheduled), Status{Upgrade: other("Checking"), NextUpgrade: &queued},
		},
		"follows one in flight": {
			Status{Upgrade: other("Running")}, record(UpgradeScheduled), Status{Upgrade: other("Running"), NextUpgrade: &queued},
		},
		"leaves the queue": {Status{NextUpgrade: &queued}, record(UpgradeScheduled), Status{Upgrade: &scheduled}},
		"keeps another queued one": {
			Status{NextUpgrade: other(UpgradeScheduled)}, record(UpgradeScheduled), Status{
				Upgrade: &scheduled, NextUpgrade: other(UpgradeScheduled),
			},
		},
		"is remembered when missed": {Status{}, record(UpgradeMissed), Status{Upgrade: &missed, Upgrades: []Upgrade{missed}, Conditions: late}},
		"leaves the condition to an upgrade in flight when missed": {
			Status{Upgrade: other("Running")}, record(UpgradeMissed),
			Status{Upgrade: other("Running"), NextUpgrade: &missedNext, Upgrades: []Upgrade{missedNext}},
		},
	} {
		t.Run(name, test.run)
	}
}

func TestBlockUpgrade(t *testing.T) {
	blocked := Upgrade{Phase: "Blocked", To: "r3", Execution: "x", Message: "too old"}
	transition{
		Status{Phase: Ready, Upgrade: &Upgrade{Phase: UpgradeScheduled, To: "r3"}},
		func(s *Status) { s.BlockUpgrade(Upgrade{To: "r3", Execution: "x", Message: "too old"}, noon) },
		Status{
			Phase: Ready, Upgrade: &blocked, Upgrades: []Upgrade{blocked},
			Conditions: conditions(condition(Upgraded, "False", ReasonUpgradeBlocked, "too old")),
		},
	}.run(t)
}

func TestLatePhase(t *testing.T) {
	for late, want := range map[time.Duration]string{
		-time.Hour: "", 0: "", 30*time.Minute - 1: "", 30 * time.Minute: UpgradeDelayed, 2*time.Hour - 1: UpgradeDelayed,
		2 * time.Hour: UpgradeMissed, 48 * time.Hour: UpgradeMissed,
	} {
		require.Equal(t, want, LatePhase(noon, noon.Add(late)), late)
	}
}

func TestRecordLate(t *testing.T) {
	at := noon.Add(-time.Hour)
	const delayed = "it was due at 2026-11-20T11:00:00Z: waits"
	missed := delayed + fmt.Sprintf(missedFor, "2h0m0s", "Start it again when the cluster is idle")
	late := func(phase string) func(*Status) {
		return func(s *Status) { s.RecordLate(at, phase, "waits", nil, noon) }
	}
	one := func(phase, message string) *Upgrade {
		local := at.In(time.FixedZone("", 3600)) // the same time
		return &Upgrade{Phase: phase, To: "r3", At: &local, Message: message}
	}
	running := &Upgrade{Phase: "Running", To: "r2", At: &at}
	is := conditions(condition(Upgraded, "False", ReasonUpgradeMissed, missed))
	for name, test := range map[string]transition{
		"is delayed": {
			Status{Upgrade: one(UpgradeScheduled, "")}, late(UpgradeDelayed), Status{Upgrade: one(UpgradeDelayed, delayed)},
		},
		"is delayed once": {
			Status{Upgrade: one(UpgradeDelayed, "first")}, late(UpgradeDelayed), Status{Upgrade: one(UpgradeDelayed, "first")},
		},
		"is missed after it was delayed": {
			Status{Upgrade: one(UpgradeDelayed, delayed)}, late(UpgradeMissed),
			Status{Upgrade: one(UpgradeMissed, missed), Upgrades: []Upgrade{*one(UpgradeMissed, missed)}, Conditions: is},
		},
		"is missed once": {
			Status{Upgrade: one(UpgradeMissed, "first")}, late(UpgradeMissed), Status{Upgrade: one(UpgradeMissed, "first")},
		},
		"is not delayed after it was missed": {
			Status{Upgrade: one(UpgradeMissed, "first")}, late(UpgradeDelayed), Status{Upgrade: one(UpgradeMissed, "first")},
		},
		"is delayed behind an upgrade in flight": {
			Status{Upgrade: running, NextUpgrade: one(UpgradeScheduled, "")}, late(UpgradeDelayed),
			Status{Upgrade: running, NextUpgrade: one(UpgradeDelayed, delayed)},
		},
		"is missed behind an upgrade in flight, which has the condition": {
			Status{Upgrade: running, NextUpgrade: one(UpgradeScheduled, "")}, late(UpgradeMissed),
			Status{Upgrade: running, NextUpgrade: one(UpgradeMissed, missed), Upgrades: []Upgrade{*one(UpgradeMissed, missed)}},
		},
		"has another time": {
			Status{Upgrade: &Upgrade{Phase: UpgradeScheduled, At: &noon}}, late(UpgradeMissed), Status{
				Upgrade: &Upgrade{Phase: UpgradeScheduled, At: &noon},
			},
		},
		"has no time": {
			Status{Upgrade: &Upgrade{Phase: UpgradeScheduled}}, late(UpgradeMissed), Status{Upgrade: &Upgrade{Phase: UpgradeScheduled}},
		},
		"is unknown": {Status{}, late(UpgradeMissed), Status{}},
	} {
		t.Run(name, test.run)
	}
}

func TestRetryUnreported(t *testing.T) {
	s := Status{Phase: Converging, Execution: "x"}
	require.Nil(t, s.RetryUnreported("x"))
	s.FailUnreported("demo", "x", noon)
	require.Equal(t, noon.Add(time.Minute), *s.RetryUnreported("x"))
	require.Nil(t, s.RetryUnreported("y"))
	s.Set(condition(Converged, "False", "Throttled", ""), noon)
	require.Nil(t, s.RetryUnreported("x"), "it reported")
}
