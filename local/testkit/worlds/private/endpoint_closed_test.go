package private_test

// An endpoint whose public CIDRs exclude drover while a pool is rolled.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/status"
)

func TestEndpointClosesDuringARoll(t *testing.T) {
	const office = "198.51.100.0/24"
	rolling := func(l *life) pool.Group {
		l.CreatePool(lives.TwoNodes)
		l.RequirePhase(status.Ready)
		l.BlockPods(true)
		before := l.Group("demo", "a")
		l.Converge("demo", "a")
		l.WaitForGroup(func(g pool.Group) bool { return len(g.Draining()) > 0 })
		return before
	}

	t.Run("by the spec: continues through the relay", func(t *testing.T) {
		runWithFaults(t, func(l *life, _ *faults.Engine) {
			before := rolling(l)
			spec := harness.Spec("demo", "  controlPlane: {endpoint: {publicCIDRs: ["+office+"]}}\n")
			l.Upload(names.ClusterSpec("demo"), strings.Replace(spec, "minSize: 1, maxSize: 3", lives.TwoNodes, 1))
			time.Sleep(time.Minute)
			l.BlockPods(false)
			l.RunSchedules(2)
			l.RequirePhase(status.Ready)
			require.Equal(t, 1, l.relays())
			after := l.Group("demo", "a")
			require.False(t, slices.ContainsFunc(after.Instances, func(i pool.Instance) bool {
				return slices.ContainsFunc(before.Instances, func(o pool.Instance) bool { return o.ID == i.ID })
			}), "%+v", after)
		})
	})
}
