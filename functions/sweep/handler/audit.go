package handler

// The audit looks at every cluster, a few times an hour, for what no event tells: tries that are due again, work that stands still,
// a release that came at last, and what is no longer as it was made. Stacks, groups, specs and what few clusters have are listed once
// for all; of each cluster are read its status, its spec and the releases that it may go to if they changed since the function read
// them, and its nodes; EKS is asked which version it runs.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Planner plans a cluster over stacks that were listed: plan's handler.
type Planner interface {
	PreviewWith(ctx context.Context, cluster string, deployed map[string]stack.Deployed) (plan.Preview, error)
}

// Nodes tells how a cluster's nodes are: a subset of kube.Clusters.
type Nodes interface {
	Health(ctx context.Context, cluster, endpoint, authority string) ([]pool.NodeHealth, error)
}

// Snapshot is the state bucket that Planner reads: a subset of cache.Snapshot.
type Snapshot interface {
	Refresh(ctx context.Context) error
}

// Auditor is what the audit needs beside what the sweep does.
type Auditor struct {
	Planner  Planner
	Snapshot Snapshot
	Nodes    Nodes
	EKS      EKS
	// Parallel is how many clusters are looked at at the same time.
	Parallel int
}

const (
	// period of the audit: see its schedule in infra.
	period = backoff.AuditPeriod
	// maxStarts bounds the executions that one audit starts: after an outage of AWS all clusters are due at once.
	maxStarts = 50
	// idle is how long a cluster may be Pending, and converging without a sign of it, before somebody looks.
	idle, silent = 10 * time.Minute, time.Hour
	// quiet is that of a deletion, whose failed tries are an hour apart with their pauses, and whose leftovers have half an hour more.
	quiet = 3 * time.Hour
)

// round is one audit.
type round struct {
	*Handler
	now    time.Time
	specs  map[string]store.Entry               // of clusters that have one
	stacks map[string]map[string]stack.Deployed // by cluster and stack
	groups map[string]pool.Group
	due    map[string]bool // clusters that a sweep has yet to start
	drains func() (map[string]bool, error)
	starts atomic.Int32
}

func (h *Handler) audit(ctx context.Context) error { return h.auditOf(ctx, nil) }

// auditOf audits some clusters, or all of them when only is nil.
func (h *Handler) auditOf(ctx context.Context, only map[string]bool) error {
	specs, err := h.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	r := &round{
		Handler: h, now: h.Now(), specs: map[string]store.Entry{}, stacks: map[string]map[string]stack.Deployed{},
		groups: map[string]pool.Group{}, due: map[string]bool{},
		drains: h.draining(ctx),
	}
	dues, err := h.State.Dues(ctx, r.now)
	if err != nil {
		return err
	}
	for _, due := range dues {
		r.due[due.Cluster] = r.due[due.Cluster] || !due.Inspect
	}
	stacks, err := h.Stacks.All(ctx)
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
	// Groups before nodes: what is in service has had a node by the time that nodes are listed.
	all, err := h.Groups.All(ctx)
	if err != nil {
		return err
	}
	for _, group := range all {
		r.groups[group.Name] = group
	}
	if err := h.Snapshot.Refresh(ctx); err != nil {
		return err
	}
	// Those without a spec may be on their way out.
	clusters := slices.Collect(maps.Keys(r.stacks))
	for _, spec := range specs {
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
	return each(max(1, h.Parallel), clusters, func(cluster string) error {
		if err := r.look(ctx, cluster); err != nil {
			return fmt.Errorf("auditing %s: %w", cluster, err)
		}
		return nil
	})
}

// each does something for all of a list, n at a time, and returns all that failed.
func each(n int, list []string, do func(string) error) error {
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

// look at one cluster.
func (r *round) look(ctx context.Context, cluster string) error {
	document, err := r.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) { // the sweep admits it, as it does when the event of a spec's deletion was lost
		return nil
	}
	if err != nil {
		return err
	}
	if coming, err := r.coming(ctx, cluster, &document.Status); err == nil && coming {
		return nil
	}
	// A spec that cannot be read keeps nobody from the rest.
	observed, err := r.knows(ctx, cluster, &document.Status)
	if err == nil && !observed {
		logging.From(ctx).Warn("the event of this spec was lost", "cluster", cluster)
		return r.Admit.Admit(ctx, cluster)
	}
	return errors.Join(err, r.act(ctx, cluster, &document.Status))
}

// coming says that a spec was just uploaded and is not planned yet: its event, or the execution that this started, is
// on its way. What it asks for is no drift, and a second execution would only find the same. The next audit looks.
func (r *round) coming(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	spec, there := r.specs[cluster]
	if !there || r.now.Sub(spec.Modified) >= r.Patience {
		return false, nil
	}
	version, err := r.newest(ctx, cluster)
	return err == nil && version != s.SpecVersion, err
}

// knows says whether a status is about the upload that is there, if its event should have come by now. The sweep only
// finds a status that is older than the spec: one that is newer may tell no more than how work on the upload before
// goes, and two uploads may be the same bytes.
func (r *round) knows(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	spec, there := r.specs[cluster]
	if !there || r.now.Sub(spec.Modified) < r.Patience {
		return true, nil
	}
	return r.observed(ctx, cluster, s)
}

// act on what is due of one cluster.
func (r *round) act(ctx context.Context, cluster string, s *status.Status) error {
	since := r.now.Sub(s.UpdatedAt)
	_, there := r.specs[cluster]
	if err := r.ahead(ctx, cluster, s); err != nil {
		return err
	}
	if done, err := r.upgrading(ctx, cluster, s); done || err != nil {
		return err
	}
	switch {
	case s.Phase == status.Pending && since >= idle:
		return r.start(ctx, cluster, s, names.RetryNotStarted)
	case !there && since >= idle && undeleted(s):
		return r.start(ctx, cluster, s, names.RetryDeletionPending)
	case there && since >= idle && unacted(s):
		return r.start(ctx, cluster, s, names.RetrySpecPending)
	case s.Phase == status.Converging && since >= silent, s.Phase == status.Deleting && since >= quiet:
		return r.stuck(ctx, cluster, s)
	case s.Phase == status.Failed && s.RetryAt != nil && !r.now.Before(*s.RetryAt):
		return r.retry(ctx, cluster, s)
	case s.Phase == status.Failed && !there: // its deletion failed
		return nil
	case s.Phase == status.Ready, s.Phase == status.Stopped, s.Phase == status.Failed, s.Phase == status.Upgrading:
		return r.compare(ctx, cluster, s)
	}
	return nil
}

// start converges a cluster, at this audit.
func (r *round) start(ctx context.Context, cluster string, s *status.Status, why names.Retry) error {
	_, err := r.startOnce(ctx, cluster, s, why, r.now)
	return err
}

// retry converges a cluster whose next try is due, unless its last execution still runs: that one tries again itself.
func (r *round) retry(ctx context.Context, cluster string, s *status.Status) error {
	if s.Execution != "" {
		if running, err := r.Executions.Running(ctx, s.Execution); err != nil || running {
			return err
		}
	}
	return r.start(ctx, cluster, s, names.RetryDue)
}

// repeat converges a cluster because of something that has been so since then: then, and after 15 minutes, 30, one hour and so on, so
// that what converging does not mend is not tried all the time. What could not be started is by the next audit. begun says whether
// anything was.
func (r *round) repeat(ctx context.Context, cluster string, s *status.Status, why names.Retry, since time.Time) (begun bool, err error) {
	return r.startOnce(ctx, cluster, s, why, since.Add(backoff.Repeats(r.now.Sub(since))))
}

// startOnce converges a cluster, once for each minute at which it was due: the same audit that is run twice starts one execution. What
// is over the bound is found by the next audit.
func (r *round) startOnce(ctx context.Context, cluster string, s *status.Status, why names.Retry, at time.Time) (begun bool, err error) {
	if r.starts.Add(1) > maxStarts {
		return false, nil
	}
	begun, err = r.Executions.Again(ctx, cluster, s.SpecVersion, string(why)+" "+at.UTC().Truncate(time.Minute).Format(time.RFC3339))
	if err != nil {
		return false, err
	}
	if !begun {
		r.starts.Add(-1)
		return false, nil
	}
	logging.From(ctx).Warn("converging again", "cluster", cluster, "why", why)
	return true, nil
}

// stuck ends an execution that waits for nothing, which nobody would resume, and starts another. One whose waiter is there is the
// sweep's: it resumes it.
func (r *round) stuck(ctx context.Context, cluster string, s *status.Status) error {
	lease, err := r.State.Lease(ctx, cluster)
	if err != nil {
		return err
	}
	if lease.Execution != "" {
		running, err := r.Executions.Running(ctx, lease.Execution)
		if err != nil || !running { // the sweep tells of it
			return err
		}
		if s.WaitsNow(r.now.Add(-period)) { // it looks again by itself, and each look takes its time
			return nil
		}
		for _, change := range s.Plan {
			w, err := r.State.Waiter(ctx, names.Stack(cluster, change.Stack))
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if err == nil && w.Execution == lease.Execution {
				return nil
			}
		}
		logging.From(ctx).Warn("an execution waits for nothing", "cluster", cluster, "execution", lease.Execution)
		if err := r.Executions.Stop(ctx, lease.Execution, "nothing is known that would resume it: drover's audit starts another"); err != nil {
			return err
		}
		if err := r.State.Release(ctx, cluster, lease.Execution); err != nil {
			return err
		}
	}
	return r.start(ctx, cluster, s, names.RetrySilentExecution)
}
