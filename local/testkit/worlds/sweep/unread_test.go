package sweep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

func TestAuditFindsUnreadUploadsWhoseEventsWereLost(t *testing.T) {
	a := harness.Start(t)
	losing(a, "aws.s3")
	a.Upload("clusters/demo.yml", harness.Spec("demo", ""))
	audit(t, a)
	unread, err := a.State().Unread(t.Context())
	require.NoError(t, err)
	require.Equal(t, []status.Unread{{Key: "clusters/demo.yml", DidYouMean: "clusters/demo.yaml"}}, unread.Uploads)
	a.Remove("clusters/demo.yml", "")
	later(a, 7*time.Hour)
	audit(t, a)
	unread, err = a.State().Unread(t.Context())
	require.NoError(t, err)
	require.Empty(t, unread.Uploads)
}
