package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/harness"
	"github.com/drover-run/drover/shared/status"
)

func TestADeletionThatIsWatchedEndsWithTheCluster(t *testing.T) {
	c := &cell{state: harness.Start(t).State()}
	is := func(phase status.Phase, version string) {
		require.NoError(t, c.state.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.Phase, s.SpecVersion, s.ObservedVersion = phase, version, version
		}))
	}
	is(status.Deleted, "")
	require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", upload{before: "1"}))
	is(status.Ready, "2")
	require.ErrorContains(t, watchStatus(t.Context(), io.Discard, c, "demo", upload{before: "1"}), "demo was not deleted: its spec was uploaded again")
	require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", upload{"2", "1"}))
	require.NoError(t, watchStatus(t.Context(), io.Discard, c, "demo", anyUpload))
}
