package work

import (
	"context"
	"sync"

	"github.com/drover-run/drover/events"
)

// Drains lists the executions of drover-drain-node: a subset of Machine.
type Drains interface {
	Running(ctx context.Context) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// RunningDrains returns a function that lists what is being drained now: instances by id, and nodes as cluster/name. It asks Step Functions
// once, when it is first called.
func RunningDrains(ctx context.Context, machine Drains) func() (map[string]bool, error) {
	return sync.OnceValues(func() (map[string]bool, error) {
		running, err := machine.Running(ctx)
		if err != nil {
			return nil, err
		}
		drains := map[string]bool{}
		for _, x := range running {
			var in events.DrainRequest
			if err := machine.Input(ctx, x, &in); err != nil {
				return nil, err
			}
			drains[in.Target()] = true
		}
		return drains, nil
	})
}
