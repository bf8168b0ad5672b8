// Package handler finds what events missed: stacks that came to rest while the event about it was lost, specs that nobody was
// told of, executions that ended without a word, and instances that nobody works on. It is the safety net under the events, and
// costs eight listings and a conditional read when there is nothing to find.
package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/stack"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error)
}

// State is what drover keeps: a subset of store.State.
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

// Executions tells whether a holder of a lease still runs, starts others and stops what is stuck: a subset of
// stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	Converge(ctx context.Context, cluster, specVersion, after string) error
	Again(ctx context.Context, cluster, specVersion, why string) (begun bool, err error)
	Stop(ctx context.Context, execution, cause string) error
}

// Stacks is what is deployed: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	All(ctx context.Context) (map[string]stack.Deployed, error)
	Began(ctx context.Context, stackName, token string) (bool, error)
	Changing(ctx context.Context, stackName string, then time.Time) (bool, error)
	Since(ctx context.Context, stackName string) (time.Time, error)
}

// Resumer tells a step how its stack ended: waiter.Resumer.
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

// Upgrader starts the upgrade machine: a subset of stepfunctions.Machine.
type Upgrader interface {
	Start(ctx context.Context, name string, input any) error
}

// Handler sweeps, and audits.
type Handler struct {
	Auditor
	Specs  Specs
	State  State
	Stacks Stacks
	Resume Resumer
	Admit  Admitter
	// Publish looks at releases.
	Publish Publisher
	// Executions of the converge machine.
	Executions Executions
	Start      Starter
	Groups     Groups
	// JoinNode and DrainNode are the machines.
	JoinNode, DrainNode Machine
	// Upgrade is the machine that makes upgrades.
	Upgrade Upgrader
	// Patience is how old a spec must be before it counts as missed: until then its event is on its way.
	Patience time.Duration
	Now      func() time.Time

	known   memory
	settled settled
	gone    gone
	heard   heard
	unread  unread
}

// Handle sweeps or audits once. What fails for one cluster holds up no other; what failed is returned at the end.
func (h *Handler) Handle(ctx context.Context, in events.Sweep) (struct{}, error) {
	if in.Audit {
		// Releases and channels first: what is planned by is remembered as it was listed, and whom a channel moves is for the sweep to start.
		return struct{}{}, errors.Join(h.releases(ctx), h.channels(ctx), h.audit(ctx), h.unread.update(ctx, h))
	}
	// Instances at hooks come first: their time runs out, and then a node that nobody drains goes with its pods. Whatever cuts a sweep off has
	// the less behind it the earlier they are.
	all, listing := h.Groups.All(ctx)
	hooks := h.hooks(ctx, all)
	changing, err := h.waiters(ctx)
	return struct{}{}, errors.Join(listing, hooks, err, h.missed(ctx), h.ended(ctx), h.upgrades(ctx), h.lifecycle(ctx, all, changing),
		h.channels(ctx), h.due(ctx))
}

// waiters resumes the steps whose stacks are at rest, and returns the stacks that are being changed.
func (h *Handler) waiters(ctx context.Context) (changing map[string]bool, err error) {
	changing = map[string]bool{}
	entries, err := h.State.List(ctx, names.Waiters)
	if err != nil {
		return changing, err
	}
	var failed []error
	for _, entry := range entries {
		stackName := strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.Waiters), ".json")
		changes, err := h.waiter(ctx, stackName, entry.Modified)
		if err != nil {
			failed = append(failed, err)
		}
		if changes {
			changing[stackName] = true
		}
	}
	return changing, errors.Join(failed...)
}

// begins is how long after a waiter was written its operation begins, at the latest: no function lives longer.
const begins = 15 * time.Minute

func (h *Handler) waiter(ctx context.Context, stackName string, since time.Time) (changing bool, err error) {
	w, err := h.State.Waiter(ctx, stackName)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if running, err := h.Executions.Running(ctx, w.Execution); err != nil {
		return false, err
	} else if !running {
		// Its execution died before the operation began, or was aborted.
		return false, h.State.DeleteWaiter(ctx, w)
	}
	deployed, err := h.Stacks.Describe(ctx, stackName)
	if err == nil && stack.InProgress(deployed.Status) {
		return true, h.refused(ctx, w, deployed.Status, since)
	}
	if err != nil || deployed.Status == stack.InReview {
		// In review, the creation that is waited for is about to begin.
		return err == nil && stack.InProgress(deployed.Status), err
	}
	if w.ClientRequestToken != "" && !stack.Absent(deployed.Status) {
		began, err := h.Stacks.Began(ctx, stackName, w.ClientRequestToken)
		// The operation that is waited for may be about to begin: then the stack rests from an earlier one.
		if err != nil || !began && h.Now().Sub(since) < begins {
			return false, err
		}
		if !began {
			// It never will: CloudFormation took it for somebody else's that was under way, or the function died. The step looks again.
			w.ClientRequestToken, w.Again = "", true
		}
	}
	logging.From(ctx).Warn("the event of this stack was lost", "stack", stackName, "status", deployed.Status)
	return false, h.Resume.Resume(ctx, w, deployed.Status)
}

// missed admits the specs that are newer than their cluster's status, or as old and not those that it tells of: S3 tells the time in
// seconds.
func (h *Handler) missed(ctx context.Context) error {
	specs, err := h.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	statuses, err := h.State.List(ctx, names.Statuses)
	if err != nil {
		return err
	}
	told := map[string]time.Time{}
	for _, entry := range statuses {
		told[entry.Key] = entry.Modified
	}
	var failed []error
	there := map[string]bool{}
	for _, spec := range specs {
		cluster, ok := names.ClusterOfKey(spec.Key)
		there[names.Status(cluster)] = true
		at := told[names.Status(cluster)]
		if !ok || h.Now().Sub(spec.Modified) < h.Patience || at.After(spec.Modified) {
			continue
		}
		if at.Equal(spec.Modified) {
			document, err := h.State.Status(ctx, cluster)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if observed, err := h.observed(ctx, cluster, &document.Status); err != nil || observed {
				failed = append(failed, err)
				continue
			}
		}
		logging.From(ctx).Warn("the event of this spec was lost", "cluster", cluster)
		if err := h.Admit.Admit(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	statuses = slices.DeleteFunc(statuses, func(entry store.Entry) bool { return there[entry.Key] })
	return errors.Join(append(failed, h.deleted(ctx, statuses), h.prune(ctx, statuses))...)
}

// observed says whether a cluster's status is about the version of its spec that is there, or about none when none is.
func (h *Handler) observed(ctx context.Context, cluster string, s *status.Status) (bool, error) {
	version, err := h.newest(ctx, cluster)
	return err == nil && s.ObservedVersion == version, err
}

// newest returns the version of a cluster's newest spec; empty if there is none.
func (h *Handler) newest(ctx context.Context, cluster string) (string, error) {
	return specs.Version(ctx, h.Specs, names.ClusterSpec(cluster))
}

// ended tells of the executions that hold a lease and are over: they were aborted or ran out of time, and never reported. The
// cluster is not converged again by itself: whoever stopped its execution meant it.
func (h *Handler) ended(ctx context.Context) error {
	clusters, err := h.State.Held(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, cluster := range clusters {
		if err := h.holder(ctx, cluster); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (h *Handler) holder(ctx context.Context, cluster string) error {
	lease, err := h.State.Lease(ctx, cluster)
	if err != nil || lease.Execution == "" {
		return err
	}
	if running, err := h.Executions.Running(ctx, lease.Execution); err != nil || running {
		return err
	}
	logging.From(ctx).Warn("an execution ended without a report", "cluster", cluster, "execution", lease.Execution)
	message := fmt.Sprintf("execution %s is over and did not say how it ended: run drover converge %s to go on", lease.Execution, cluster)
	err = h.State.UpdateStatus(ctx, cluster, func(s *status.Status) {
		if s.Phase != status.Converging && s.Phase != status.Deleting || s.Execution != lease.Execution {
			return
		}
		s.Phase, s.Message = status.Failed, message
		s.Set(status.Condition{Type: status.Converged, Status: "False", Reason: status.ReasonExecutionEnded, Message: message}, h.Now())
	})
	if err != nil {
		return err
	}
	return h.State.Release(ctx, cluster, lease.Execution)
}
