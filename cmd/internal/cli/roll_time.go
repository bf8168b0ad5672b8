package cli

// The least time in which a pool's nodes are replaced, for the previews of a roll and of an upgrade.

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// leastBoot is the time from the launch of an instance until its node is Ready. EC2 seldom takes less.
const leastBoot = 55 * time.Second

// batchLimit is how long CloudFormation waits for a batch of a rolling update. The pool's template sets it.
const batchLimit = time.Hour

// tooLong reports whether CloudFormation would roll an update back, because a batch takes longer than batchLimit.
func tooLong(drains []time.Duration, update api.Update) bool {
	pause, _ := time.ParseDuration(update.PauseTime)
	return update.Strategy != api.InstanceRefresh && len(drains) > 0 && slices.Max(drains)+pause > batchLimit
}

// bounds returns how many nodes of a pool may be unavailable during its update, and how many nodes the update may add. A
// rolling update that may replace all nodes at once adds none: see render.Pace.
func bounds(update api.Update, nodes int) (unavailable, surge int) {
	unavailable, surge = update.Bounds(nodes)
	if unavailable >= nodes && update.Strategy != api.InstanceRefresh {
		surge = 0
	}
	return unavailable, surge
}

// rollTime returns the least time in which nodes with these drains are replaced.
//   - The surge boots first. An instance refresh does not wait for it if some nodes may be unavailable.
//   - Then each batch is drained while its replacements boot, and the pool pauses before the next batch.
//   - The last nodes need no replacement: the surge has replaced them.
//   - The result is the least when the longest drains are in one batch, so drains are sorted.
func rollTime(drains []time.Duration, update api.Update) (least time.Duration) {
	drains = slices.SortedFunc(slices.Values(drains), func(a, b time.Duration) int { return cmp.Compare(b, a) })
	pause, _ := time.ParseDuration(update.PauseTime) // validated before; "" is no pause
	unavailable, surge := bounds(update, len(drains))
	batch := max(1, unavailable+surge)
	boot := len(drains) // nodes that have yet to boot
	if surge > 0 && boot > 0 {
		boot -= surge
		if unavailable == 0 || update.Strategy != api.InstanceRefresh {
			least = leastBoot + pause
		}
	}
	for i := 0; i < len(drains); i += batch {
		if boot <= 0 {
			least += drains[i]
			continue
		}
		boot -= batch
		least += max(leastBoot, drains[i])
		if i+batch < len(drains) {
			least += pause
		}
	}
	return least
}
