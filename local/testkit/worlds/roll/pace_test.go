package roll_test

// The pace of a roll if the size of the pool differs from its spec before it.

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// A roll that gets no instances is rolled back, and leaves the group larger than its spec allows. The next attempt sets
// the pace twice for the same size: after the rollback, and when the stack is idle again.
func TestRetryOfARollInALargerPool(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), harness.Release())
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1, maxSize: 3",
			"minSize: 2, maxSize: 3, update: {maxSurge: 2}", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		end := lives.AddFault(t, bad, "launch-fails")
		l.Converge("demo", "a")
		l.Until("it is rolled back", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_ROLLBACK_IN_PROGRESS" })
		end()
		l.SettleAll()
		l.RequirePhase(status.Failed)
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
		time.Sleep(30 * time.Minute) // Auto Scaling launches what the group lacks
		require.Equal(t, 4, l.Group("demo", "a").Desired)
		began := time.Now()
		l.ConvergeAgain()
		l.RequirePhase(status.Ready)
		require.Less(t, time.Since(began), time.Hour, "it waited for the event of an operation that was not begun")
		require.LessOrEqual(t, l.Group("demo", "a").Desired, 3)
	})
}

// Two attempts of a roll get instances that do not join, and are rolled back. The first one left the group at its maximum.
// The second one raises the maximum before it replaces nodes, or its rollback would terminate a serving node.
func TestRetryOfARollAtMaximumSize(t *testing.T) {
	for name, update := range map[string]string{"a rolling update": "", "a refresh after it": ", update: {strategy: InstanceRefresh}"} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.Upload(names.ReleaseSpec("r1"), harness.Release())
				spec := strings.Replace(harness.Spec("demo", lives.Unprotected), "minSize: 1, maxSize: 3", "minSize: 2, maxSize: 3", 1)
				l.Upload(names.ClusterSpec("demo"), spec)
				l.SettleAll()
				l.RequirePhase(status.Ready)
				fails := func(try func()) {
					end := lives.AddFault(t, bad, "kubelet-version=v1.39.1-eks-1")
					try()
					l.Until("it is rolled back", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_ROLLBACK_IN_PROGRESS" })
					end()
					l.SettleAll()
					l.RequirePhase(status.Failed)
					require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
				}
				fails(func() { l.Converge("demo", "a") })
				time.Sleep(30 * time.Minute) // Auto Scaling launches what the group lacks
				group := l.Group("demo", "a")
				require.Equal(t, []int{3, 3}, []int{group.Desired, group.Serving()})

				least := 3
				var mu sync.Mutex
				l.AutoScaling.Watch(names.Group("demo", "a"), func(v localautoscaling.View) {
					serving := 0
					for _, i := range v.Instances {
						if i.State == pool.InService {
							serving++
						}
					}
					mu.Lock()
					defer mu.Unlock()
					least = min(least, serving)
				})
				fails(func() {
					l.Upload(names.ClusterSpec("demo"), strings.Replace(spec, "maxSize: 3", "maxSize: 3"+update, 1))
				})
				mu.Lock()
				served := least
				mu.Unlock()
				require.Equal(t, 3, served, "of the nodes that it had")
				time.Sleep(30 * time.Minute)
				l.ConvergeAgain()
				l.RequirePhase(status.Ready)
				group = l.Group("demo", "a")
				require.Equal(t, []int{3, 3, 3}, []int{group.Max, group.Desired, group.Serving()})
				for _, i := range group.Instances {
					require.NotEqual(t, "1", i.TemplateVersion)
				}
			})
		})
	}
}
