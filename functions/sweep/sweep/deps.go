// Package sweep handles events that were lost. Each pass is a type: it lists what should be idle, and resumes or
// starts what nothing works on. A pass that finds nothing costs one listing. The handler of the sweep function runs
// the passes every five minutes. The audit of whole clusters is package audit.
package sweep

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the bucket of specs and releases: a subset of store.Objects.
type Specs interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
	DeleteWaiter(ctx context.Context, w store.Waiter) error
	Held(ctx context.Context) ([]string, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Holder(ctx context.Context, cluster string, running func(ctx context.Context, execution string) (bool, error)) (execution string,
		err error)
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	Verdict(ctx context.Context, release string) (*status.Release, error)
	Release(ctx context.Context, cluster, execution string) error
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
	AddDue(ctx context.Context, cluster string, at time.Time) error
	Dues(ctx context.Context, now time.Time) ([]store.Due, error)
	Done(ctx context.Context, due store.Due) error
	UpdateUnread(ctx context.Context, specs store.Lister) error
	DeleteIf(ctx context.Context, key, etag string) error
	GetJSON(ctx context.Context, key string, v any) (etag string, err error)
	Replace(ctx context.Context, key string, body []byte, etag string) (string, error)
}

// Executions are those of drover-converge: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	Converge(ctx context.Context, cluster, specVersion, after string) error
	Again(ctx context.Context, cluster, specVersion, why string) (begun bool, err error)
	Stop(ctx context.Context, execution, cause string) error
}

// Starter starts drover-converge for due work: a subset of stepfunctions.Executions.
type Starter interface {
	ConvergeDue(ctx context.Context, cluster string, at time.Time) error
}

// Stacks reads the deployed stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	All(ctx context.Context) (map[string]stack.Deployed, error)
	Began(ctx context.Context, stackName, token string) (bool, error)
	Changing(ctx context.Context, stackName string, then time.Time) (bool, error)
	Since(ctx context.Context, stackName string) (time.Time, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	All(ctx context.Context) ([]pool.Group, error)
	Hook(ctx context.Context, group, hook string) (events.Lifecycle, bool, error)
	Resume(ctx context.Context, group string, processes []string) error
	Unhealthy(ctx context.Context, instance string) error
	Refused(ctx context.Context, name string, since, until time.Time) (string, error)
}

// Machine is a state machine that works on instances: a subset of stepfunctions.Machine.
type Machine interface {
	Start(ctx context.Context, name string, input any) error
	Running(ctx context.Context) ([]string, error)
	Broken(ctx context.Context, since time.Time) ([]string, error)
	Input(ctx context.Context, execution string, into any) error
}

// Upgrader starts drover-upgrade: a subset of stepfunctions.Machine.
type Upgrader interface {
	Start(ctx context.Context, name string, input any) error
}

// Resumer resumes the step that waits for a stack: waiter.Resumer.
type Resumer interface {
	Resume(ctx context.Context, w store.Waiter, stackStatus string) error
}

// Admitter judges a spec whose event was lost: admission.Admitter.
type Admitter interface {
	Admit(ctx context.Context, cluster string) error
}

// Publisher checks a release whose event was lost: releases.Checker.
type Publisher interface {
	Check(ctx context.Context, release string) error
}

// Deps is what the passes use.
type Deps struct {
	Specs  Specs
	State  State
	Stacks Stacks
	Resume Resumer
	Admit  Admitter
	// Publish checks releases.
	Publish Publisher
	// Executions and Start are drover-converge.
	Executions Executions
	Start      Starter
	Groups     Groups
	// JoinNode, DrainNode and Upgrade are the other state machines.
	JoinNode, DrainNode Machine
	Upgrade             Upgrader
	// Parallel is how many clusters are handled at the same time.
	Parallel int
	// Patience is the age from which an upload without an event counts as missed.
	Patience time.Duration
	Now      func() time.Time
}

// ForEach calls do for each cluster or key of a list, Parallel at a time, and returns all errors.
func (d *Deps) ForEach(list []string, do func(string) error) error {
	n := max(1, d.Parallel)
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

// NewestVersion is the version of a cluster's newest spec; empty if there is none.
func (d *Deps) NewestVersion(ctx context.Context, cluster string) (string, error) {
	return specs.Version(ctx, d.Specs, names.ClusterSpec(cluster))
}

// ObservesNewest reports whether the status is about the newest version of the cluster's spec, or about none if there is none.
func (d *Deps) ObservesNewest(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	version, err := d.NewestVersion(ctx, cluster)
	return err == nil && s.ObservedVersion == version, err
}
