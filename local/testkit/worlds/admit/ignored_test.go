package admit_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// An upload that drover does not read is recorded and notified once. Deleting the object deletes the record.
func TestIgnoredUploads(t *testing.T) {
	a := start(t)
	ignored := func() []status.IgnoredUpload {
		a.Settle()
		document, err := a.State().IgnoredUploads(t.Context())
		require.NoError(t, err)
		return document.Uploads
	}
	notices := func() (n int) {
		for _, notice := range a.Notices() {
			if strings.Contains(notice, "is not read") {
				n++
			}
		}
		return n
	}
	for _, key := range []string{"clusters/x.yml", "clusters/a/x.yaml", "cluster/x.yaml", "releases/r1.yml", "README.md"} {
		a.Upload(key, "kind: Cluster")
	}
	require.Equal(t, []status.IgnoredUpload{
		{Key: "README.md"}, {Key: "cluster/x.yaml", DidYouMean: "clusters/x.yaml"}, {Key: "clusters/a/x.yaml", DidYouMean: "clusters/x.yaml"},
		{Key: "clusters/x.yml", DidYouMean: "clusters/x.yaml"}, {Key: "releases/r1.yml", DidYouMean: "releases/r1.yaml"},
	}, ignored())
	require.GreaterOrEqual(t, notices(), 4, "a README is recorded without a notice")
	before := notices()
	a.Upload("clusters/x.yml", "kind: Cluster # again")
	ignored()
	require.Equal(t, before, notices(), "the record has it already")
	for _, key := range []string{"clusters/x.yml", "clusters/a/x.yaml", "cluster/x.yaml", "releases/r1.yml", "README.md"} {
		a.Remove(key, "")
	}
	require.Empty(t, ignored())
	statuses, err := a.State().List(t.Context(), names.Statuses)
	require.NoError(t, err)
	require.Empty(t, statuses)
}
