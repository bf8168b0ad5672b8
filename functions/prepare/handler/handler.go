// Package handler implements the prepare function. As administrator of a new cluster, it grants drover's other functions the access that they
// need. Before the deletion of a cluster, it reads which volumes are retained, since the API is deleted with the control plane.
package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/status"
)

// Clusters opens clusters: a subset of kube.Clusters.
type Clusters interface {
	Open(ctx context.Context, cluster string) (*kube.Cluster, error)
}

// State is where the answer goes: a subset of store.State.
type State interface {
	UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error
}

// Handler prepares clusters.
type Handler struct {
	Clusters Clusters
	State    State
	// Patience is how long a new access entry may take to be known to the cluster; Pause is between two tries.
	Patience, Pause time.Duration
}

// Handle prepares a cluster. It can be repeated.
func (h *Handler) Handle(ctx context.Context, in events.PrepareRequest) (struct{}, error) {
	var done struct{}
	cluster, err := h.Clusters.Open(ctx, in.Cluster)
	if err != nil {
		return done, err
	}
	if in.Survey {
		return done, h.survey(ctx, in, cluster)
	}
	ctx, cancel := context.WithTimeout(ctx, h.Patience)
	defer cancel()
	for {
		again := cluster.GrantRoles(ctx)
		if again == nil {
			return done, nil
		}
		if err == nil || ctx.Err() == nil { // a call that the end of the patience cut off says nothing of the cluster
			err = again
		}
		logging.From(ctx).Warn("the cluster does not take drover's roles yet", "cluster", in.Cluster, "error", err.Error())
		select {
		case <-time.After(h.Pause):
		case <-ctx.Done():
		}
		// Both may come at the same moment: then the patience is over.
		if ctx.Err() != nil {
			return done, &fault.ClusterUnreachable{Cause: fmt.Errorf("preparing %s for %s: %w", in.Cluster, h.Patience, err)}
		}
	}
}

// survey writes into the status which volumes a cluster that is being deleted wants kept, unless a later holder of the lease has the
// status by now: what was asked long ago must not decide what that one deletes. It can be repeated.
func (h *Handler) survey(ctx context.Context, in events.PrepareRequest, cluster *kube.Cluster) error {
	retain, err := cluster.RetainedVolumes(ctx)
	if err != nil {
		return err
	}
	logging.From(ctx).Info("asked which volumes are to be kept", "cluster", in.Cluster, "volumes", retain)
	return h.State.UpdateStatus(ctx, in.Cluster, func(s *status.Status) {
		if s.Phase != status.Deleting || s.Fence > in.Fence {
			return
		}
		var d status.Deletion
		if s.Deletion != nil {
			d = *s.Deletion
		}
		d.Surveyed, d.Retain = true, retain
		s.Deletion = &d
	})
}
