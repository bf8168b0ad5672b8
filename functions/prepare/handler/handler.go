// Package handler implements the prepare function. As administrator of a new cluster, it grants drover's other
// functions the access that they need. Before the deletion of a cluster, it reads which volumes are retained, since
// the API is deleted with the control plane.
package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
)

// Clusters opens clusters: kube.Opener.
type Clusters interface {
	Open(ctx context.Context, cluster string) (Cluster, error)
}

// Cluster is one cluster, as its administrator: a subset of kube.Cluster.
type Cluster interface {
	GrantRoles(ctx context.Context) error
	RetainedVolumes(ctx context.Context) ([]string, error)
}

// State holds statuses: a subset of store.State.
type State interface {
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Handler prepares clusters.
type Handler struct {
	Clusters Clusters
	State    State
	// Timeout is how long the cluster may take to accept a new access entry. Pause is the time between two attempts.
	Timeout, Pause time.Duration
}

// Handle prepares a cluster. It is idempotent.
func (h *Handler) Handle(ctx context.Context, in events.PrepareRequest) (struct{}, error) {
	var done struct{}
	cluster, err := h.Clusters.Open(ctx, in.Cluster)
	if err != nil {
		return done, err
	}
	if in.ListRetained {
		return done, h.listRetained(ctx, in, cluster)
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	for {
		grantErr := cluster.GrantRoles(ctx)
		if grantErr == nil {
			return done, nil
		}
		if err == nil || ctx.Err() == nil { // the timeout's own error would hide the cluster's
			err = grantErr
		}
		logging.From(ctx).Warn("granting roles failed", "cluster", in.Cluster, "error", err.Error())
		select {
		case <-time.After(h.Pause):
		case <-ctx.Done():
		}
		// Both cases may be ready at the same time. The timeout decides.
		if ctx.Err() != nil {
			return done, &fault.ClusterUnreachable{Cause: fmt.Errorf("preparing %s for %s: %w", in.Cluster, h.Timeout, err)}
		}
	}
}

// listRetained records which volumes a cluster that is being deleted retains, unless a later holder of the lease has written the status. An
// old answer must not decide what that holder deletes. listRetained is idempotent.
func (h *Handler) listRetained(ctx context.Context, in events.PrepareRequest, cluster Cluster) error {
	retain, err := cluster.RetainedVolumes(ctx)
	if err != nil {
		return err
	}
	logging.From(ctx).Info("retained volumes listed", "cluster", in.Cluster, "volumes", retain)
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if s.Phase != status.Deleting || s.Fence > in.Fence {
			return
		}
		var d status.Deletion
		if s.Deletion != nil {
			d = *s.Deletion
		}
		d.RetainListed, d.Retain = true, retain
		s.Deletion = &d
	})
}
