package sweep_test

// Instances that end before they are in service.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// Auto Scaling does not check the health of an instance at its launch hook. The sweep does, so the hook does not time out.
func TestInstanceEndsAtItsLaunchHook(t *testing.T) {
	lives.RunWithFaults(t, func(l *lives.Life, _ *faults.Engine) {
		l.CreatePool(lives.TwoNodes)
		ended := l.EndAtHook()
		time.Sleep(4 * time.Minute)
		require.Contains(t, l.Instances(), ended, "Auto Scaling does not replace it")
		l.Sweep()
		time.Sleep(2 * time.Minute)
		group := l.Group("demo", "a")
		require.Len(t, group.Instances, 3)
		for _, i := range group.Instances {
			require.NotEqual(t, ended, i.ID)
			require.Equal(t, pool.InService, i.State)
		}
		l.SettleAll()
		l.RequirePhase(status.Ready)
		require.Empty(t, l.Status("demo").Nodes, "the instance did not fail to join")
	})
}
