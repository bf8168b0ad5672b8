package private_test

// A relay that was deleted outside drover.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
)

// private creates a Ready private cluster.
func (l *life) private(more string) {
	l.T.Helper()
	l.CreateCluster(lives.PrivateEndpoint + more)
	l.RequirePhase(status.Ready)
}

// privateLife runs a test with a Ready private cluster.
func privateLife(t *testing.T, test func(l *life)) {
	run(t, func(l *life) {
		l.private("")
		test(l)
	})
}

// requireRelay asserts that the cluster is Ready and has its relay.
func (l *life) requireRelay() {
	l.T.Helper()
	l.RequirePhase(status.Ready)
	require.Equal(l.T, 1, l.relays())
}

// relays counts the functions of clusters.
func (l *life) relays() int { return len(l.Lambda.Tagged(l.T.Context())) }

// sweepUntilRecreated sweeps at the period of the schedule, and requires the relay within five minutes. It returns when that time began.
func (l *life) sweepUntilRecreated() (deleted time.Time) {
	l.T.Helper()
	deleted = time.Now()
	for next := deleted.Add(backoff.SweepPeriod); l.relays() == 0; {
		require.Less(l.T, time.Since(deleted), 10*time.Minute)
		time.Sleep(time.Second)
		if !time.Now().Before(next) {
			next = next.Add(backoff.SweepPeriod)
			l.Sweep()
		}
	}
	l.T.Logf("recreated after %s", time.Since(deleted))
	require.LessOrEqual(l.T, time.Since(deleted), 5*time.Minute)
	return deleted
}

func TestDeletedRelay(t *testing.T) {
	t.Run("is found and recreated by the audit", func(t *testing.T) {
		privateLife(t, func(l *life) {
			node := l.Instance()
			l.DeleteRelay()
			require.Zero(t, l.relays())
			require.NoError(t, l.AuditNow())
			in := l.Status("demo").Condition(status.InSync)
			require.NotNil(t, in)
			require.Contains(t, in.Message, "the relay drover-demo-relay was deleted outside drover: drover recreates it")
			l.SettleAll()
			l.requireRelay()
			l.Audit()
			require.Equal(t, "True", l.Status("demo").Condition(status.InSync).Status)
			require.Equal(t, node, l.Instance(), "a healthy node stays")
			l.TerminateInstance()
			l.SettleAll()
			l.RequirePhase(status.Ready)
			require.NotEqual(t, node, l.Instance())
		})
	})

	t.Run("is recreated before a new spec is applied", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.DeleteRelay()
			l.ChangeSpec(lives.PrivateEndpoint + "  tags: {team: a}\n")
			l.requireRelay()
			l.Audit()
			require.Nil(t, l.Status("demo").Condition(status.InSync))
		})
	})

	t.Run("is recreated after an update that failed with it", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", lives.PrivateEndpoint+"  tags: {team: a}\n"))
			l.WaitForUpdate(names.ControlPlane)
			l.DeleteRelay()
			l.Until("the rollback fails", func() bool { return l.Stacks("demo")[names.ControlPlane] == stack.UpdateRollbackFailed })
			l.SettleAll()
			l.ConvergeAgain()
			l.requireRelay()
			l.Audit()
			require.Nil(t, l.Status("demo").Condition(status.InSync))
		})
	})

	t.Run("holds a drain until it is recreated", func(t *testing.T) {
		privateLife(t, func(l *life) {
			node := l.Instance()
			l.DeleteRelay()
			l.TerminateInstance()
			time.Sleep(5 * time.Minute)
			require.Equal(t, node, l.Instance(), "the node stays")
			require.Contains(t, fmt.Sprintf("%+v", l.Status("demo").Nodes), "RelayMissing")
			l.Audit()
			l.requireRelay()
			require.NotEqual(t, node, l.Instance())
		})
	})

	t.Run("is found by the sweep, and recreated within five minutes", func(t *testing.T) {
		privateLife(t, func(l *life) {
			l.Audit() // the sweep knows private clusters from it
			l.DeleteRelay()
			l.sweepUntilRecreated()
			l.SettleAll()
			l.requireRelay()
		})
	})

	t.Run("does not hold a roll until CloudFormation ends it", func(t *testing.T) {
		run(t, func(l *life) {
			l.Upload(names.ReleaseSpec("r1"), harness.Release())
			spec := harness.Spec("demo", lives.PrivateEndpoint)
			l.Upload(names.ClusterSpec("demo"), strings.Replace(spec, "minSize: 1, maxSize: 3", lives.TwoNodes, 1))
			l.SettleAll()
			l.RequirePhase(status.Ready)
			l.Audit()
			before := l.Group("demo", "a")
			l.Converge("demo", "a")
			l.WaitForGroup(func(g pool.Group) bool { return len(g.Launching()) > 0 })
			l.DeleteRelay()
			deleted := l.sweepUntilRecreated()
			l.RunSchedules(1)
			require.Less(t, l.Status("demo").Condition(status.Converged).LastTransitionTime.Sub(deleted), 30*time.Minute)
			l.RequireRenewed(before, 2)
			l.requireRelay()
		})
	})
}
