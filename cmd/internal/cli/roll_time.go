package cli

// How long replacing a pool's nodes takes at least: what a roll and an upgrade say of it in advance.

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
)

// leastBoot of an instance, until its node is Ready: EC2 seldom takes less.
const leastBoot = 55 * time.Second

// batchLimit is how long CloudFormation waits for a batch of a rolling update: see the pool's template.
const batchLimit = time.Hour

// tooLong says whether CloudFormation would take a roll back: the drains of a batch, with the pool's pause, take longer than it waits.
func tooLong(drains []time.Duration, update api.Update) bool {
	pause, _ := time.ParseDuration(update.PauseTime)
	return update.Strategy != api.InstanceRefresh && len(drains) > 0 && slices.Max(drains)+pause > batchLimit
}

// bounds are how many of a pool's nodes its update lets be out, and how many more be there. A rolling update adds
// none where none has to stay: see render.Pace.
func bounds(update api.Update, nodes int) (unavailable, surge int) {
	unavailable, surge = update.Bounds(nodes)
	if unavailable >= nodes && update.Strategy != api.InstanceRefresh {
		surge = 0
	}
	return unavailable, surge
}

// rollTime is the least time in which nodes with these drains are replaced. The surge boots first; an instance refresh need not wait for it
// where some may be out. Then as many nodes at a time as the pool's
// update allows are drained while those that take their places boot, with the pool's pause before the next; for the last of them, which
// the surge has replaced already, none boots. It is least when drains that take long are in one batch.
func rollTime(drains []time.Duration, update api.Update) (least time.Duration) {
	drains = slices.SortedFunc(slices.Values(drains), func(a, b time.Duration) int { return cmp.Compare(b, a) })
	pause, _ := time.ParseDuration(update.PauseTime) // one that was read is valid, and "" is none
	unavailable, surge := bounds(update, len(drains))
	batch := max(1, unavailable+surge)
	boot := len(drains) // so many have still to
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
