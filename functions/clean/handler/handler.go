// Package handler implements the clean function. For a cluster that is being deleted, it deletes what Kubernetes
// created in the account: load balancers, target groups, network interfaces, security groups and volumes. It runs after the control plane
// is deleted, because the control plane's controllers would create them again. The state machine calls it until no resource is left.
package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/leftover"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
}

// State holds leases and statuses: a subset of store.State.
type State interface {
	CheckLease(ctx context.Context, cluster, execution string, fence int64) error
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Clusters checks whether an EKS cluster exists: a subset of eks.Reader.
type Clusters interface {
	Exists(ctx context.Context, eksCluster string) (bool, error)
}

// Leftovers finds and removes what Kubernetes created: leftovers.Leftovers.
type Leftovers interface {
	Find(ctx context.Context, cluster string) ([]leftover.Resource, error)
	Remove(ctx context.Context, cluster string, r leftover.Resource) (leftover.Outcome, string, error)
	RetainedByStacks(ctx context.Context, cluster string) ([]string, error)
}

// Handler removes leftovers.
type Handler struct {
	Specs     Specs
	State     State
	Clusters  Clusters
	Leftovers Leftovers
}

// maxListed is how many resources a result lists at most. The status lists all.
const maxListed = 10

// Handle removes once what can be removed, and returns what remains.
func (h *Handler) Handle(ctx context.Context, in events.CleanRequest) (events.CleanResult, error) {
	if err := h.State.CheckLease(ctx, in.Cluster, in.Execution, in.Fence); err != nil {
		return events.CleanResult{}, err
	}
	if exists, err := h.specExists(ctx, in.Cluster); err != nil || exists {
		return events.CleanResult{Outcome: events.CleanSuperseded}, err
	}
	if exists, err := h.Clusters.Exists(ctx, names.EKSCluster(in.Cluster)); err != nil {
		return events.CleanResult{}, err
	} else if exists {
		return events.CleanResult{}, &fault.LeftoversRemain{Cause: fmt.Errorf(
			"EKS cluster %s still exists although its stack was deleted: disable its deletion protection and delete it; "+
				"otherwise it creates again what drover removes", names.EKSCluster(in.Cluster))}
	}
	found, err := h.Leftovers.Find(ctx, in.Cluster)
	if err != nil {
		return events.CleanResult{}, err
	}
	seen, err := h.remove(ctx, in, found)
	if err == nil && in.Last {
		err = h.addRetained(ctx, in.Cluster, &seen)
	}
	if err = errors.Join(err, h.recordProgress(ctx, in, seen)); err != nil {
		return events.CleanResult{}, err
	}
	if len(seen.Remaining) == 0 {
		return events.CleanResult{Outcome: events.CleanDone}, nil
	}
	message := strings.Join(seen.Remaining[:min(maxListed, len(seen.Remaining))], "\n")
	if more := len(seen.Remaining) - maxListed; more > 0 {
		message += fmt.Sprintf("\nand %d more", more)
	}
	return events.CleanResult{Outcome: events.CleanWaiting, Message: message}, nil
}

// specExists reports whether the spec was uploaded again, usable or not. Planning decides what that means.
func (h *Handler) specExists(ctx context.Context, cluster string) (bool, error) {
	return specs.Exists(ctx, h.Specs, names.ClusterSpec(cluster))
}

// remove tries to remove each resource once. If a call to AWS fails, it returns the error and what it has done until then. It keeps all
// volumes if those to retain were not listed.
func (h *Handler) remove(ctx context.Context, in events.CleanRequest, found []leftover.Resource) (seen status.Deletion, err error) {
	before, err := h.State.Status(ctx, in.Cluster)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return seen, err
	}
	var listed status.Deletion
	if before.Status.Deletion != nil {
		listed = *before.Status.Deletion
	}
	for _, r := range found {
		if r.IsVolume() && (!listed.RetainListed || slices.Contains(listed.Retain, r.ID)) {
			seen.Retained = append(seen.Retained, r.String())
			continue
		}
		if err := h.State.CheckLease(ctx, in.Cluster, in.Execution, in.Fence); err != nil {
			return seen, err
		}
		outcome, reason, err := h.Leftovers.Remove(ctx, in.Cluster, r)
		if err != nil {
			return seen, err
		}
		logging.From(ctx).Info("leftover handled", "cluster", in.Cluster, "resource", r.String(), "outcome", outcome, "reason", reason)
		switch outcome {
		case leftover.Removed:
			seen.Removed = append(seen.Removed, r.String())
		case leftover.Remains:
			seen.Remaining = append(seen.Remaining, r.String()+": "+reason)
		}
	}
	return seen, nil
}

// addRetained adds the resources that deletion protection retained when their stacks were deleted.
func (h *Handler) addRetained(ctx context.Context, cluster string, seen *status.Deletion) error {
	retained, err := h.Leftovers.RetainedByStacks(ctx, cluster)
	for _, resource := range retained {
		seen.Remaining = append(seen.Remaining, resource+": deletion protection retained it when its stack was deleted: delete it")
	}
	return err
}

// recordProgress writes the result of a call into the status, unless a later holder of the lease has written it.
func (h *Handler) recordProgress(ctx context.Context, in events.CleanRequest, seen status.Deletion) error {
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if s.Fence > in.Fence || s.Deletion == nil && len(seen.Removed)+len(seen.Retained)+len(seen.Remaining) == 0 {
			return
		}
		var d status.Deletion
		if s.Deletion != nil {
			d = *s.Deletion
		}
		d.Removed = slices.Concat(d.Removed, seen.Removed)
		slices.Sort(d.Removed)
		d.Removed, d.Retained, d.Remaining = slices.Compact(d.Removed), seen.Retained, seen.Remaining
		s.Deletion = &d
	})
}
