package passes

// What a sweep starts of what is due, and what it leaves for the next one.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestSweepStartsWhatIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		dues    []store.Due
		holders map[string]string
		failing map[string]error
		want    []string
	}{
		"once for several times, and forgets them in order": {
			[]store.Due{due("a", 2*time.Minute), due("a", time.Minute)}, nil, nil, []string{"start a 11:59", "done a 11:58", "done a 11:59"},
		},
		"not while the cluster is busy": {[]store.Due{due("a", time.Minute)}, map[string]string{"a": "x"}, nil, []string{"read a"}},
		"does not forget what it could not start": {
			[]store.Due{due("a", time.Minute), due("b", time.Minute)}, nil, map[string]error{"start a": errThrottled},
			[]string{"start a 11:59", "start b 11:59", "done b 11:59"},
		},
		"keeps the newest when an older one cannot be forgotten": {
			[]store.Due{due("a", 2*time.Minute), due("a", time.Minute)}, nil, map[string]error{"done a 11:58": errThrottled},
			[]string{"start a 11:59", "done a 11:58"},
		},
		"not when its holder is unknown": {
			[]store.Due{due("a", time.Minute), due("b", time.Minute)}, nil, map[string]error{"holder a": errThrottled},
			[]string{"start b 11:59", "done b 11:59"},
		},
		"records all that is late of a busy cluster, whatever fails": {
			[]store.Due{due("a", 31*time.Minute), due("a", time.Minute), due("b", time.Minute)}, map[string]string{"a": "x"},
			map[string]error{"write a": errThrottled}, []string{"write a", "read a", "start b 11:59", "done b 11:59"},
		},
		"nothing when that cannot be listed": {[]store.Due{due("a", time.Minute)}, nil, map[string]error{"dues": errThrottled}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			err := dueOf(sweeptest.Agenda{State: sweeptest.State{Account: s}, Due: test.dues, Holders: test.holders}).Run(t.Context())
			if test.failing == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errThrottled)
			}
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("up to a bound, which counts failures but no busy cluster", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"start c01": errThrottled}}
		a := sweeptest.Agenda{State: sweeptest.State{Account: s}, Holders: map[string]string{"c00": "x"}}
		for i := range maxStarts + 3 {
			a.Due = append(a.Due, due(fmt.Sprintf("c%02d", i), time.Minute))
		}
		require.ErrorIs(t, dueOf(a).Run(t.Context()), errThrottled)
		require.Equal(t, 1+2*maxStarts-1, len(s.Calls))
		require.Equal(t, fmt.Sprintf("done c%02d 11:59", maxStarts), s.Calls[len(s.Calls)-1])
	})
}

func TestUpgradeWhoseClusterIsBusy(t *testing.T) {
	running := status.Status{PlannedVersion: "v1", Upgrade: &status.Upgrade{Phase: "Running", Execution: "x"}}
	behind := running
	behind.NextUpgrade = &status.Upgrade{To: "r2"}
	for name, test := range map[string]struct {
		status  status.Status
		missing bool
		failing map[string]error
		want    []string
	}{
		"is planned behind the one that runs":  {running, false, nil, []string{"read a", "converge a v1 behind 2026-11-26T11:59:00Z"}},
		"once":                                 {behind, false, nil, []string{"read a"}},
		"not while the cluster only converges": {status.Status{}, false, nil, []string{"read a"}},
		"not of a cluster without a status":    {running, true, nil, nil},
		"not when its status cannot be read":   {running, false, map[string]error{"read": errThrottled}, []string{"read a"}},
		"fails when that cannot be started": {
			running, false, map[string]error{"converge": errThrottled}, []string{"read a", "converge a v1 behind 2026-11-26T11:59:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Recorded: test.status, Failing: test.failing}
			a := sweeptest.Agenda{State: sweeptest.State{Account: s}, Missing: test.missing}
			require.Equal(t, test.failing != nil, dueOf(a).recordBusy(t.Context(), due("a", time.Minute), "x") != nil)
			require.Equal(t, test.want, s.Calls)
		})
	}
	t.Run("is not planned when its lateness cannot be recorded", func(t *testing.T) {
		s := &sweeptest.Account{Recorded: running, Failing: map[string]error{"write": errThrottled}}
		require.ErrorIs(t, dueOf(sweeptest.Agenda{State: sweeptest.State{Account: s}}).recordBusy(t.Context(), due("a", time.Hour), "x"),
			errThrottled)
		require.Equal(t, []string{"write a"}, s.Calls)
	})
}
