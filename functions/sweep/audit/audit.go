// Package audit compares every cluster with its desired state, every 15 minutes and after each upload of a release.
// It finds what no event reports: retries that are due, executions that no longer advance, releases that became
// available, and drift. It records each difference in the status, and repairs those whose repair only restores the
// earlier state. One audit lists stacks, groups and specs once. For each cluster it reads the status, the spec and
// releases if they changed, the nodes, and the control plane's version. The handler of the sweep function runs it.
package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Planner plans a cluster over stacks that were listed: planner.Planner.
type Planner interface {
	PreviewWith(ctx context.Context, cluster string, stacks map[string]stack.Deployed) (plan.Preview, error)
}

// Nodes reads the health of a cluster's nodes: a subset of kube.Clusters.
type Nodes interface {
	Health(ctx context.Context, cluster string, api stack.API) ([]pool.NodeHealth, error)
}

// Snapshot is the state bucket that Planner reads: a subset of cache.Snapshot.
type Snapshot interface {
	Refresh(ctx context.Context) error
}

// EKS reads the version and health of a control plane: a subset of eks.Reader.
type EKS interface {
	ControlPlane(ctx context.Context, eksCluster string) (preflight.ControlPlane, error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	work.StatusWriter
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	Dues(ctx context.Context, now time.Time) ([]store.Due, error)
	Lease(ctx context.Context, cluster string) (store.Lease, error)
	Release(ctx context.Context, cluster, execution string) error
	Waiter(ctx context.Context, stackName string) (store.Waiter, error)
	RequestInspection(ctx context.Context, cluster, why string) error
}

// Stacks lists the deployed stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	All(ctx context.Context) (map[string]stack.Deployed, error)
}

// Groups is Auto Scaling: a subset of autoscaling.Groups.
type Groups interface {
	work.LaunchFailures
	All(ctx context.Context) ([]pool.Group, error)
	MarkUnhealthy(ctx context.Context, instance string) error
}

// Executions are those of drover-converge: a subset of stepfunctions.Executions.
type Executions interface {
	work.Executions
	StartRetry(ctx context.Context, cluster, specVersion, why string) (begun bool, err error)
	Stop(ctx context.Context, execution, cause string) error
}

// Superseder ends a task that waits for a stack, so that its execution plans again: waiter.Resumer.
type Superseder interface {
	Supersede(ctx context.Context, w store.Waiter, cause string) error
}

const (
	// period of the audit: see its schedule in infra.
	period = backoff.AuditPeriod
	// maxStarts bounds the executions that one audit starts. After an outage of AWS all clusters are due at once.
	maxStarts = 50
	// pendingTimeout is how long a cluster may be Pending, silenceTimeout how long it may converge without a new status, before the audit
	// checks it.
	pendingTimeout, silenceTimeout = 10 * time.Minute, time.Hour
	// deletionTimeout is the silenceTimeout of a deletion. Failed tries, with their pauses, are an hour apart, and removing leftovers
	// takes up to half an hour more.
	deletionTimeout = 3 * time.Hour
)

// Audit audits clusters.
type Audit struct {
	Specs  work.SpecLister
	State  State
	Stacks Stacks
	Groups Groups
	Nodes  Nodes
	EKS    EKS
	// Planner plans over Snapshot, which one audit refreshes once.
	Planner    Planner
	Snapshot   Snapshot
	Executions Executions
	DrainNode  work.Drains
	Upgrade    work.Upgrader
	Admit      work.Admitter
	Supersede  Superseder
	// Relays is kept between audits. Each audit fills it, for the pass of the sweep that looks for deleted relays.
	Relays *work.RelayCache
	// Parallel is how many clusters are audited at the same time. EventGrace is the age from which an upload without an
	// event counts as missed.
	Parallel   int
	EventGrace time.Duration
	Now        func() time.Time
}

// auditRun is one audit.
type auditRun struct {
	Audit
	now    time.Time
	specs  map[string]store.Entry               // of clusters that have one
	stacks map[string]map[string]stack.Deployed // by cluster and stack
	groups map[string]pool.Group
	due    map[string]bool // clusters that the next sweep starts
	drains func() (map[string]bool, error)
	starts atomic.Int32
}

// Run audits all clusters.
func (a Audit) Run(ctx context.Context) error { return a.Clusters(ctx, nil) }

// Clusters audits some clusters, or all if only is nil.
func (a Audit) Clusters(ctx context.Context, only map[string]bool) error {
	uploads, err := a.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	r := &auditRun{
		Audit: a, now: a.Now(), specs: map[string]store.Entry{}, stacks: map[string]map[string]stack.Deployed{},
		groups: map[string]pool.Group{}, due: map[string]bool{},
		drains: work.RunningDrains(ctx, a.DrainNode),
	}
	dues, err := a.State.Dues(ctx, r.now)
	if err != nil {
		return err
	}
	for _, due := range dues {
		r.due[due.Cluster] = r.due[due.Cluster] || !due.Inspect
	}
	stacks, err := a.Stacks.All(ctx)
	if err != nil {
		return err
	}
	for stackName, deployed := range stacks {
		cluster, name, _ := names.SplitStack(stackName)
		if r.stacks[cluster] == nil {
			r.stacks[cluster] = map[string]stack.Deployed{}
		}
		r.stacks[cluster][name] = deployed
	}
	a.Relays.Fill(r.stacks, r.now)
	// List the groups before the nodes, so that each instance listed as in service has registered its node.
	all, err := a.Groups.All(ctx)
	if err != nil {
		return err
	}
	for _, group := range all {
		r.groups[group.Name] = group
	}
	if err := a.Snapshot.Refresh(ctx); err != nil {
		return err
	}
	clusters := slices.Collect(maps.Keys(r.stacks)) // a cluster without a spec may be in deletion
	for _, spec := range uploads {
		if cluster, ok := names.ClusterOfKey(spec.Key); ok {
			clusters = append(clusters, cluster)
			r.specs[cluster] = spec
		}
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if only != nil {
		clusters = slices.DeleteFunc(clusters, func(cluster string) bool { return !only[cluster] })
	}
	return work.ForEach(a.Parallel, clusters, func(cluster string) error {
		if err := r.audit(ctx, cluster); err != nil {
			return fmt.Errorf("auditing %s: %w", cluster, err)
		}
		return nil
	})
}

// audit audits one cluster.
func (r *auditRun) audit(ctx context.Context, cluster string) error {
	document, err := r.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) { // the sweep admits it
		return nil
	}
	if err != nil {
		return err
	}
	if pending, err := r.uploadPending(ctx, cluster, &document.Status); err == nil && pending {
		return nil
	}
	// If the spec cannot be read, the rest is still audited.
	observed, err := r.isObserved(ctx, cluster, &document.Status)
	if err == nil && !observed {
		logging.From(ctx).Warn("spec event lost", "cluster", cluster)
		return r.Admit.Admit(ctx, cluster)
	}
	return errors.Join(err, r.startDue(ctx, cluster, &document.Status))
}

// uploadPending reports whether a spec was just uploaded and is not planned yet: its event or its execution is in
// flight. The difference that it makes is no drift, and a second execution would find the same. The next audit checks
// it.
func (r *auditRun) uploadPending(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	spec, found := r.specs[cluster]
	if !found || r.now.Sub(spec.Modified) >= r.EventGrace {
		return false, nil
	}
	version, err := specs.Version(ctx, r.Specs, names.ClusterSpec(cluster))
	return err == nil && version != s.PlannedVersion, err
}

// isObserved reports whether the status is about the newest upload, once the event of that upload should have arrived. The sweep compares
// times, so it misses a status that is newer than the spec but about an earlier upload.
func (r *auditRun) isObserved(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	spec, found := r.specs[cluster]
	if !found || r.now.Sub(spec.Modified) < r.EventGrace {
		return true, nil
	}
	return work.ObservesNewest(ctx, r.Specs, cluster, s)
}

// startDue starts the first thing that is due for one cluster, or looks for drift.
func (r *auditRun) startDue(ctx context.Context, cluster string, s *status.Status) error {
	since := r.now.Sub(s.UpdatedAt)
	_, specified := r.specs[cluster]
	if err := r.checkScheduledUpgrade(ctx, cluster, s); err != nil {
		return err
	}
	if done, err := r.checkUpgrades(ctx, cluster, s); done || err != nil {
		return err
	}
	switch {
	case s.Phase == status.Pending && since >= pendingTimeout:
		return r.startConverge(ctx, cluster, s, names.RetryNotStarted)
	case !specified && since >= pendingTimeout && deletionPending(s):
		return r.startConverge(ctx, cluster, s, names.RetryDeletionPending)
	case specified && since >= pendingTimeout && specPending(s):
		return r.startConverge(ctx, cluster, s, names.RetrySpecPending)
	case s.Phase == status.Converging && since >= silenceTimeout, s.Phase == status.Deleting && since >= deletionTimeout:
		return r.replaceStuck(ctx, cluster, s)
	case specified && accountNotReady(s):
		return r.startConverge(ctx, cluster, s, names.RetryAccount)
	case s.Phase == status.Failed && s.RetryAt != nil && !r.now.Before(*s.RetryAt):
		return r.retryConverge(ctx, cluster, s)
	case s.Phase == status.Failed && !specified: // its deletion failed
		return nil
	case s.Phase == status.Converging, s.Phase == status.Upgrading && r.hasStackOperation(cluster):
		return r.checkConverging(ctx, cluster, s)
	case s.Phase == status.Ready, s.Phase == status.Stopped, s.Phase == status.Failed, s.Phase == status.Upgrading:
		return r.auditCluster(ctx, cluster, s)
	}
	return nil
}

// hasStackOperation reports whether an operation on a stack of a cluster was in flight when the stacks were listed.
func (r *auditRun) hasStackOperation(cluster string) bool {
	for _, listed := range r.stacks[cluster] {
		if stack.InProgress(listed.Status) {
			return true
		}
	}
	return false
}
