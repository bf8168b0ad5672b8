package audit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditRecordsStatusesOfStacks(t *testing.T) {
	early, late := noon.Add(-time.Hour), noon.Add(time.Second)
	waits := &status.Delay{Message: "drains"}
	for name, test := range map[string]struct {
		recorded status.Stack
		listed   string
		during   func(*status.Status)
		want     status.Stack
		writes   bool
	}{
		"whose events were lost": {
			recorded: status.Stack{Status: "UPDATE_IN_PROGRESS", Reason: "before", Delay: waits}, listed: "UPDATE_COMPLETE",
			want: status.Stack{Status: "UPDATE_COMPLETE", Since: noon, ReportedAt: noon, Delay: waits}, writes: true,
		},
		"that were deleted outside drover": {
			recorded: status.Stack{Status: "CREATE_COMPLETE"},
			want:     status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, writes: true,
		},
		"not as deleted outside drover when they were being deleted": {
			recorded: status.Stack{Status: "DELETE_IN_PROGRESS"}, want: status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon},
			writes: true,
		},
		"as deleted outside drover when that began so": {
			recorded: status.Stack{Status: "DELETE_IN_PROGRESS", External: true},
			want:     status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, writes: true,
		},
		"not as external when they exist": {
			recorded: status.Stack{Status: "DELETE_IN_PROGRESS", External: true}, listed: "DELETE_FAILED",
			want: status.Stack{Status: "DELETE_FAILED", Since: noon, ReportedAt: noon}, writes: true,
		},
		"not when they are right": {
			recorded: status.Stack{Status: "UPDATE_COMPLETE", Since: early}, listed: "UPDATE_COMPLETE",
			want: status.Stack{Status: "UPDATE_COMPLETE", Since: early},
		},
		"not over a newer event": {
			recorded: status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late}, listed: "UPDATE_COMPLETE",
			want: status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late},
		},
		"not over an event of the same second": {
			recorded: status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon}, listed: "UPDATE_COMPLETE",
			want: status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon},
		},
		"not over an event that arrives first": {
			recorded: status.Stack{Status: "UPDATE_COMPLETE"}, listed: "UPDATE_IN_PROGRESS",
			during: func(s *status.Status) {
				s.Stacks[0] = status.Stack{Name: names.Addons, Status: "UPDATE_FAILED", ReportedAt: late}
			},
			want: status.Stack{Status: "UPDATE_FAILED", ReportedAt: late}, writes: true,
		},
		"not over a status that is written first": {
			recorded: status.Stack{Status: "UPDATE_COMPLETE"}, listed: "UPDATE_IN_PROGRESS", during: func(s *status.Status) { s.UpdatedAt = late },
			want: status.Stack{Status: "UPDATE_COMPLETE"}, writes: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.recorded.Name, test.want.Name = names.Addons, names.Addons
			read := &status.Status{Stacks: []status.Stack{test.recorded}}
			a := &auditFixture{status: &status.Status{Stacks: []status.Stack{test.recorded}}, during: test.during}
			r := a.run()
			if test.listed != "" {
				r.stacks = map[string]map[string]stack.Deployed{demo: {names.Addons: {Status: test.listed}}}
			}
			require.NoError(t, r.syncStatuses(t.Context(), demo, read))
			require.Equal(t, test.want, a.status.Stacks[0])
			require.Equal(t, test.writes, len(a.calls) > 0)
		})
	}
}
