package drain_test

// Removed pools and their pods.

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/local/testkit/lives"
	"github.com/drover-run/drover/shared/status"
)

// The pods of a removed pool move to another pool within their budget before an instance ends.
func TestRemovedPoolIsDrainedFirst(t *testing.T) {
	lives.Run(t, func(l *lives.Life) {
		l.CreateCluster("    - {name: b, instanceTypes: [m7i.large], minSize: 2, maxSize: 3}\n" + lives.Unprotected)
		pools := map[string]string{}
		for _, pool := range []string{"a", "b"} {
			for _, i := range l.Group("demo", pool).Instances {
				pools[i.ID] = pool
			}
		}
		api := l.API("drover-demo")
		api.Run(apiserver.App{Name: "shop", Replicas: 12, MaxUnavailable: 2, Start: time.Second, Stop: time.Second, Grace: 10 * time.Second})
		time.Sleep(time.Minute)
		var mu sync.Mutex
		var left []apiserver.Removal
		api.OnRemoval(func(r apiserver.Removal) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, r)
		})
		l.ChangeSpec(lives.Unprotected)
		l.RequirePhase(status.Ready)
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(t, left)
		for _, r := range left {
			require.Equal(t, "evicted", r.How, "%+v", r)
			require.GreaterOrEqual(t, r.Healthy, r.Desired, "%+v", r)
			require.Equal(t, "b", pools[r.Instance], "only nodes of pool b terminate")
		}
		require.NotContains(t, l.Stacks("demo"), "pool-b")
		ready := 0
		for _, pod := range api.Pods() {
			if pod.App == "shop" && pod.Ready {
				ready++
			}
		}
		require.Equal(t, 12, ready)
	})
}
