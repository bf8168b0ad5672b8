package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// An operator deletes the stack of the only pool during an upgrade. The last node's drain waits for a pod that cannot
// move, as long as Auto Scaling allows. Until then a budget blocks further attempts of the upgrade. Once the pool is
// recreated, another attempt succeeds.
func TestUpgradeAfterADeletedPool(t *testing.T) {
	p := quiet()
	first := p.acts[0].spec
	first.pools[0].min = 2
	second := *first
	second.minor = firstMinor + 1
	p.acts[1] = act{at: 30 * time.Minute, cluster: "c0", what: "upgrade", spec: &second}
	p.acts = append(p.acts, act{at: 35 * time.Minute, cluster: "c0", what: "unstack", deletedStack: names.PoolStack("a")})
	p.last["c0"] = &second
	p.apps["c0"] = []apiserver.App{
		{Name: "web", Replicas: 2, MaxUnavailable: 1, Start: time.Minute, Stop: 10 * time.Second, Grace: 30 * time.Second},
	}
	p.breakAtEnd = func(w *world) {
		require.Greater(w.t, w.out.Settled, maxHookTime)
		require.Equal(w.t, map[string]string{"1.35": "ACTIVE"}, w.controlPlanes())
	}
	o := run(t, 1, p, false)
	require.Empty(t, o.Violations, story(o))
	require.Equal(t, 4, o.Acts["nudge"], "three times in vain, and a fourth time:\n%s", story(o))
}
