package plan_test

// Planning another release: it keeps the deployed release and starts an upgrade.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/stepfunctions"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// of is the spec of a cluster at a release.
func of(release, more string) string {
	return strings.Replace(harness.Spec("demo", more), "name: r1", "name: "+release, 1)
}

// releases uploads r1 and r2 of Kubernetes 1.35 and 1.36, and other content of the latter as r3.
func releases(a *harness.Account) {
	a.Upload("releases/r1.yaml", harness.ReleaseOf("1.35", "r1"))
	a.Upload("releases/r2.yaml", harness.ReleaseOf("1.36", "r2"))
	a.Upload("releases/r3.yaml", strings.Replace(harness.ReleaseOf("1.36", "r3"), "v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1", 1))
}

// began returns an account with a cluster at r1.
func began(t *testing.T, more string) *harness.Account {
	a := harness.Start(t)
	releases(a)
	a.Upload("clusters/demo.yaml", of("r1", more))
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	return a
}

// clusterLine describes release, version and nodes of the cluster in one line.
func clusterLine(a *harness.Account) string {
	control := a.Stack("demo", names.ControlPlane)
	release, _, _ := strings.Cut(control.Tags[names.TagRelease], "@")
	image := a.Stack("demo", "pool-a").Outputs["ImageId"]
	return fmt.Sprintf("%s %s %s", release, control.Outputs["KubernetesVersion"], map[bool]string{
		true: "new nodes", false: "old nodes",
	}[strings.Contains(harness.ReleaseOf("1.36", "r2"), image)])
}

func upgrades(a *harness.Account) (all []stepfunctions.Execution) {
	for _, x := range a.StepFunctions.Executions() {
		if x.MachineName == "drover-upgrade" {
			all = append(all, x)
		}
	}
	return all
}

// upgradeNotices returns the phases in notices of upgrades, oldest first.
func upgradeNotices(a *harness.Account) (upgrades []string) {
	for _, n := range a.Notices() {
		if strings.HasPrefix(n, "drover: the upgrade of demo") {
			subject, _, _ := strings.Cut(n, "\n")
			upgrades = append(upgrades, strings.TrimPrefix(subject, "drover: the upgrade of demo is "))
		}
	}
	return upgrades
}

// closedWindow is a window that is not open now, and opens in five hours.
func closedWindow(now time.Time) string {
	return fmt.Sprintf("  upgrade: {window: {start: %q, duration: 4h}}\n", now.UTC().Add(5*time.Hour).Format("15:04"))
}

func TestAnotherReleaseIsAnUpgrade(t *testing.T) {
	a := began(t, "")
	a.Upload("clusters/demo.yaml", of("r2", "  tags: {team: b}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, "r2 1.36 new nodes", clusterLine(a))
	require.Equal(t, "r2", s.Release)
	require.Len(t, upgrades(a), 1)
	require.Equal(t, "SUCCEEDED", upgrades(a)[0].Status)
	require.Equal(t, "Done Spec r1 r2", strings.Join([]string{s.Upgrade.Phase, s.Upgrade.Origin, s.Upgrade.From, s.Upgrade.To}, " "))
	require.Equal(t, "Scheduled", upgradeNotices(a)[0])
	require.Equal(t, "Done", upgradeNotices(a)[len(upgradeNotices(a))-1])
	for _, v := range a.Verdicts()[1:] {
		require.NotContains(t, v, "Failed")
	}

	recordDrained(a)
	mark := a.Calls.Mark()
	a.Converge("demo")
	a.Settle()
	require.Empty(t, mutatingCalls(a, mark), "another converge changes nothing")
	require.Len(t, upgrades(a), 1, "one upgrade")
}

func TestSpecWaitsForItsWindow(t *testing.T) {
	a := began(t, "")
	now := time.Now()
	a.Functions.Plan.Now = func() time.Time { return now }
	a.Functions.Sweep.Now = func() time.Time { return now }
	a.Upload("clusters/demo.yaml", of("r2", closedWindow(now)+"  tags: {team: b}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Contains(t, s.Message, "except its release: the upgrade to release r2 (Kubernetes 1.36) begins within five minutes of ")
	require.Equal(t, status.ReasonUpgradeScheduled, s.Condition(status.Converged).Reason)
	require.Equal(t, "r1 1.35 old nodes", clusterLine(a))
	require.Equal(t, "b", a.Stack("demo", "network").Tags["team"], "unrelated changes continue")
	require.Equal(t, status.UpgradeScheduled, s.Upgrade.Phase)
	require.Equal(t, []string{"Scheduled"}, upgradeNotices(a), "in advance")
	require.Contains(t, strings.Join(dues(t, a), " "), s.Upgrade.At.Format(time.RFC3339))

	mark := a.Calls.Mark()
	a.Converge("demo")
	require.NoError(t, a.SweepNow())
	a.Settle()
	require.Empty(t, mutatingCalls(a, mark))

	t.Run("reverted, it does not begin", func(t *testing.T) {
		a.Upload("clusters/demo.yaml", of("r1", closedWindow(now)))
		a.Settle()
		require.Nil(t, a.Status("demo").Upgrade)
		require.Equal(t, []string{"Scheduled", "Cancelled"}, upgradeNotices(a))
		require.Equal(t, "True", a.Status("demo").Condition(status.Converged).Status)
	})
	t.Run("when its time comes it begins, once", func(t *testing.T) {
		a.Upload("clusters/demo.yaml", of("r2", closedWindow(now)))
		a.Settle()
		now = a.Status("demo").Upgrade.At.Add(time.Minute)
		for range 3 {
			require.NoError(t, a.SweepNow())
			a.Settle()
		}
		require.Equal(t, "r2 1.36 new nodes", clusterLine(a))
		require.Len(t, upgrades(a), 1)
		require.Empty(t, dues(t, a))
	})
}

func TestUsedReleaseIsDeleted(t *testing.T) {
	a := began(t, "")
	// An upgrade does not read the release after it has begun.
	at := false
	a.Events.Decide(func(e harness.Event) harness.Fate {
		if e.Source == "aws.cloudformation" && !at && len(upgrades(a)) > 0 {
			at = true
			return harness.Held
		}
		return harness.Delivered
	})
	a.Upload("clusters/demo.yaml", of("r2", ""))
	a.Until("a step is being made", func() bool { return len(a.Events.Held()) > 0 })
	a.Remove("releases/r1.yaml", "")
	a.Remove("releases/r2.yaml", "")
	for _, e := range a.Events.Held() {
		a.Events.Deliver(e)
	}
	a.Settle()
	require.Equal(t, "r2 1.36 new nodes", clusterLine(a))
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}

// The tags of the control plane's stack hold the release of the cluster. After they are lost the cluster stays at that release, although
// its spec may name another one: only an upgrade changes the release.
func TestUntaggedControlPlaneKeepsItsRelease(t *testing.T) {
	// lose removes the tags, except the one that permits drover to change the stack, and requires that a converge restores them.
	lose := func(t *testing.T, a *harness.Account) {
		t.Helper()
		was, nodes, before := a.Stack("demo", names.ControlPlane).Tags, a.Group("demo", "a").Instances, clusterLine(a)
		require.NoError(t, a.Retag("drover-demo-control-plane", func(tags map[string]string) {
			clear(tags)
			tags[names.TagCluster] = "demo"
		}))
		a.Settle()
		p, reason, message, err := a.Functions.Planner.Preview(t.Context(), "demo")
		require.NoError(t, err)
		require.Empty(t, reason, message)
		require.Len(t, p.Changes, 1, "%+v", p.Changes)
		a.Converge("demo")
		a.Settle()
		require.Equal(t, before, clusterLine(a))
		require.Equal(t, was[names.TagRelease], a.Stack("demo", names.ControlPlane).Tags[names.TagRelease])
		require.Equal(t, nodes, a.Group("demo", "a").Instances)
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
	}
	t.Run("after an upgrade by hand", func(t *testing.T) {
		a := began(t, "")
		a.Upgrade(events.Upgrade{Cluster: "demo", Release: "r2"})
		a.Settle()
		require.Equal(t, "r2 1.36 new nodes", clusterLine(a))
		lose(t, a)
	})
	t.Run("in the middle of one", func(t *testing.T) {
		a := began(t, "")
		stoppedAfterTheControlPlane(t, a)
		a.Converge("demo") // which reports that the upgrade stopped
		a.Settle()
		lose(t, a)
	})
	t.Run("before its first, which waits", func(t *testing.T) {
		a := began(t, "")
		a.Upload("clusters/demo.yaml", of("r2", closedWindow(time.Now())))
		a.Settle()
		lose(t, a)
		require.Equal(t, status.UpgradeScheduled, a.Status("demo").Upgrade.Phase)
	})
	t.Run("with a manual upgrade before they are restored", func(t *testing.T) {
		a := began(t, "")
		require.NoError(t, a.Retag("drover-demo-control-plane", func(tags map[string]string) { delete(tags, names.TagRelease) }))
		a.Settle()
		x := a.Upgrade(events.Upgrade{Cluster: "demo", Release: "r2"})
		a.Settle()
		require.Contains(t, a.Execution(x).Output, "the tag drover:release was removed from stack drover-demo-control-plane")
		require.Equal(t, "1.35", a.Stack("demo", names.ControlPlane).Outputs["KubernetesVersion"])
	})
}

// The spec changes during an upgrade. The step that runs finishes, and the newer spec decides about the rest.
func TestSpecChangesDuringAnUpgrade(t *testing.T) {
	tests := map[string]struct {
		spec string
		// ends is the result of the first upgrade, and is describes the cluster at the end.
		ends, is string
	}{
		"something that has nothing to do with it": {of("r2", "  tags: {team: b}\n"), "SUCCEEDED", "r2 1.36 new nodes"},
		"paused":                                 {of("r2", "  paused: true\n"), "FAILED", "r1 1.36 old nodes"},
		"another release":                        {of("r3", ""), "FAILED", "r3 1.36 new nodes"},
		"the old release again, which cannot be": {of("r1", ""), "FAILED", "r1 1.36 old nodes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := began(t, "")
			once := false
			a.Events.Decide(func(e harness.Event) harness.Fate {
				if e.Source == "aws.cloudformation" && !once && len(upgrades(a)) > 0 {
					once = true
					return harness.Held
				}
				return harness.Delivered
			})
			a.Upload("clusters/demo.yaml", of("r2", ""))
			a.Until("the control plane moves", func() bool { return len(a.Events.Held()) > 0 })
			a.Upload("clusters/demo.yaml", test.spec)
			for _, e := range a.Events.Held() {
				a.Events.Deliver(e)
			}
			a.Settle()
			// A change that arrived while the cluster was busy is made once it is idle.
			a.Converge("demo")
			a.Settle()
			require.Equal(t, test.ends, upgrades(a)[0].Status, upgrades(a)[0].Cause)
			require.Equal(t, test.is, clusterLine(a), a.Status("demo").Message)
		})
	}
}

func TestTwoReleasesRequestedAtOnce(t *testing.T) {
	a := began(t, "")
	a.Upload("clusters/demo.yaml", of("r2", ""))
	a.Upload("clusters/demo.yaml", of("r3", ""))
	a.Settle()
	a.Converge("demo")
	a.Settle()
	require.Equal(t, "r3 1.36 new nodes", clusterLine(a), a.Status("demo").Message)
	running := 0
	for _, x := range upgrades(a) {
		if x.Status == "SUCCEEDED" {
			running++
		}
	}
	require.GreaterOrEqual(t, running, 1)
}

// Planning rejects such versions before an upgrade begins.
func TestUpgradesThatCannotBe(t *testing.T) {
	a := began(t, "")
	a.Upload("releases/r0.yaml", harness.ReleaseOf("1.34", "r0"))
	for name, test := range map[string]struct{ spec, want string }{
		"a downgrade":               {of("r0", ""), "is not downgraded"},
		"a version that is unknown": {of("r1", "  kubernetesVersion: \"1.99\"\n"), "spec.kubernetesVersion"},
		"an unknown release":        {of("r9", ""), "there is no release releases/r9.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			a.Upload("clusters/demo.yaml", test.spec)
			a.Settle()
			require.Contains(t, a.Status("demo").Condition(status.SpecAccepted).Message, test.want)
			require.Empty(t, upgrades(a))
			require.Equal(t, "r1 1.35 old nodes", clusterLine(a))
		})
	}
}

// A stopped upgrade leaves each stack at the version that it has reached. Other changes of a spec are still made.
func TestStoppedUpgrade(t *testing.T) {
	a := began(t, "")
	r := stoppedAfterTheControlPlane(t, a)
	for _, tags := range []string{"a", "b"} {
		a.Upload("clusters/demo.yaml", of("r1", "  tags: {team: "+tags+"}\n"))
		a.Settle()
		require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
		require.Equal(t, "r1 1.36 old nodes", clusterLine(a))
		require.Equal(t, tags, a.Stack("demo", "pool-a").Tags["team"])
	}
	require.Len(t, upgrades(a), 0, "the upgrade does not resume by itself")
	now, _, err := a.State().Upgrade(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, r, now)
}

// stoppedAfterTheControlPlane writes the record of an upgrade by hand, and has its first step made.
func stoppedAfterTheControlPlane(t *testing.T, a *harness.Account) *upgrade.Record {
	t.Helper()
	pin := strings.TrimPrefix(a.Stack("demo", names.ControlPlane).Tags[names.TagRelease], "r1@")
	body := []byte(harness.ReleaseOf("1.36", "r2"))
	require.NoError(t, a.State().PutOnce(t.Context(), names.PinnedRelease(names.SHA256(body)), body))
	r := &upgrade.Record{
		Number: 1, Stack: a.Stack("demo", names.ControlPlane).ID, Origin: upgrade.OriginCommand, Key: "hand", Overridden: "r1",
		State:     upgrade.Running,
		Execution: "arn:aws:states:eu-central-1:111122223333:execution:drover-upgrade:x",
		From: upgrade.Target{
			Release: "r1", SHA256: pin, KubernetesVersion: "1.35",
		}, Target: upgrade.Target{Release: "r2", SHA256: names.SHA256(body), KubernetesVersion: "1.36"},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36"}, {
				Kind: upgrade.StepAddons, KubernetesVersion: "1.36",
			}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
		},
	}
	etag, err := a.State().PutUpgrade(t.Context(), "demo", r, "")
	require.NoError(t, err)
	a.Converge("demo")
	a.Settle()
	require.Equal(t, "r1 1.36 old nodes", clusterLine(a))
	require.Equal(t, status.Upgrading, a.Status("demo").Phase)
	r.State, r.Step = upgrade.Stopped, 1
	_, err = a.State().PutUpgrade(t.Context(), "demo", r, etag)
	require.NoError(t, err)
	return r
}

// An open record of an upgrade belongs to an earlier cluster of the same name. It does not affect the present cluster.
func TestUpgradeOfAnEarlierClusterIsIgnored(t *testing.T) {
	a := began(t, "")
	stoppedAfterTheControlPlane(t, a)
	r, etag, err := a.State().Upgrade(t.Context(), "demo")
	require.NoError(t, err)
	r.State, r.Step, r.Stack = upgrade.Running, 2, r.Stack+"-before"
	_, err = a.State().PutUpgrade(t.Context(), "demo", r, etag)
	require.NoError(t, err)
	a.Upload("clusters/demo.yaml", of("r2", "  upgrade: {exclusions: [{from: \"2020-01-01T00:00:00Z\", until: \"2100-01-01T00:00:00Z\"}]}\n"))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, "r1 1.36 old nodes", clusterLine(a), "its open step was that of the nodes")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, status.UpgradeScheduled, s.Upgrade.Phase, "the cluster's own waits for its time")
}

// A requested upgrade that cannot begin is reported as blocked, once. Reverting the request sends no notice.
func TestUpgradesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ spec, message string }{
		"a time, with an older release": {
			of("r1", "  upgrade: {at: {time: \"2090-01-01T00:00:00Z\", release: r0}}\n"),
			"does not begin: release r0 has Kubernetes 1.34, and the cluster runs 1.35: Kubernetes is not downgraded",
		},
		"a window that never opens again": {
			of("r2", "  upgrade: {window: {cron: \"0 1 1 1 ? 2090\", duration: 4h}}\n"),
			"does not begin: the window of spec.upgrade never opens again: change it",
		},
		"a window whose last time is excluded": {
			of("r2", "  upgrade: {window: {cron: \"0 1 1 1 ? 2090-2091\", duration: 4h}, exclusions: [{from: \"2091-01-01T00:00:00Z\", until: "+
				"\"2091-01-02T00:00:00Z\"}]}\n"),
			"does not begin: the window of spec.upgrade never opens again, because all its remaining times are excluded by " +
				"spec.upgrade.exclusions[0]: change it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := began(t, "")
			a.Upload("releases/r0.yaml", harness.ReleaseOf("1.34", "r0"))
			a.Settle()                                 // a release starts converges, too, and two at once may both notify
			if strings.Contains(test.spec, "window") { // which was open once
				a.Functions.Plan.Now = func() time.Time { return time.Date(2090, 6, 1, 0, 0, 0, 0, time.UTC) }
			}
			a.Upload("clusters/demo.yaml", test.spec)
			a.Settle()
			s := a.Status("demo")
			require.Equal(t, string(upgrade.Blocked), s.Upgrade.Phase)
			require.Equal(t, test.message, s.Upgrade.Message)
			require.Nil(t, s.Upgrade.At)
			require.Equal(t, []string{"Blocked"}, upgradeNotices(a))
			require.Equal(t, status.ReasonUpgradeBlocked, s.Condition(status.Upgraded).Reason)
			require.Equal(t, test.message, s.Condition(status.Upgraded).Message)
			if s.Upgrade.Origin == string(upgrade.OriginSpec) {
				require.Equal(t, status.ReasonUpgradeBlocked, s.Condition(status.Converged).Reason)
				require.Contains(t, s.Message, test.message)
			} else {
				require.Equal(t, status.Ready, s.Phase, s.Message)
			}
			mark := a.Calls.Mark()
			a.Converge("demo")
			require.NoError(t, a.AuditNow())
			a.Settle()
			require.Empty(t, mutatingCalls(a, mark))

			a.Upload("clusters/demo.yaml", of("r1", ""))
			a.Settle()
			require.Nil(t, a.Status("demo").Upgrade)
			require.Nil(t, a.Status("demo").Condition(status.Upgraded), "there was none")
			require.Equal(t, status.Ready, a.Status("demo").Phase)
			require.Equal(t, []string{"Blocked"}, upgradeNotices(a), "sent once")
			require.Empty(t, upgrades(a))
		})
	}
}
