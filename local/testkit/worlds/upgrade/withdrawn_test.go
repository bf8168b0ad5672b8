package upgrade_test

// Upgrades whose request is withdrawn before their cluster is idle, and external operations during upgrades.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// A scheduled upgrade waits for its cluster, and is decided again before it begins.
func TestWaitingUpgradeIsWithdrawn(t *testing.T) {
	at := func(hours time.Duration) string { return time.Now().Add(hours * time.Hour).UTC().Format(time.RFC3339) }
	window := func(opens time.Time) string {
		return "  upgrade: {channel: Stable, window: {start: \"" + opens.UTC().Format("15:04") + "\", duration: 1h}}\n"
	}
	for name, c := range map[string]struct {
		spec func() string
		in   func(l *life) events.Upgrade
		// withdraws the request.
		takes func(l *life)
		says  string
	}{
		"the spec names the old release again": {
			spec: func() string { return "" },
			in: func(l *life) events.Upgrade {
				l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", ""), "name: r1", "name: r2", 1))
				time.Sleep(time.Minute)
				return events.Upgrade{Release: "r2", Origin: "Spec", Key: "spec " + l.version()}
			},
			takes: func(l *life) { l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "")) },
		},
		"its time is taken out": {
			spec: func() string { return "" },
			in: func(l *life) events.Upgrade {
				now := at(0)
				l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  upgrade: {at: {time: "+now+", release: r2}}\n"))
				time.Sleep(time.Minute)
				return events.Upgrade{Release: "r2", Origin: "At", Key: "at " + now + " r2"}
			},
			takes: func(l *life) { l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "")) },
		},
		"its window shuts": {
			spec: func() string {
				return window(time.Now().Add(30 * time.Minute))
			},
			in: func(l *life) events.Upgrade {
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r2"))
				time.Sleep(45 * time.Minute)
				return events.Upgrade{Release: "r2", Origin: "Channel", Key: "channel Stable r2"}
			},
			takes: func(l *life) { time.Sleep(time.Hour) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
				l.CreateOldCluster(c.spec())
				arn := ""
				l.holdStackEvents(func() {
					arn = l.StartUpgrade(c.in(l))
					time.Sleep(10 * time.Minute)
					require.Equal(t, "RUNNING", l.Execution(arn).Status, l.verdict(arn))
					c.takes(l)
					time.Sleep(10 * time.Minute)
				})
				l.SettleAll()
				require.Equal(t, "SUCCEEDED :", l.verdict(arn))
				require.Equal(t, "1.35", l.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
				require.Zero(t, l.VersionUpdates())
				require.Empty(t, l.UpgradeRecord().State, "nothing was begun")
			})
		})
	}
}

// The delay of a scheduled upgrade counts from its time, not from the start of its execution.
func TestUpgradeIsMissedAfterTwoHours(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		time.Sleep(24 * time.Hour) // times in a spec must be after the year 2000
		l.CreateOldCluster("")
		l.holdStackEvents(func() {
			due := time.Now().Add(-90 * time.Minute).UTC().Truncate(time.Second)
			at := due.Format(time.RFC3339)
			l.Upload(names.ClusterSpec("demo"), harness.Spec("demo", "  upgrade: {at: {time: "+at+", release: r2}}\n"))
			arn := l.StartUpgrade(events.Upgrade{Release: "r2", Origin: "At", Key: "at " + at + " r2", Due: due})
			time.Sleep(time.Minute)
			require.Equal(t, status.UpgradeDelayed, l.Status("demo").Upgrade.Phase, l.Status("demo").Upgrade.Message)
			l.over(arn)
			require.Less(t, time.Since(due), 2*time.Hour+10*time.Minute)
			require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: it did not begin within 2h0m0s of its time: set another "+
				"time in spec.upgrade.at")
			require.Equal(t, status.UpgradeMissed, l.Status("demo").Upgrade.Phase)
			require.True(t, l.Status("demo").Upgrade.At.Equal(due))
		})
	})
}

// An upgrade waits too long for another one. The status shows the other one, and that this one was missed.
func TestUpgradeIsMissedBehindAnother(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
		l.Events.Decide(func(e harness.Event) harness.Fate {
			if e.Source == "aws.cloudformation" {
				return harness.Held
			}
			return harness.Delivered
		})
		first := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		second := l.StartUpgrade(events.Upgrade{Release: "r3", Due: time.Now().Add(-100 * time.Minute)})
		l.over(second)
		require.Contains(t, l.verdict(second), "FAILED UpgradeStopped: the upgrade did not begin, because the cluster was busy for 2h0m0s")
		s := l.Status("demo")
		require.Equal(t, first, s.Upgrade.Execution)
		require.Len(t, s.Upgrades, 1)
		require.Equal(t, "Missed r3", s.Upgrades[0].Phase+" "+s.Upgrades[0].To)
		require.Contains(t, s.Upgrades[0].Message, "the upgrade to release r2 (Kubernetes 1.36) is in flight")
	})
}

// version returns the version of the cluster's spec.
func (l *life) version() string {
	l.T.Helper()
	object, err := s3.NewBucket(s3.NewClient(l.Config()), harness.SpecsBucket).Get(l.T.Context(), names.ClusterSpec("demo"), 1<<20)
	require.NoError(l.T, err)
	return object.Version
}

// Completed steps stay, also if the spec requests another release.
func TestCompletedStepsOfAWithdrawnUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		time.Sleep(time.Minute)
		l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
		l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "name: r1", "name: r3", 1))
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the spec now names release r3")
		require.Contains(t, l.verdict(arn), "Completed and kept: control plane to 1.36. Next: add-ons to the versions of the release")
	})
}

// A user changes the EKS cluster repeatedly during and after the replacement of nodes.
func TestUpgradeDuringOtherEKSUpdates(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepNodes)
		reported := false
		for end := time.Now().Add(2 * time.Hour); !reported && time.Now().Before(end); time.Sleep(5 * time.Second) {
			_, _ = l.EKS.UpdateClusterConfig(l.T.Context(), l.Admin(), eks.UpdateClusterConfigInput{ // refused during another update
				Name: "drover-demo", Logging: &eks.Logging{ClusterLogging: []eks.LogSetup{{Types: []string{"audit"}, Enabled: true}}},
			})
			reported = reported || strings.Contains(l.Status("demo").Upgrade.Message, "its status is UPDATING")
		}
		require.True(t, reported, l.verdict(arn))
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(arn))
		require.Equal(t, status.Ready, l.Status("demo").Phase)
	})
}

// A step times out, also when its stacks are complete and EKS never finishes.
func TestStepTimesOut(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		began := time.Now()
		audit := false
		l.OnCall(func(call endpoint.Call) error {
			if call.Action == "DescribeCluster" && harness.CalledBy(call) == "upgrade" && time.Since(began) < 5*time.Hour {
				audit = !audit
				_, _ = l.EKS.UpdateClusterConfig(l.T.Context(), l.Admin(), eks.UpdateClusterConfigInput{ // refused during another update
					Name: "drover-demo", Logging: &eks.Logging{ClusterLogging: []eks.LogSetup{{Types: []string{"audit"}, Enabled: audit}}},
				})
			}
			return nil
		})
		l.over(arn)
		require.Contains(t, l.verdict(arn), "FAILED UpgradeStopped: the step \"control plane to 1.36\" exceeded its limit of 4h0m0s: "+
			"EKS has not finished with the control plane: its status is UPDATING")
		require.True(t, l.AlarmEnabled())
		require.InDelta(t, 4*time.Hour, l.UpgradeRecord().Ended.Sub(began), float64(15*time.Minute))
		time.Sleep(time.Hour)
		again := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Equal(t, "SUCCEEDED :", l.verdict(again))
		require.Equal(t, upgrade.Done, l.UpgradeRecord().State)
	})
}

// The checks block an upgrade of a channel. The status announces a retry, and the retry runs.
func TestBlockedChannelUpgradeIsRetried(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r1"))
		l.CreateOldCluster("  upgrade: {channel: Stable, alarms: [shop-is-down]}\n")
		l.BlockPods(true)
		l.Upload(names.ReleaseSpec("channels"), lives.ChannelsOf("r2"))
		l.SweepForAnHour()
		require.Equal(t, upgrade.Blocked, l.UpgradeRecord().State)
		blocked := l.UpgradeRecord().Ended
		l.BlockPods(false)
		l.Audit()
		u := l.Status("demo").Upgrade
		require.Equal(t, status.UpgradeScheduled, u.Phase, u.Message)
		require.Equal(t, blocked.Add(24*time.Hour).Truncate(time.Second), u.At.Truncate(time.Second))
		mark := l.Calls.Mark()
		l.Audit()
		for _, call := range l.Calls.Since(mark) {
			require.False(t, call.Mutating && harness.CalledBy(call) == "plan", "the cluster is not planned again: %s %s", call.Action,
				call.Resource)
		}
		time.Sleep(time.Until(*u.At) - time.Minute)
		l.Sweep()
		l.SettleAll()
		require.EqualValues(t, 1, l.UpgradeRecord().Number, "not before")
		time.Sleep(2 * time.Minute)
		l.Sweep()
		l.SettleAll()
		l.RequireUpgraded()
	})
}
