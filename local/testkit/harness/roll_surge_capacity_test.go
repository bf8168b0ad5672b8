package harness

// The surge capacity of a roll, and an autoscaler that changes the size at the same time.

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/shared/pool"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/stretchr/testify/require"
)

// scale sets the size of the pool, as an autoscaler does.
func (l *life) scale(desired int) {
	_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(rolledGroup), DesiredCapacity: aws.Int32(int32(desired)),
	})
	require.NoError(l.t, err)
}

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
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 3, maxSize: 4, drain: {timeout: 3h}"
		l.grown(spec)
		l.scale(4)
		time.Sleep(10 * time.Minute)
		l.hold(true)
		before, drained, made := l.Group("demo", "a"), l.instance(), 0
		l.OnCall(func(call endpoint.Call) error {
			if CalledBy(call) == "change" && call.Action == "CreateChangeSet" && l.Stack("demo", "pool-a").Parameters[render.MaxSize] == "5" {
				if made++; made == 2 { // the first one adds no capacity
					l.terminate()
				}
			}
			return nil
		})
		l.pool(spec + larger)
		time.Sleep(20 * time.Minute)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
		require.Equal(t, "nodes are replaced when "+drained+" is drained", l.waits().Message)
		require.Empty(t, l.batches(rolledGroup))
		l.hold(false)
		l.settle()
		l.renewed(before, 4)
	})
}

// The autoscaler changes the size twice while capacity is added, so the same capacity is added again.
func TestSurgeCapacityIsAddedAgain(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 1, maxSize: 3"
		l.grown(spec)
		l.scale(3)
		time.Sleep(10 * time.Minute)
		l.onGroup(func(n int) {
			switch n {
			case 1:
				l.scale(2)
			case 2:
				l.scale(3)
			}
		})
		before, began := l.Group("demo", "a"), time.Now()
		l.pool(spec + larger)
		l.settle()
		l.phase(status.Ready)
		require.Less(t, time.Since(began), time.Hour, "it waited for the event of an operation that was not begun")
		time.Sleep(5 * time.Minute)
		l.renewed(before, 3)
	})
}

// The autoscaler uses the surge capacity of a roll, and the user requests a second roll before that capacity is removed. The second roll
// adds no capacity. The pool finally returns to the maximum of its spec by an ordinary scale-in.
func TestUsedSurgeCapacityIsNotAddedAgain(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 1, maxSize: 2, update: {maxSurge: 50%}"
		l.grown(spec)
		l.scale(2)
		time.Sleep(10 * time.Minute)
		before, most := l.Group("demo", "a"), 0
		least := len(before.Instances)
		l.onGroup(func(n int) {
			if n == 2 { // the capacity exists, and the roll begins
				l.scale(3)
				l.pool(spec + strings.Replace(larger, "60", "70", 1))
			}
		})
		defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) {
			most, least = max(most, v.Desired), min(least, count(v, pool.InService))
		})()
		l.pool(spec + larger)
		l.settle()
		time.Sleep(5 * time.Minute)
		l.renewed(before, 2)
		require.Equal(t, 2, l.Group("demo", "a").Max)
		require.Equal(t, 3, most)
		require.Equal(t, 2, least)
	})
}
