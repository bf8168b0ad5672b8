package upgrade_test

// Upgrades under adverse conditions: schedules that fire twice, pools that fail, specs that change during node replacement, and drains that
// take too long.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// kubelets returns the minor versions of a pool's nodes.
func (l *life) kubelets(pool string) (minors []string) {
	group := l.Group("demo", pool)
	for _, n := range l.API("drover-demo").Nodes() {
		for _, i := range group.Instances {
			if strings.HasSuffix(n.ProviderID, "/"+i.ID) {
				minors = append(minors, fmt.Sprintf("1.%d", upgrade.Minor(strings.TrimPrefix(n.KubeletVersion, "v"))))
			}
		}
	}
	slices.Sort(minors)
	return slices.Compact(minors)
}

// free asserts that no execution holds the cluster's lease.
func (l *life) free() {
	l.T.Helper()
	lease, err := l.State().Lease(l.T.Context(), "demo")
	require.NoError(l.T, err)
	require.Empty(l.T, lease.Execution)
}

// An upgrade becomes due. The schedule fires twice at the same moment, together with an audit, and again later.
func TestScheduleFiresTwice(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster("")
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		l.ChangeSpec(fmt.Sprintf("  upgrade: {alarms: [shop-is-down], at: {time: %q, release: r2}}\n", at.Format(time.RFC3339)))
		require.Equal(t, status.UpgradeScheduled, l.Status("demo").Upgrade.Phase)
		l.Sweep()
		l.SettleAll()
		require.Empty(t, l.Executions("upgrade"), "it is not time")
		time.Sleep(time.Until(at) + time.Second)
		for range 2 {
			var all sync.WaitGroup
			all.Go(l.Sweep)
			all.Go(l.Sweep)
			all.Go(func() { _ = l.AuditNow() })
			all.Wait()
			time.Sleep(time.Minute)
		}
		l.SettleAll()
		l.Sweep()
		l.Audit()
		require.Len(t, l.Executions("upgrade"), 1)
		require.EqualValues(t, 1, l.UpgradeRecord().Number)
		require.Equal(t, upgrade.OriginAt, l.UpgradeRecord().Origin)
		l.RequireUpgraded()
	})
}

func TestUpgradeAndRoll(t *testing.T) {
	t.Run("a roll in flight is finished first", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			roll := l.Converge("demo", "a")
			l.WaitForUpdate("pool-a")
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			time.Sleep(time.Second)
			require.Equal(t, "RUNNING", l.Execution(roll).Status)
			require.Zero(t, l.UpgradeRecord().Number, "no upgrade is claimed before")
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.RequireUpgraded()
			require.Contains(t, l.Stack("demo", "pool-a").Tags, names.TagRollAt)
		})
	})
	t.Run("a roll that is requested in the middle waits for the step, and is made", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			l.WaitForUpdate(names.ControlPlane)
			l.Converge("demo", "a")
			l.SweepForAnHour()
			l.SettleAll()
			require.Equal(t, "SUCCEEDED :", l.verdict(arn))
			l.SweepForAnHour()
			l.RequireUpgraded()
			require.Contains(t, l.Stack("demo", "pool-a").Tags, names.TagRollAt)
		})
	})
}

// The new nodes of one of two pools are newer than their control plane, so none of them joins. CloudFormation rolls that pool back. The
// other pool stays upgraded. The upgrade continues from there once the cause is fixed.
func TestUpgradeWithAFailingPool(t *testing.T) {
	runWithFaults(t, func(l *life, bad *faults.Engine) {
		l.CreateOldCluster(lives.SecondPool + lives.Alarmed)
		end := lives.AddFault(t, bad, "kubelet-version=v1.37.0-eks-0e3cf2b pool=b")
		l.OnStack(func(stackName, is string) {
			if stackName == "drover-demo-pool-b" && is == "UPDATE_ROLLBACK_IN_PROGRESS" {
				end()
			}
		})
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: StackFailed: stack drover-demo-pool-b")
		require.Contains(t, l.verdict(arn), "newer than the control plane")
		require.Less(t, l.UpgradeRecord().Ended.Sub(l.UpgradeRecord().Steps[2].Started), 30*time.Minute,
			"the second instance that does not join is enough")
		require.Contains(t, l.verdict(arn), "Completed and kept: control plane to 1.36, add-ons to the versions of the release. "+
			"Next: nodes to the images of the release")
		require.Equal(t, "UPDATE_ROLLBACK_COMPLETE", l.Stacks("demo")["pool-b"])
		require.True(t, l.AlarmEnabled())
		l.SettleAll()
		l.free()
		require.Equal(t, []string{"1.36"}, l.kubelets("a"))
		require.Equal(t, []string{"1.35"}, l.kubelets("b"))
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)

		before := l.Group("demo", "a").Instances
		again := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(again))
		l.RequireUpgraded()
		require.Equal(t, before, l.Group("demo", "a").Instances, "what was done is not done again")
		require.Equal(t, []string{"1.36"}, l.kubelets("b"))
	})
}

// A user changes the spec while the first of two pools is replaced. drover finishes that pool and does not start the second one. If only
// the release changes, drover plans the whole step from the new spec and finishes it.
func TestChangesDuringTheReplacementOfNodes(t *testing.T) {
	ordered := strings.Replace(lives.SecondPool, "maxSize: 3", "maxSize: 3, update: {order: 1}", 1) + lives.Alarmed
	for name, c := range map[string]struct {
		do   func(l *life)
		says string
		// second is the state of the nodes of the second pool.
		second string
	}{
		"another release": {func(l *life) {
			l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ordered), "name: r1", "name: r3", 1))
		}, "the spec now names release r3", "1.36"},
		"paused": {func(l *life) {
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", ordered+"  paused: true\n"))
		}, "spec.paused is true", "1.35"},
		"deleted": {func(l *life) { l.Remove(names.ClusterSpec("demo"), "") }, "the spec was deleted", "1.35"},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(ordered)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForUpdate("pool-a")
				c.do(l)
				l.over(arn)
				require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: "+c.says)
				require.Contains(t, l.verdict(arn), "Next: nodes to the images of the release")
				require.True(t, l.AlarmEnabled())
				l.SettleAll()
				l.free()
				require.Equal(t, []string{"1.36"}, l.kubelets("a"))
				require.Equal(t, []string{c.second}, l.kubelets("b"))
				if name == "another release" {
					l.SweepForAnHour()
					require.Equal(t, "Done Spec r3", strings.Join([]string{
						l.Status("demo").Upgrade.Phase, l.Status("demo").Upgrade.Origin, l.Status("demo").Upgrade.To,
					}, " "))
					return
				}
				l.ChangeSpec(ordered)
				require.Equal(t, []string{"1.35"}, l.kubelets("b"), "nor by itself")
				l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// A budget allows no eviction. With the policy Force, pods are deleted after the timeout and reported. Otherwise they are never deleted.
func TestUpgradeForcesPodsByPolicyOnly(t *testing.T) {
	for onTimeout, forces := range map[string]bool{"Force": true, "Wait": false} {
		t.Run(onTimeout, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.CreateOldCluster(lives.Alarmed)
				l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "maxSize: 3",
					"maxSize: 3, drain: {timeout: 20m, onTimeout: "+onTimeout+"}", 1))
				l.SettleAll()
				l.RequirePhase(status.Ready)
				arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
				l.WaitForStep(upgrade.StepControlPlane)
				l.RunBlockedPods(3) // after the checks, which would block otherwise
				var mu sync.Mutex
				var removed []apiserver.Removal
				l.API("drover-demo").OnRemoval(func(r apiserver.Removal) {
					mu.Lock()
					defer mu.Unlock()
					removed = append(removed, r)
				})
				l.over(arn)
				mu.Lock()
				deleted := slices.Clone(removed)
				mu.Unlock()
				if !forces {
					require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: nodes are still being drained: i-")
					require.Empty(t, deleted)
					require.True(t, l.AlarmEnabled())
					return
				}
				require.Equal(t, "SUCCEEDED :", l.verdict(arn))
				require.Len(t, deleted, 3)
				drained := l.Executions("drain-node")
				require.Len(t, drained, 1)
				var out struct{ Forced []string }
				require.NoError(t, json.Unmarshal([]byte(drained[0].Output), &out))
				require.Len(t, out.Forced, 3)
				for _, r := range deleted {
					require.Equal(t, "deleted", r.How)
					require.GreaterOrEqual(t, r.At.Sub(drained[0].Started), 20*time.Minute)
					require.True(t, slices.ContainsFunc(out.Forced, func(named string) bool {
						return strings.HasSuffix(named, "/"+r.Pod)
					}), "%s is named: %v", r.Pod, out.Forced)
				}
				require.Equal(t, 3, strings.Count(l.Log(), `"PodsForced":1`), "and counted")
				l.SettleAll()
				l.RequireUpgraded()
			})
		})
	}
}

// A user changes a pool during the control plane update, and CloudFormation's event for that pool is lost. The step times out. The changes
// in flight continue, and the next execution finds them complete.
func TestUpgradeStepTimesOut(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		// The event of the upload is lost, too. Otherwise its execution may change the pool, instead of the step.
		endOfPool, upload := lives.LoseEvents("aws.cloudformation", "pool-a"), lives.LoseEvents("aws.s3", names.ClusterSpec("demo"))
		l.Events.Decide(func(e harness.Event) harness.Fate {
			if endOfPool(e) == harness.Lost {
				return harness.Lost
			}
			return upload(e)
		})
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		began := time.Now()
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "maxSize: 3", "maxSize: 4", 1))
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: a step exceeded its time limit")
		require.Contains(t, l.verdict(arn), ". Next: control plane to 1.36, which is complete but not verified yet. To continue: "+
			"`drover upgrade demo`")
		require.InDelta(t, 4*time.Hour, time.Since(began), float64(5*time.Minute))
		require.True(t, l.AlarmEnabled())
		require.Equal(t, "Stopped", l.Status("demo").Upgrade.Phase)
		l.Events.Decide(nil)
		l.SweepForAnHour()
		l.free()
		require.Equal(t, "1.36", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"], "what is done stays")
		require.Equal(t, 4, l.Group("demo", "a").Max)
		again := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(again))
		l.RequireUpgraded()
	})
}

// drover reports each phase and each step once, by a message to the topic and an event on the bus.
func TestEachPhaseOfAnUpgradeIsNotified(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster("")
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		l.ChangeSpec(fmt.Sprintf("  upgrade: {alarms: [shop-is-down], at: {time: %q, release: r2}}\n", at.Format(time.RFC3339)))
		time.Sleep(time.Until(at) + time.Second)
		l.SweepForAnHour()
		l.RequireUpgraded()
		var published, mailed []string
		for _, e := range l.BusEvents() {
			if e.DetailType == events.ClusterUpgradeChange {
				var change events.UpgradeChange
				require.NoError(t, json.Unmarshal(e.Detail, &change))
				require.Equal(t, []string{"demo", "r1", "r2", "At"}, []string{change.Cluster, change.From, change.To, change.Origin})
				published = append(published, strings.TrimSpace(change.Phase+" "+change.Step))
			}
		}
		require.Equal(t, []string{
			"Scheduled", "Checking", "Running control plane to 1.36", "Running add-ons to the versions of the release",
			"Running nodes to the images of the release", "Running", "Done",
		}, published)
		for _, n := range l.Notices() {
			if subject, _, _ := strings.Cut(n, "\n"); strings.HasPrefix(subject, "drover: the upgrade of demo is ") {
				mailed = append(mailed, strings.TrimPrefix(subject, "drover: the upgrade of demo is "))
			}
		}
		require.Len(t, mailed, len(published))
		slices.Sort(published)
		slices.Sort(mailed)
		for i, phase := range mailed {
			require.True(t, strings.HasPrefix(published[i], phase), "%s, %s", published[i], phase)
		}
	})
}

// The spec states the version of an add-on together with a new release. The deployed version does not run on the next Kubernetes version,
// so the stated one is installed first.
func TestStatedAddonIsUpdatedFirst(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("r1"), strings.Replace(harness.ReleaseOf("1.33", "r1"), "v1.13.2-eksbuild.1", "v1.11.4-eksbuild.24", 1))
		l.Upload(names.ReleaseSpec("r2"), harness.ReleaseOf("1.34", "r2"))
		l.ChangeSpec("")
		l.RequirePhase(status.Ready)
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", "  addons: [{name: coredns, version: v1.12.4-eksbuild.1}]\n"),
			"name: r1", "name: r2", 1))
		l.SettleAll()
		l.RequirePhase(status.Ready)
		var steps []string
		for _, s := range l.UpgradeRecord().Steps {
			steps = append(steps, fmt.Sprintf("%s %s %v", s.Kind, s.KubernetesVersion, s.Addons))
		}
		forced := "map[coredns:v1.12.4-eksbuild.1]"
		require.Equal(t, []string{"AddonsFirst 1.33 " + forced, "ControlPlane 1.34 " + forced, "Addons 1.34 map[]", "Nodes 1.34 map[]"}, steps)
		require.Equal(t, upgrade.Done, l.UpgradeRecord().State)
	})
}

// An operator requests an impossible upgrade. The execution reports the reason, and the cluster is unchanged.
func TestImpossibleUpgradesByHand(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.Upload(names.ReleaseSpec("older"), harness.ReleaseOf("1.34", "older"))
		l.Upload(names.ReleaseSpec("later"), harness.ReleaseOf("1.37", "later"))
		l.Upload(names.ReleaseSpec("unknown"), harness.ReleaseOf("1.39", "unknown"))
		before := l.Stacks("demo")
		for name, c := range map[string]struct {
			in   events.Upgrade
			says string
		}{
			"an older release": {
				events.Upgrade{
					Release: "older",
				}, "SUCCEEDED Refused: the cluster runs Kubernetes 1.35, and 1.34 is older: only a rollback downgrades Kubernetes",
			},
			"a release that skips a minor": {
				events.Upgrade{
					Release: "later",
				}, "FAILED UpgradeBlocked: nothing was changed: UpgradeFrom: release later supports upgrades from Kubernetes 1.36 or later, and " +
					"the cluster runs 1.35",
			},
			"more minors than nodes can skip": {events.Upgrade{Release: "unknown"}, "EKS offers up to 1.37 here, upgrade to 1.37 first"},
			"a release that does not exist":   {events.Upgrade{Release: "lost"}, "SUCCEEDED Refused: there is no release releases/lost.yaml"},
			"a version that is none":          {events.Upgrade{Release: "r2", KubernetesVersion: "2.0"}, "SUCCEEDED Refused: "},
			"a rollback of nothing":           {events.Upgrade{Rollback: true}, "this cluster has no upgrade that can be rolled back"},
		} {
			t.Run(name, func(t *testing.T) {
				arn := l.StartUpgrade(c.in)
				l.SettleAll()
				require.Contains(t, l.verdict(arn), c.says)
				if _, refused, ok := strings.Cut(l.verdict(arn), "SUCCEEDED Refused: "); ok {
					answer := l.Status("demo").Condition(status.RequestAccepted)
					require.NotNil(t, answer, "the status has the answer")
					require.Equal(t, []string{"False", status.ReasonUpgradeRefused, refused}, []string{answer.Status, answer.Reason, answer.Message})
				}
				require.Equal(t, before, l.Stacks("demo"))
				require.Equal(t, "1.35", l.Status("demo").KubernetesVersion)
				require.True(t, l.AlarmEnabled())
				l.RequirePhase(status.Ready)
				l.free()
			})
		}
	})
}
