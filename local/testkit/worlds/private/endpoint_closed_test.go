package private_test

// An endpoint whose public CIDRs exclude drover while a pool is rolled.

import (
	"fmt"
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
			spec := harness.Spec("demo", "  controlPlane: {endpoint: {publicCIDRs: ["+lives.OfficeCIDR+"]}}\n")
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

	for _, closed := range []time.Duration{30 * time.Minute, 5 * time.Hour} {
		t.Run(fmt.Sprintf("outside drover for %s: waits, says why, and continues", closed), func(t *testing.T) {
			runWithFaults(t, func(l *life, _ *faults.Engine) {
				before := rolling(l)
				draining := before.Draining()
				l.SetPublicCIDRs(lives.OfficeCIDR)
				l.BlockPods(false)
				l.runSchedules(closed)
				const command = "aws eks update-cluster-config --name drover-demo --resources-vpc-config endpointPublicAccess=true," +
					"endpointPrivateAccess=true,publicAccessCidrs=0.0.0.0/0"
				s := l.Status("demo")
				in := s.Condition(status.InSync)
				require.NotNil(t, in)
				require.Contains(t, in.Message, "the API endpoint admits 198.51.100.0/24 and its own network instead of 0.0.0.0/0 and its own network")
				require.Contains(t, in.Message, command)
				nodes := fmt.Sprintf("%+v", s.Nodes)
				require.Contains(t, nodes, "EndpointClosed: EKS cluster drover-demo: its endpoint admits only 198.51.100.0/24")
				require.Contains(t, nodes, command)
				require.NotContains(t, nodes, "RelayMissing")
				for _, id := range draining {
					require.Contains(t, l.Group("demo", "a").Draining(), id, "a node whose pods drover cannot evict stays")
				}
				l.SetPublicCIDRs("0.0.0.0/0")
				l.RunSchedules(3)
				l.RequirePhase(status.Ready)
				require.Zero(t, l.relays())
				require.Equal(t, "True", l.Status("demo").Condition(status.InSync).Status)
				// A rollback leaves the pool at the size to which the roll had grown it, which its spec allows.
				l.RequireRenewed(before, l.Group("demo", "a").Desired)
			})
		})
	}
}

// runSchedules runs the sweep and the audit for a while.
func (l *life) runSchedules(d time.Duration) {
	for n := range int(d / (5 * time.Minute)) {
		time.Sleep(5 * time.Minute)
		l.Sweep()
		if n%3 == 2 {
			_ = l.AuditNow() // the logs of functions have the reason of a failure
		}
	}
}
