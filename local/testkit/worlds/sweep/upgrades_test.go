package sweep_test

// Upgrades in a sweep: channels that move, scheduled times that a busy cluster misses, executions that end without a report.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func channels(stable string) string {
	return "apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: " + stable + "}\n"
}

// following has a cluster that follows the channel Stable, and one that follows none.
func following(t *testing.T, more string) *harness.Account {
	a := harness.Start(t)
	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.35", "r1"))
	a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
	a.Upload("releases/channels.yaml", channels("r1"))
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  upgrade: {channel: Stable"+more+"}\n"))
	a.Upload("clusters/other.yaml", harness.Spec("other", ""))
	a.Settle()
	require.NoError(t, a.SweepNow())
	a.Settle()
	for _, cluster := range []string{"demo", "other"} {
		require.Equal(t, status.Ready, a.Status(cluster).Phase, a.Status(cluster).Message)
	}
	return a
}

func machine(a *harness.Account, name string) (all []stepfunctions.Execution) {
	for _, x := range a.StepFunctions.Executions() {
		if x.MachineName == names.Prefix+name {
			all = append(all, x)
		}
	}
	return all
}

func TestChannelChanges(t *testing.T) {
	a := following(t, "")
	// A tick at which nothing moved.
	mark, before := a.Calls.Mark(), len(machine(a, "converge"))
	require.NoError(t, a.SweepNow())
	a.Settle()
	reads := 0
	for _, call := range a.Calls.Since(mark) {
		require.False(t, call.Mutating, "%s %s", call.Action, call.Resource)
		if call.Action == "GetObject" && strings.Contains(call.Resource, "channels") {
			reads++
			require.Contains(t, call.Resource, "releases/channels.yaml")
		}
	}
	require.Equal(t, 1, reads, "one conditional read")
	require.Len(t, machine(a, "converge"), before)

	a.Upload("releases/channels.yaml", channels("r2"))
	now := time.Now()
	a.Functions.Sweep.Now = func() time.Time { return now }
	for range 3 {
		now = now.Add(5 * time.Minute)
		require.NoError(t, a.SweepNow())
		a.Settle()
	}
	require.Equal(t, "1.36", a.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"], a.Status("demo").Message)
	require.Equal(t, "1.35", a.Stack("other", names.ControlPlane).Outputs["KubernetesVersion"])
	require.Len(t, machine(a, "upgrade"), 1)
	s := a.Status("demo")
	require.Equal(t, "Ready Done Channel r2", strings.Join([]string{string(s.Phase), s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.To}, " "))
	require.Equal(t, "True", s.Condition(status.Converged).Status)

	t.Run("back, it moves no cluster to an older version", func(t *testing.T) {
		a.Upload("releases/channels.yaml", channels("r1"))
		now = now.Add(5 * time.Minute)
		require.NoError(t, a.SweepNow())
		a.Settle()
		require.Len(t, machine(a, "upgrade"), 1)
	})
	t.Run("unusable channels move no cluster", func(t *testing.T) {
		mark := len(machine(a, "converge"))
		a.Upload("releases/channels.yaml", "kind: Channels")
		require.NoError(t, a.SweepNow())
		a.Settle()
		require.Len(t, machine(a, "converge"), mark)
	})
}

// The cluster is converged when the time of an upgrade comes, and for hours after.
func TestUpgradeOfABusyCluster(t *testing.T) {
	a := following(t, "")
	now := time.Now()
	a.Functions.Plan.Now = func() time.Time { return now }
	a.Functions.Sweep.Now = func() time.Time { return now }
	at := now.Add(time.Hour).UTC().Truncate(time.Second)
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  upgrade: {at: {time: "+at.Format(time.RFC3339)+", release: r2}}\n"))
	a.Settle()
	require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", harness.Spec("demo", "  tags: {a: b}\n  upgrade: {at: {time: "+at.Format(time.RFC3339)+", release: r2}}\n"))
	a.Until("it is busy", func() bool { return len(a.Events.Held()) > 0 })
	due := func(late time.Duration) *status.Upgrade {
		now = at.Add(late)
		dues, err := a.State().Dues(t.Context(), now)
		require.NoError(t, err)
		require.Len(t, dues, 1)
		require.NoError(t, a.SweepNow())
		return a.Status("demo").Upgrade
	}
	require.Equal(t, status.UpgradeScheduled, due(29*time.Minute).Phase)
	require.Equal(t, status.UpgradeDelayed, due(31*time.Minute).Phase)
	missed := due(2 * time.Hour)
	require.Equal(t, status.UpgradeMissed, missed.Phase)
	require.Equal(t, status.ReasonUpgradeMissed, a.Status("demo").Condition(status.Upgraded).Reason)
	require.Equal(t, missed, due(3*time.Hour), "recorded once")
	require.Equal(t, []status.Upgrade{*missed}, a.Status("demo").Upgrades, "and kept in the history")

	a.Events.Decide(nil)
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
	require.Empty(t, machine(a, "upgrade"), "its time is over")
	require.Equal(t, status.UpgradeMissed, a.Status("demo").Upgrade.Phase)
	require.Equal(t, "1.35", a.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
}

// The spec is paused or rejected after an upgrade was scheduled. The audit records the upgrade as delayed, then as missed.
func TestScheduledUpgradeOfAClusterThatIsNotReady(t *testing.T) {
	a := following(t, "")
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	scheduled := "  upgrade: {at: {time: " + at.Format(time.RFC3339) + ", release: r2}}\n"
	for what, spec := range map[string]string{
		"paused": harness.Spec("demo", scheduled+"  paused: true\n"), "rejected": strings.Replace(harness.Spec("demo", scheduled), "name: r1",
			"name: lost", 1),
	} {
		t.Run(what, func(t *testing.T) {
			now := time.Now()
			a.Functions.Sweep.Now = func() time.Time { return now }
			a.Upload("clusters/demo.yaml", harness.Spec("demo", scheduled))
			a.Settle()
			require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
			a.Upload("clusters/demo.yaml", spec)
			a.Settle()
			before := len(machine(a, "converge"))
			audit := func(late time.Duration) *status.Upgrade {
				now = at.Add(late)
				require.NoError(t, a.AuditNow())
				a.Settle()
				return a.Status("demo").Upgrade
			}
			require.Equal(t, status.UpgradeScheduled, audit(20*time.Minute).Phase)
			require.Equal(t, status.UpgradeDelayed, audit(35*time.Minute).Phase)
			missed := audit(2 * time.Hour)
			require.Equal(t, status.UpgradeMissed, missed.Phase)
			require.Contains(t, missed.Message, "Set another time in spec.upgrade.at")
			require.Equal(t, status.ReasonUpgradeMissed, a.Status("demo").Condition(status.Upgraded).Reason)
			require.Equal(t, missed, audit(3*time.Hour), "recorded once")
			require.Len(t, machine(a, "converge"), before, "no execution starts in vain")
		})
	}
}

// An operator stops the execution of an upgrade. The audit corrects its status and record, which still say that it runs.
func TestUpgradeEndedWithoutAReport(t *testing.T) {
	a := following(t, "")
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" {
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", strings.Replace(harness.Spec("demo", ""), "name: r1", "name: r2", 1))
	a.Until("a step is being made", func() bool { return len(a.Events.Held()) > 0 })
	a.StepFunctions.StopAll("Aborted", "by an operator")
	a.Events.Decide(nil)
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
	require.Equal(t, "Running", a.Status("demo").Upgrade.Phase)
	require.NoError(t, a.AuditNow())
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "Stopped", s.Upgrade.Phase, s.Message)
	require.Equal(t, status.Stopped, s.Phase)
	require.Equal(t, status.ReasonUpgradeStopped, s.Condition(status.Converged).Reason)
}

// The execution of a scheduled upgrade never started. The audit starts a converge, which plans the cluster again.
func TestUpgradeThatDidNotBegin(t *testing.T) {
	a := following(t, "")
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		at := time.Now().Add(-time.Hour)
		s.Upgrade = &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "Spec", At: &at}
	}))
	before := len(machine(a, "converge"))
	require.NoError(t, a.AuditNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), before+1)
	require.Nil(t, a.Status("demo").Upgrade, "neither spec nor channel requests it")
}

// The last writer of the phase Upgrading may not have seen the end of the upgrade. The audit starts a converge, which corrects the phase.
func TestEndedUpgradeInTheStatusIsCorrected(t *testing.T) {
	a := following(t, "")
	require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		at := time.Now().Add(-time.Hour)
		s.Phase, s.Message = status.Upgrading, "the upgrade to release r2 begins"
		s.Upgrade = &status.Upgrade{Phase: "Blocked", To: "r2", Origin: "Channel", Started: &at, Ended: &at}
	}))
	before := len(machine(a, "converge"))
	require.NoError(t, a.AuditNow())
	a.Settle()
	require.Len(t, machine(a, "converge"), before+1)
	require.Equal(t, status.Ready, a.Status("demo").Phase)
}
