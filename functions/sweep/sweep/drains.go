package sweep

import (
	"context"
	"sync"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
)

// Drains lists the executions of drover-drain-node: a subset of Machine.
type Drains interface {
	Running(ctx context.Context) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// RunningDrains returns a function that lists what is drained now: instances by id, and nodes as cluster/name. It asks Step Functions once,
// when it is first called.
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
			drains[DrainTarget(in)] = true
		}
		return drains, nil
	})
}

// DrainTarget is what a request drains: an instance by id, a node as cluster/name, or "" if it names neither.
func DrainTarget(in events.DrainRequest) string {
	switch {
	case in.Lifecycle != nil:
		return in.EC2InstanceID
	case in.InstanceID != "":
		return in.InstanceID
	case in.Instance != "":
		return in.Instance
	case in.Node == "" || names.IsInstance(in.Node):
		return in.Node
	}
	return in.Cluster + "/" + in.Node
}
