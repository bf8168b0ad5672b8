// Package rollout_test has tests of whole rollouts: from the upload of their files to the last member.
package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// life is an account with three clusters at r1: a is the canary of b and c.
type life struct{ *lives.Life }

func run(t *testing.T, test func(l *life)) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{lives.StartWith(t, harness.Options{Bubble: true, Fleet: true})}
		defer l.Close()
		l.Upload(names.ReleaseSpec("r1"), harness.ReleaseOf("1.35", "r1"))
		l.Upload(names.ReleaseSpec("r2"), harness.ReleaseOf("1.36", "r2"))
		for cluster, stage := range stages {
			l.Upload(names.ClusterSpec(cluster), clusterSpec(cluster, stage, ""))
		}
		l.SettleAll()
		for cluster := range stages {
			require.Equal(t, status.Ready, l.Status(cluster).Phase, "%+v", l.Status(cluster))
		}
		test(l)
	})
}

var stages = map[string]string{"a": "canary", "b": "prod", "c": "prod"}

func clusterSpec(cluster, stage, more string) string {
	labels := fmt.Sprintf("metadata: {name: %s, labels: {stage: %s}}", cluster, stage)
	return strings.Replace(harness.Spec(cluster, more), fmt.Sprintf("metadata: {name: %s}", cluster), labels, 1)
}

// spec is the rollout: the canary soaks for half an hour, and a user approves production.
const spec = `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: next}
spec:
  subject: {release: r2}
  clusters: {}
  stages:
    - {name: canary, selector: {matchLabels: {stage: canary}}, settle: 5m, soak: 30m}
    - name: prod
      selector: {matchLabels: {stage: prod}}
      maxConcurrency: 2
      maxFailures: 1
      settle: 5m
      soak: 10m
      before: [{approval: {}}]
`

func (l *life) decide(name, verb, more string) {
	l.T.Helper()
	record := l.record()
	l.Upload(names.Decision("next", name), fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Decision
metadata: {name: %s}
spec:
  rollout: next
  verb: %s
  plan: %s
%s`, name, verb, record.Plan, more))
}

func (l *life) record() *rollout.Record {
	l.T.Helper()
	record, _, err := l.State().RolloutRecord(l.T.Context(), "next")
	require.NoError(l.T, err)
	return record
}

// member is the state of a cluster in the newest run.
func (l *life) member(cluster string) rollout.MemberRun {
	l.T.Helper()
	if r := l.record().Run; r != nil {
		for _, m := range r.Members {
			if m.Cluster == cluster {
				return m
			}
		}
	}
	return rollout.MemberRun{}
}

// wait lets time pass, with the schedules of drover, until a condition holds.
func (l *life) wait(what string, done func() bool) {
	l.T.Helper()
	for passed := time.Minute; passed <= 24*time.Hour; passed += time.Minute {
		if done() {
			return
		}
		time.Sleep(time.Minute)
		if passed%backoff.SweepPeriod == 0 {
			l.Sweep()
		}
		if passed%backoff.AuditPeriod == 0 {
			require.NoError(l.T, l.AuditNow())
		}
	}
	run := l.record().Run
	report, _, err := l.State().CellReport(l.T.Context(), names.Cell(harness.ID, harness.Region))
	l.T.Fatalf("not in a day: %s\nrun %+v\nreport %+v %v", what, run, report, err)
}

func (l *life) hasPlan() bool { return l.record().Plan != "" }

// pinnedRelease is the release of a cluster.
func (l *life) pinnedRelease(cluster string) string {
	l.T.Helper()
	return l.Status(cluster).Release + " " + l.Status(cluster).KubernetesVersion
}

func TestRollout(t *testing.T) {
	t.Run("moves three clusters, the canary first", func(t *testing.T) {
		run(t, func(l *life) {
			l.Upload(names.Rollout("next"), spec)
			l.wait("the plan", l.hasPlan)
			l.decide("go", "Start", "")
			l.wait("the approval", func() bool { return l.member("b").Reason == rollout.ReasonApproval })
			require.Equal(l.T, rollout.Good, l.member("a").State)
			require.Equal(l.T, []string{"r2 1.36", "r1 1.35", "r1 1.35"}, []string{l.pinnedRelease("a"), l.pinnedRelease("b"), l.pinnedRelease("c")})
			record, _, err := l.State().Upgrade(l.T.Context(), "a")
			require.NoError(l.T, err)
			require.Equal(l.T, upgrade.OriginRollout, record.Origin)
			require.Equal(l.T, upgrade.Done, record.State)
			soaked := l.member("a").GoodSince.Add(30 * time.Minute)
			require.False(l.T, time.Now().Before(soaked))
			// A release that is edited during the run changes nothing.
			l.Upload(names.ReleaseSpec("r2"), harness.ReleaseOf("1.37", "r2"))
			l.decide("approve", "Approve", "  stage: prod\n")
			l.wait("the end", func() bool { return l.record().Run.State.Final() })
			require.Equal(l.T, rollout.Done, l.record().Run.State)
			for cluster := range stages {
				require.Equal(l.T, "r2 1.36", l.pinnedRelease(cluster))
			}
			l.wait("the end of the claims", func() bool {
				freezes, _, err := l.State().CellFreezes(l.T.Context())
				require.NoError(l.T, err)
				return len(freezes.Claims) == 0
			})
			require.Empty(l.T, l.Functions.Failed())
		})
	})
}

// quick is a rollout whose only slot is free as soon as an upgrade is done.
const quick = `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: next}
spec:
  subject: {release: r2}
  clusters: {}
  stages:
    - {name: all, selector: {}, maxConcurrency: 1, settle: 0s}
`

// No sweep runs after the start. The end of an upgrade alone causes a look, a tick, and the start of the next member.
func TestNextMemberStartsAtOnce(t *testing.T) {
	run(t, func(l *life) {
		l.Upload(names.Rollout("next"), quick)
		l.wait("the plan", l.hasPlan)
		time.Sleep(time.Hour) // the facts of the start are older than half an hour, so the start renews them
		l.decide("go", "Start", "")
		for passed := time.Duration(0); l.member("c").State != rollout.Good; passed += time.Second {
			require.Less(l.T, passed, 6*time.Hour, "%+v", l.record().Run)
			time.Sleep(time.Second)
		}
		require.Equal(l.T, rollout.Good, l.member("b").State)
		var ended time.Time
		for _, cluster := range []string{"a", "b", "c"} {
			record, _, err := l.State().Upgrade(l.T.Context(), cluster)
			require.NoError(l.T, err)
			require.Equal(l.T, upgrade.Done, record.State)
			assignment, _, err := l.State().Assignment(l.T.Context(), cluster)
			require.NoError(l.T, err)
			if !ended.IsZero() {
				require.WithinDuration(l.T, ended, assignment.Taken, 10*time.Second, cluster)
				require.WithinDuration(l.T, ended, record.Started, time.Minute, cluster)
			}
			ended = record.Ended
		}
	})
}

// A freeze of a year holds an upgrade of a channel. After the freeze was deleted, the next audit plans the upgrade.
func TestDeletedFreeze(t *testing.T) {
	for name, freeze := range map[string]string{
		"that was valid": `apiVersion: drover.run/v1alpha1
kind: Freeze
metadata: {name: year}
spec: {clusters: {}, from: "2000-01-01T00:00:00Z", until: "2001-01-01T00:00:00Z", reason: moving house}
`,
		"that was invalid": "apiVersion: drover.run/v1alpha1\nkind: Freeze\nmetadata: {name: year}\nspec: {clusters: []}\n",
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(l *life) {
				l.Upload(names.Freeze("year"), freeze)
				l.wait("the freeze", func() bool {
					freezes, _, err := l.State().CellFreezes(l.T.Context())
					require.NoError(l.T, err)
					return len(freezes.Freezes) == 1
				})
				l.Upload(names.ClusterSpec("b"), clusterSpec("b", "prod", "  upgrade: {channel: Stable}\n"))
				l.Upload(names.ReleaseSpec("channels"),
					"apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: r2}\n")
				l.wait("the wait for the freeze", func() bool {
					u := l.Status("b").Upgrade
					return u != nil && strings.Contains(u.Message, "the freeze year")
				})
				held := time.Now()
				l.wait("an hour", func() bool { return time.Since(held) >= time.Hour }) // no other plan is due
				l.Remove(names.Freeze("year"), "")
				deleted := time.Now()
				l.wait("the upgrade", func() bool { return l.pinnedRelease("b") == "r2 1.36" })
				record, _, err := l.State().Upgrade(l.T.Context(), "b")
				require.NoError(l.T, err)
				require.Less(l.T, record.Started.Sub(deleted), 2*backoff.AuditPeriod)
				require.Empty(l.T, l.Functions.Failed())
			})
		})
	}
}
