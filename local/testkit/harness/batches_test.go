package harness

// Batches of a roll, each after the other: also the first one after what was there before the roll, and also while an
// autoscaler adds nodes. In virtual time.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/pool"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const rolledGroup = "drover-demo-pool-a"

// pool uploads a spec whose pool is of these fields.
func (l *life) pool(fields string) {
	l.t.Helper()
	l.Upload(names.ClusterSpec("demo"), strings.Replace(Spec("demo", ""), "minSize: 1, maxSize: 3", fields, 1))
}

// grown is a pool that is ready.
func (l *life) grown(fields string) {
	l.t.Helper()
	l.Upload(names.ReleaseSpec("r1"), Release())
	l.pool(fields)
	l.settle()
}

// drains creates a pool and terminates one of its nodes. The drain of that node lasts as long as a budget blocks its pods.
func (l *life) drains(fields string) (drained string) {
	l.t.Helper()
	l.grown(fields)
	l.phase(status.Ready)
	l.hold(true)
	drained = l.instance()
	l.terminate()
	time.Sleep(5 * time.Minute) // the new one is there
	require.Equal(l.t, []string{drained}, l.Group("demo", "a").Leaving())
	return drained
}

// waits is what the status says that the pool's change waits for.
func (l *life) waits() status.Waits {
	for _, stack := range l.Status("demo").Stacks {
		if stack.Name == "pool-a" && stack.Waits != nil {
			return *stack.Waits
		}
	}
	return status.Waits{}
}

// renewed says that the pool has as many nodes, none of them those of before.
func (l *life) renewed(before pool.Group, n int) {
	l.t.Helper()
	l.phase(status.Ready)
	require.Empty(l.t, l.waits())
	after := l.Group("demo", "a")
	require.Len(l.t, after.Instances, n)
	for _, i := range after.Instances {
		require.Equal(l.t, pool.InService, i.State)
		require.False(l.t, slices.ContainsFunc(before.Instances, func(old pool.Instance) bool { return old.ID == i.ID }))
	}
}

// count instances of a group whose state begins so.
func count(v localautoscaling.View, state string) (n int) {
	for _, i := range v.Instances {
		if strings.HasPrefix(i.State, state) {
			n++
		}
	}
	return n
}

const (
	twoNodes = "minSize: 2, maxSize: 3, drain: {timeout: 3h}"
	larger   = ", rootVolume: {sizeGiB: 60}" // a change that replaces nodes
)

// However a roll is asked for and made, its first batch waits for the drains that it finds.
func TestTheFirstBatchWaitsForTheDrainsBefore(t *testing.T) {
	byHand := func(l *life, _ string) { l.Converge("demo", "a") }
	change := func(l *life, pool string) { l.pool(pool + larger) }
	const refresh = ", update: {strategy: InstanceRefresh}"
	for name, c := range map[string]struct {
		pool string
		roll func(l *life, pool string)
	}{
		"a change":                         {twoNodes, change},
		"on demand":                        {twoNodes, byHand},
		"a change, by a refresh":           {twoNodes + refresh, change},
		"on demand, by a refresh":          {twoNodes + refresh, byHand},
		"a change, for which room is made": {strings.Replace(twoNodes, "maxSize: 3", "maxSize: 2", 1), change},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				drained := l.drains(c.pool)
				before := l.Group("demo", "a")
				mark, began := l.Calls.Mark(), time.Now()
				c.roll(l, c.pool)
				time.Sleep(10 * time.Minute)
				require.Equal(t, "nodes are replaced when "+drained+" are drained", l.waits().Message)
				require.WithinDuration(t, began.Add(3*time.Hour+10*time.Minute), l.waits().Until, time.Minute,
					"it is counted from the drain's beginning")
				require.Equal(t, []string{drained}, l.Group("demo", "a").Leaving())
				for _, call := range l.Calls.Since(mark) {
					require.NotEqual(t, "ExecuteChangeSet", call.Action)
				}

				var overlaps []localautoscaling.View
				defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) {
					going := slices.ContainsFunc(v.Instances, func(i localautoscaling.InstanceView) bool { return i.ID == drained })
					if going && count(v, pool.Terminating) > 1 {
						overlaps = append(overlaps, v)
					}
				})()
				l.hold(false)
				time.Sleep(8 * time.Minute)
				require.Empty(t, l.waits(), "it is CloudFormation that is waited for by now")
				l.settle()
				require.Empty(t, overlaps)
				l.renewed(before, 2)
			})
		})
	}
}

// A roll that waits for hours looks now and then, and is not taken for one that waits for nothing, which the audit would end.
func TestARollThatWaitsForDrainsDoesNotStandStill(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		drained := l.drains(twoNodes)
		mark := l.Calls.Mark()
		l.pool(twoNodes + larger)
		time.Sleep(110 * time.Minute)
		l.swept()
		require.NoError(t, l.AuditNow())
		require.Equal(t, status.Converging, l.Status("demo").Phase)
		require.Equal(t, "RUNNING", l.Execution(l.Status("demo").Execution).Status)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Leaving())
		looks := 0
		for _, call := range l.Calls.Since(mark) {
			if CalledBy(call) == "change" && call.Action == "DescribeAutoScalingGroups" {
				looks++
			}
		}
		require.InDelta(t, 35, looks, 10)
		l.hold(false)
		l.settle()
		l.phase(status.Ready)
	})
}

// A drain that outlasts its pool's time, and what it may take beyond, holds a roll no longer, and the status says so.
func TestTheFirstBatchDoesNotWaitForEver(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 2, maxSize: 2, drain: {timeout: 10m}"
		drained := l.drains(spec)
		before := l.Group("demo", "a")
		l.pool(spec + larger)
		time.Sleep(19 * time.Minute) // the drain began five minutes before
		require.Equal(t, "nodes are replaced when "+drained+" are drained", l.waits().Message)
		require.Empty(t, l.batches(rolledGroup))
		time.Sleep(5 * time.Minute)
		require.Regexp(t, "^nodes are replaced though "+drained+" are still drained: it has waited for 25m[0-9]+s$", l.waits().Message)
		require.Zero(t, l.waits().Until)
		require.Len(t, l.batches(rolledGroup), 1, "room for it is made without waiting once more")
		l.hold(false)
		l.settle()
		l.renewed(before, 2)
	})
}

// A user's action takes effect within minutes, although the first batch still waits.
func TestWhatPeopleDoWhileTheFirstBatchWaits(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *life, arn string)
		then func(l *life)
	}{
		"the change is taken back": {
			func(l *life, _ string) { l.pool(twoNodes) },
			func(l *life) { l.phase(status.Ready) },
		},
		"it is paused": {
			func(l *life, _ string) { l.Upload(names.ClusterSpec("demo"), Spec("demo", "  paused: true\n")) },
			func(l *life) {
				l.phase(status.Stopped)
				require.Equal(l.t, status.ReasonPaused, l.Status("demo").Condition(status.Converged).Reason)
			},
		},
		"the execution is stopped": {
			func(l *life, arn string) {
				l.States.Stop(arn, "Stopped", "by a person")
				time.Sleep(time.Minute)
				l.swept()
			},
			func(l *life) { l.phase(status.Failed) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				drained := l.drains(twoNodes)
				before := l.Group("demo", "a")
				l.pool(twoNodes + larger)
				time.Sleep(time.Hour)
				require.Contains(t, l.waits().Message, drained)
				c.do(l, l.Status("demo").Execution)
				time.Sleep(6 * time.Minute)
				c.then(l)
				lease, err := l.State().Lease(l.t.Context(), "demo")
				require.NoError(t, err)
				require.Empty(t, lease.Execution)
				require.Equal(t, before.Instances, l.Group("demo", "a").Instances)
				// Leftovers of the first change do not block the next one.
				l.hold(false)
				l.settle()
				l.pool(twoNodes + larger)
				l.settle()
				l.renewed(before, 2)
			})
		})
	}
}

// An execution that began before drover had this yet has no state to wait in: its pools are changed at once, as they were.
func TestExecutionsOfAnEarlierMachineDoNotWait(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		drained := l.drains(twoNodes)
		change := l.Functions.handlers["change"]
		l.Functions.handlers["change"] = handlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			var in map[string]any
			if err := json.Unmarshal(payload, &in); err != nil {
				return nil, err
			}
			delete(in, "waitedSeconds")
			payload, err := json.Marshal(in)
			if err != nil {
				return nil, err
			}
			return change.Invoke(ctx, payload)
		})
		l.pool(twoNodes + larger)
		time.Sleep(2 * time.Minute)
		require.Contains(t, l.Group("demo", "a").Leaving(), drained)
		require.Len(t, l.batches(rolledGroup), 1)
		l.hold(false)
		l.settle()
		l.phase(status.Ready)
	})
}

// An autoscaler adds a node while nodes are replaced one by one. CloudFormation would take its signal for that of the batch, and its next
// batch while that has not joined, also when the node was Ready long before that batch.
func TestANodeThatAnAutoscalerAddsIsNoBatch(t *testing.T) {
	for update, by := range map[string]string{"maxUnavailable: 0, maxSurge: 1": "Pending", "maxUnavailable: 1, maxSurge: 0": "Terminating"} {
		t.Run(update, func(t *testing.T) { addsANode(t, update, by) })
	}
}

// addsANode has an autoscaler add one when the first instance of a roll is in a state, of a pool of which one may be
// out or one more be there.
func addsANode(t *testing.T, update, state string) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		spec := "minSize: 3, maxSize: 6, update: {" + update + "}"
		l.grown(spec)
		before := l.Group("demo", "a")
		// Drains take less time than nodes to join, so that it is not they that hold the signals.
		l.API("drover-demo").Run(apiserver.App{
			Name: "shop", Replicas: 6, MaxUnavailable: 6, Start: time.Second, Stop: time.Second, Grace: time.Minute,
		})
		var mu sync.Mutex
		full, added := false, false
		var short []localautoscaling.View
		defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) {
			mu.Lock()
			defer mu.Unlock()
			old := slices.ContainsFunc(v.Instances, func(i localautoscaling.InstanceView) bool {
				return i.TemplateVersion == 1 && i.State == pool.InService
			})
			serving := count(v, pool.InService)
			full = full || added && serving >= v.Desired
			if full && old && serving < v.Desired-1 {
				short = append(short, v)
			}
		})()
		l.pool(spec + larger)
		l.Until("the roll is under way", func() bool {
			v, _ := l.AutoScaling.View(rolledGroup)
			return count(v, state) > 0
		})
		now := l.Group("demo", "a").Desired
		mu.Lock()
		added = true
		mu.Unlock()
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String(rolledGroup), DesiredCapacity: aws.Int32(int32(now + 1)),
		})
		require.NoError(t, err)
		l.settle()
		mu.Lock()
		joined, early := full, short
		mu.Unlock()
		require.True(t, joined)
		require.Empty(t, early, "the next batch goes when the last one has joined")
		time.Sleep(5 * time.Minute) // the last drained instance terminates
		l.renewed(before, 3)
	})
}

// An autoscaler adds a node to a pool of one after the roll was begun and before CloudFormation comes to the group. The one may be out, and
// never both.
func TestANodeThatAnAutoscalerAddsAsARollBeginsStays(t *testing.T) {
	for _, update := range []string{"maxUnavailable: 1, maxSurge: 0", "maxUnavailable: 1, maxSurge: 1", "maxUnavailable: 0, maxSurge: 1"} {
		t.Run(update, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				spec := "minSize: 1, maxSize: 3, update: {" + update + "}"
				l.grown(spec)
				l.pool(spec + larger)
				l.Until("the roll is begun", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_IN_PROGRESS" })
				_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
					AutoScalingGroupName: aws.String(rolledGroup), DesiredCapacity: aws.Int32(2),
				})
				require.NoError(t, err)
				before, began := l.Group("demo", "a"), time.Now()
				require.Equal(t, "1", before.TemplateVersion, "CloudFormation has not come to it")
				least := 1
				defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) { least = min(least, count(v, pool.InService)) })()
				l.settle()
				require.Equal(t, 1, least)
				require.Less(t, time.Since(began), time.Hour, "CloudFormation waits for signals for as long")
				l.renewed(before, 2)
			})
		})
	}
}

// An autoscaler has just added nodes. Those that serve are replaced when these serve, too; but not for ever, if they do not come to it.
func TestTheFirstBatchWaitsForTheNodesThatJoin(t *testing.T) {
	scale := func(l *life) (coming string) {
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.t.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String(rolledGroup), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.t, err)
		time.Sleep(10 * time.Second)
		require.Len(l.t, l.Group("demo", "a").Coming(), 1)
		return l.Group("demo", "a").Coming()[0]
	}
	for _, strategy := range []string{"RollingUpdate", "InstanceRefresh"} {
		spec := "minSize: 1, maxSize: 3, update: {strategy: " + strategy + "}"
		t.Run(strategy, func(t *testing.T) {
			upgradeLife(t, func(l *life, _ *faults.Engine) {
				l.grown(spec)
				coming := scale(l)
				least := 1
				defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) { least = min(least, count(v, pool.InService)) })()
				l.pool(spec + larger)
				time.Sleep(20 * time.Second)
				require.Equal(t, "nodes are replaced when "+coming+" have joined", l.waits().Message)
				before := l.Group("demo", "a")
				l.settle()
				time.Sleep(5 * time.Minute)
				l.renewed(before, 2)
				require.Equal(t, 1, least)
			})
		})
	}
	t.Run("and that do not", func(t *testing.T) {
		upgradeLife(t, func(l *life, bad *faults.Engine) {
			l.grown("minSize: 1, maxSize: 3")
			end := strike(t, bad, "kubelet-version=v1.39.1-eks-1")
			scale(l)
			l.pool("minSize: 1, maxSize: 3" + larger)
			time.Sleep(14 * time.Minute)
			require.Contains(t, l.waits().Message, " have joined")
			require.Empty(t, l.batches(rolledGroup))
			for range 15 * 6 { // between two of them there is a moment in which the one before is drained
				if time.Sleep(10 * time.Second); strings.Contains(l.waits().Message, "though") {
					break
				}
			}
			require.Contains(t, l.waits().Message, " have not joined: it has waited for ")
			end()
			l.settle()
			l.phase(status.Ready)
		})
	})
}

// A pool gets less room than it fills, by a spec or because a roll that was rolled back left it larger. Auto Scaling
// ends an instance for that: not beside a drain that goes on.
func TestRoomIsTakenBackOnceNothingIsDrained(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		drained := l.drains("minSize: 3, maxSize: 3, drain: {timeout: 3h}")
		most := 0
		defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) {
			most = max(most, count(v, pool.Terminating)-count(v, pool.TerminatingProceed))
		})()
		l.pool("minSize: 2, maxSize: 2, drain: {timeout: 3h}")
		time.Sleep(time.Minute)
		require.Equal(t, "the pool is made smaller when "+drained+" are drained", l.waits().Message)
		l.hold(false)
		time.Sleep(8 * time.Minute)
		l.settle()
		l.phase(status.Ready)
		require.Equal(t, 2, l.Group("demo", "a").Desired)
		require.Equal(t, 1, most)
	})
}

// A rollback fails, because the drains of its batch take longer than CloudFormation waits. It is continued when they
// are over: it takes its next batch at once.
func TestARollbackIsContinuedOnceNothingIsDrained(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 3, maxSize: 3, drain: {timeout: 6h}"
		l.grown(spec)
		l.hold(true)
		l.pool(spec + larger)
		l.Until("its rollback has failed", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_ROLLBACK_FAILED" })
		time.Sleep(time.Minute)
		l.phase(status.Failed)
		going := func(v localautoscaling.View) int { return count(v, pool.Terminating) }
		view, _ := l.AutoScaling.View(rolledGroup)
		before, most := going(view), 0
		require.NotZero(t, before)
		defer l.AutoScaling.Watch(rolledGroup, func(v localautoscaling.View) { most = max(most, going(v)) })()
		l.Converge("demo")
		time.Sleep(10 * time.Minute)
		require.Contains(t, l.waits().Message, "the rollback goes on when ")
		require.Equal(t, "UPDATE_ROLLBACK_FAILED", l.Stacks("demo")["pool-a"])
		require.LessOrEqual(t, most, before)
		l.hold(false)
		l.settle()
		l.phase(status.Ready)
		require.Equal(t, 3, l.Group("demo", "a").Desired)
	})
}
