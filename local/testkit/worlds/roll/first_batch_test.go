package roll_test

// Batches of a roll, in virtual time. The first batch waits for drains from before the roll, also while an autoscaler adds
// nodes.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	autoscalingapi "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/stretchr/testify/require"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/questions"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// count returns the number of instances whose state has the prefix.
func count(v localautoscaling.View, state string) (n int) {
	for _, i := range v.Instances {
		if strings.HasPrefix(i.State, state) {
			n++
		}
	}
	return n
}

// larger is the field of a pool whose change replaces nodes.
const larger = ", rootVolume: {sizeGiB: 60}"

// The first batch of a roll waits for existing drains, however the roll is requested and made.
func TestFirstBatchWaitsForDrains(t *testing.T) {
	byHand := func(l *life, _ string) { l.Converge("demo", "a") }
	change := func(l *life, pool string) { l.ChangePool(pool + larger) }
	const refresh = ", update: {strategy: InstanceRefresh}"
	for name, c := range map[string]struct {
		pool string
		roll func(l *life, pool string)
	}{
		"a change":                         {lives.TwoNodes, change},
		"on demand":                        {lives.TwoNodes, byHand},
		"a change, by a refresh":           {lives.TwoNodes + refresh, change},
		"on demand, by a refresh":          {lives.TwoNodes + refresh, byHand},
		"a change, for which room is made": {strings.Replace(lives.TwoNodes, "maxSize: 3", "maxSize: 2", 1), change},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				drained := l.StartDrain(c.pool)
				before := l.Group("demo", "a")
				mark, began := l.Calls.Mark(), time.Now()
				c.roll(l, c.pool)
				time.Sleep(10 * time.Minute)
				require.Equal(t, "nodes are replaced when "+drained+" has been drained", l.PoolWaits().Message)
				require.WithinDuration(t, began.Add(3*time.Hour+10*time.Minute), l.PoolWaits().Until, time.Minute,
					"it is counted from the drain's beginning")
				require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
				for _, call := range l.Calls.Since(mark) {
					require.NotEqual(t, "ExecuteChangeSet", call.Action)
				}

				var overlaps []localautoscaling.View
				defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) {
					going := slices.ContainsFunc(v.Instances, func(i localautoscaling.InstanceView) bool { return i.ID == drained })
					if going && count(v, pool.Terminating) > 1 {
						overlaps = append(overlaps, v)
					}
				})()
				l.BlockPods(false)
				time.Sleep(8 * time.Minute)
				require.Empty(t, l.PoolWaits(), "now it waits for CloudFormation")
				l.SettleAll()
				require.Empty(t, overlaps)
				l.RequireRenewed(before, 2)
			})
		})
	}
}

// A roll that waits for hours polls. The audit does not end it as idle.
func TestRollPollsWhileItWaitsForDrains(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		drained := l.StartDrain(lives.TwoNodes)
		mark := l.Calls.Mark()
		l.ChangePool(lives.TwoNodes + larger)
		time.Sleep(110 * time.Minute)
		l.Sweep()
		require.NoError(t, l.AuditNow())
		require.Equal(t, status.Converging, l.Status("demo").Phase)
		require.Equal(t, "RUNNING", l.Execution(l.Status("demo").Execution).Status)
		require.Equal(t, []string{drained}, l.Group("demo", "a").Draining())
		looks := 0
		for _, call := range l.Calls.Since(mark) {
			if harness.CalledBy(call) == "change" && call.Action == "DescribeAutoScalingGroups" {
				looks++
			}
		}
		require.InDelta(t, 35, looks, 10)
		l.BlockPods(false)
		l.SettleAll()
		l.RequirePhase(status.Ready)
	})
}

// A drain that exceeds its pool's timeout and the grace after it no longer delays a roll. The status reports that.
func TestFirstBatchWaitsForALimitedTime(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 2, maxSize: 2, drain: {timeout: 10m}"
		drained := l.StartDrain(spec)
		before := l.Group("demo", "a")
		l.ChangePool(spec + larger)
		time.Sleep(19 * time.Minute) // the drain began five minutes before
		require.Equal(t, "nodes are replaced when "+drained+" has been drained", l.PoolWaits().Message)
		require.Empty(t, l.batches(lives.PoolGroup))
		time.Sleep(5 * time.Minute)
		require.Regexp(t, "^nodes are replaced although "+drained+" is still being drained: the wait took 25m[0-9]+s$", l.PoolWaits().Message)
		require.Zero(t, l.PoolWaits().Until)
		require.Len(t, l.batches(lives.PoolGroup), 1, "its room needs no second wait")
		l.BlockPods(false)
		l.SettleAll()
		l.RequireRenewed(before, 2)
	})
}

// A user's action takes effect within minutes, although the first batch still waits.
func TestChangesWhileTheFirstBatchWaits(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *life, arn string)
		then func(l *life)
	}{
		"the change is reverted": {
			func(l *life, _ string) { l.ChangePool(lives.TwoNodes) },
			func(l *life) { l.RequirePhase(status.Ready) },
		},
		"it is paused": {
			func(l *life, _ string) { l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  paused: true\n")) },
			func(l *life) {
				l.RequirePhase(status.Stopped)
				require.Equal(l.T, status.ReasonPaused, l.Status("demo").Condition(status.Converged).Reason)
			},
		},
		"the execution is stopped": {
			func(l *life, arn string) {
				l.StepFunctions.Stop(arn, "Stopped", "by an operator")
				time.Sleep(time.Minute)
			},
			func(l *life) { l.RequirePhase(status.Failed) }, // until the next sweep
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				drained := l.StartDrain(lives.TwoNodes)
				before := l.Group("demo", "a")
				l.ChangePool(lives.TwoNodes + larger)
				time.Sleep(time.Hour)
				require.Contains(t, l.PoolWaits().Message, drained)
				c.do(l, l.Status("demo").Execution)
				time.Sleep(6 * time.Minute)
				c.then(l)
				lease, err := l.State().Lease(l.T.Context(), "demo")
				require.NoError(t, err)
				require.Empty(t, lease.Execution)
				require.Equal(t, before.Instances, l.Group("demo", "a").Instances)
				// Leftovers of the first change do not block the next one.
				l.BlockPods(false)
				l.SettleAll()
				l.ChangePool(lives.TwoNodes + larger)
				l.SettleAll()
				l.RequireRenewed(before, 2)
			})
		})
	}
}

// An execution of an older state machine has no wait state. Its pools are changed at once, as before.
func TestOlderMachineDoesNotWaitForDrains(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		drained := l.StartDrain(lives.TwoNodes)
		l.Functions.Around("change", func(_ aws.Config, change awslambda.Handler) awslambda.Handler {
			return harness.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
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
		})
		l.ChangePool(lives.TwoNodes + larger)
		time.Sleep(2 * time.Minute)
		require.Contains(t, l.Group("demo", "a").Draining(), drained)
		require.Len(t, l.batches(lives.PoolGroup), 1)
		l.BlockPods(false)
		l.SettleAll()
		l.RequirePhase(status.Ready)
	})
}

// An autoscaler adds a node while nodes are replaced one by one. CloudFormation would count its signal for the batch, and
// start the next batch before the new node of this one has joined.
//
// If CloudFormation ignores that signal, the batch needs its own, which then seems surplus.
func TestAddedNodeIsNoBatch(t *testing.T) {
	for update, by := range map[string]string{"maxUnavailable: 0, maxSurge: 1": "Pending", "maxUnavailable: 1, maxSurge: 0": "Terminating"} {
		for reading, other := range map[string]bool{"its signal counts": false, "its signal is ignored": true} {
			t.Run(update+", "+reading, func(t *testing.T) { addsANode(t, update, by, questions.Readings{questions.OtherSignals: other}) })
		}
	}
}

// addsANode lets an autoscaler add a node when the first instance of a roll is in a state. The pool has maxUnavailable or
// maxSurge of one.
func addsANode(t *testing.T, update, state string, readings questions.Readings) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{lives.StartWith(t, harness.Options{Bubble: true, Readings: readings})}
		defer l.Close()
		spec := "minSize: 3, maxSize: 6, update: {" + update + "}"
		l.CreatePool(spec)
		before := l.Group("demo", "a")
		// Drains are faster than joins, so they do not delay the signals.
		l.API("drover-demo").Run(apiserver.App{
			Name: "shop", Replicas: 6, MaxUnavailable: 6, Start: time.Second, Stop: time.Second, Grace: time.Minute,
		})
		var mu sync.Mutex
		full, added := false, false
		var short []localautoscaling.View
		defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) {
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
		l.ChangePool(spec + larger)
		l.Until("the roll has begun", func() bool {
			v, _ := l.AutoScaling.View(lives.PoolGroup)
			return count(v, state) > 0
		})
		now := l.Group("demo", "a").Desired
		mu.Lock()
		added = true
		mu.Unlock()
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String(lives.PoolGroup), DesiredCapacity: aws.Int32(int32(now + 1)),
		})
		require.NoError(t, err)
		began := time.Now()
		l.SettleAll()
		require.Less(t, time.Since(began), time.Hour, "CloudFormation waits for signals for as long")
		l.RequirePhase(status.Ready)
		mu.Lock()
		joined, early := full, short
		mu.Unlock()
		require.True(t, joined)
		require.Empty(t, early, "the next batch goes when the last one has joined")
		time.Sleep(5 * time.Minute) // the last drained instance terminates
		l.RequireRenewed(before, 3)
	})
}

// An autoscaler adds a node to a pool of one node after the roll began, and before CloudFormation updates the group. One
// node may be out of service, never both.
func TestNodeAddedAtTheStartOfARoll(t *testing.T) {
	for _, update := range []string{"maxUnavailable: 1, maxSurge: 0", "maxUnavailable: 1, maxSurge: 1", "maxUnavailable: 0, maxSurge: 1"} {
		t.Run(update, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				spec := "minSize: 1, maxSize: 3, update: {" + update + "}"
				l.CreatePool(spec)
				l.ChangePool(spec + larger)
				l.Until("the roll is begun", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_IN_PROGRESS" })
				_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
					AutoScalingGroupName: aws.String(lives.PoolGroup), DesiredCapacity: aws.Int32(2),
				})
				require.NoError(t, err)
				before, began := l.Group("demo", "a"), time.Now()
				require.Equal(t, "1", before.TemplateVersion, "CloudFormation has not reached it")
				least := 1
				defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) { least = min(least, count(v, pool.InService)) })()
				l.SettleAll()
				require.Equal(t, 1, least)
				require.Less(t, time.Since(began), time.Hour, "CloudFormation waits for signals for as long")
				l.RequireRenewed(before, 2)
			})
		})
	}
}

// An autoscaler has just added nodes. The roll waits for them, for a limited time.
func TestFirstBatchWaitsForJoiningNodes(t *testing.T) {
	scale := func(l *life) (coming string) {
		_, err := autoscalingapi.NewFromConfig(l.Config()).SetDesiredCapacity(l.T.Context(), &autoscalingapi.SetDesiredCapacityInput{
			AutoScalingGroupName: aws.String(lives.PoolGroup), DesiredCapacity: aws.Int32(2),
		})
		require.NoError(l.T, err)
		time.Sleep(10 * time.Second)
		require.Len(l.T, l.Group("demo", "a").Launching(), 1)
		return l.Group("demo", "a").Launching()[0]
	}
	for _, strategy := range []string{"RollingUpdate", "InstanceRefresh"} {
		spec := "minSize: 1, maxSize: 3, update: {strategy: " + strategy + "}"
		t.Run(strategy, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreatePool(spec)
				coming := scale(l)
				least := 1
				defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) { least = min(least, count(v, pool.InService)) })()
				l.ChangePool(spec + larger)
				time.Sleep(20 * time.Second)
				require.Equal(t, "nodes are replaced when "+coming+" has joined", l.PoolWaits().Message)
				before := l.Group("demo", "a")
				l.SettleAll()
				time.Sleep(5 * time.Minute)
				l.RequireRenewed(before, 2)
				require.Equal(t, 1, least)
			})
		})
	}
	t.Run("and that do not", func(t *testing.T) {
		runWithFaults(t, func(l *life, bad *faults.Engine) {
			l.CreatePool("minSize: 1, maxSize: 3")
			end := lives.AddFault(t, bad, "kubelet-version=v1.39.1-eks-1")
			scale(l)
			began := time.Now()
			l.ChangePool("minSize: 1, maxSize: 3" + larger)
			time.Sleep(14 * time.Minute)
			// Each instance that did not join is drained, and replaced by one that joins no better.
			require.Regexp(t, "^nodes are replaced when .* (has joined|have joined|has been drained|have been drained)$", l.PoolWaits().Message)
			require.Empty(t, l.batches(lives.PoolGroup))
			// The wait ends with the first check after a quarter of an hour that finds an instance that launches, and not one that is being
			// drained. There are few checks by then, so it may end only when it has taken as long as a drain may take: an hour.
			for range 90 * 6 {
				if time.Sleep(10 * time.Second); strings.Contains(l.PoolWaits().Message, "although") {
					break
				}
			}
			require.Regexp(t, "^nodes are replaced although i-[0-9a-f]+ (has not joined|is still being drained): the wait took ",
				l.PoolWaits().Message)
			require.Greater(t, time.Since(began), 15*time.Minute)
			end()
			l.SettleAll()
			l.RequirePhase(status.Ready)
		})
	})
}

// The maximum of a pool becomes smaller than its size, by a spec or after a roll that was rolled back. Auto Scaling then
// terminates an instance, but not during the drain of another.
func TestMaximumIsReducedAfterDrains(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		drained := l.StartDrain("minSize: 3, maxSize: 3, drain: {timeout: 3h}")
		most := 0
		defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) {
			most = max(most, count(v, pool.Terminating)-count(v, pool.TerminatingProceed))
		})()
		l.ChangePool("minSize: 2, maxSize: 2, drain: {timeout: 3h}")
		time.Sleep(time.Minute)
		require.Equal(t, "the pool shrinks when "+drained+" has been drained", l.PoolWaits().Message)
		l.BlockPods(false)
		time.Sleep(8 * time.Minute)
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, 2, l.Group("demo", "a").Desired)
		require.Equal(t, 1, most)
	})
}

// A rollback fails because the drains of its batch take longer than CloudFormation waits. drover continues it after the
// drains: the next batch starts at once.
func TestRollbackContinuesAfterDrains(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		const spec = "minSize: 3, maxSize: 3, drain: {timeout: 6h}"
		l.CreatePool(spec)
		l.BlockPods(true)
		l.ChangePool(spec + larger)
		l.Until("its rollback has failed", func() bool { return l.Stacks("demo")["pool-a"] == "UPDATE_ROLLBACK_FAILED" })
		time.Sleep(time.Minute)
		l.RequirePhase(status.Failed)
		going := func(v localautoscaling.View) int { return count(v, pool.Terminating) }
		view, _ := l.AutoScaling.View(lives.PoolGroup)
		before, most := going(view), 0
		require.NotZero(t, before)
		defer l.AutoScaling.Watch(lives.PoolGroup, func(v localautoscaling.View) { most = max(most, going(v)) })()
		l.Converge("demo")
		time.Sleep(10 * time.Minute)
		require.Contains(t, l.PoolWaits().Message, "the rollback continues when ")
		require.Equal(t, "UPDATE_ROLLBACK_FAILED", l.Stacks("demo")["pool-a"])
		require.LessOrEqual(t, most, before)
		l.BlockPods(false)
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Equal(t, 3, l.Group("demo", "a").Desired)
	})
}
