package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
)

func TestUpgradeAfterARemoval(t *testing.T) {
	scheduled := events.Upgrade{Cluster: demo, Release: "r2", Origin: "Spec", Key: "k"}
	for name, test := range map[string]struct {
		requested events.Upgrade
		removed   bool
		failing   map[string]error
		want      events.Upgrade
	}{
		"continues to the release of the operator": {events.Upgrade{Cluster: demo, Release: "r2"}, true, nil,
			events.Upgrade{Cluster: demo, Release: "r2"}},
		"continues to the release of the spec, outside its window": {scheduled, true, nil, events.Upgrade{Cluster: demo}},
		"continues a rollback": {events.Upgrade{Cluster: demo, Rollback: true}, true, nil, events.Upgrade{Cluster: demo, Rollback: true}},
		"ends if its input is forgotten": {scheduled, true, map[string]error{"input x": errThrottled},
			events.Upgrade{Cluster: demo, Ended: "x"}},
		"ends if an operator stopped it": {scheduled, false, nil, events.Upgrade{Cluster: demo, Ended: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{WasRemoved: test.removed, Requested: test.requested, Failing: test.failing}
			require.NoError(t, depsOf(s).ender().End(t.Context(), demo, "x"))
			require.Equal(t, []events.Upgrade{test.want}, s.Upgrades)
		})
	}
	t.Run("is tried again if the end of its execution is not known", func(t *testing.T) {
		s := &sweeptest.Account{Failing: map[string]error{"running": errThrottled}}
		require.ErrorIs(t, depsOf(s).ender().End(t.Context(), demo, "x"), errThrottled)
		require.Empty(t, s.Upgrades)
	})
}
