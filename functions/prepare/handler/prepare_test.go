package handler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
)

func TestGrantRoles(t *testing.T) {
	for name, refuses := range map[string]time.Duration{"at once": 0, "when the API knows the caller": time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.refuses = refuses
			took, err := w.prepare(t, false)
			require.NoError(t, err)
			require.Equal(t, refuses, took)
			require.Equal(t, 1, w.granted)
			require.Equal(t, []string{"demo"}, w.opened)
			require.Empty(t, w.objects.Keys(), "the status stays")
		})
	}
}

func TestGrantRolesTimesOut(t *testing.T) {
	for name, test := range map[string]struct {
		hangs time.Duration
		last  string
	}{
		"while the API refuses":         {0, "not yet after 1m18s"},
		"while the API does not answer": {10 * time.Second, "not yet after 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.refuses, w.hangs = time.Hour, test.hangs
			took, err := w.prepare(t, false)
			var unreachable *fault.ClusterUnreachable
			require.ErrorAs(t, err, &unreachable)
			require.ErrorContains(t, err, "preparing demo for 1m19s")
			require.ErrorContains(t, err, test.last, "the last error of the cluster itself")
			require.Equal(t, 79*time.Second, took, "the timeout")
			require.Zero(t, w.granted)
		})
	}
}

func TestOpenFailure(t *testing.T) {
	for _, listRetained := range []bool{false, true} {
		w := newWorld()
		w.openErr = errors.New("AccessDenied")
		took, err := w.prepare(t, listRetained)
		require.ErrorIs(t, err, w.openErr)
		require.Zero(t, took)
		require.Zero(t, w.granted)
	}
}

func TestListRetained(t *testing.T) {
	volumes := []string{"vol-0a", "vol-0b"}
	removed := &status.Deletion{Removed: []string{"volume vol-1"}}
	theirs := &status.Deletion{RetainListed: true, Retain: []string{"vol-0d"}}
	for name, test := range map[string]struct {
		before status.Status
		want   *status.Deletion
	}{
		"records the retained volumes": {
			status.Status{Phase: status.Deleting, Fence: 7}, &status.Deletion{RetainListed: true, Retain: volumes},
		},
		"keeps what was removed": {
			status.Status{Phase: status.Deleting, Fence: 7, Deletion: removed},
			&status.Deletion{RetainListed: true, Retain: volumes, Removed: removed.Removed},
		},
		"replaces an earlier list": {
			status.Status{Phase: status.Deleting, Fence: 6, Deletion: theirs}, &status.Deletion{RetainListed: true, Retain: volumes},
		},
		"keeps the list of a later holder":              {status.Status{Phase: status.Deleting, Fence: 8, Deletion: theirs}, theirs},
		"records nothing if the deletion was cancelled": {status.Status{Phase: status.Converging, Fence: 7}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld().set(t, test.before)
			w.volumes = volumes
			_, err := w.prepare(t, true)
			require.NoError(t, err)
			require.Equal(t, test.want, w.deletion(t))
			require.Zero(t, w.granted, "a list grants no access")
		})
	}
	t.Run("records that no volume is retained", func(t *testing.T) {
		w := newWorld().set(t, status.Status{Phase: status.Deleting, Fence: 7})
		_, err := w.prepare(t, true)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{RetainListed: true}, w.deletion(t))
	})
	t.Run("records nothing if the API does not answer", func(t *testing.T) {
		w := newWorld().set(t, status.Status{Phase: status.Deleting, Fence: 7})
		w.refuses = time.Hour
		took, err := w.prepare(t, true)
		var unreachable *fault.ClusterUnreachable
		require.ErrorAs(t, err, &unreachable)
		require.Nil(t, w.deletion(t))
		require.Zero(t, took, "the machine retries it")
	})
	t.Run("returns the error of writing the status", func(t *testing.T) {
		w := newWorld().set(t, status.Status{Phase: status.Deleting, Fence: 7})
		w.objects.Refuse("Put", "AccessDenied")
		_, err := w.prepare(t, true)
		require.Equal(t, "AccessDenied", fault.Code(err))
	})
}
