package autoscaling

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/ec2"
	"github.com/drover-run/drover/local/engine/resource"
)

// roll updates the group to the second version of its template, with a policy.
func (w *world) roll(policy map[string]any, more map[string]any) error {
	w.Helper()
	w.newVersion(ec2.ImageID("1.37", "x86_64"))
	old := w.properties(more)
	r := w.request(with(old, map[string]any{"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"}}))
	r.PhysicalID, r.Old, r.UpdatePolicy = "pool", old, policy
	_, err := w.provider().Update(w.Context(), r)
	return err
}

func rolling(more map[string]any) map[string]any {
	return map[string]any{"AutoScalingRollingUpdate": more}
}

// extremes of a group from now on: the fewest in service, the most that count for its capacity, and the most that are drained after they
// were in service.
type extremes struct {
	least, most, out int
	stop             func()
}

func (w *world) extremes() *extremes {
	seen, served := &extremes{least: 1000}, map[string]bool{}
	for _, m := range w.members() {
		served[m.id] = m.state == inService
	}
	seen.stop = w.Watch("pool", func(v View) {
		serving, leaving, out := 0, 0, 0
		for _, i := range v.Instances {
			switch i.State {
			case inService:
				serving++
				served[i.ID] = true
			case terminating, terminatingWait:
				if served[i.ID] {
					out++
				}
				leaving++
			case terminatingProceed:
				leaving++
			}
		}
		seen.least, seen.most, seen.out = min(seen.least, serving), max(seen.most, len(v.Instances)-leaving), max(seen.out, out)
	})
	return seen
}

var instanceIDs = regexp.MustCompile(`i-[0-9a-f]{17}`)

// progressTexts returns the progress with "i" in place of instance IDs.
func (w *world) progressTexts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, p := range w.progress {
		out = append(out, instanceIDs.ReplaceAllString(p, "i"))
	}
	return out
}

func requireVersion(w *world, version, n int) {
	w.Helper()
	list := w.members()
	require.Len(w, list, n)
	for _, m := range list {
		require.Equal(w, version, m.template.Version)
		require.Equal(w, inService, m.state)
	}
}

func TestRollingUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		size, max   float64
		policy      map[string]any
		least, most int
		progress    []string
	}{
		"by default one at a time, with none left in service": {
			size: 1, max: 4, policy: map[string]any{}, most: 1,
			progress: []string{"Rolling update initiated. Terminating 1 obsolete instance(s) in batches of 1.",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 100%)."},
		},
		"keeping all in service the group grows by a batch": {
			size: 3, max: 4, policy: map[string]any{"MinInstancesInService": 3.0}, least: 3, most: 4,
			progress: []string{
				"Rolling update initiated. Terminating 3 obsolete instance(s) in batches of 1, while keeping at least 3 instance(s) in service.",
				"Temporarily setting autoscaling group MinSize and DesiredCapacity to 4.",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 33%).",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 67%).",
				"Terminating instance(s) [i]; replacing with 0 new instance(s).", "Successfully terminated instance(s) [i] (Progress 100%).",
			},
		},
		"batches larger than the rest": {
			size: 3, max: 9, policy: map[string]any{"MaxBatchSize": "2", "MinInstancesInService": 1.0}, least: 1, most: 3,
			progress: []string{
				"Rolling update initiated. Terminating 3 obsolete instance(s) in batches of 2, while keeping at least 1 instance(s) in service.",
				"Temporarily setting autoscaling group MinSize and DesiredCapacity to 3.",
				"Terminating instance(s) [i,i]; replacing with 2 new instance(s).", "Successfully terminated instance(s) [i,i] (Progress 67%).",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 100%).",
			},
		},
		"the maximum bounds the batch": {
			size: 3, max: 4, policy: map[string]any{"MaxBatchSize": 3.0, "MinInstancesInService": 3.0}, least: 3, most: 4,
			progress: []string{
				"Rolling update initiated. Terminating 3 obsolete instance(s) in batches of 1, while keeping at least 3 instance(s) in service.",
				"Temporarily setting autoscaling group MinSize and DesiredCapacity to 4.",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 33%).",
				"Terminating instance(s) [i]; replacing with 1 new instance(s).", "Successfully terminated instance(s) [i] (Progress 67%).",
				"Terminating instance(s) [i]; replacing with 0 new instance(s).", "Successfully terminated instance(s) [i] (Progress 100%).",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				sizes := map[string]any{"MinSize": 1.0, "MaxSize": test.max, "DesiredCapacity": test.size}
				w.create(sizes)
				seen := w.extremes()
				require.NoError(t, w.roll(rolling(test.policy), sizes))
				seen.stop()
				settle(10 * time.Minute)
				require.Empty(t, cmp.Diff(test.progress, w.progressTexts()))
				require.Equal(t, test.least, seen.least, "in service at least")
				require.Equal(t, test.most, seen.most, "instances at most")
				requireVersion(w, 2, int(test.size))
				require.Equal(t, 1, w.groups[0].min)
			})
		})
	}
}

// With signals, each batch waits for the signals of its new instances.
func TestRollingUpdateWithSignals(t *testing.T) {
	policy := map[string]any{
		"MinInstancesInService": 2.0, "WaitOnResourceSignals": true, "PauseTime": "PT10M", "SuspendProcesses": []any{
			"HealthCheck", "AZRebalance",
		},
	}
	for name, test := range map[string]struct {
		signal  func(n int) (send, success bool) // for the nth new instance
		policy  map[string]any
		err     string
		elapsed time.Duration
	}{
		"all succeed": {signal: func(int) (bool, bool) { return true, true }},
		"one fails": {signal: func(n int) (bool, bool) {
			return true, n != 1
		}, err: "Received 1 FAILURE signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"},
		"none comes": {
			signal: func(int) (bool, bool) { return false, false }, elapsed: 10 * time.Minute,
			err: "Received 0 SUCCESS signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement",
		},
		"half is enough if the policy says so": {signal: func(n int) (bool, bool) {
			return n == 1, true
		}, policy: map[string]any{"MinSuccessfulInstancesPercent": 50.0}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.create(map[string]any{"LifecycleHookSpecificationList": []any{hook("launch", "LAUNCHING", 900, "ABANDON")}, "MinSize": 0.0})
				launched := 0
				w.onLaunch = func(id string) string {
					launched++
					if launched <= 2 { // the old ones
						return "CONTINUE"
					}
					if send, success := test.signal(launched - 2); send {
						w.signals <- resource.Signal{UniqueID: id, Success: success}
						w.signals <- resource.Signal{UniqueID: id, Success: true} // a repeated signal does not count
					}
					return "CONTINUE"
				}
				require.NoError(t, w.setDesired(w.admin, "pool", 2))
				settle(time.Minute)
				started := time.Now()
				more := map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": []any{hook("launch", "LAUNCHING", 900, "ABANDON")}}
				err := w.roll(rolling(with(policy, test.policy)), more)
				require.Equal(t, 0, len(w.groups[0].suspended), "what was suspended is resumed, whatever comes")
				if test.err != "" {
					require.EqualError(t, err, test.err)
					if test.elapsed > 0 {
						require.InDelta(t, test.elapsed.Seconds(), time.Since(started).Seconds(), 15)
						require.Contains(t, w.progressTexts(),
							"Failed to receive 1 resource signal(s) for the current batch.  Each resource signal timeout is "+
								"counted as a FAILURE.")
					}
					return
				}
				require.NoError(t, err)
				require.Contains(t, w.progressTexts(), "New instance(s) added to autoscaling group - Waiting on 1 resource signal(s) with "+
					"a timeout of PT10M.")
				settle(time.Minute)
				requireVersion(w, 2, 2)
			})
		})
	}
}

// If more instances are added than replaced, CloudFormation waits for all of them, and one failure fails the update.
func TestRollingUpdateThatAddsMoreThanItReplaces(t *testing.T) {
	for name, fails := range map[string]bool{"all succeed": false, "the second fails": true} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				more := map[string]any{"MinSize": 0.0, "LifecycleHookSpecificationList": []any{hook("launch", "LAUNCHING", 900, "ABANDON")}}
				w.create(more)
				launched := 0
				w.onLaunch = func(id string) string {
					if launched++; launched > 1 {
						w.signals <- resource.Signal{UniqueID: id, Success: !fails || launched == 2}
					}
					return "CONTINUE"
				}
				require.NoError(t, w.setDesired(w.admin, "pool", 1))
				settle(time.Minute)
				old := w.ids()
				err := w.roll(rolling(map[string]any{
					"MinInstancesInService": 1.0, "MaxBatchSize": 2.0, "WaitOnResourceSignals": true, "PauseTime": "PT10M",
				}), more)
				require.Contains(t, w.progressTexts(), "New instance(s) added to autoscaling group - Waiting on 2 resource signal(s) with "+
					"a timeout of PT10M.")
				if fails {
					require.EqualError(t, err, "Received 1 FAILURE signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement")
					require.Contains(t, w.ids(), old[0], "no old instance ends before all have succeeded")
					return
				}
				require.NoError(t, err)
				settle(time.Minute)
				requireVersion(w, 2, 1)
			})
		})
	}
}

// Without signals, the update waits for instances at their launch hook, because they are not in service.
func TestRollingUpdateWaitsForLaunchHooks(t *testing.T) {
	run(t, func(w *world) {
		more := map[string]any{"LifecycleHookSpecificationList": bothHooks, "MinSize": 2.0}
		w.onLaunch, w.onTerminate = answerAll("CONTINUE"), answerAll("CONTINUE")
		w.create(more)
		w.mu.Lock()
		w.onLaunch = nil
		w.mu.Unlock()
		done := make(chan error, 1)
		go func() {
			done <- w.roll(rolling(map[string]any{"MinInstancesInService": 2.0, "PauseTime": "PT0S"}), more)
		}()
		settle(10 * time.Minute)
		require.Equal(t, "InService InService Pending:Wait", w.state())
		w.mu.Lock()
		w.onLaunch = answerAll("CONTINUE")
		w.mu.Unlock()
		require.NoError(t, w.answer(w.admin, "pool", "launch", "", w.ids()[2], "CONTINUE"))
		require.NoError(t, <-done)
		settle(10 * time.Minute)
		requireVersion(w, 2, 2)
	})
}

// CloudFormation with and without the wait for termination hooks.
func TestRollingUpdateAndTerminateHooks(t *testing.T) {
	for name, waits := range map[string]bool{"waits for hooks": true, "continues": false} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.Service.WaitForTerminateHooks(waits)
				more := map[string]any{"LifecycleHookSpecificationList": []any{hook("terminate", "TERMINATING", 3600, "CONTINUE")}}
				w.create(more)
				done := make(chan error, 1)
				go func() { done <- w.roll(rolling(map[string]any{"MinInstancesInService": 1.0}), more) }()
				settle(30 * time.Minute)
				out := strings.Count(w.state(), terminatingWait)
				if waits {
					require.Equal(t, 1, out, "the second batch waits until the first has ended")
				} else {
					require.Equal(t, 2, out)
				}
				require.NoError(t, <-done)
				settle(3 * time.Hour)
				requireVersion(w, 2, 2)
			})
		})
	}
}

func TestRollingUpdatePolicies(t *testing.T) {
	for name, test := range map[string]struct {
		policy map[string]any
		err    string
	}{
		"at least as many in service as there may be": {
			rolling(map[string]any{"MinInstancesInService": 4.0}), "MinInstancesInService must be less than the autoscaling group's MaxSize",
		},
		"no batch":              {rolling(map[string]any{"MaxBatchSize": 0.0}), "MaxBatchSize must be at least 1"},
		"a pause above an hour": {rolling(map[string]any{"PauseTime": "PT61M"}), "The maximum PauseTime is one hour"},
		"a pause that is none":  {rolling(map[string]any{"PauseTime": "5m"}), "no duration"},
		"an unknown process":    {rolling(map[string]any{"SuspendProcesses": []any{"Lunch"}}), "Scaling process: Lunch is invalid"},
		"an unknown key":        {rolling(map[string]any{"MaxBatch": 1.0}), "extraneous key [MaxBatch]"},
		"a replacing update": {
			map[string]any{"AutoScalingReplacingUpdate": map[string]any{"WillReplace": true}}, "extraneous key [AutoScalingReplacingUpdate]",
		},
		"scheduled actions": {map[string]any{"AutoScalingScheduledAction": map[string]any{}}, "extraneous key [AutoScalingScheduledAction]"},
		"two policies": {
			map[string]any{"AutoScalingRollingUpdate": map[string]any{}, "AutoScalingInstanceRefresh": map[string]any{}}, "only one is possible",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.create(nil)
				require.ErrorContains(t, w.roll(test.policy, nil), test.err)
			})
		})
	}
}

// Without a policy, the group changes and its instances stay.
func TestUpdateWithoutPolicy(t *testing.T) {
	run(t, func(w *world) {
		w.create(nil)
		before := w.ids()
		require.NoError(t, w.roll(nil, nil))
		settle(time.Hour)
		require.Equal(t, before, w.ids())
	})
}

// A rollback is an update to the old properties, which replaces the new instances.
func TestRollback(t *testing.T) {
	run(t, func(w *world) {
		w.create(nil)
		require.NoError(t, w.roll(rolling(map[string]any{}), nil))
		r := w.request(w.properties(nil))
		r.PhysicalID, r.UpdatePolicy = "pool", rolling(map[string]any{})
		r.Old = w.properties(map[string]any{"LaunchTemplate": map[string]any{"LaunchTemplateId": w.template, "Version": "2"}})
		_, err := w.provider().Update(w.Context(), r)
		require.NoError(t, err)
		settle(time.Minute)
		requireVersion(w, 1, 2)
	})
}

func TestCreation(t *testing.T) {
	signal := func(count float64, timeout string) map[string]any {
		return map[string]any{"ResourceSignal": map[string]any{"Count": count, "Timeout": timeout}}
	}
	t.Run("waits until the instances are in service", func(t *testing.T) {
		run(t, func(w *world) {
			w.create(nil)
			require.Equal(t, "InService InService", w.state())
		})
	})
	t.Run("of no instances waits for nothing", func(t *testing.T) {
		run(t, func(w *world) {
			started := time.Now()
			w.create(map[string]any{"MinSize": 0.0})
			require.Zero(t, time.Since(started))
		})
	})
	t.Run("fails when its instances never are in service", func(t *testing.T) {
		run(t, func(w *world) {
			w.onLaunch = answerAll("ABANDON")
			_, err := w.provider().Create(w.Context(), w.request(w.properties(map[string]any{"LifecycleHookSpecificationList": bothHooks[:1]})))
			require.ErrorContains(t, err, "Group did not stabilize. {current/minSize/maxSize} group size = {0/2/4}. Failed Scaling Activity: "+
				"Instance failed to complete user's Lifecycle Action")
		})
	})
	t.Run("waits for signals instead when the policy says so", func(t *testing.T) {
		run(t, func(w *world) {
			done := make(chan error, 1)
			r := w.request(w.properties(nil))
			r.CreationPolicy = signal(2, "PT15M")
			go func() {
				_, err := w.provider().Create(w.Context(), r)
				done <- err
			}()
			settle(10 * time.Minute)
			require.Empty(t, done)
			for _, id := range w.ids() {
				w.signals <- resource.Signal{UniqueID: id, Success: true}
			}
			require.NoError(t, <-done)
		})
	})
	t.Run("fails without its signals", func(t *testing.T) {
		run(t, func(w *world) {
			r := w.request(w.properties(nil))
			r.CreationPolicy = signal(2, "PT15M")
			started := time.Now()
			_, err := w.provider().Create(w.Context(), r)
			require.EqualError(t, err, "Received 0 SUCCESS signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement")
			require.Equal(t, 15*time.Minute, time.Since(started))
		})
	})
}

func TestUpdateOfHooksAndTags(t *testing.T) {
	run(t, func(w *world) {
		old := map[string]any{
			"LifecycleHookSpecificationList": bothHooks[1:], "MinSize": 0.0, "Tags": []any{
				map[string]any{"Key": "a", "Value": "1", "PropagateAtLaunch": true},
			},
		}
		w.create(old)
		r := w.request(w.properties(map[string]any{
			"LifecycleHookSpecificationList": []any{hook("launch", "LAUNCHING", 60, "ABANDON")}, "MinSize": 0.0,
			"MetricsCollection": []any{map[string]any{"Granularity": "1Minute"}},
		}))
		r.PhysicalID, r.Old = "pool", w.properties(old)
		_, err := w.provider().Update(w.Context(), r)
		require.NoError(t, err)
		g := w.groups[0]
		require.Len(t, g.hooks, 1)
		require.Equal(t, "launch", g.hooks[0].LifecycleHookName)
		require.NotContains(t, g.tags, Tag{"a", "1", true})
		require.Equal(t, groupMetrics, g.metrics)
	})
}
