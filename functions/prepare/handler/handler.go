// Package handler gives drover's own functions what they need in a cluster, before there are nodes to look at.
package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/kube"
)

// Clusters opens clusters: a subset of kube.Clusters.
type Clusters interface {
	Open(ctx context.Context, cluster string) (*kube.Cluster, error)
}

// Handler prepares clusters.
type Handler struct {
	Clusters Clusters
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
	ctx, cancel := context.WithTimeout(ctx, h.Patience)
	defer cancel()
	for {
		if err = cluster.GrantRoles(ctx); err == nil {
			return done, nil
		}
		boundary.Log(ctx).Warn("the cluster does not take drover's roles yet", "cluster", in.Cluster, "error", err.Error())
		select {
		case <-time.After(h.Pause):
		case <-ctx.Done():
			return done, &fault.ClusterUnreachable{Cause: fmt.Errorf("preparing %s for %s: %w", in.Cluster, h.Patience, err)}
		}
	}
}
