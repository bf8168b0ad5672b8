package passes

// What a sweep does about clusters whose specs are deleted: those whose event was lost, and those whose statuses are old.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// documents are the statuses of clusters, by name.
type documents struct {
	sweeptest.State
	of map[string]status.Status
}

func (d documents) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	if err := d.Did("read %s", cluster); err != nil {
		return nil, err
	}
	s, found := d.of[cluster]
	if !found {
		return nil, store.ErrNotFound
	}
	return &status.Cluster{Status: s}, nil
}

func (d documents) DeleteIf(_ context.Context, key, etag string) error {
	return d.Did("delete %s %s", key, etag)
}

func statusOf(cluster, etag string, age time.Duration) store.Entry {
	return store.Entry{Key: names.Status(cluster), ETag: etag, Modified: noon.Add(-age)}
}

func TestSweepForgetsDeletedClusters(t *testing.T) {
	protected := status.Status{Phase: status.Stopped}
	protected.Set(condition(status.Converged, "False", status.ReasonDeletionProtected), noon)
	for name, test := range map[string]struct {
		status status.Status
		want   bool
	}{
		"deleted":                  {status.Status{Phase: status.Deleted, Fence: 3, PlannedVersion: "v1"}, true},
		"never there":              {status.Status{Phase: status.Stopped}, true},
		"protected":                {protected, false},
		"that had an execution":    {status.Status{Phase: status.Stopped, Fence: 1}, false},
		"that has stacks":          {status.Status{Phase: status.Stopped, Stacks: []status.Stack{{Name: names.Network}}}, false},
		"with a spec":              {status.Status{Phase: status.Stopped, ObservedVersion: "v1"}, false},
		"with a spec once":         {status.Status{Phase: status.Stopped, PlannedVersion: "v1"}, false},
		"that failed":              {status.Status{Phase: status.Failed}, false},
		"that waits to be planned": {status.Status{Phase: status.Pending}, false},
	} {
		require.Equal(t, test.want, isDeleted(&test.status), name)
	}
	prune := func(t *testing.T, of map[string]status.Status, failing map[string]error, entries ...store.Entry) (MissedSpecs,
		*sweeptest.Account, error) {
		t.Helper()
		s := &sweeptest.Account{Failing: failing}
		h := depsOf(s).missedSpecs()
		h.State = documents{sweeptest.State{Account: s}, of}
		return h, s, h.prune(t.Context(), entries)
	}
	deleted := map[string]status.Status{"a": {Phase: status.Deleted}, "b": {Phase: status.Deleted}}
	t.Run("after 30 days, as they were listed", func(t *testing.T) {
		_, s, err := prune(t, deleted, nil, statusOf("a", "1", retention), statusOf("b", "2", retention-1))
		require.NoError(t, err)
		require.Equal(t, []string{"read a", "delete status/clusters/a.json 1"}, s.Calls)
	})
	t.Run("each, whatever fails for another", func(t *testing.T) {
		_, s, err := prune(t, deleted, map[string]error{"read a": errThrottled}, statusOf("a", "1", retention), statusOf("b", "2", retention))
		require.ErrorIs(t, err, errThrottled)
		require.Equal(t, []string{"read a", "read b", "delete status/clusters/b.json 2"}, s.Calls)
		_, s, err = prune(t, deleted, map[string]error{"delete": errThrottled}, statusOf("a", "1", retention), statusOf("b", "2", retention))
		require.ErrorIs(t, err, errThrottled)
		require.Len(t, s.Calls, 4)
	})
	t.Run("not those whose status is deleted already", func(t *testing.T) {
		_, s, err := prune(t, nil, nil, statusOf("a", "1", retention))
		require.NoError(t, err)
		require.Equal(t, []string{"read a"}, s.Calls)
	})
	t.Run("reads what stays once, until it is written", func(t *testing.T) {
		h, s, err := prune(t, map[string]status.Status{"a": protected}, nil, statusOf("a", "1", retention))
		require.NoError(t, err)
		again := func(entries ...store.Entry) []string {
			s.Calls = nil
			require.NoError(t, h.prune(t.Context(), entries))
			return s.Calls
		}
		require.Empty(t, again(statusOf("a", "1", retention)))
		require.Empty(t, again(statusOf("a", "1", retention)))
		require.Equal(t, []string{"read a"}, again(statusOf("a", "2", retention)))
		require.Empty(t, again())
		require.Equal(t, []string{"read a"}, again(statusOf("a", "2", retention)), "what was not listed is not remembered")
		require.Equal(t, []string{"read a"}, again(statusOf("a", "", retention)))
		require.Equal(t, []string{"read a"}, again(statusOf("a", "", retention)), "an absent ETag says nothing")
	})
}

func TestSweepAdmitsDeletions(t *testing.T) {
	for name, test := range map[string]struct {
		status  *status.Status
		failing map[string]error
		want    []string
		// known: the status is not read again until it is written.
		known bool
	}{
		"that are observed and not planned": {&status.Status{PlannedVersion: "v1"}, nil, []string{"read a", "admit a"}, true},
		"whose event was lost": {
			&status.Status{ObservedVersion: "v1", PlannedVersion: "v1"}, nil, []string{"read a", "admit a"}, false,
		},
		"of a spec that was never planned": {&status.Status{ObservedVersion: "v1"}, nil, []string{"read a", "admit a"}, false},
		"not those that are planned":       {&status.Status{}, nil, []string{"read a"}, true},
		"not those without a status":       {nil, nil, []string{"read a"}, false},
		"not those whose status cannot be read": {
			&status.Status{ObservedVersion: "v1"}, map[string]error{"read": errThrottled}, []string{"read a"}, false,
		},
		"again when that failed": {
			&status.Status{PlannedVersion: "v1"}, map[string]error{"admit": errThrottled}, []string{"read a", "admit a"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			h := depsOf(s).missedSpecs()
			of := map[string]status.Status{}
			if test.status != nil {
				of["a"] = *test.status
			}
			h.State, h.Admit = documents{sweeptest.State{Account: s}, of}, s
			require.Equal(t, test.failing != nil, h.admitDeleted(t.Context(), []store.Entry{statusOf("a", "1", 0)}) != nil)
			require.Equal(t, test.want, s.Calls)
			again := func(etag string) bool {
				s.Calls = nil
				err := h.admitDeleted(t.Context(), []store.Entry{statusOf("a", etag, 0)})
				require.Equal(t, test.failing != nil, err != nil)
				return len(s.Calls) > 0
			}
			require.Equal(t, !test.known, again("1"))
			require.True(t, again("2"))
			require.True(t, again("1"), "a listing without it forgets it")
			require.True(t, again(""))
			require.True(t, again(""), "an absent ETag says nothing")
		})
	}
}
