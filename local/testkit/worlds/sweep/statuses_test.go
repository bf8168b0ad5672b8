package sweep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditRecordsLostStackStatuses(t *testing.T) {
	a := harness.Start(t)
	a.Cluster("demo", "")
	set := func(is string) {
		require.NoError(t, a.State().UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			for i := range s.Stacks {
				if s.Stacks[i].Name == names.Network {
					s.Stacks[i].Status, s.Stacks[i].ReportedAt = is, time.Now().Add(-time.Minute).UTC() // the audit keeps reports of the current second
				}
			}
		}))
	}
	is := func() string {
		for _, stack := range a.Status("demo").Stacks {
			if stack.Name == names.Network {
				return stack.Status
			}
		}
		return ""
	}
	set("UPDATE_IN_PROGRESS") // the event of its end was lost
	audit(t, a)
	require.Equal(t, "CREATE_COMPLETE", is())
	before := a.Status("demo").UpdatedAt
	audit(t, a)
	require.Equal(t, before, a.Status("demo").UpdatedAt, "an equal status causes no write")
}
