// Package work is what the passes of the sweep and the audit share: interfaces of what both read, the ends of upgrades, late upgrades, and
// what is being drained. Packages passes and audit do not import each other.
package work

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

// SpecLister lists and reads specs: a subset of store.Objects.
type SpecLister interface {
	SpecReader
	List(ctx context.Context, prefix string) ([]store.Entry, error)
}

// StatusWriter changes the statuses of clusters: a subset of store.State.
type StatusWriter interface {
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Executions reports whether an execution of any machine runs: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	// State also reports whether a removal of drover ended the execution.
	State(ctx context.Context, execution string) (running, removed bool, err error)
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

// LaunchFailures reads why a group gets no instances: a subset of autoscaling.Groups.
type LaunchFailures interface {
	LaunchFailureReason(ctx context.Context, name string, since, until time.Time) (string, error)
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
