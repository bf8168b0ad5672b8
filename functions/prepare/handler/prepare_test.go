package handler

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/status"
)

// world is a fake of a cluster's API, which accepts drover's roles after some time, and of the cluster's status.
type world struct {
	start   time.Time
	openErr error
	// refuses is how long the API does not know the caller.
	refuses time.Duration
	// applied has the objects that were sent, by path.
	applied map[string]map[string]any
	volumes string
	status  status.Status
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case time.Since(w.start) < w.refuses:
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not yet"}`)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/persistentvolumes"):
		_, _ = io.WriteString(rw, `{"kind":"PersistentVolumeList","apiVersion":"v1","items":[`+w.volumes+`]}`)
	case r.Method == http.MethodPatch:
		var object map[string]any
		_ = json.NewDecoder(r.Body).Decode(&object)
		w.applied[r.URL.Path] = object
		_ = json.NewEncoder(rw).Encode(object)
	default:
		rw.WriteHeader(http.StatusNotFound)
	}
}

func (w *world) Open(context.Context, string) (*kube.Cluster, error) {
	if w.openErr != nil {
		return nil, w.openErr
	}
	return kube.Connect(&rest.Config{Host: "http://api", QPS: -1, Transport: inprocess.Transport(w)})
}

func (w *world) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&w.status)
	return nil
}

// prepare runs the function in virtual time, and returns how long it took.
func (w *world) prepare(t *testing.T, survey bool) (took time.Duration, err error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		w.start, w.applied = time.Now(), map[string]map[string]any{}
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
	require.NotEmpty(t, w.applied)
	for path, object := range w.applied {
		require.Contains(t, path, "/apis/rbac.authorization.k8s.io/v1/clusterrole")
		if object["kind"] != "ClusterRoleBinding" {
			require.NotEmpty(t, object["rules"], path)
			continue
		}
		role := object["roleRef"].(map[string]any)["name"]
		require.Contains(t, w.applied, "/apis/rbac.authorization.k8s.io/v1/clusterroles/"+role.(string), "the role of the binding exists")
	}
}

func TestGrantRolesWaitsForAccess(t *testing.T) {
	w := &world{refuses: time.Minute}
	took, err := w.prepare(t, false)
	require.NoError(t, err)
	require.Equal(t, time.Minute, took)
	require.NotEmpty(t, w.applied)
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
	const volumes = `
		{"metadata":{"name":"a"},"spec":{"persistentVolumeReclaimPolicy":"Retain","csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-0b"}}},
		{"metadata":{"name":"b"},"spec":{"persistentVolumeReclaimPolicy":"Delete","csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-0c"}}},
		{"metadata":{"name":"c"},"spec":{"persistentVolumeReclaimPolicy":"Retain","awsElasticBlockStore":{"volumeID":"aws://eu-west-1a/vol-0a"}}},
		{"metadata":{"name":"d"},"spec":{"persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":"/x"}}}`
	t.Run("records the retained volumes", func(t *testing.T) {
		w := &world{
			volumes: volumes, status: status.Status{Phase: status.Deleting, Fence: 7, Deletion: &status.Deletion{Removed: []string{"volume vol-1"}}},
		}
		_, err := w.prepare(t, true)
		require.NoError(t, err)
		require.Equal(t, &status.Deletion{
			Surveyed: true, Retain: []string{"vol-0a", "vol-0b"}, Removed: []string{"volume vol-1"},
		}, w.status.Deletion)
		require.Empty(t, w.applied, "a survey grants nothing")
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
