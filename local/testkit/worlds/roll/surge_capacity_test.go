package roll_test

// The surge capacity of a roll, and an autoscaler that changes the size at the same time.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
)

// onGroup calls do before each update of the pool's group by CloudFormation, with its number.
func (l *life) onGroup(do func(n int)) {
	updates := 0
	l.OnResource(func(step string, r resource.Request) error {
		if step == "update" && r.LogicalID == names.GroupResource {
			updates++
			do(updates)
		}
		return nil
	})
}

// A node is replaced while the change set with the surge capacity is created. The roll starts with the pool after that.
func TestPoolIsReadAfterItsChangeSet(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 3, maxSize: 4, drain: {timeout: 3h}"
		l.CreatePool(spec)
		l.SetPoolSize(4)
		time.Sleep(10 * time.Minute)
		l.BlockPods(true)
		before, drained, made := l.Group("demo", "a"), l.Instance(), 0
		l.OnCall(func(call endpoint.Call) error {
			if harness.CalledBy(call) == "change" && call.Action == "CreateChangeSet" && l.Stack("demo", "pool-a").
				Parameters[render.MaxSize] == "5" {
				if made++; made == 2 { // the first one adds no capacity
					l.TerminateInstance()
				}
			}
			return nil
		})
		l.ChangePool(spec + larger)
		time.Sleep(20 * time.Minute)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
		require.Equal(t, "nodes are replaced when "+drained+" has been drained", l.PoolWaits().Message)
		require.Empty(t, l.batches(lives.PoolGroup))
		l.BlockPods(false)
		l.SettleAll()
		l.RequireRenewed(before, 4)
	})
}

// The autoscaler changes the size twice while capacity is added, so the same capacity is added again.
func TestSurgeCapacityIsAddedAgain(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 1, maxSize: 3"
		l.CreatePool(spec)
		l.SetPoolSize(3)
		time.Sleep(10 * time.Minute)
		l.onGroup(func(n int) {
			switch n {
			case 1:
				l.SetPoolSize(2)
			case 2:
				l.SetPoolSize(3)
			}
		})
		before, began := l.Group("demo", "a"), time.Now()
		l.ChangePool(spec + larger)
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Less(t, time.Since(began), time.Hour, "it waited for the event of an operation that was not begun")
		time.Sleep(5 * time.Minute)
		l.RequireRenewed(before, 3)
	})
}

// The autoscaler uses the surge capacity of a roll, and the user requests a second roll before that capacity is removed. The second roll
// adds no capacity. The pool finally returns to the maximum of its spec by an ordinary scale-in.
func TestUsedSurgeCapacityIsNotAddedAgain(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 1, maxSize: 2, update: {maxSurge: 50%}"
		l.CreatePool(spec)
		l.SetPoolSize(2)
		time.Sleep(10 * time.Minute)
		before, most := l.Group("demo", "a"), 0
		least := len(before.Instances)
		l.onGroup(func(n int) {
			if n == 2 { // the capacity exists, and the roll begins
				l.SetPoolSize(3)
				l.ChangePool(spec + strings.Replace(larger, "60", "70", 1))
			}
		})
		defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) {
			most, least = max(most, v.Desired), min(least, count(v, pool.InService))
		})()
		l.ChangePool(spec + larger)
		l.SettleAll()
		time.Sleep(5 * time.Minute)
		l.RequireRenewed(before, 2)
		require.Equal(t, 2, l.Group("demo", "a").Max)
		require.Equal(t, 3, most)
		require.Equal(t, 2, least)
	})
}
