package sweep_test

// Specs, and deletions of specs, that were handled while another execution held the cluster, and that this execution did not read before
// it ended.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditActsOnWhatAReportMissed(t *testing.T) {
	key := names.ClusterSpec("demo")
	newer := func(a *harness.Account) string { return a.Upload(key, harness.Spec("demo", "  tags: {team: b}\n")) }
	removed := func(a *harness.Account) string { a.Remove(key, ""); return "" }
	bad := func(a *harness.Account) string { return a.Upload(key, "kind: Cluster") }
	ready := status.Condition{Type: status.Converged, Status: "True", Reason: status.ReasonUpToDate}
	failed := status.Condition{Type: status.Converged, Status: "False", Reason: "ChangeRefused"}
	stopped := status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonExecutionEnded}
	for name, test := range map[string]struct {
		comes     func(a *harness.Account) string
		phase     status.Phase
		converged status.Condition
		// left: the audit starts nothing.
		left bool
	}{
		"a newer spec, of a cluster that was converged":     {comes: newer, phase: status.Ready, converged: ready},
		"a newer spec, of one that failed":                  {comes: newer, phase: status.Failed, converged: failed},
		"a newer spec, of one that stopped":                 {comes: newer, phase: status.Stopped, converged: failed},
		"a newer spec, of one that an operator stopped":     {comes: newer, phase: status.Failed, converged: stopped, left: true},
		"a spec that cannot be used":                        {comes: bad, phase: status.Failed, converged: failed, left: true},
		"the deletion, of a cluster that was converged":     {comes: removed, phase: status.Ready, converged: failed},
		"the deletion, of one that failed":                  {comes: removed, phase: status.Failed, converged: failed},
		"the deletion, of one that an operator stopped":     {comes: removed, phase: status.Failed, converged: stopped, left: true},
		"the deletion, of one that is being upgraded again": {comes: removed, phase: status.Upgrading, converged: failed, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, a *harness.Account) {
				before := a.Status("demo")
				losing(a, "aws.s3")
				version := test.comes(a)
				require.NoError(t, a.Functions.Sweep.Admit.Admit(t.Context(), "demo"))
				a.Settle()
				handled := a.Status("demo")
				// The status after its own execution found the cluster busy and the other one ended.
				require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
					*s = *before
					s.Phase, s.ObservedVersion, s.Conditions = test.phase, version, handled.Conditions
					s.Set(test.converged, time.Now())
				}))
				executions := converges(a)
				time.Sleep(9 * time.Minute)
				audit(t, a)
				require.Equal(t, executions, converges(a), "it may still be acted on")
				time.Sleep(15 * time.Minute)
				audit(t, a)
				s := a.Status("demo")
				if test.left {
					require.Equal(t, executions, converges(a))
					require.Equal(t, before.PlannedVersion, s.PlannedVersion)
					return
				}
				require.Equal(t, executions+1, converges(a))
				require.Equal(t, version, s.PlannedVersion)
				time.Sleep(time.Hour)
				audit(t, a)
				require.Equal(t, executions+1, converges(a), "once")
			})
		})
	}
}
