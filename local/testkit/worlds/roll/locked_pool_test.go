package roll_test

// A pool whose only nodes get a taint that system pods do not tolerate: their replacements stay Pending, so the old
// node's drain cannot end by itself. In virtual time.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

const taint = ", taints: [{key: dedicated, value: batch, effect: NoSchedule}]"

// lockPool creates a cluster whose only node is replaced by one with a taint. It returns the old instance, which is being drained.
func (l *life) lockPool(spec string) (old string, began time.Time) {
	l.T.Helper()
	l.CreatePool(spec)
	l.RequirePhase(status.Ready)
	l.API("drover-demo").Run(apiserver.App{
		Name: "dns", Replicas: 2, MaxUnavailable: 1, Start: time.Second, Stop: time.Second, Grace: 5 * time.Second,
	})
	time.Sleep(time.Minute)
	old = l.Instance()
	l.ChangePool(spec + taint)
	for range 30 {
		if time.Sleep(10 * time.Second); len(l.Group("demo", "a").Draining()) > 0 {
			break
		}
	}
	began = time.Now()
	time.Sleep(5 * time.Minute)
	require.Equal(l.T, []string{old}, l.Group("demo", "a").Draining())
	return old, began
}

func TestLockedPool(t *testing.T) {
	const surges = "minSize: 1, maxSize: 3, drain: {timeout: 3h}"
	t.Run("says so, and names the Pending replacements", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			old, _ := l.lockPool(surges)
			s := l.Status("demo")
			require.Equal(t, status.Ready, s.Phase)
			require.Contains(t, s.Message, status.AsSpecified+status.ButDrains)
			require.Equal(t, "NoPoolForAddons", s.Condition(status.AddonsSchedulable).Reason)
			require.Len(t, s.Nodes, 1)
			node := s.Nodes[0]
			require.Equal(t, old, node.Instance)
			require.Equal(t, status.NodeBlocked, node.State)
			require.True(t, node.Roll)
			require.Len(t, node.Pending, 1)
			require.Equal(t, "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.", node.Pending[0].Why)
			require.Contains(t, node.Message, "their replacements are Pending: "+node.Pending[0].Pod)
		})
	})
	t.Run("is unlocked by the next spec", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			old, _ := l.lockPool(surges)
			most := 0
			defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) {
				most = max(most, count(v, pool.Terminating)-count(v, pool.TerminatingProceed))
			})()
			l.ChangePool(surges)
			time.Sleep(15 * time.Minute)
			require.Empty(t, l.Group("demo", "a").Draining(), "the fix was locked out")
			l.SettleAll()
			s := l.Status("demo")
			require.Equal(t, status.Ready, s.Phase)
			require.Equal(t, status.AsSpecified, s.Message)
			require.Nil(t, s.Condition(status.AddonsSchedulable))
			require.Empty(t, s.Nodes)
			require.Empty(t, l.PoolWaits())
			require.Equal(t, 1, most, "no other batch began during the drain of %s", old)
		})
	})
	t.Run("waits for the drain when the update adds no node, and no upload extends that", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			const shrinks = "minSize: 1, maxSize: 3, drain: {timeout: 30m}, update: {maxUnavailable: 1, maxSurge: 0}"
			l.CreatePool(shrinks)
			l.API("drover-demo").Run(apiserver.App{
				Name: "dns", Replicas: 2, MaxUnavailable: 1, Start: time.Second, Stop: time.Second, Grace: 5 * time.Second,
			})
			l.BlockPods(true)
			old := l.Instance()
			began := time.Now()
			l.TerminateInstance()
			time.Sleep(5 * time.Minute)
			limit := began.Add(45 * time.Minute)
			for _, size := range []string{"60", "61", "62", "63"} {
				l.ChangePool(shrinks + strings.Replace(larger, "60", size, 1))
				time.Sleep(8 * time.Minute)
				require.Equal(t, "nodes are replaced when "+old+" has been drained", l.PoolWaits().Message)
				require.WithinDuration(t, limit, l.PoolWaits().Until, 10*time.Second, "the upload extended the wait")
				require.Empty(t, l.batches(lives.PoolGroup))
			}
			time.Sleep(time.Until(limit) + 2*time.Minute)
			require.Contains(t, l.PoolWaits().Message, "nodes are replaced although "+old+" is still being drained: the wait took 45m")
			require.NotEmpty(t, l.batches(lives.PoolGroup))
			l.BlockPods(false)
			l.SettleAll()
			l.RequirePhase(status.Ready)
		})
	})
	t.Run("is not rolled past its drain on demand", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			old, _ := l.lockPool(surges)
			l.Converge("demo", "a")
			time.Sleep(15 * time.Minute)
			require.Equal(t, "nodes are replaced when "+old+" has been drained", l.PoolWaits().Message)
			require.Equal(t, []string{old}, l.Group("demo", "a").Draining())
			l.ChangePool(surges)
			l.SettleAll()
			l.RequirePhase(status.Ready)
		})
	})
}
