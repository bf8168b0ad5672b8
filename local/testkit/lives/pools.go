package lives

// Pools: their fields, drains, rolls and sizes.

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// PoolGroup is the Auto Scaling group of the pool, and its stack.
const PoolGroup = "drover-demo-pool-a"

// ChangePool uploads a spec with these fields in its pool.
func (l *Life) ChangePool(fields string) {
	l.T.Helper()
	l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "minSize: 1, maxSize: 3", fields, 1))
}

// CreatePool creates a cluster with these fields in its pool, and waits.
func (l *Life) CreatePool(fields string) {
	l.T.Helper()
	l.Upload(names.ReleaseSpec("r1"), harness.Release())
	l.ChangePool(fields)
	l.SettleAll()
}

// StartDrain creates a pool and terminates one of its nodes. The drain of that node lasts as long as a budget blocks its pods.
func (l *Life) StartDrain(fields string) (drained string) {
	l.T.Helper()
	l.CreatePool(fields)
	l.RequirePhase(status.Ready)
	l.BlockPods(true)
	drained = l.Instance()
	l.TerminateInstance()
	time.Sleep(5 * time.Minute) // the new node has joined
	require.Equal(l.T, []string{drained}, l.Group("demo", "a").Draining())
	return drained
}

// PoolWaits returns what the pool's change waits for, from the status.
func (l *Life) PoolWaits() status.Delay {
	for _, stack := range l.Status("demo").Stacks {
		if stack.Name == "pool-a" && stack.Delay != nil {
			return *stack.Delay
		}
	}
	return status.Delay{}
}

// RequireRenewed requires that the pool has this number of nodes, all of them new.
func (l *Life) RequireRenewed(before pool.Group, n int) {
	l.T.Helper()
	l.RequirePhase(status.Ready)
	require.Empty(l.T, l.PoolWaits())
	time.Sleep(time.Minute) // the group lists an instance for some seconds after its hook is completed
	after := l.Group("demo", "a")
	require.Len(l.T, after.Instances, n)
	for _, i := range after.Instances {
		require.Equal(l.T, pool.InService, i.State)
		require.False(l.T, slices.ContainsFunc(before.Instances, func(old pool.Instance) bool { return old.ID == i.ID }))
	}
}

// TwoNodes are the fields of a pool of two nodes that are drained for at most three hours.
const TwoNodes = "minSize: 2, maxSize: 3, drain: {timeout: 3h}"

// SetPoolSize sets the desired size of the pool, as an autoscaler does. Scale also waits.
func (l *Life) SetPoolSize(desired int) {
	_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(PoolGroup), DesiredCapacity: aws.Int32(int32(desired)),
	})
	require.NoError(l.T, err)
}
