package store_test

// The conditions of what is recorded of uploads that drover does not read, and of requests to inspect a cluster.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

// uploads is the specs bucket: each listing is the next of these, the last one again and again.
type uploads struct {
	listings [][]string
	err      error
	lists    int
}

func (u *uploads) List(context.Context, string) ([]store.Entry, error) {
	keys := u.listings[min(u.lists, len(u.listings)-1)]
	u.lists++
	var entries []store.Entry
	for _, key := range keys {
		entries = append(entries, store.Entry{Key: key})
	}
	return entries, u.err
}

func many(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("clusters/%03d.txt", i))
	}
	return keys
}

func TestIgnoredUploadsConditions(t *testing.T) {
	throttled := errors.New("throttled")
	update := func(t *testing.T, s *store.State, keys ...string) {
		t.Helper()
		require.NoError(t, s.UpdateIgnored(t.Context(), &uploads{listings: [][]string{keys}}))
	}
	t.Run("writes nothing when all is read", func(t *testing.T) {
		m, s := state()
		update(t, s, "clusters/demo.yaml", "releases/r1.yaml", "folder/")
		require.Zero(t, m.Written())
	})
	t.Run("writes only what changed", func(t *testing.T) {
		m, s := state()
		update(t, s, "clusters/demo.yml")
		update(t, s, "clusters/demo.yml")
		require.Equal(t, 1, m.Written())
		update(t, s, "clusters/other.yml")
		require.Equal(t, 2, m.Written())
		update(t, s)
		require.Equal(t, 3, m.Written())
		require.Empty(t, m.Unconditional())
		ignored, err := s.IgnoredUploads(t.Context())
		require.NoError(t, err)
		require.Empty(t, ignored.Uploads)
	})
	t.Run("counts those that it does not list", func(t *testing.T) {
		m, s := state()
		update(t, s, many(101)...)
		update(t, s, many(102)...)
		require.Equal(t, 2, m.Written())
		ignored, err := s.IgnoredUploads(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, ignored.More)
	})
	t.Run("notifies before it writes", func(t *testing.T) {
		m, s, n := notifyingState()
		var before, after []status.IgnoredUpload
		n.ignored = func(b, a []status.IgnoredUpload) error {
			before, after = b, a
			return nil
		}
		update(t, s, "clusters/demo.yml")
		require.Empty(t, before)
		require.Len(t, after, 1)
		update(t, s)
		require.Len(t, before, 1)
		require.Empty(t, after)
		n.ignored = func([]status.IgnoredUpload, []status.IgnoredUpload) error { return throttled }
		require.ErrorIs(t, s.UpdateIgnored(t.Context(), &uploads{listings: [][]string{{"a"}}}), throttled)
		require.Equal(t, 2, m.Written())
	})
	t.Run("lists again when another wrote first", func(t *testing.T) {
		m, s := state()
		update(t, s, "clusters/first.yml")
		m.Once("Put", func(key string) { m.Upload(key, `{"uploads":[{"key":"clusters/theirs.yml"}]}`) })
		u := &uploads{listings: [][]string{{"clusters/older.yml"}, {"clusters/newer.yml"}}}
		require.NoError(t, s.UpdateIgnored(t.Context(), u))
		require.Equal(t, 2, u.lists)
		ignored, err := s.IgnoredUploads(t.Context())
		require.NoError(t, err)
		require.Equal(t, "clusters/newer.yml", ignored.Uploads[0].Key)
	})
	t.Run("ends after eight tries", func(t *testing.T) {
		m, s := state()
		calls := m.Refuse("Put", "ConditionalRequestConflict")
		err := s.UpdateIgnored(t.Context(), &uploads{listings: [][]string{{"a"}}})
		var transient *fault.Transient
		require.ErrorAs(t, err, &transient)
		require.Equal(t, 8, *calls)
	})
	t.Run("fails with S3", func(t *testing.T) {
		m, s := state()
		require.ErrorIs(t, s.UpdateIgnored(t.Context(), &uploads{listings: [][]string{{"a"}}, err: throttled}), throttled)
		u := &uploads{listings: [][]string{{"a"}}}
		calls := m.Refuse("Put", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.UpdateIgnored(t.Context(), u)))
		require.Equal(t, 1, *calls)
		m.Refuse("Get", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.UpdateIgnored(t.Context(), u)))
		require.Equal(t, 1, u.lists, "what is recorded is read before the listing")
		_, err := s.IgnoredUploads(t.Context())
		require.Equal(t, "AccessDenied", fault.Code(err))
		require.Zero(t, m.Written())
	})
	t.Run("reads none where none is recorded", func(t *testing.T) {
		_, s := state()
		ignored, err := s.IgnoredUploads(t.Context())
		require.NoError(t, err)
		require.Empty(t, ignored)
	})
}

func TestInspectionConditions(t *testing.T) {
	m, seconds := storetest.NewBucket("state"), int64(1000)
	s := store.NewState(m, store.Silent, func() time.Time {
		seconds++
		return time.Unix(seconds, 0)
	})
	list := func() store.Due {
		dues, err := s.Dues(t.Context(), time.Unix(0, 0))
		require.NoError(t, err)
		require.Len(t, dues, 1)
		require.Equal(t, "demo", dues[0].Cluster)
		require.True(t, dues[0].Inspect)
		require.Zero(t, dues[0].At)
		return dues[0]
	}
	require.NoError(t, s.RequestInspection(t.Context(), "demo", "stack network"))
	first := list()
	require.NoError(t, s.RequestInspection(t.Context(), "demo", "stack network"))
	require.NoError(t, s.Done(t.Context(), first))
	second := list()
	require.NotEqual(t, first, second, "a later request stays")
	require.NoError(t, s.Done(t.Context(), second))
	require.Empty(t, m.Keys())

	t.Run("are forgotten with their cluster, and no other's", func(t *testing.T) {
		for _, cluster := range []string{"demo", "other"} {
			require.NoError(t, s.RequestInspection(t.Context(), cluster, "x"))
			_, err := s.PutUpgrade(t.Context(), cluster, &upgrade.Record{State: upgrade.Done}, "")
			require.NoError(t, err)
		}
		kept := names.RollsOf("demo") + ".old"
		m.Upload(kept, "")
		require.NoError(t, s.DeletePendingWork(t.Context(), "demo"))
		require.ElementsMatch(t, []string{names.Inspection("other"), names.Upgrade("other"), kept}, m.Keys())
	})
	t.Run("fail with S3", func(t *testing.T) {
		m.Refuse("List", "AccessDenied")
		_, err := s.Dues(t.Context(), time.Unix(0, 0))
		require.Equal(t, "AccessDenied", fault.Code(err))
		m.Refuse("Put", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.RequestInspection(t.Context(), "demo", "x")))
		m.Refuse("Get", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.AddRolls(t.Context(), "demo", nil, time.Unix(0, 0))))
	})
	t.Run("fail with S3 when their cluster is forgotten", func(t *testing.T) {
		m.OnCall = func(call storetest.Call) error {
			if call.Operation == "Delete" && call.Key == names.Inspection("other") {
				return storetest.Refusal("AccessDenied")
			}
			return nil
		}
		require.Equal(t, "AccessDenied", fault.Code(s.DeletePendingWork(t.Context(), "other")))
	})
}
