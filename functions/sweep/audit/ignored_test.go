package audit

// When the audit lists the whole specs bucket.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
)

func TestAuditListsUploads(t *testing.T) {
	s := &sweeptest.Account{Failing: map[string]error{"list": errThrottled}}
	now := noon
	ignored := Ignored{State: sweeptest.State{Account: s}, Cache: &IgnoredCache{}, Now: func() time.Time { return now }}
	lists := func() int {
		s.Calls = nil
		require.ErrorIs(t, ignored.Run(t.Context()), s.Failing["list"])
		return len(s.Calls)
	}
	require.Equal(t, 1, lists())
	require.Equal(t, 1, lists(), "one that failed is repeated")
	s.Failing = nil
	require.Equal(t, 1, lists())
	require.Zero(t, lists())
	now = now.Add(unreadPeriod - 1)
	require.Zero(t, lists())
	now = now.Add(1)
	require.Equal(t, 1, lists())
}
