package audit

// Scheduled and overdue upgrades, specs that nothing acts on, and clusters that the sweep has audited.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/passes"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestAuditChecksScheduledUpgrades(t *testing.T) {
	in := func(d time.Duration) *time.Time { at := noon.Add(d); return &at }
	scheduled := func(at, checked *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "At", At: at, Checked: checked}
	}
	unread := scheduled(in(time.Hour), nil)
	unread.Checks = []status.Check{{Name: preflight.UpgradePossible, Message: "there is no release r2"}}
	delayed := scheduled(in(time.Hour), nil)
	delayed.Phase = status.UpgradeDelayed
	for name, test := range map[string]struct {
		phase   status.Phase
		upgrade *status.Upgrade
		starts  int32
		checked bool
	}{
		"when they are known of":              {status.Ready, scheduled(in(72*time.Hour), nil), 0, true},
		"when the cluster stopped":            {status.Stopped, scheduled(in(72*time.Hour), nil), 0, true},
		"once":                                {status.Ready, scheduled(in(72*time.Hour), in(-time.Hour)), 0, false},
		"again in the last day":               {status.Ready, scheduled(in(leadTime), in(-time.Hour)), 0, true},
		"once in the last day":                {status.Ready, scheduled(in(time.Hour), in(-23*time.Hour)), 0, false},
		"not once they begin":                 {status.Ready, scheduled(in(0), nil), 0, false},
		"not without a time":                  {status.Ready, scheduled(nil, nil), 0, false},
		"not when they are late":              {status.Ready, delayed, 0, false},
		"not while their release is not read": {status.Ready, unread, 0, false},
		"not while the cluster converges":     {status.Converging, scheduled(in(time.Hour), nil), 0, false},
		"not while the cluster is upgraded":   {status.Upgrading, scheduled(in(time.Hour), nil), 0, false},
		"not while the cluster is deleted":    {status.Deleting, scheduled(in(time.Hour), nil), 0, false},
		"not beyond the bound of an audit":    {status.Ready, scheduled(in(time.Hour), nil), maxStarts, false},
		"not when there is none":              {status.Ready, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{}
			r := &auditRun{Audit: auditOf(s), now: noon}
			r.starts.Store(test.starts)
			require.NoError(t, r.checkScheduledUpgrade(t.Context(), demo, &status.Status{Phase: test.phase, Upgrade: test.upgrade}))
			require.Equal(t, test.checked, len(s.Calls) > 0)
		})
	}
}

func TestUpgradesThatWait(t *testing.T) {
	at := noon.Add(-upgrade.DelayedAfter)
	u := func(phase string, at *time.Time) *status.Upgrade {
		return &status.Upgrade{Phase: phase, To: "r2", Origin: "At", At: at, Message: "before"}
	}
	t.Run("keeps an execution that waits, and forgets one that is over", func(t *testing.T) {
		for running, kept := range map[bool]string{true: "x", false: ""} {
			theirs := u(status.UpgradeScheduled, &at)
			theirs.Execution = "y"
			mine := u(status.UpgradeScheduled, &at)
			mine.Execution = "x"
			s := &sweeptest.Account{Runs: running, Recorded: status.Status{Upgrade: theirs, NextUpgrade: mine}}
			r := &auditRun{Audit: auditOf(s), now: noon}
			waits, err := r.hasWaiter(t.Context(), demo, *mine)
			require.NoError(t, err)
			require.Equal(t, running, waits)
			require.Equal(t, []string{"y", kept}, []string{s.Recorded.Upgrade.Execution, s.Recorded.NextUpgrade.Execution})
		}
		began := u("Running", nil)
		began.Execution = "x"
		s := &sweeptest.Account{Recorded: status.Status{Upgrade: began}}
		_, err := (&auditRun{Audit: auditOf(s), now: noon}).hasWaiter(t.Context(), demo, *began)
		require.NoError(t, err)
		require.Equal(t, "x", s.Recorded.Upgrade.Execution)
		_, err = (&auditRun{Audit: auditOf(s), now: noon}).hasWaiter(t.Context(), demo, status.Upgrade{})
		require.NoError(t, err)
	})
}

func TestPendingSpecs(t *testing.T) {
	accepted, converged := condition(status.SpecAccepted, "True", "Valid"), condition(status.Converged, "False", "StackFailed")
	s := func(change func(*status.Status)) *status.Status {
		s := &status.Status{
			Phase: status.Failed, ObservedVersion: "v2", PlannedVersion: "v1", Conditions: []status.Condition{accepted, converged},
		}
		change(s)
		return s
	}
	because := func(reason string) func(*status.Status) {
		return func(s *status.Status) {
			s.Phase, s.PlannedVersion = status.Stopped, ""
			s.Conditions[1].Reason = reason
		}
	}
	for name, test := range map[string]struct {
		status                               *status.Status
		wantSpecPending, wantDeletionPending bool
	}{
		"failed": {status: s(func(*status.Status) {}), wantSpecPending: true, wantDeletionPending: true},
		"failed before": {
			status: s(func(s *status.Status) { s.Conditions = s.Conditions[:1] }), wantSpecPending: true, wantDeletionPending: true,
		},
		"stopped by an operator": {status: s(func(s *status.Status) { s.Conditions[1].Reason = status.ReasonExecutionEnded })},
		"converging":             {status: s(func(s *status.Status) { s.Phase = status.Converging })},
		"acted on":               {status: s(func(s *status.Status) { s.PlannedVersion = "v2" }), wantDeletionPending: true},
		"without a spec":         {status: s(func(s *status.Status) { s.ObservedVersion = "" }), wantDeletionPending: true},
		"with a bad spec":        {status: s(func(s *status.Status) { s.Conditions[0].Status = "False" }), wantDeletionPending: true},
		"never judged":           {status: s(func(s *status.Status) { s.Conditions = nil }), wantDeletionPending: true},
		"protected":              {status: s(because(status.ReasonDeletionProtected)), wantSpecPending: true},
		"never there":            {status: s(because(status.ReasonSpecAbsent)), wantSpecPending: true},
		"refused":                {status: s(because(status.ReasonChangeRefused)), wantSpecPending: true, wantDeletionPending: true},
		"failed to be deleted":   {status: s(func(s *status.Status) { s.PlannedVersion = "" }), wantSpecPending: true},
		"stopped for no reason": {status: s(func(s *status.Status) {
			s.Phase, s.PlannedVersion, s.Conditions = status.Stopped, "", s.Conditions[:1]
		}), wantSpecPending: true},
	} {
		require.Equal(t, test.wantSpecPending, specPending(test.status), name)
		require.Equal(t, test.wantDeletionPending, deletionPending(test.status), name)
	}
}

// The execution that deleted the cluster ended without a report. A spec was accepted, then an invalid one was uploaded, and deleted. No
// execution has seen that.
func TestDeletionIsPendingAfterAnUnreportedOne(t *testing.T) {
	s := status.Status{Phase: status.Deleting, Execution: "x"}
	s.FailUnreported("demo", "x", noon)
	require.False(t, deletionPending(&s), "the deletion has retries of its own")
	s.AcceptSpec(status.Upload{Version: "v1"}, api.SpecWarnings{}, false, noon)
	s.RejectSpec("v2", status.ReasonSpecInvalid, "it has no pools", noon)
	s.WithdrawSpec("it was deleted", noon)
	require.Equal(t, status.Stopped, s.Phase)
	require.Equal(t, status.ReasonExecutionEnded, s.Condition(status.Converged).Reason)
	require.True(t, deletionPending(&s))
}

func TestAuditStartsOverdueUpgrades(t *testing.T) {
	at := noon.Add(-period)
	for name, test := range map[string]struct {
		phase    status.Phase
		accepted string
		due      bool
		want     []string
	}{
		"of a cluster that is ready": {status.Ready, "True", false, []string{"start: upgrade-not-begun 2026-11-26T12:00:00Z"}},
		"of a cluster that waits for one": {
			status.Upgrading, "True", false, []string{"start: upgrade-not-begun 2026-11-26T12:00:00Z"},
		},
		"not of one that stopped":               {status.Stopped, "True", false, nil},
		"not of one whose spec is not accepted": {status.Ready, "False", false, nil},
		"not of one that a sweep starts":        {status.Ready, "True", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditFixture{status: &status.Status{
				Phase: test.phase, Conditions: []status.Condition{condition(status.SpecAccepted, test.accepted, "x")},
				Upgrade: &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", Origin: "At", At: &at},
			}}
			r := a.run()
			r.due = map[string]bool{demo: test.due}
			_, err := r.checkUpgrades(t.Context(), demo, a.status)
			require.NoError(t, err)
			require.Equal(t, test.want, a.calls)
		})
	}
	t.Run("not before it is late", func(t *testing.T) {
		soon := noon.Add(-period + 1)
		missed := status.Upgrade{Phase: status.UpgradeMissed, At: &at}
		for _, u := range []status.Upgrade{
			{Phase: status.UpgradeScheduled, At: &soon}, {Phase: status.UpgradeScheduled}, missed, {Phase: "Done", At: &at},
		} {
			require.False(t, (&auditFixture{}).run().isUpgradeOverdue(&u), u.Phase)
		}
		require.False(t, (&auditFixture{}).run().isUpgradeOverdue(nil))
		require.False(t, work.UpgradeInFlight(&status.Upgrade{Phase: "Running"}), "its execution is unknown")
	})
}

func TestSweepInspectsChangedClusters(t *testing.T) {
	inspect := func(clusters ...string) (dues []store.Due) {
		for _, cluster := range clusters {
			dues = append(dues, store.Due{Cluster: cluster, Inspect: true})
		}
		return dues
	}
	for name, test := range map[string]struct {
		dues    []store.Due
		failing map[string]error
		want    []string
	}{
		"those alone": {inspect("b"), nil, []string{"read b", "done inspecting b"}},
		"after what is due": {
			append([]store.Due{due("a", time.Minute)}, inspect("b")...), nil,
			[]string{"start a 11:59", "done a 11:59", "read b", "done inspecting b"},
		},
		"none without requests": {nil, map[string]error{}, nil},
		"each, and leaves what fails to the next audit": {
			inspect("a", "b"), map[string]error{"read a": errThrottled, "done inspecting a": errThrottled},
			[]string{"read a", "read b", "done inspecting a", "done inspecting b"},
		},
		"fails when a request cannot be deleted": {
			inspect("b"), map[string]error{"done": errThrottled}, []string{"read b", "done inspecting b"},
		},
		"none that cannot be listed": {inspect("b"), map[string]error{"overview": errThrottled}, []string{"done inspecting b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			s.Recorded = status.Status{Phase: status.Deleted}
			a := sweeptest.Agenda{State: sweeptest.State{Account: s}, Due: test.dues}
			h := auditOfAgenda(a, "a", "b", "c")
			h.EventGrace = 2 * time.Hour // the specs are new
			if test.dues == nil {
				h.Specs = sweeptest.Specs{} // an audit would panic
				h.Snapshot = nil
			}
			err := (passes.Due{State: a, Executions: sweeptest.Executions{Account: s}, Auditor: h, Now: h.Now}).Run(t.Context())
			require.Equal(t, len(test.failing) > 0, err != nil)
			require.Equal(t, test.want, s.Calls)
		})
	}
}

func TestInspectionStartsAnOverdueUpgrade(t *testing.T) {
	at := noon.Add(-20 * time.Minute)
	for name, test := range map[string]struct {
		due  []store.Due
		want []string
	}{
		"that no sweep starts":        {nil, []string{"read a", "again a"}},
		"not one that a sweep starts": {[]store.Due{due("a", time.Minute)}, []string{"read a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{
				Recorded: status.Status{Phase: status.Ready, Upgrade: &status.Upgrade{Phase: status.UpgradeScheduled, To: "r2", At: &at}},
			}
			s.Recorded.UpdatedAt = noon.Add(time.Second) // compared by the next audit
			a := sweeptest.Agenda{State: sweeptest.State{Account: s}, Due: append(test.due, store.Due{Cluster: "a", Inspect: true})}
			require.NoError(t, auditOfAgenda(a, "a").Clusters(t.Context(), map[string]bool{"a": true}))
			require.Equal(t, test.want, s.Calls)
		})
	}
}
