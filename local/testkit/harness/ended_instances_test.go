package harness

// Instances that end before they are in service.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

// Auto Scaling does not check the health of an instance at its launch hook. The sweep does, so the hook does not time out.
func TestInstanceEndsAtItsLaunchHook(t *testing.T) {
	upgradeLife(t, func(l *life, _ *faults.Engine) {
		l.grown(twoNodes)
		ended := l.endAtHook()
		time.Sleep(4 * time.Minute)
		require.Contains(t, l.instances(), ended, "Auto Scaling does not replace it")
		l.swept()
		time.Sleep(time.Minute)
		group := l.Group("demo", "a")
		require.Len(t, group.Instances, 3)
		for _, i := range group.Instances {
			require.NotEqual(t, ended, i.ID)
			require.Equal(t, pool.InService, i.State)
		}
		l.settle()
		l.phase(status.Ready)
		require.Empty(t, l.Status("demo").Nodes, "the instance did not fail to join")
	})
}
