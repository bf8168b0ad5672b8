package plan

// When pools are rolled without another change.

import (
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/stack"
)

// RollAt returns, for each pool, the time of its latest roll: the latest of its stack's tag, its spec's time if that has passed, and a
// requested time. It never decreases, so removing a time from a spec replaces nothing. later are the future times of the spec.
func RollAt(spec *api.Cluster, deployed map[string]stack.Deployed, requested map[string]time.Time, now time.Time) (at map[string]time.Time,
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
		if t := requested[pool.Name].Truncate(time.Second); t.After(latest) {
			latest = t
		}
		if !latest.IsZero() {
			at[pool.Name] = latest.UTC()
		}
	}
	return at, later
}
