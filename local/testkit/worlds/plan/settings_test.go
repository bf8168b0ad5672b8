package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/eks"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

func eksCluster(t *testing.T, a *harness.Account) *eks.Cluster {
	t.Helper()
	out, err := a.EKS.DescribeCluster(t.Context(), a.Admin(), eks.NamedInput{Name: names.EKSCluster("demo")})
	require.NoError(t, err)
	return out.Cluster
}

// EKS's bounds apply to settings, and what a spec no longer states is refused, because EKS keeps it.
func TestSettingsOfTheControlPlane(t *testing.T) {
	a := harness.Start(t)
	upload := func(controlPlane string) *status.Status {
		t.Helper()
		a.Upload("clusters/demo.yaml", harness.Spec("demo", "  controlPlane: "+controlPlane+"\n"))
		a.Settle()
		return a.Status("demo")
	}
	a.Upload("releases/r1.yaml", harness.Release())
	s := upload("{settings: {eventTTL: 5m}}")
	require.Equal(t, "SpecInvalid", s.Condition(status.SpecAccepted).Reason)
	require.Contains(t, s.Message, `spec.controlPlane.settings.eventTTL: Invalid value: "5m": EKS allows 10m to 60m for Kubernetes 1.36`)
	require.Empty(t, a.Stacks("demo"))

	s = upload("{tier: tier-xl, zonalShift: true, settings: {eventTTL: 30m, nodePorts: 20000-21000, hpaSyncPeriod: 10s, " +
		"terminatedPodThreshold: 500, scoring: {type: MostAllocated, weights: {cpu: 2}}}}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	c := eksCluster(t, a)
	require.Equal(t, "tier-xl", c.ControlPlaneScaling.Tier)
	require.Equal(t, "30m", c.KubeApiServerConfig.EventTtl)
	require.Equal(t, 20000, c.KubeApiServerConfig.ServiceNodePortRange.MinPort)
	require.Equal(t, "10s", c.KubeControllerManagerConfig.HorizontalPodAutoscalerControllerConfig.HorizontalPodAutoscalerSyncPeriod)
	require.Equal(t, 500, c.KubeControllerManagerConfig.PodGcControllerConfig.TerminatedPodGcThreshold)
	require.Equal(t, "MostAllocated", c.KubeSchedulerConfig.NodeResourcesFit.ScoringStrategy.Type)
	require.True(t, c.ZonalShiftConfig.Enabled)

	stacks := a.Stacks("demo")
	s = upload("{tier: tier-xl, zonalShift: true}")
	require.Equal(t, "SpecInvalid", s.Condition(status.SpecAccepted).Reason)
	require.Contains(t, s.Message, `spec.controlPlane.settings.eventTTL: Required value: EKS keeps "30m" when it is removed: `+
		`state it, or its default, "60m"`)
	require.Equal(t, stacks, a.Stacks("demo"))

	s = upload("{tier: tier-2xl, zonalShift: false, settings: {eventTTL: 60m, nodePorts: 30000-32767, hpaSyncPeriod: 15s, " +
		"terminatedPodThreshold: 12500, scoring: {type: LeastAllocated, weights: {cpu: 1, memory: 1}}}}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	s = upload("{tier: standard}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
	require.Equal(t, "standard", eksCluster(t, a).ControlPlaneScaling.Tier)
	s = upload("{}")
	require.Equal(t, status.Ready, s.Phase, s.Message)
}
