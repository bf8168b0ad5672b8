// Package passes is what the sweep does every two minutes: it continues what a lost event or a stopped execution left, and
// starts what is due. Each pass is a type whose fields are its dependencies. It lists waiters, instances or records,
// finds those that no execution works on, and starts or resumes an execution for each. A pass that finds nothing
// costs one listing. The handler of the sweep function runs the passes every two minutes. The audit of whole
// clusters is package audit.
package passes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// SpecReader reads specs: a subset of store.Objects.
type SpecReader interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// Executions reports whether an execution of any machine runs: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	// State also reports whether a removal of drover ended the execution.
	State(ctx context.Context, execution string) (running, removed bool, err error)
}

// Machine is a state machine that works on instances: a subset of stepfunctions.Machine.
type Machine interface {
	Start(ctx context.Context, name string, input any) error
	Running(ctx context.Context) ([]string, error)
	Unsuccessful(ctx context.Context, since time.Time) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// Upgrader starts drover-upgrade, and reads the input of its executions: a subset of stepfunctions.Machine.
type Upgrader interface {
	Start(ctx context.Context, name string, input any) error
	Input(ctx context.Context, execution string, into any) error
}

// Admitter judges a spec whose event was lost: admission.Admitter.
type Admitter interface {
	Admit(ctx context.Context, cluster string) error
}

// ForEach calls do for each cluster or key of a list, up to parallel at a time, and returns all errors.
func ForEach(parallel int, list []string, do func(string) error) error {
	n := max(1, parallel)
	failed := make([]error, len(list))
	var next atomic.Int32
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(list) {
				return
			}
			failed[i] = do(list[i])
		}
	}
	if n == 1 {
		work()
		return errors.Join(failed...)
	}
	var all sync.WaitGroup
	for range min(n, len(list)) {
		all.Go(work)
	}
	all.Wait()
	return errors.Join(failed...)
}

// ObservesNewest reports whether the status describes the newest version of the spec. Without a spec, the status must name no version.
func ObservesNewest(ctx context.Context, uploads SpecReader, cluster string, s *status.Status) (bool, error) {
	version, err := specs.Version(ctx, uploads, names.ClusterSpec(cluster))
	return err == nil && s.ObservedVersion == version, err
}
