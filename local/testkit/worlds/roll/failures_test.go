package roll_test

// Rolls that drover fails. CloudFormation rolls them back at once, which also replaces nodes. In virtual time.

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudformationapi "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// outs counts nodes of a pool that served and are being drained.
type outs struct {
	mu     sync.Mutex
	served map[string]bool
	now    []string
	// most is their maximum. back is their number when a rollback began.
	most int
	back []string
}

func (o *outs) sees(v localautoscaling.View) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = nil
	for _, i := range v.Instances {
		switch {
		case i.State == pool.InService:
			o.served[i.ID] = true
		case o.served[i.ID] && (i.State == pool.Terminating || i.State == pool.TerminatingWait):
			o.now = append(o.now, i.ID)
		}
	}
	o.most = max(o.most, len(o.now))
}

// startFailingRoll starts a roll with a batch whose new nodes do not join, one after the other. The old nodes drain for ten minutes. It
// returns the second node that the status reports as not joined, and the instances that are out of service then.
func (l *life) startFailingRoll(bad *faults.Engine) (second status.Node, out []string, seen *outs) {
	l.CreatePool("minSize: 4, maxSize: 8, update: {maxUnavailable: 1, maxSurge: 1}")
	l.API("drover-demo").Run(apiserver.App{
		Name: "shop", Replicas: 12, MaxUnavailable: 12, Start: time.Second, Stop: 10 * time.Minute, Grace: 12 * time.Minute,
	})
	time.Sleep(time.Minute)
	for range 2 { // the fourth node, after one of the surge and two of the first batch, and then its replacement
		lives.AddFault(l.T, bad, "kubelet-version=v1.37.2 nth=4")
	}
	seen = &outs{served: map[string]bool{}, back: []string{"it was not rolled back"}}
	l.OnClose(l.AutoScaling.Watch(lives.PoolGroup, seen.sees))
	l.OnResource(func(step string, r resource.Request) error {
		if step == "update" && r.Rollback && r.StackName == lives.PoolGroup {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.back = seen.now
		}
		return nil
	})
	l.Converge("demo", "a")
	l.Until("two have not joined", func() bool {
		nodes := slices.DeleteFunc(l.Status("demo").Nodes, func(n status.Node) bool { return n.State != status.NodeNotJoined })
		if len(nodes) > 1 {
			second = nodes[1]
		}
		return len(nodes) > 1
	})
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return second, seen.now, seen
}

// takenBack asserts that the roll was rolled back, that the message names the node that did not join, and that no instance waits at a hook.
func (l *life) takenBack(second status.Node) {
	l.T.Helper()
	l.RequirePhase(status.Failed)
	require.Equal(l.T, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-a"])
	message := l.Status("demo").Message
	require.Contains(l.T, message, second.Instance+" did not join: the kubelet is v1.37.2, newer than the control plane")
	require.NotContains(l.T, message, "the update is failed when", "that is over")
	for _, x := range l.Executions("join-node") {
		require.NotEqual(l.T, "RUNNING", x.Status)
	}
	require.Empty(l.T, l.Group("demo", "a").Launching())
}

// The old nodes of a batch are being drained while the new ones do not join. drover fails the update after these drains. Otherwise the
// first batch of the rollback would be drained at the same time.
func TestRollFailsAfterTheDrainsOfItsBatch(t *testing.T) {
	for name, waits := range map[string]bool{"CloudFormation waits for drains": true, "CloudFormation does not wait for drains": false} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, bad *faults.Engine) {
				l.AutoScaling.WaitForTerminateHooks(waits)
				second, out, seen := l.startFailingRoll(bad)
				l.SettleAll()
				seen.mu.Lock()
				require.Empty(t, seen.back, "they have been drained when the rollback begins")
				require.Equal(t, 2, seen.most, "are out at once")
				seen.mu.Unlock()
				l.takenBack(second)
				require.Contains(t, l.Status("demo").Message, "FAILURE signal")

				require.Len(t, out, 2)
				_, waits, _ := strings.Cut(second.Message, "; drover fails the update when ")
				for _, id := range out {
					require.Contains(t, waits, id)
				}
			})
		})
	}
}

// A user cancels the update for an immediate rollback. The execution that waits to fail the update ends.
func TestRollIsCancelledBeforeItFails(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		second, _, seen := l.startFailingRoll(bad)
		_, err := cloudformationapi.NewFromConfig(l.Config()).CancelUpdateStack(l.T.Context(), &cloudformationapi.CancelUpdateStackInput{
			StackName: aws.String(lives.PoolGroup),
		})
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		require.NotContains(t, l.Group("demo", "a").Launching(), second.Instance)
		seen.mu.Lock()
		require.NotEmpty(t, seen.back)
		seen.mu.Unlock()
		time.Sleep(30 * time.Minute)
		l.Sweep()
		l.SettleAll()
		l.takenBack(second)
	})
}
