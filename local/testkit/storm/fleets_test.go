package storm

import (
	"fmt"
	"testing"
)

// Worlds with rollouts: half as many as others, because they take longer.
func TestFleets(t *testing.T) {
	total := Total{}
	for seed := uint64(firstFleet); seed < firstFleet+uint64((*worldCount+1)/2); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := Run(t, seed, *tracing)
			outcomes[seed] = o
			if total.add(o); len(o.Violations) > 0 {
				t.Error(story(o))
			}
		})
	}
	t.Log(total)
}

// The same seed is the same world of a fleet, turn by turn.
func TestFleetSeedReplays(t *testing.T) {
	for seed := uint64(firstFleet); seed < firstFleet+uint64(*replays); seed++ {
		requireReplay(t, seed)
	}
}
