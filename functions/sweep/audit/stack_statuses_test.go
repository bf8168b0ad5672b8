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
			status.Stack{Status: "UPDATE_IN_PROGRESS", Reason: "before", Delay: waits}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_COMPLETE", Since: noon, ReportedAt: noon, Delay: waits}, true,
		},
		"that were deleted outside drover": {
			status.Stack{Status: "CREATE_COMPLETE"}, "", nil,
			status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, true,
		},
		"not as deleted outside drover when they were being deleted": {
			status.Stack{Status: "DELETE_IN_PROGRESS"}, "", nil, status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon}, true,
		},
		"as deleted outside drover when that began so": {
			status.Stack{Status: "DELETE_IN_PROGRESS", External: true}, "", nil,
			status.Stack{Status: "DELETE_COMPLETE", Since: noon, ReportedAt: noon, External: true}, true,
		},
		"not as external when they exist": {
			status.Stack{Status: "DELETE_IN_PROGRESS", External: true}, "DELETE_FAILED", nil,
			status.Stack{Status: "DELETE_FAILED", Since: noon, ReportedAt: noon}, true,
		},
		"not when they are right": {
			status.Stack{Status: "UPDATE_COMPLETE", Since: early}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_COMPLETE", Since: early}, false,
		},
		"not over a newer event": {
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: late}, false,
		},
		"not over an event of the same second": {
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon}, "UPDATE_COMPLETE", nil,
			status.Stack{Status: "UPDATE_IN_PROGRESS", ReportedAt: noon}, false,
		},
		"not over an event that arrives first": {
			status.Stack{Status: "UPDATE_COMPLETE"}, "UPDATE_IN_PROGRESS",
			func(s *status.Status) {
				s.Stacks[0] = status.Stack{Name: names.Addons, Status: "UPDATE_FAILED", ReportedAt: late}
			},
			status.Stack{Status: "UPDATE_FAILED", ReportedAt: late}, true,
		},
		"not over a status that is written first": {
			status.Stack{Status: "UPDATE_COMPLETE"}, "UPDATE_IN_PROGRESS", func(s *status.Status) { s.UpdatedAt = late },
			status.Stack{Status: "UPDATE_COMPLETE"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.recorded.Name, test.want.Name = names.Addons, names.Addons
			read := &status.Status{Stacks: []status.Stack{test.recorded}}
			a := &audited{status: &status.Status{Stacks: []status.Stack{test.recorded}}, during: test.during}
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
