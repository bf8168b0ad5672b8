package main

import (
	"io"
	"strings"
	"sync"
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

func TestWhatAnUploadBeforeCameToIsNotToldOfThisOne(t *testing.T) {
	c := &cell{state: harness.Start(t).State()}
	is := func(phase status.Phase, message, version string) {
		require.NoError(t, c.state.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
			s.Phase, s.Message, s.SpecVersion, s.ObservedVersion = phase, message, version, version
		}))
	}
	is(status.Failed, "the quota is used up", "1")
	var out strings.Builder
	once := sync.OnceFunc(func() { is(status.Ready, "every stack is as it should be", "2") })
	require.NoError(t, watchStatus(t.Context(), writer(func(p []byte) (int, error) {
		once()
		return out.Write(p)
	}), c, "demo", upload{"2", "1"}))
	require.NotContains(t, out.String(), "quota")
	require.Regexp(t, `^ *0\.0s  drover has not looked at the upload yet\n +\d+\.\ds  demo is Ready: every stack is as it should be\n$`, out.String())
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
