package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
)

// The condition Upgraded shows the result of an upgrade, also if it never began: users and commands read it.
func TestUpgradedConditionOfPendingUpgrades(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	done := Upgrade{Phase: "Done", To: "r1", Started: &noon, Ended: &noon, Message: "the cluster is at r1"}
	s := &Status{Upgrade: &done, Upgrades: []Upgrade{done}}
	s.SetUpgraded(noon)
	is := func(status, reason, message string, since time.Time) {
		t.Helper()
		require.Equal(t, &Condition{Type: Upgraded, Status: status, Reason: reason, Message: message, LastTransitionTime: since},
			s.Condition(Upgraded))
	}
	is("True", ReasonUpgraded, "the cluster is at r1", noon)

	later := noon.Add(time.Hour)
	s.Upgrade = &Upgrade{Phase: "Blocked", To: "r0", Message: "it is older"}
	s.SetUpgraded(later)
	is("False", ReasonUpgradeBlocked, "it is older", later)
	s.Upgrade = &Upgrade{Phase: UpgradeScheduled, To: "r2"}
	s.SetUpgraded(later)
	is("True", ReasonUpgraded, "the cluster is at r1", later)
	s.Upgrade = &Upgrade{Phase: UpgradeMissed, To: "r2", Message: "it was late"}
	s.SetUpgraded(later.Add(time.Hour))
	is("False", ReasonUpgradeMissed, "it was late", later.Add(time.Hour))
	s.DropScheduled()
	s.SetUpgraded(later.Add(2 * time.Hour))
	is("True", ReasonUpgraded, "the cluster is at r1", later.Add(2*time.Hour))
	s.Upgrades = nil
	s.DropScheduled()
	s.SetUpgraded(noon)
	require.Nil(t, s.Condition(Upgraded))
}

// Two executions may find that an upgrade is due. One starts it, and it may end before the other one reports.
func TestLateReportOfAnUpgradeThatEnded(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	v := Judge(&events.PlanResult{Outcome: events.OutcomeUnchanged, Upgrade: &events.PlannedUpgrade{
		State: UpgradeScheduled, Message: "the upgrade to release r2 begins", Name: "demo-1", Start: &events.Upgrade{Release: "r2"},
	}})
	for name, over := range map[string]Upgrade{
		"an upgrade of another time": {Phase: "Blocked", To: "r2", Ended: &noon, Execution: "arn:x:demo-0"},
		"it is in flight":            {Phase: "Running", To: "r2", Execution: "arn:x:demo-1"},
		"it has ended":               {Phase: "Blocked", To: "r2", Ended: &noon, Execution: "arn:x:demo-1"},
	} {
		s := &Status{Phase: Ready, Message: "the cluster matches its spec", Upgrades: []Upgrade{over}}
		was := *s
		v.Apply(s, noon)
		if name == "it has ended" {
			require.Equal(t, was, *s)
		} else {
			require.Equal(t, Upgrading, s.Phase, name)
		}
	}
}

// A plan that stops for a reason other than the spec records the spec as accepted, whatever an older plan recorded.
func TestSpecThatCannotBePlannedIsAccepted(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		plan   events.PlanResult
		reason string
	}{
		"a change is refused": {events.PlanResult{Reason: ReasonChangeRefused, Accepted: true}, ReasonValid},
		"a change of the last good spec is refused": {
			events.PlanResult{Reason: ReasonChangeRefused, Rejected: &events.Rejection{Reason: ReasonReleaseUnusable}}, ReasonReleaseUnusable,
		},
		"paused":                  {events.PlanResult{Reason: ReasonPaused, Accepted: true}, ReasonValid},
		"the release is unusable": {events.PlanResult{Reason: ReasonReleaseUnusable}, ReasonReleaseUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Status{}
			s.Set(Condition{Type: SpecAccepted, Status: "False", Reason: ReasonSpecInvalid, Message: "line 3"}, noon)
			test.plan.Outcome, test.plan.Message = events.OutcomeStopped, "no"
			v := Judge(&test.plan)
			v.Apply(s, noon)
			require.Equal(t, test.reason, s.Condition(SpecAccepted).Reason)
		})
	}
}
