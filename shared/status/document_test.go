package status

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/upgrade"
)

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	evening = noon.Add(6 * time.Hour)
)

func TestConditionTransitionTime(t *testing.T) {
	var s Status
	require.Nil(t, s.Condition(Converged))
	s.Set(Condition{Type: SpecAccepted, Status: "True", Reason: "Valid"}, noon)
	s.Set(Condition{Type: Converged, Status: "False", Reason: "Converging"}, noon)
	s.Set(Condition{Type: Converged, Status: "False", Reason: "StackFailed", Message: "no capacity"}, evening)
	require.Equal(t, &Condition{Type: Converged, Status: "False", Reason: "StackFailed", Message: "no capacity", LastTransitionTime: noon},
		s.Condition(Converged))
	s.Set(Condition{Type: Converged, Status: "True", Reason: "UpToDate"}, evening)
	require.Equal(t, &Condition{Type: Converged, Status: "True", Reason: "UpToDate", LastTransitionTime: evening}, s.Condition(Converged),
		"no message is left of before")
	require.Equal(t, []string{Converged, SpecAccepted}, []string{s.Conditions[0].Type, s.Conditions[1].Type}, "in one order")
}

func TestStackSince(t *testing.T) {
	var s Status
	s.SetStack(Stack{Name: "network", Status: "ROLLBACK_COMPLETE", Resource: "Vpc", Reason: "no more"}, noon)
	s.SetStack(Stack{Name: "network", Status: "ROLLBACK_COMPLETE"}, evening)
	require.Equal(t, []Stack{{Name: "network", Status: "ROLLBACK_COMPLETE", Since: noon, ReportedAt: noon}}, s.Stacks)
	s.SetStack(Stack{Name: "network", Status: "CREATE_COMPLETE"}, evening)
	require.Equal(t, []Stack{{Name: "network", Status: "CREATE_COMPLETE", Since: evening, ReportedAt: evening}}, s.Stacks)
	s.Phase = Converging
	s.EndStack(Stack{Name: "network"}, StackReport{Status: "CREATE_COMPLETE", At: evening.Add(time.Hour)})
	require.Equal(t, []Stack{
		{Name: "network", Status: "CREATE_COMPLETE", Since: evening.Add(time.Hour), ReportedAt: evening.Add(time.Hour)},
	}, s.Stacks, "another operation")
	s.EndStack(Stack{Name: "pool-a"}, StackReport{Status: "CREATE_COMPLETE", At: evening})
	require.Equal(t, evening, s.Stacks[1].Since)
}

func TestWaits(t *testing.T) {
	s := Status{Stacks: []Stack{{Name: "network"}, {Name: "pool-a", Status: "UPDATE_ROLLBACK_COMPLETE", Reason: "no more", Since: noon}}}
	require.False(t, s.IsDelayed(noon))
	s.SetDelay("pool-a", &Delay{Message: "i-1 and i-2", Until: evening})
	s.SetDelay("pool-a", &Delay{Message: "i-1 and i-2", Until: evening.Add(time.Minute)})
	require.Equal(t, &Delay{Message: "i-1 and i-2", Until: evening}, s.Stacks[1].Delay, "the time that was reported first")
	s.SetDelay("pool-a", &Delay{Message: "i-2", Until: evening.Add(time.Minute)})
	require.Equal(t, &Delay{Message: "i-2", Until: evening.Add(time.Minute)}, s.Stacks[1].Delay, "another wait has a time of its own")
	s.SetDelay("pool-a", &Delay{Message: "i-2", Until: evening})
	require.Equal(t, "no more", s.Stacks[1].Reason, "why it failed stays")
	require.True(t, s.IsDelayed(noon))
	require.False(t, s.IsDelayed(evening.Add(time.Minute)))
	s.SetDelay("pool-a", &Delay{Message: "in vain"})
	require.Equal(t, &Delay{Message: "in vain"}, s.Stacks[1].Delay)
	require.False(t, s.IsDelayed(noon))
	s.SetDelay("pool-a", nil)
	require.Nil(t, s.Stacks[1].Delay)

	waiting := &Delay{Message: "i-1", Until: evening}
	s.SetDelay("pool-a", waiting)
	s.Observe([]Stack{{Name: "pool-a", Status: "UPDATE_ROLLBACK_COMPLETE"}}, evening, evening)
	require.Equal(t, []Stack{{Name: "pool-a", Status: "UPDATE_ROLLBACK_COMPLETE", Reason: "no more", Since: noon}}, s.Stacks, "another round")
	s.SetDelay("pool-a", waiting)
	s.SetStack(Stack{Name: "pool-a", Status: "UPDATE_COMPLETE"}, evening)
	require.Nil(t, s.Stacks[0].Delay)
	s.SetDelay("pool-b", waiting)
	require.Len(t, s.Stacks, 1)
}

// An upgrade that ended before it was complete leaves a gap. The gap is derived from the recorded status.
func TestUpgradeGap(t *testing.T) {
	for _, state := range []upgrade.State{upgrade.Checking, upgrade.Running, upgrade.Blocked, upgrade.Stopped, upgrade.Done} {
		gap := GapForState(string(state))
		if !state.Final() || state == upgrade.Done {
			require.Zero(t, gap, state)
			continue
		}
		require.Equal(t, Stopped, gap.Phase)
		require.Equal(t, gap, GapForReason(gap.Reason))
	}
	require.Equal(t, Ready, GapForReason(GapForState(UpgradeScheduled).Reason).Phase, "until its time the cluster is well")
	require.Zero(t, GapForReason("StackFailed"))
	require.Zero(t, GapForState(""))
}

func TestDropPlan(t *testing.T) {
	planned := []Change{{Stack: "control-plane", KubernetesVersion: "1.37"}, {Stack: "addons"}}
	for phase, left := range map[Phase][]Change{
		Failed: nil, Upgrading: nil,
		// A deletion keeps its plan.
		Deleting: planned, Deleted: planned,
	} {
		s := Status{Phase: phase, Plan: planned, Stacks: []Stack{{Name: "control-plane", Status: "UPDATE_IN_PROGRESS"}}}
		s.DropPlan()
		require.Equal(t, left, s.Plan, phase)
	}
}

func TestObserve(t *testing.T) {
	s := Status{Stacks: []Stack{
		{Name: "network", Status: "CREATE_COMPLETE", Since: noon},
		{Name: "pool-a", Status: "ROLLBACK_COMPLETE", Resource: "Group", Reason: "no capacity", Since: noon},
		{Name: "pool-deleted", Status: "DELETE_COMPLETE", Since: noon},
	}}
	s.Observe([]Stack{
		{Name: "network", Status: "UPDATE_COMPLETE"}, {Name: "pool-a", Status: "ROLLBACK_COMPLETE"}, {Name: "addons", Status: "CREATE_COMPLETE"},
	}, evening, evening)
	require.Equal(t, []Stack{
		{Name: "network", Status: "UPDATE_COMPLETE", Since: evening, ReportedAt: evening},
		{Name: "pool-a", Status: "ROLLBACK_COMPLETE", Resource: "Group", Reason: "no capacity", Since: noon},
		{Name: "addons", Status: "CREATE_COMPLETE", Since: evening, ReportedAt: evening},
	}, s.Stacks)
}

func TestStatusDocument(t *testing.T) {
	body, err := json.Marshal(New("demo"))
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion": "drover.run/v1alpha1", "kind": "ClusterStatus", "metadata": {"name": "demo"},
		"status": {"phase": "Pending", "updatedAt": "0001-01-01T00:00:00Z"}}`, string(body))
}

// The history has each ended upgrade once, also if it never began, and at most ten.
func TestUpgradeHistory(t *testing.T) {
	at, later := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := &Status{}
	missed := Upgrade{Phase: UpgradeMissed, To: "r2", Origin: "At", At: &at}
	for _, message := range []string{"the first word", "another"} {
		missed.Message = message
		s.AddHistory(missed)
	}
	require.Len(t, s.Upgrades, 1)
	require.Equal(t, "the first word", s.Upgrades[0].Message)
	for _, other := range []Upgrade{
		{Phase: UpgradeMissed, To: "r2", Origin: "At", At: &later}, {Phase: UpgradeMissed, To: "r2", Origin: "At", At: &at, Execution: "x"},
		{Phase: "Blocked", To: "r2", Origin: "At", At: &at}, {Phase: "Stopped", To: "r2", Origin: "At", Started: &at},
	} {
		require.False(t, missed.IsSameEnded(&other))
		s.AddHistory(other)
		s.AddHistory(other)
	}
	require.Len(t, s.Upgrades, 5)
	require.Equal(t, "Stopped", s.Upgrades[0].Phase, "the newest first")
	s.AddHistory(Upgrade{Phase: "Done", To: "r2", Started: &at})
	require.Len(t, s.Upgrades, 5)
	require.Equal(t, "Done", s.Upgrades[0].Phase, "the latest version")
	for n := range 20 {
		began := later.Add(time.Duration(n) * time.Hour)
		s.AddHistory(Upgrade{Started: &began})
	}
	require.Len(t, s.Upgrades, History)
}
