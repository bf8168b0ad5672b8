package autoscaling

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// createLater creates the group in the background, because creation waits for launch hooks.
func (w *world) createLater(more map[string]any) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.provider().Create(w.Context(), w.request(w.properties(more)))
		done <- err
	}()
	return done
}

func TestLaunchHook(t *testing.T) {
	run(t, func(w *world) {
		done := w.createLater(map[string]any{"LifecycleHookSpecificationList": bothHooks, "MinSize": 1.0})
		settle(time.Minute)
		require.Equal(t, pendingWait, w.state(), "an instance waits before it is in service")
		id := w.ids()[0]
		w.mu.Lock()
		first := w.events[0]
		w.mu.Unlock()
		token := first.detail["LifecycleActionToken"].(string)
		require.Empty(t, cmp.Diff(map[string]any{
			"LifecycleActionToken": token, "AutoScalingGroupName": "pool", "LifecycleHookName": "launch", "EC2InstanceId": id,
			"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "NotificationMetadata": `{"cluster":"demo","pool":"workers"}`,
			"Origin": "EC2", "Destination": "AutoScalingGroup",
		}, first.detail))
		require.Equal(t, "EC2 Instance-launch Lifecycle Action", first.detailType)
		require.NoError(t, w.answer(w.admin, "pool", "launch", "", id, "CONTINUE"))
		require.NoError(t, <-done)
		require.Equal(t, inService, w.state())
		synctest.Wait()
		require.Equal(t, 1, w.countEvents("EC2 Instance Launch Successful"))

		err := w.answer(w.admin, "pool", "launch", "", id, "CONTINUE")
		require.EqualError(t, err, "ValidationError: No active Lifecycle Action found with instance ID "+id)
		err = w.answer(w.admin, "pool", "launch", token, "", "CONTINUE")
		require.EqualError(t, err, "ValidationError: No active Lifecycle Action found with token "+token)
	})
}

func TestLaunchHookTimesOut(t *testing.T) {
	run(t, func(w *world) {
		done := w.createLater(map[string]any{"LifecycleHookSpecificationList": bothHooks, "MinSize": 1.0})
		settle(time.Minute)
		first := w.ids()[0]
		settle(900 * time.Second)
		require.Equal(t, "Terminating:Wait Pending:Wait", w.state(), "ABANDON by default: replaced, and ended by its termination hook")
		require.Equal(t, first, w.ids()[0])
		require.Equal(t, 1, w.countEvents("EC2 Instance Launch Unsuccessful"))
		w.mu.Lock()
		w.onLaunch = answerAll("CONTINUE")
		w.mu.Unlock()
		require.NoError(t, w.answer(w.admin, "pool", "launch", "", w.ids()[1], "CONTINUE"))
		require.NoError(t, <-done)
		settle(6 * time.Minute)
		require.Equal(t, inService, w.state())
		w.Service.mu.Lock()
		a := w.groups[0].activities[0]
		w.Service.mu.Unlock()
		require.Equal(t, "Cancelled", a.StatusCode)
		require.Contains(t, a.StatusMessage, "was abandoned: Heartbeat Timeout")
	})
}

func TestHeartbeats(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": []any{hook("launch", "LAUNCHING", 30, "CONTINUE")}})
		require.NoError(t, w.setDesired(w.admin, "pool", 1))
		settle(10 * time.Second)
		started := time.Now()
		id := w.ids()[0]
		for w.state() == pendingWait && w.answer(w.admin, "pool", "launch", "", id, "") == nil {
			settle(20 * time.Second)
		}
		require.Equal(t, 3000*time.Second, time.Since(started), "heartbeats reach to a hundred times the timeout")
		require.Equal(t, inService, w.state(), "CONTINUE by default")
	})
}

func TestTwoHooksOfOneTransition(t *testing.T) {
	hooks := []any{hook("one", "LAUNCHING", 300, "ABANDON"), hook("two", "LAUNCHING", 300, "ABANDON")}
	for name, test := range map[string]struct {
		one, two, state string
		proceeds        bool
	}{
		"both must continue":         {"CONTINUE", "", pendingWait, false},
		"both have":                  {"CONTINUE", "CONTINUE", inService, true},
		"one ABANDON ends the other": {"ABANDON", "", "Terminating:Proceed Pending", false},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.create(map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": hooks})
				require.NoError(t, w.setDesired(w.admin, "pool", 1))
				settle(10 * time.Second)
				id := w.ids()[0]
				proceeds := false
				defer w.Watch("pool", func(v View) { proceeds = proceeds || v.Instances[0].State == pendingProceed })()
				require.NoError(t, w.answer(w.admin, "pool", "one", "", id, test.one))
				if test.two != "" {
					require.NoError(t, w.answer(w.admin, "pool", "two", "", id, test.two))
				}
				synctest.Wait()
				require.Equal(t, test.state, w.state())
				require.Equal(t, test.proceeds, proceeds)
			})
		})
	}
}

// Termination waits for its hook, whatever its cause, and either result terminates.
func TestTerminateHook(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(w *world)
		answer string
		after  time.Duration // the time that the instance waits
	}{
		"scale-in, continued": {func(w *world) { require.NoError(w, w.setDesired(w.admin, "pool", 1)) }, "CONTINUE", 0},
		"scale-in, abandoned": {func(w *world) { require.NoError(w, w.setDesired(w.admin, "pool", 1)) }, "ABANDON", 0},
		"scale-in, no answer": {func(w *world) { require.NoError(w, w.setDesired(w.admin, "pool", 1)) }, "", 300 * time.Second},
		"terminated by request": {func(w *world) {
			_, err := w.terminateInstance(w.admin, w.ids()[0], true)
			require.NoError(w, err)
		}, "", 300 * time.Second},
		"called unhealthy": {func(w *world) { require.NoError(w, w.setHealth(w.admin, w.ids()[0], unhealthy)) }, "", 300 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.create(map[string]any{"MinSize": 1.0, "DesiredCapacity": 2.0, "LifecycleHookSpecificationList": bothHooks[1:]})
				w.onTerminate = answerAll(test.answer)
				started := time.Now()
				test.end(w)
				synctest.Wait()
				require.Equal(t, 1, w.countEvents("EC2 Instance-terminate Lifecycle Action"))
				for w.countEvents("EC2 Instance Terminate Successful") == 0 {
					settle(time.Second)
				}
				const shutdown = 30 * time.Second
				require.InDelta(t, (test.after + shutdown).Seconds(), time.Since(started).Seconds(), 2)
			})
		})
	}
}

// The wait at an instance's launch hook does not affect its termination, however late the wait ends.
func TestTerminationAtTheLaunchHookWaitsAtItsOwn(t *testing.T) {
	for range 20 { // two goroutines continue at the same time
		run(t, func(w *world) {
			w.create(map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": bothHooks})
			require.NoError(t, w.setDesired(w.admin, "pool", 1))
			settle(time.Minute)
			require.Equal(t, pendingWait, w.state())
			id := w.ids()[0]
			require.NoError(t, w.setDesired(w.admin, "pool", 0))
			settle(time.Minute)
			require.Equal(t, terminatingWait, w.state())
			require.EqualError(t, w.answer(w.admin, "pool", "launch", "", id, ""),
				"ValidationError: No active Lifecycle Action found with instance ID "+id)
			require.NoError(t, w.answer(w.admin, "pool", "terminate", "", id, ""), "a heartbeat")
			require.NoError(t, w.answer(w.admin, "pool", "terminate", "", id, "CONTINUE"))
			settle(time.Minute)
			require.Empty(t, w.state())
		})
	}
}

func TestHooksWhenTheGroupIsDeleted(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"LifecycleHookSpecificationList": bothHooks[1:]})
		r := w.request(w.properties(nil))
		r.PhysicalID = "pool"
		done := make(chan error, 1)
		go func() { done <- w.provider().Delete(w.Context(), r) }()
		settle(time.Second)
		require.Equal(t, "Terminating:Wait Terminating:Wait", w.state(), "CloudFormation empties the group; hooks run")
		settle(time.Hour)
		require.NoError(t, <-done)
		require.Equal(t, "no group", w.state())
		require.NoError(t, w.provider().Delete(w.Context(), r), "a deleted resource is deleted again without an error")
	})
}

// The end of the wait for a launch does not affect the termination hook.
func TestTerminationDuringLaunchWaitsAtItsHook(t *testing.T) {
	run(t, func(w *world) {
		const many = 20
		w.createLater(map[string]any{"LifecycleHookSpecificationList": bothHooks, "MinSize": float64(many), "MaxSize": float64(many)})
		settle(time.Minute)
		require.Equal(t, strings.TrimSpace(strings.Repeat("Pending:Wait ", many)), w.state())
		zero := 0
		require.NoError(t, w.update(w.admin, "pool", Settings{MinSize: &zero, DesiredCapacity: &zero}))
		settle(time.Minute)
		require.Equal(t, strings.TrimSpace(strings.Repeat("Terminating:Wait ", many)), w.state())
		for _, id := range w.ids() {
			require.NoError(t, w.answer(w.admin, "pool", "terminate", "", id, "CONTINUE"))
		}
		settle(time.Minute)
		require.Empty(t, w.state())
	})
}

func TestForceDeleteDropsHooks(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"LifecycleHookSpecificationList": bothHooks[1:]})
		requireCode(t, "ResourceInUse", w.delete(w.admin, "pool", false))
		require.NoError(t, w.delete(w.admin, "pool", true))
		settle(31 * time.Second)
		require.Equal(t, "no group", w.state())
		require.Zero(t, w.countEvents("EC2 Instance-terminate Lifecycle Action"))
	})
}

func TestDeletingAHookCompletesItsActions(t *testing.T) {
	run(t, func(w *world) {
		w.create(map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": bothHooks})
		require.NoError(t, w.setDesired(w.admin, "pool", 1))
		settle(time.Minute)
		require.Equal(t, pendingWait, w.state())
		require.NoError(t, w.changeHook(w.admin, "pool", Hook{LifecycleHookName: "launch"}, true))
		synctest.Wait()
		require.Equal(t, "Terminating:Wait Pending", w.state())
		require.NoError(t, w.changeHook(w.admin, "pool", Hook{LifecycleHookName: "terminate"}, true))
		settle(time.Minute)
		require.Equal(t, inService, w.state())
		require.Error(t, w.changeHook(w.admin, "pool", Hook{LifecycleHookName: "terminate"}, true))
	})
}

func TestHookLimits(t *testing.T) {
	run(t, func(w *world) {
		for name, bad := range map[string]map[string]any{
			"a timeout below 30 s":   hook("h", "LAUNCHING", 29, "ABANDON"),
			"a timeout above 7200 s": hook("h", "LAUNCHING", 7201, "ABANDON"),
			"an unknown result":      hook("h", "LAUNCHING", 30, "RETRY"),
			"an unknown transition":  hook("h", "SLEEPING", 30, "ABANDON"),
			"an unknown property":    {"LifecycleHookName": "h", "LifecycleTransition": launching, "Heartbeat": 3.0},
			"no name":                {"LifecycleHookName": "", "LifecycleTransition": launching},
			"metadata of another type": {
				"LifecycleHookName": "h", "LifecycleTransition": launching, "NotificationMetadata": map[string]any{"a": "b"},
			},
		} {
			_, err := w.provider().Create(w.Context(), w.request(w.properties(map[string]any{"LifecycleHookSpecificationList": []any{bad}})))
			require.Error(t, err, name)
			require.Equal(t, "no group", w.state(), name)
		}
	})
}
