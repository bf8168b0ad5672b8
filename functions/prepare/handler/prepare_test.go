package handler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
)

// world is a fake of a cluster, which accepts drover's roles after some time, and of the cluster's status.
type world struct {
	start   time.Time
	openErr error
	// refuses is how long the API does not know the caller.
	refuses time.Duration
	// granted counts the grants.
	granted int
	volumes []string
	status  status.Status
}

func (w *world) Open(context.Context, string) (Cluster, error) {
	if w.openErr != nil {
		return nil, w.openErr
	}
	return w, nil
}

// refusal is the error of a call to the API.
func (w *world) refusal() error {
	if time.Since(w.start) < w.refuses {
		return &fault.ClusterUnreachable{Cause: errors.New("not yet")}
	}
	return nil
}

func (w *world) GrantRoles(context.Context) error {
	if err := w.refusal(); err != nil {
		return err
	}
	w.granted++
	return nil
}

func (w *world) RetainedVolumes(context.Context) ([]string, error) { return w.volumes, w.refusal() }

func (w *world) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&w.status)
	return nil
}

// prepare runs the function in virtual time, and returns how long it took.
func (w *world) prepare(t *testing.T, survey bool) (took time.Duration, err error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		w.start = time.Now()
		h := &Handler{Clusters: w, State: w, Timeout: 80 * time.Second, Pause: 2 * time.Second}
		_, err = h.Handle(t.Context(), events.PrepareRequest{Cluster: "demo", Survey: survey, Fence: 7})
		took = time.Since(w.start)
	})
	return took, err
}

func TestGrantRoles(t *testing.T) {
	w := &world{}
	took, err := w.prepare(t, false)
	require.NoError(t, err)
	require.Zero(t, took)
	require.Equal(t, 1, w.granted)
}

func TestGrantRolesWaitsForAccess(t *testing.T) {
	w := &world{refuses: time.Minute}
	took, err := w.prepare(t, false)
	require.NoError(t, err)
	require.Equal(t, time.Minute, took)
	require.Equal(t, 1, w.granted)
}

func TestGrantRolesTimesOut(t *testing.T) {
	w := &world{refuses: time.Hour}
	took, err := w.prepare(t, false)
	var unreachable *fault.ClusterUnreachable
	require.ErrorAs(t, err, &unreachable)
	require.ErrorContains(t, err, "preparing demo for 1m20s")
	require.ErrorContains(t, err, "not yet")
	require.Equal(t, 80*time.Second, took, "the timeout")
}

func TestOpenFailure(t *testing.T) {
	w := &world{openErr: errors.New("AccessDenied")}
	took, err := w.prepare(t, false)
	require.ErrorIs(t, err, w.openErr)
	require.Zero(t, took)
}

func TestSurvey(t *testing.T) {
	volumes := []string{"vol-0a", "vol-0b"}
	t.Run("records the retained volumes", func(t *testing.T) {
		w := &world{
			volumes: volumes, status: status.Status{Phase: status.Deleting, Fence: 7, Deletion: &status.Deletion{Removed: []string{"volume vol-1"}}},
		}
		_, err := w.prepare(t, true)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{
			Surveyed: true, Retain: []string{"vol-0a", "vol-0b"}, Removed: []string{"volume vol-1"},
		}, w.status.Deletion)
		require.Zero(t, w.granted, "a survey grants nothing")
	})
	t.Run("keeps the survey of a later holder", func(t *testing.T) {
		theirs := &status.Deletion{Surveyed: true, Retain: []string{"vol-0d"}}
		w := &world{volumes: volumes, status: status.Status{Phase: status.Deleting, Fence: 8, Deletion: theirs}}
		_, err := w.prepare(t, true)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{Surveyed: true, Retain: []string{"vol-0d"}}, w.status.Deletion)
	})
	t.Run("records nothing if the deletion was cancelled", func(t *testing.T) {
		w := &world{volumes: volumes, status: status.Status{Phase: status.Converging}}
		_, err := w.prepare(t, true)
		require.NoError(t, err)
		require.Nil(t, w.status.Deletion)
	})
	t.Run("records nothing if the API does not answer", func(t *testing.T) {
		w := &world{refuses: time.Hour, status: status.Status{Phase: status.Deleting}}
		_, err := w.prepare(t, true)
		var unreachable *fault.ClusterUnreachable
		require.ErrorAs(t, err, &unreachable)
		require.Nil(t, w.status.Deletion)
	})
}
