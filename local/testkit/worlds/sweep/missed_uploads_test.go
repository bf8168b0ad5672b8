package sweep_test

// Uploads whose event was lost, and whose cluster's status was written later. The sweep takes such a status for one that includes them.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditFindsUploadMissingFromTheStatus(t *testing.T) {
	key := names.ClusterSpec("demo")
	same, large := harness.Spec("demo", ""), strings.Repeat("#", api.MaxFile+1)
	for name, upload := range map[string]func(t *testing.T, a *harness.Account) (version string){
		"of the same bytes": func(_ *testing.T, a *harness.Account) string { return a.Upload(key, same) },
		"of another spec": func(_ *testing.T, a *harness.Account) string {
			return a.Upload(key, harness.Spec("demo", "  tags: {team: b}\n"))
		},
		"of one that is too large": func(_ *testing.T, a *harness.Account) string { return a.Upload(key, large) },
		"after one that was too large": func(t *testing.T, a *harness.Account) string {
			a.Upload(key, large)
			require.NoError(t, a.Functions.Sweep.Admit.Admit(t.Context(), "demo"))
			return a.Upload(key, same)
		},
		"of the same bytes in the second of another that an audit has read": func(t *testing.T, a *harness.Account) string {
			a.Upload(key, same)
			require.NoError(t, a.AuditNow())
			require.NoError(t, a.Functions.Sweep.Admit.Admit(t.Context(), "demo"))
			return a.Upload(key, same)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, a *harness.Account) {
				a.Functions.Sweep.EventGrace = 2 * time.Minute
				losing(a, "aws.s3")
				version := upload(t, a)
				a.Settle()
				before, planned := converges(a), a.Status("demo").PlannedVersion
				time.Sleep(time.Minute)
				require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
					s.Set(status.Condition{Type: status.InSync, Status: "True", Reason: status.ReasonInSync}, time.Now())
				}))
				audit(t, a)
				require.NotEqual(t, version, a.Status("demo").ObservedVersion, "its event may still come")
				time.Sleep(10 * time.Minute)
				require.Zero(t, countAdmitted(t, a), "the status is newer")
				audit(t, a)
				s := a.Status("demo")
				require.Equal(t, version, s.ObservedVersion)
				require.Equal(t, status.Ready, s.Phase, s.Message)
				if s.Condition(status.SpecAccepted).Status == "True" {
					require.Equal(t, version, s.PlannedVersion)
				}
				if s.PlannedVersion != planned {
					before++
				}
				require.Equal(t, before, converges(a))

				// The upload is handled now. The next audit clears what the first one found about a pending spec.
				time.Sleep(15 * time.Minute)
				audit(t, a)
				s, mark := a.Status("demo"), a.Calls.Mark()
				audit(t, a)
				require.NoError(t, a.SweepNow())
				for _, call := range a.Calls.Since(mark) {
					require.False(t, call.Mutating, "%s %s", call.Action, call.Resource)
				}
				require.Equal(t, s, a.Status("demo"))
			})
		})
	}
}

// A spec that was just uploaded is not drift. The audit sends no notice and starts no second execution.
func TestAuditLeavesAnAdmittedSpecAlone(t *testing.T) {
	bubble(t, func(t *testing.T, a *harness.Account) {
		a.Functions.Sweep.EventGrace = 2 * time.Minute
		a.Events.Decide(func(e harness.Event) harness.Fate {
			if e.Source == "aws.s3" {
				return harness.Held
			}
			return harness.Delivered
		})
		for _, spec := range []string{"  tags: {team: b}\n", "  upgrade: {window: {start: \"01:00\", duration: 1h}}\n"} {
			before, notices, mark := converges(a), len(a.Notices()), a.Calls.Mark()
			a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", spec))
			time.Sleep(3 * time.Second)
			audit(t, a)
			require.Equal(t, before, converges(a))
			require.Len(t, a.Notices(), notices)
			for _, call := range a.Calls.Since(mark)[1:] {
				require.False(t, call.Mutating, "%s %s", call.Action, call.Resource)
			}
			held := a.Events.Held()
			a.Events.Deliver(held[len(held)-1])
			a.Settle()
			require.Equal(t, before+1, converges(a))
			require.Equal(t, status.Ready, a.Status("demo").Phase)
			time.Sleep(time.Minute)
			audit(t, a)
			require.Nil(t, a.Status("demo").Condition(status.InSync), "no audit found drift")
		}
	})
}
