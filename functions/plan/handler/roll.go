package handler

// Rolls that somebody asked for by naming pools in the input of an execution.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
)

// ask writes down which pools an execution is to roll. From then on it is part of what the cluster should be, whichever execution
// brings it there. The time is that of the execution's start, so that asking again, in its next round, asks for nothing more.
func (h *Handler) ask(ctx context.Context, in events.PlanRequest, spec *api.Cluster) error {
	if len(in.Roll) == 0 {
		return nil
	}
	var pools, unknown []string
	for _, pool := range spec.Spec.Pools {
		pools = append(pools, pool.Name)
	}
	for _, pool := range in.Roll {
		if !slices.Contains(pools, pool) {
			unknown = append(unknown, pool)
		}
	}
	if len(unknown) > 0 {
		return &refused{fmt.Sprintf("nothing was rolled: cluster %s has no pool %s, but %s", in.Cluster, strings.Join(unknown, ", "), orNone(pools))}
	}
	return h.State.AddRolls(ctx, in.Cluster, in.Roll, in.Started)
}

// askLater is ask while another execution converges the cluster. That one may have planned already: the sweep looks after the cluster
// when it is over.
func (h *Handler) askLater(ctx context.Context, in events.PlanRequest) error {
	if len(in.Roll) == 0 {
		return nil
	}
	spec, _, err := h.spec(ctx, &work{cluster: in.Cluster})
	if err != nil {
		return unrolled(in, err)
	}
	if err := h.ask(ctx, in, spec); err != nil {
		return err
	}
	return h.State.AddDue(ctx, in.Cluster, in.Started)
}

// unrolled is what becomes of a roll when the spec cannot be read, by why not: who asked for it must not take it for done.
func unrolled(in events.PlanRequest, why error) error {
	var stopped *stop
	switch {
	case len(in.Roll) == 0:
		return why
	case errors.As(why, &stopped):
		return &refused{"nothing was rolled: " + stopped.message}
	case errors.Is(why, errAbsent):
		return &refused{fmt.Sprintf("nothing was rolled: cluster %s is deleted", in.Cluster)}
	}
	return why
}

// refused ends planning with a reason for who started the execution. It says nothing about the cluster.
type refused struct{ message string }

func (r *refused) Error() string { return r.message }

func orNone(list []string) string {
	if len(list) == 0 {
		return "none at all"
	}
	return strings.Join(list, ", ")
}
