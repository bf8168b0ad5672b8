package upgrade_test

// Upgrades that a check blocks: nothing changes. Some checks only warn.

import (
	"slices"
	"strings"
	"testing"
	"time"

	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/aws/servicequotas"
	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

func TestBlockedUpgrade(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster(lives.Alarmed)
		l.alarm(cloudwatchtypes.StateValueAlarm)
		before := l.Stacks("demo")
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "FAILED UpgradeBlocked: nothing was changed: AlarmsQuiet")
		s := l.Status("demo")
		require.Equal(t, status.Ready, s.Phase, "no spec is pending")
		require.Equal(t, "Blocked", s.Upgrade.Phase)
		require.Equal(t, status.ReasonUpgradeBlocked, s.Condition(status.Upgraded).Reason)
		require.Equal(t, "AlarmsQuiet", s.Upgrade.Checks[0].Name)
		require.Equal(t, before, l.Stacks("demo"))
		require.True(t, l.AlarmEnabled())
		l.alarm(cloudwatchtypes.StateValueOk)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.SettleAll()
		l.RequireUpgraded()
	})
}

// The account has reached its quota of clusters. The check warns but does not block: an upgrade creates no cluster.
func TestUpgradeAtTheQuotaOfClusters(t *testing.T) {
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		l.CreateOldCluster("")
		l.Quotas.Set(servicequotas.Clusters, 1)
		_, blocks, err := l.dryRun(events.Upgrade{Release: "r2"})
		require.NoError(t, err)
		require.Empty(t, blocks)
		l.StartUpgrade(events.Upgrade{Release: "r2"})
		l.WaitForStep(upgrade.StepControlPlane)
		checks := l.Status("demo").Upgrade.Checks
		i := slices.IndexFunc(checks, func(c status.Check) bool { return c.Name == "ClusterQuota" })
		require.GreaterOrEqual(t, i, 0, "%+v", checks)
		require.False(t, checks[i].Blocks)
		require.Equal(t, "Clusters (L-1194D53C): 1 of 1 are used: a lost cluster could not be recreated", checks[i].Message)
		require.Contains(t, checks[i].Next, "request-service-quota-increase --service-code eks --quota-code L-1194D53C")
		l.SettleAll()
		l.RequireUpgraded()
	})
}

// A client starts to use a removed API after EKS refreshed its insights. The stale insights report no problem.
func TestInsightsAreRefreshedBeforeTheChecks(t *testing.T) {
	looked := func(l *life) {
		l.CreateOldCluster(lives.Alarmed)
		out, err := l.EKS.ListInsights(l.T.Context(), l.Admin(), eks.ListInsightsInput{ClusterName: "drover-demo"})
		require.NoError(l.T, err)
		require.NotEmpty(l.T, out.Insights)
		l.API("drover-demo").Requested("flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas", "1.36")
		time.Sleep(5 * time.Hour)
	}
	runWithFaults(t, func(l *life, _ *faults.Engine) {
		looked(l)
		arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
		time.Sleep(20 * time.Second)
		require.Equal(t, "EKS refreshes the cluster's insights, and the checks wait for them", l.Status("demo").Message)
		l.SettleAll()
		require.Contains(t, l.verdict(arn), "UpgradeBlocked: nothing was changed: DeprecatedAPIs")
		require.EqualValues(t, 1, l.UpgradeRecord().Number)
	})
	t.Run("unless the refresh fails: then the check reports their age", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			looked(l)
			l.OnCall(func(call endpoint.Call) error {
				if call.Action == "StartInsightsRefresh" {
					return &wire.Error{Code: "InvalidRequestException", Message: "not now", Status: 400}
				}
				return nil
			})
			l.StartUpgrade(events.Upgrade{Release: "r2"})
			l.WaitForStep(upgrade.StepControlPlane)
			checks := l.Status("demo").Upgrade.Checks
			at := slices.IndexFunc(checks, func(c status.Check) bool { return c.Name == "Insights" })
			require.GreaterOrEqual(t, at, 0, "%+v", checks)
			require.False(t, checks[at].Blocks)
			require.Contains(t, checks[at].Message, "5h0m0s ago")
			l.SettleAll()
			l.RequireUpgraded()
		})
	})
	t.Run("not for an upgrade that nothing requests now", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			l.CreateOldCluster(lives.Alarmed)
			arn := l.StartUpgrade(events.Upgrade{Release: "r2"})
			time.Sleep(20 * time.Second)
			l.Upload(names.ReleaseSpec("r3"), harness.ReleaseOf("1.36", "r3"))
			l.Upload(names.ClusterSpec("demo"), strings.Replace(harness.Spec("demo", lives.Alarmed), "r1", "r3", 1))
			l.SettleAll()
			require.Contains(t, l.verdict(arn), "UpgradeStopped: the spec now names release r3, and no longer r1. Nothing was changed")
		})
	})
}
