package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

func TestWatchOfADeletion(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cell) {
		setStatus(t, c, status.Deleted, "", "")
		require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", Upload{Before: "1"}))
		setStatus(t, c, status.Ready, "", "2")
		require.ErrorContains(t, watchStatus(t.Context(), io.Discard, c, "demo", Upload{Before: "1"}),
			"demo was not deleted: its spec was uploaded again")
		require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", Upload{"2", "1"}))
		require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", AnyUpload))
	})
}

func TestWatchIgnoresEarlierUploads(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cell) {
		setStatus(t, c, status.Failed, "the quota is used up", "1")
		time.AfterFunc(time.Minute-time.Millisecond, func() { setStatus(t, c, status.Ready, "every stack is as it should be", "2") })
		var out strings.Builder
		require.NoError(t, watchStatus(t.Context(), &out, c, "demo", Upload{"2", "1"}))
		require.Equal(t, `   0.0s  drover has not handled the upload yet
  21.0s  its event seems to be lost: the next sweep or audit finds the upload, within 20 minutes
  60.0s  demo is Ready: every stack is as it should be
`, out.String())
	})
}

func TestWatchOfAFailure(t *testing.T) {
	fails := func(t *testing.T, c *Cell, pause time.Duration) {
		setStatus(t, c, status.Failed, "the API server is down", "1")
		require.NoError(t, c.State.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			at := time.Now().Add(pause)
			s.RetryAt = &at
		}))
	}
	t.Run("continues when drover retries within minutes", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *Cell) {
			fails(t, c, time.Minute)
			time.AfterFunc(70*time.Second, func() { setStatus(t, c, status.Ready, "", "1") })
			var out strings.Builder
			require.NoError(t, watchStatus(t.Context(), &out, c, "demo", AnyUpload))
			require.Contains(t, out.String(), "demo is Failed: the API server is down")
			require.Equal(t, 1, strings.Count(out.String(), "drover retries in 1m"), out.String())
			require.Contains(t, out.String(), "demo is Ready")
		})
	})
	t.Run("ends when the next retry is a long way off, or overdue", func(t *testing.T) {
		for _, pause := range []time.Duration{15 * time.Minute, -15 * time.Minute} {
			inBubble(t, func(t *testing.T, c *Cell) {
				fails(t, c, pause)
				require.EqualError(t, watchStatus(t.Context(), io.Discard, c, "demo", AnyUpload), "demo is Failed: the API server is down")
			})
		}
	})
}

func TestWatchInterrupted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cell) {
		setStatus(t, c, status.Converging, "", "1")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.EqualError(t, watchStatus(ctx, io.Discard, c, "demo", AnyUpload),
			"you stopped watching; nothing was cancelled, and `drover status` shows the progress")
	})
}

// inBubble runs a test in virtual time, over a state bucket in memory.
func inBubble(t *testing.T, test func(t *testing.T, c *Cell)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &Cell{State: store.NewState(storetest.NewBucket("state"), store.Silent, time.Now)})
	})
}

func setStatus(t *testing.T, c *Cell, phase status.Phase, message, version string) {
	require.NoError(t, c.State.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
		s.Phase, s.Message, s.PlannedVersion, s.ObservedVersion = phase, message, version, version
	}))
}

func TestPendingChanges(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 700_000_000, time.UTC)
	s := status.Status{
		Phase:      status.Converging,
		Conditions: []status.Condition{{Type: status.Converged, Status: "False", LastTransitionTime: began}},
		Plan: []status.Change{
			{Stack: "network", Operation: "Update"}, {Stack: "addons", Operation: "Update"}, {Stack: "pool-a", Operation: "Create"},
		},
		Stacks: []status.Stack{
			{Name: "network", Since: began.Truncate(time.Second)}, // the time of an event
			{Name: "addons", Since: began.Truncate(time.Second).Add(-time.Second)},
		},
	}
	require.Equal(t, []string{"update addons", "create pool-a"}, pendingChanges(s))
	s.Phase = status.Ready
	require.Empty(t, pendingChanges(s))
}
