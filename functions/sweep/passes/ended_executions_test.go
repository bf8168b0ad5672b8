package passes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestSweepReportsExecutionsThatEnded(t *testing.T) {
	for name, test := range map[string]struct {
		given    func(*sweeptest.Account)
		reported bool
		err      error
		want     []string
	}{
		"of a cluster that converged": {func(*sweeptest.Account) {}, true, nil, []string{"write demo", "release demo x"}},
		"of a cluster that was deleted": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Deleting
		}, true, nil, []string{"write demo", "release demo x"}},
		"but not over a report": {func(s *sweeptest.Account) {
			s.Recorded.Phase = status.Ready
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not over another execution": {func(s *sweeptest.Account) {
			s.Recorded.Execution = "y"
		}, false, nil, []string{"write demo", "release demo x"}},
		"but not while it runs":           {func(s *sweeptest.Account) { s.Runs = true }, false, nil, nil},
		"but not without a lease":         {func(s *sweeptest.Account) { s.Leased = store.Lease{Fence: 3} }, false, nil, nil},
		"or fails when that is not known": {func(s *sweeptest.Account) { s.Failing["running"] = errThrottled }, false, errThrottled, nil},
		"but continues its work after a removal": {func(s *sweeptest.Account) { s.WasRemoved = true }, false, nil,
			[]string{"converge demo  x", "release demo x"}},
		"but leaves the step of an upgrade to the upgrade": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Leased.Execution = true, "machine:demo-upgrade-1-0-0"
		}, false, nil, []string{"release demo machine:demo-upgrade-1-0-0"}},
		"or keeps the lease when its work cannot continue": {func(s *sweeptest.Account) {
			s.WasRemoved, s.Failing["converge demo  x"] = true, errThrottled
		}, false, errThrottled, []string{"converge demo  x"}},
		"or keeps the lease when it cannot be reported": {func(s *sweeptest.Account) {
			s.Failing["write"] = errThrottled
		}, true, errThrottled, []string{"write demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{
				Leased: store.Lease{Execution: "x"}, Recorded: status.Status{Phase: status.Converging, Execution: "x"}, Failing: map[string]error{},
			}
			test.given(s)
			phase := s.Recorded.Phase
			require.ErrorIs(t, depsOf(s).ended().release(t.Context(), demo), test.err)
			require.Equal(t, test.want, s.Calls)
			require.Equal(t, test.reported, s.Recorded.Phase == status.Failed && phase != s.Recorded.Phase)
		})
	}
	t.Run("of each cluster, whatever fails for another", func(t *testing.T) {
		s := &sweeptest.Account{
			HeldClusters: []string{"a", "b"}, Leased: store.Lease{Execution: "x"}, Failing: map[string]error{"write a": errThrottled},
		}
		require.ErrorIs(t, depsOf(s).ended().Run(t.Context()), errThrottled)
		require.Equal(t, []string{"write a", "write b", "release b x"}, s.Calls)
	})
}
