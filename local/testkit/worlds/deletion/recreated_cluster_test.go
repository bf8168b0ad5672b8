package deletion_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func TestNewClusterInheritsNoWork(t *testing.T) {
	run(t, func(a *life) {
		for _, name := range []string{"demo", "demo-2"} {
			a.Upload(names.ReleaseSpec("r1"), harness.Release())
			a.Upload(names.ClusterSpec(name), harness.Spec(name, lives.Unprotected))
			time.Sleep(3 * time.Hour)
			require.Equal(t, status.Ready, a.Status(name).Phase, a.Status(name).Message)
			a.RecordPendingWork(name)
		}
		before := a.PendingWork("demo-2")
		require.Len(t, before, 4)
		require.NoError(t, a.State().UpdateStatus(context.Background(), "demo", func(s *status.Status) {
			s.Upgrade, s.Upgrades = &status.Upgrade{}, []status.Upgrade{{}}
			s.Set(status.Condition{Type: status.InSync, Status: "False", Reason: status.ReasonDrifted}, time.Now())
		}))
		a.Remove(names.ClusterSpec("demo"), "")
		time.Sleep(3 * time.Hour)
		s := a.Status("demo")
		require.Equal(t, status.Deleted, s.Phase, s.Message)
		require.Empty(t, a.PendingWork("demo"))
		require.Equal(t, before, a.PendingWork("demo-2"), "what is another's stays")
		require.Nil(t, s.Upgrade)
		require.Empty(t, s.Upgrades)
		require.Nil(t, s.Condition(status.InSync))

		a.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.Unprotected))
		time.Sleep(3 * time.Hour)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.NotContains(t, a.Stack("demo", "pool-a").Tags, names.TagRollAt)
		require.Empty(t, a.PendingWork("demo"))
	})
}
