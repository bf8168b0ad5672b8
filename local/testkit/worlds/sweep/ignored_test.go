package sweep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditFindsIgnoredUploadsWhoseEventsWereLost(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.s3")
	a.Upload("clusters/demo.yml", harness.Spec("demo", ""))
	audit(t, a)
	ignored, err := a.State().IgnoredUploads(t.Context())
	require.NoError(t, err)
	require.Equal(t, []status.IgnoredUpload{{Key: "clusters/demo.yml", DidYouMean: "clusters/demo.yaml"}}, ignored.Uploads)
	a.Remove("clusters/demo.yml", "")
	later(a, 7*time.Hour)
	audit(t, a)
	ignored, err = a.State().IgnoredUploads(t.Context())
	require.NoError(t, err)
	require.Empty(t, ignored.Uploads)
}
