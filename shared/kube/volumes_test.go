package kube

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/shared/fault"
)

// volumesOf returns the retained volumes of a cluster whose API answers with a status and a body.
func volumesOf(t *testing.T, code int, body string) ([]string, error) {
	c, err := Connect(&rest.Config{Host: "http://api",
		Transport: inprocess.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "GET /api/v1/persistentvolumes", r.Method+" "+r.URL.Path)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}))})
	require.NoError(t, err)
	return c.RetainedVolumes(t.Context())
}

func TestRetainedVolumes(t *testing.T) {
	t.Run("lists the EBS volumes whose policy is Retain", func(t *testing.T) {
		retained, err := volumesOf(t, http.StatusOK, `{"kind":"PersistentVolumeList","apiVersion":"v1","items":[
			{"metadata":{"name":"a"},"spec":{"persistentVolumeReclaimPolicy":"Retain","csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-0b"}}},
			{"metadata":{"name":"b"},"spec":{"persistentVolumeReclaimPolicy":"Delete","csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-0c"}}},
			{"metadata":{"name":"c"},
				"spec":{"persistentVolumeReclaimPolicy":"Retain","awsElasticBlockStore":{"volumeID":"aws://eu-west-1a/vol-0a"}}},
			{"metadata":{"name":"d"},"spec":{"persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":"/x"}}}]}`)
		require.NoError(t, err)
		require.Equal(t, []string{"vol-0a", "vol-0b"}, retained)
	})
	t.Run("reports a cluster that refuses as unreachable", func(t *testing.T) {
		_, err := volumesOf(t, http.StatusForbidden,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not yet"}`)
		var unreachable *fault.ClusterUnreachable
		require.ErrorAs(t, err, &unreachable)
		require.ErrorContains(t, err, "not yet")
	})
}
