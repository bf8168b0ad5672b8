package sweep_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func verdict(t *testing.T, a *harness.Account, release string) status.ReleaseStatus {
	t.Helper()
	r, err := a.State().ReleaseStatus(t.Context(), release)
	require.NoError(t, err)
	return r.Status
}

// countReleaseChecks counts the requests of an audit to EKS about releases.
func countReleaseChecks(t *testing.T, a *harness.Account) (n int) {
	t.Helper()
	mark := a.Calls.Mark()
	audit(t, a)
	for _, call := range a.Calls.Since(mark) {
		if call.Action == "DescribeAddonVersions" && harness.CalledBy(call) == "sweep" {
			n++
		}
	}
	return n
}

// A copy of the function reads a verdict that matches its release once, and again only after either object is written.
func TestReportedReleaseIsReadOnce(t *testing.T) {
	a := harness.Start(t)
	a.Functions.Sweep.EventGrace = 0
	written := func(list func(context.Context, string) ([]store.Entry, error), prefix string) time.Time {
		entries, err := list(t.Context(), prefix)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		return entries[0].Modified
	}
	specs := s3.NewBucket(s3.NewClient(a.Config()), harness.SpecsBucket)
	for same := false; !same; { // S3 records whole seconds, and the verdict may fall into the next
		a.Upload("releases/r1.yaml", harness.Release())
		a.Settle()
		same = written(specs.List, names.ReleaseSpecs).Equal(written(a.State().List, names.ReleaseStatuses))
	}
	read := func() (n int) {
		mark := a.Calls.Mark()
		audit(t, a)
		for _, call := range a.Calls.Since(mark) {
			if harness.CalledBy(call) == "sweep" && call.Action == "GetObject" && strings.HasSuffix(call.Resource, "releases/r1.json") {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, read(), "the verdict may be as old as the release")
	require.Equal(t, 1, read(), "another upload may follow in that second")
	later(a, 2*time.Minute)
	require.Equal(t, 1, read())
	require.Zero(t, read())
	losing(a, "aws.s3")
	version := a.Upload("releases/r1.yaml", harness.ReleaseOf("1.37", "r1"))
	require.Positive(t, read())
	require.Equal(t, version, verdict(t, a, "r1").Version)
}

func TestLostEventsOfReleases(t *testing.T) {
	a := harness.Start(t)
	a.Upload("releases/channels.yaml", channels("r1"))
	a.Settle()
	require.False(t, verdict(t, a, "channels").Usable, "there is no r1")
	losing(a, "aws.s3")

	t.Run("one that came", func(t *testing.T) {
		a.Functions.Sweep.EventGrace = time.Minute
		version := a.Upload("releases/r1.yaml", harness.Release())
		require.Zero(t, countReleaseChecks(t, a), "its event may be on its way")
		_, err := a.State().ReleaseStatus(t.Context(), "r1")
		require.ErrorIs(t, err, store.ErrNotFound)
		a.Functions.Sweep.EventGrace = 0
		require.Positive(t, countReleaseChecks(t, a))
		require.True(t, verdict(t, a, "r1").Usable)
		require.Equal(t, version, verdict(t, a, "r1").Version)
		require.True(t, verdict(t, a, "channels").Usable)
	})
	t.Run("one that changed, perhaps in the second of its verdict", func(t *testing.T) {
		version := a.Upload("releases/r1.yaml", strings.Replace(harness.Release(), `"1.36"`, `"1.38"`, 1))
		require.Positive(t, countReleaseChecks(t, a))
		require.False(t, verdict(t, a, "r1").Usable)
		require.Equal(t, version, verdict(t, a, "r1").Version)
	})
	t.Run("one that went", func(t *testing.T) {
		a.Remove("releases/r1.yaml", "")
		require.Zero(t, countReleaseChecks(t, a), "there is nothing to ask EKS about")
		require.Equal(t, "it was deleted; clusters that use it keep its content", verdict(t, a, "r1").Message)
		require.False(t, verdict(t, a, "channels").Usable)
	})
	t.Run("none", func(t *testing.T) {
		a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
		a.Upload("releases/notes.txt", "no release")
		require.Positive(t, countReleaseChecks(t, a))
		mark := a.Calls.Mark()
		require.Zero(t, countReleaseChecks(t, a))
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Mutating, "%s %s", call.Action, call.Resource)
		}
	})
}
