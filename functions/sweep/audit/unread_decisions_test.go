package audit

// When the audit lists the whole specs bucket.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/store"
)

func (s sweptState) UpdateUnread(context.Context, store.Lister) error { return s.did("list uploads") }

func TestAuditListsUploads(t *testing.T) {
	s := &swept{failing: map[string]error{"list": errThrottled}}
	now := noon
	unread := Unread{State: sweptState{swept: s}, Cache: &UnreadCache{}, Now: func() time.Time { return now }}
	lists := func() int {
		s.calls = nil
		require.ErrorIs(t, unread.Run(t.Context()), s.failing["list"])
		return len(s.calls)
	}
	require.Equal(t, 1, lists())
	require.Equal(t, 1, lists(), "one that failed is repeated")
	s.failing = nil
	require.Equal(t, 1, lists())
	require.Zero(t, lists())
	now = now.Add(unreadPeriod - 1)
	require.Zero(t, lists())
	now = now.Add(1)
	require.Equal(t, 1, lists())
}
