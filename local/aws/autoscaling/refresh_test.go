package autoscaling

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
)

func byRefresh(preferences map[string]any) map[string]any {
	return map[string]any{
		"AutoScalingInstanceRefresh": map[string]any{
			"Strategy": "Rolling", "Preferences": with(map[string]any{"SkipMatching": true}, preferences),
		},
	}
}

func TestInstanceRefresh(t *testing.T) {
	for name, test := range map[string]struct {
		preferences      map[string]any
		least, most, out int
	}{
		"ends before it launches":              {map[string]any{"MinHealthyPercentage": 50.0}, 2, 4, 2},
		"launches before it ends":              {map[string]any{"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 125.0}, 4, 5, 1},
		"launches two before it ends two":      {map[string]any{"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 150.0}, 4, 6, 2},
		"launches and ends within both bounds": {map[string]any{"MinHealthyPercentage": 75.0, "MaxHealthyPercentage": 125.0}, 3, 5, 2},
		"one at a time when it must":           {map[string]any{"MinHealthyPercentage": 100.0}, 3, 4, 1},
		"the bounds may be parameters of a stack": {
			map[string]any{"MinHealthyPercentage": "100", "MaxHealthyPercentage": "125", "SkipMatching": "true"}, 4, 5, 1,
		},
		"a maximum that rounds to zero is one instance": {map[string]any{"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 110.0}, 4, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for hooks, waits := range map[string]bool{"waiting for terminate hooks": true, "not waiting": false} {
				t.Run(hooks, func(t *testing.T) {
					run(t, func(w *world) {
						w.Service.WaitForTerminateHooks(waits)
						w.onLaunch = answerAll("CONTINUE")
						more := map[string]any{"MinSize": 4.0, "MaxSize": 6.0, "LifecycleHookSpecificationList": bothHooks}
						w.create(more)
						seen := w.extremes()
						require.NoError(t, w.roll(byRefresh(test.preferences), more))
						settle(time.Hour)
						seen.stop()
						require.Equal(t, test.least, seen.least, "in service at least")
						require.Equal(t, test.most, seen.most, "there at most")
						if waits {
							require.Equal(t, test.out, seen.out, "out at most")
						} else {
							require.Greater(t, seen.out, test.out, "no launch hook is held")
						}
						requireVersion(w, 2, 4)
						synctest.Wait()
						require.Equal(t, 1, w.countEvents("EC2 Auto Scaling Instance Refresh Succeeded"))
					})
				})
			}
		})
	}
}

// An instance counts after its launch hook is completed, so a late completion delays the next batch.
func TestInstanceRefreshGoesByLaunchHooks(t *testing.T) {
	run(t, func(w *world) {
		w.Service.WaitForTerminateHooks(false)
		more := map[string]any{"LifecycleHookSpecificationList": bothHooks}
		w.onLaunch = answerAll("CONTINUE")
		w.create(more)
		w.mu.Lock()
		w.onLaunch = nil
		w.mu.Unlock()
		done := make(chan error, 1)
		go func() {
			done <- w.roll(byRefresh(map[string]any{"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 150.0}), more)
		}()
		for range 2 {
			settle(2 * time.Minute)
			require.Equal(t, 1, strings.Count(w.state(), pendingWait), w.state())
			require.Equal(t, 2, strings.Count(w.state(), inService))
			for _, m := range w.members() {
				if m.state == pendingWait {
					require.NoError(t, w.answer(w.admin, "pool", "launch", "", m.id, "CONTINUE"))
				}
			}
		}
		require.NoError(t, <-done)
	})
}

// Instances that are not in service are terminated first. Others are terminated only when enough instances are in service.
func TestInstanceRefreshOfAGroupThatIsNotWhole(t *testing.T) {
	run(t, func(w *world) {
		w.onLaunch, w.onTerminate = answerAll("CONTINUE"), answerAll("CONTINUE")
		w.create(map[string]any{"LifecycleHookSpecificationList": bothHooks})
		before := w.ids()
		answer := func(with func(string) string) {
			w.mu.Lock()
			w.onLaunch = with
			w.mu.Unlock()
		}
		answer(nil)
		_, err := w.terminateInstance(w.admin, before[1], false)
		require.NoError(t, err)
		settle(time.Minute)
		require.Equal(t, 1, strings.Count(w.state(), inService), w.state())
		seen, half := w.extremes(), 50
		r, err := w.startRefresh(w.admin, "pool", Preferences{MinHealthyPercentage: &half})
		require.NoError(t, err)
		settle(10 * time.Minute)
		require.Contains(t, w.ids(), before[0])
		answer(answerAll("CONTINUE")) // from the next one on: the hook of the waiting one times out
		settle(time.Hour)
		seen.stop()
		require.Equal(t, "Successful", r.status)
		require.NotContains(t, w.ids(), before[0])
		require.Equal(t, 1, seen.least)
	})
}

// A refresh fails after an hour if new instances do not get into service, and with it the update. Its rollback is another refresh, which
// skips instances that were never replaced.
func TestInstanceRefreshThatFails(t *testing.T) {
	run(t, func(w *world) {
		more := map[string]any{"MinSize": 4.0, "MaxSize": 6.0, "LifecycleHookSpecificationList": bothHooks}
		w.onLaunch, w.onTerminate = answerAll("CONTINUE"), answerAll("CONTINUE")
		w.create(more)
		before := w.ids()
		w.mu.Lock()
		w.onLaunch = nil // like a node that is never Ready: the hook times out
		w.mu.Unlock()
		seen, started := w.extremes(), time.Now()
		policy := byRefresh(map[string]any{"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 125.0})
		err := w.roll(policy, more)
		require.ErrorContains(t, err, "ended with status Failed. The new instances did not get into service within an hour: Instance failed to "+
			"complete user's Lifecycle Action")
		require.InDelta(t, 75*time.Minute, time.Since(started), float64(10*time.Minute), "an hour after the first that failed")
		settle(time.Hour)
		require.Equal(t, 1, w.countEvents("EC2 Auto Scaling Instance Refresh Failed"))
		w.mu.Lock()
		w.onLaunch = answerAll("CONTINUE")
		w.mu.Unlock()
		r := w.request(w.properties(more))
		r.PhysicalID, r.UpdatePolicy = "pool", policy
		r.Old = w.properties(with(more, map[string]any{"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"}}))
		_, err = w.provider().Update(w.Context(), r)
		require.NoError(t, err)
		settle(time.Hour)
		seen.stop()
		require.ElementsMatch(t, before, w.ids())
		require.Equal(t, []int{4, 5}, []int{seen.least, seen.most})
	})
}

// A refresh that waits for termination hooks has the same limit of an hour. Without new instances in service, a drain and the refresh could
// wait for each other.
func TestInstanceRefreshThatFailsBesideADrain(t *testing.T) {
	run(t, func(w *world) {
		w.Service.WaitForTerminateHooks(true)
		w.onLaunch = answerAll("CONTINUE")
		hooks := map[string]any{"LifecycleHookSpecificationList": []any{
			hook("launch", "LAUNCHING", 300.0, "ABANDON"), hook("terminate", "TERMINATING", 7200.0, "CONTINUE"),
		}}
		w.create(hooks)
		w.mu.Lock()
		w.onLaunch = nil // like a node that is never Ready
		w.mu.Unlock()
		started := time.Now()
		err := w.roll(byRefresh(map[string]any{"MinHealthyPercentage": 50.0}), hooks)
		require.ErrorContains(t, err, "The new instances did not get into service within an hour")
		require.InDelta(t, 65*time.Minute, time.Since(started), float64(10*time.Minute))
		require.Contains(t, w.state(), terminatingWait)
	})
}

func TestInstanceRefreshThatIsCancelled(t *testing.T) {
	t.Run("by a request", func(t *testing.T) {
		run(t, func(w *world) {
			w.create(nil)
			r, err := w.startRefresh(w.admin, "pool", Preferences{})
			require.NoError(t, err)
			_, err = w.startRefresh(w.admin, "pool", Preferences{})
			requireCode(t, "InstanceRefreshInProgress", err)
			settle(5 * time.Second)
			_, err = w.cancelRefresh(w.admin, "pool", false)
			require.NoError(t, err)
			settle(10 * time.Minute)
			require.Equal(t, "Cancelled", r.status)
			require.Len(t, w.ids(), 2)
			_, err = w.cancelRefresh(w.admin, "pool", false)
			requireCode(t, "ActiveInstanceRefreshNotFound", err)
		})
	})
	t.Run("by a request that waits for instances on their way", func(t *testing.T) {
		run(t, func(w *world) {
			w.onLaunch = answerAll("CONTINUE")
			w.create(map[string]any{"LifecycleHookSpecificationList": bothHooks})
			r, err := w.startRefresh(w.admin, "pool", Preferences{})
			require.NoError(t, err)
			settle(time.Minute)
			require.Contains(t, w.state(), terminatingWait, "the termination hook is not completed")
			_, err = w.cancelRefresh(w.admin, "pool", true)
			require.NoError(t, err)
			settle(time.Minute)
			require.Equal(t, "Cancelling", r.status)
			_, err = w.cancelRefresh(w.admin, "pool", false)
			require.NoError(t, err)
			settle(time.Minute)
			require.Equal(t, "Cancelled", r.status)
			require.Contains(t, w.state(), terminatingWait)
		})
	})
	t.Run("with the update that started it", func(t *testing.T) {
		run(t, func(w *world) {
			more := map[string]any{"LifecycleHookSpecificationList": bothHooks, "MaxSize": 3.0}
			w.onLaunch, w.onTerminate = answerAll("CONTINUE"), answerAll("CONTINUE")
			w.create(more)
			before := w.ids()
			w.mu.Lock()
			w.onLaunch = nil
			w.mu.Unlock()
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(time.Minute, cancel)
			w.newVersion(ec2.ImageID("1.37", "x86_64"))
			old := w.properties(more)
			r := w.request(with(old, map[string]any{"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"}}))
			r.PhysicalID, r.Old, r.UpdatePolicy = "pool", old, byRefresh(map[string]any{
				"MinHealthyPercentage": 100.0, "MaxHealthyPercentage": 150.0,
			})
			_, err := w.provider().Update(ctx, r)
			require.ErrorIs(t, err, context.Canceled)
			settle(time.Hour)
			require.ElementsMatch(t, before, w.ids(), "the instances of the refresh are terminated, the earlier ones stay")
			require.Equal(t, 1, w.countEvents("EC2 Auto Scaling Instance Refresh Cancelled"))
			_, err = w.startRefresh(w.admin, "pool", Preferences{})
			require.NoError(t, err, "the rollback may start its own")
		})
	})
}

// CloudFormation's role needs the permissions of the refresh.
func TestInstanceRefreshNeedsPermissions(t *testing.T) {
	run(t, func(w *world) {
		w.create(nil)
		r := w.request(w.properties(nil))
		r.PhysicalID = "pool"
		r.Caller = w.role("stack", `{"Effect":"Allow","Action":["autoscaling:StartInstanceRefresh"],"Resource":"*"}`)
		err := groupProvider{w.Service}.instanceRefresh(w.Context(), r, Preferences{})
		require.ErrorContains(t, err, "autoscaling:DescribeInstanceRefreshes")
	})
}
