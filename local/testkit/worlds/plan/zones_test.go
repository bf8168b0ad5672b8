package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
)

// A zone that EKS refuses is found by its id before the network exists, and also when a spec adds it to a cluster.
func TestZonesThatEKSRefuses(t *testing.T) {
	a := harness.Start(t)
	a.EC2.SetZoneID("eu-central-1b", "use1-az3")
	a.Upload("releases/r1.yaml", harness.Release())
	a.Upload("clusters/demo.yaml", harness.Spec("demo", ""))
	a.Settle()
	s := a.Status("demo")
	require.Equal(t, status.Stopped, s.Phase, s.Message)
	require.Equal(t, "ZoneRefused", s.Condition(status.Converged).Reason)
	require.Equal(t, "spec.network.zones: no stack was changed, because the network cannot have these zones: "+
		"EKS creates no control plane in zone eu-central-1b (use1-az3)\nUse zones of these: eu-central-1a, eu-central-1c", s.Message)
	require.Empty(t, a.Stacks("demo"))

	good := strings.Replace(harness.Spec("demo", ""), "eu-central-1b", "eu-central-1c", 1)
	a.Upload("clusters/demo.yaml", good)
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)

	stacks := a.Stacks("demo")
	a.Upload("clusters/demo.yaml", strings.Replace(good, "eu-central-1c", "eu-central-1c, eu-central-1b", 1))
	a.Settle()
	s = a.Status("demo")
	require.Equal(t, status.Stopped, s.Phase, s.Message)
	require.Equal(t, "ZoneRefused", s.Condition(status.Converged).Reason)
	require.Equal(t, stacks, a.Stacks("demo"))

	a.Upload("clusters/demo.yaml", good)
	a.Settle()
	require.Equal(t, status.Ready, a.Status("demo").Phase, a.Status("demo").Message)
}
