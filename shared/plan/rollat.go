package plan

// When pools are rolled though nothing else of them changed.

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// RollAt says for each pool when its nodes are to be replaced, or were last: the latest of what its stack says, what its spec says
// if that is not in the future, and what somebody asked for by hand. It never goes back, so that taking a time out of a spec
// replaces nothing. later are the times of the spec that are still to come.
func RollAt(spec *api.Cluster, deployed map[string]stack.Deployed, asked map[string]time.Time, now time.Time) (at map[string]time.Time,
	later []time.Time) {
	at = map[string]time.Time{}
	for i := range spec.Spec.Pools {
		pool := &spec.Spec.Pools[i]
		latest, _ := time.Parse(time.RFC3339, deployed[names.PoolStack(pool.Name)].Tags[names.TagRollAt])
		stated, err := api.Time(pool.RollAt)
		switch {
		case err != nil:
		case stated.After(now):
			later = append(later, stated.UTC())
		case stated.After(latest):
			latest = stated
		}
		if by := asked[pool.Name].Truncate(time.Second); by.After(latest) {
			latest = by
		}
		if !latest.IsZero() {
			at[pool.Name] = latest.UTC()
		}
	}
	return at, later
}
