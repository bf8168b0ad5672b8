package harness

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// noted records pending work for a cluster.
func (a *Account) noted(cluster string) {
	a.t.Helper()
	ctx := context.Background()
	require.NoError(a.t, a.State().AddRolls(ctx, cluster, []string{"a"}, time.Now().Add(time.Hour)))
	require.NoError(a.t, a.State().AddDue(ctx, cluster, time.Now().Add(1000*time.Hour)))
	for key, body := range map[string]string{names.Upgrade(cluster): `{"state": "Done"}`, names.UpgradeBaseline(cluster, 1): "{}"} {
		_, err := a.State().Put(ctx, key, []byte(body))
		require.NoError(a.t, err)
	}
}

// notes lists the keys of pending work for a cluster.
func (a *Account) notes(cluster string) (keys []string) {
	a.t.Helper()
	for _, prefix := range []string{"rolls/", "upgrades/", "baselines/", names.Dues} {
		entries, err := a.State().List(context.Background(), prefix)
		require.NoError(a.t, err)
		for _, entry := range entries {
			if strings.HasSuffix(entry.Key, "/"+cluster) || strings.HasSuffix(entry.Key, "/"+cluster+".json") ||
				strings.Contains(entry.Key, "/"+cluster+"/") {
				keys = append(keys, entry.Key)
			}
		}
	}
	return keys
}

func TestNewClusterInheritsNoWork(t *testing.T) {
	bubble(t, func(a *Account) {
		for _, name := range []string{"demo", "demo-2"} {
			a.Upload(names.ReleaseSpec("r1"), Release())
			a.Upload(names.ClusterSpec(name), Spec(name, unprotected))
			time.Sleep(3 * time.Hour)
			require.Equal(t, status.Ready, a.Status(name).Phase, a.Status(name).Message)
			a.noted(name)
		}
		before := a.notes("demo-2")
		require.Len(t, before, 4)
		require.NoError(t, a.State().UpdateStatus(context.Background(), "demo", func(s *status.Status) {
			s.Upgrade, s.Upgrades = &status.Upgrade{}, []status.Upgrade{{}}
			s.Set(status.Condition{Type: status.InSync, Status: "False", Reason: status.ReasonDrifted}, time.Now())
		}))
		a.Remove(names.ClusterSpec("demo"), "")
		time.Sleep(3 * time.Hour)
		s := a.Status("demo")
		require.Equal(t, status.Deleted, s.Phase, s.Message)
		require.Empty(t, a.notes("demo"))
		require.Equal(t, before, a.notes("demo-2"), "what is another's stays")
		require.Nil(t, s.Upgrade)
		require.Empty(t, s.Upgrades)
		require.Nil(t, s.Condition(status.InSync))

		a.Upload(names.ClusterSpec("demo"), Spec("demo", unprotected))
		time.Sleep(3 * time.Hour)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.NotContains(t, a.Stack("demo", "pool-a").Tags, names.TagRollAt)
		require.Empty(t, a.notes("demo"))
	})
}
