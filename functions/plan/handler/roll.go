package handler

// Rolls that are requested by the input of an execution, which names pools.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// ask records the pools that an execution is to roll. From then on the roll is part of the desired state, and any execution may make it.
// The time is that of the execution's start: asking again, in its next round, requests nothing more.
func (h *Handler) ask(ctx context.Context, in events.PlanRequest, spec *api.Cluster) error {
	if len(in.Roll) == 0 {
		return nil
	}
	if err := verifyPools(in.Cluster, in.Roll, spec); err != nil {
		return err
	}
	if err := h.State.AddRolls(ctx, in.Cluster, in.Roll, in.Started); err != nil {
		return err
	}
	return h.clearRefusal(ctx, in.Cluster)
}

// verifyPools refuses a roll of pools that the spec does not have.
func verifyPools(cluster string, roll []string, spec *api.Cluster) error {
	var pools, unknown []string
	for _, pool := range spec.Spec.Pools {
		pools = append(pools, pool.Name)
	}
	for _, pool := range roll {
		if !slices.Contains(pools, pool) {
			unknown = append(unknown, pool)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &refused{
		fmt.Sprintf("nothing was rolled: cluster %s has no pool %s: its pools are %s", cluster, strings.Join(unknown, ", "), orNone(pools)),
	}
}

// askLater is ask while another execution converges the cluster. That execution may have planned already: the sweep starts another one
// after it.
func (h *Handler) askLater(ctx context.Context, in events.PlanRequest) error {
	if len(in.Roll) == 0 {
		return nil
	}
	spec, err := h.effectiveSpec(ctx, in.Cluster)
	if err != nil {
		return unrolled(in.Cluster, err)
	}
	if err := h.ask(ctx, in, spec); err != nil {
		return err
	}
	return h.State.AddDue(ctx, in.Cluster, in.Started)
}

// RollRefusal says why a roll of these pools would be refused now. It is empty when the roll would be accepted. It only reads.
func (h *Handler) RollRefusal(ctx context.Context, cluster string, pools []string) (string, error) {
	spec, err := h.effectiveSpec(ctx, cluster)
	if err == nil {
		err = verifyPools(cluster, pools, spec)
	} else {
		err = unrolled(cluster, err)
	}
	var refused *refused
	if errors.As(err, &refused) {
		return refused.message, nil
	}
	return "", err
}

// effectiveSpec is the newest spec, or the last good one while the newest is invalid.
func (h *Handler) effectiveSpec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := h.spec(ctx, &work{cluster: cluster})
	var rejected *stop
	if !errors.As(err, &rejected) || rejected.reason != status.ReasonSpecInvalid {
		return spec, err
	}
	good, _, goodErr := h.goodSpec(ctx, &work{cluster: cluster})
	var stopped *stop
	switch {
	case errors.Is(goodErr, store.ErrNotFound), errors.As(goodErr, &stopped):
		return nil, rejected
	}
	return good, goodErr
}

// unrolled turns the reason why a spec cannot be read into the refusal of a roll.
func unrolled(cluster string, why error) error {
	var stopped *stop
	switch {
	case errors.As(why, &stopped) && stopped.reason == status.ReasonPaused:
		return &refused{
			fmt.Sprintf("nothing was rolled: cluster %s is paused: spec.paused is true; upload its spec with paused: false, then roll again",
				cluster),
		}
	case errors.As(why, &stopped):
		return &refused{"nothing was rolled: " + stopped.message}
	case errors.Is(why, errAbsent):
		return &refused{
			fmt.Sprintf("nothing was rolled: cluster %s has no spec %s: it was deleted, or never uploaded", cluster, names.ClusterSpec(cluster)),
		}
	}
	return why
}

// refused ends planning with a reason for the caller who started the execution. The cluster stays as it is.
type refused struct{ message string }

func (r *refused) Error() string { return r.message }

// recordRefusal records the refusal of a request in the status, until the next request or the next spec. A cluster that has no status,
// or is deleted, gets none.
func (h *Handler) recordRefusal(ctx context.Context, cluster, message string) error {
	c, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Phase == status.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Refuse(status.ReasonRollRefused, message, h.Now()) })
}

// clearRefusal removes the refusal of an earlier request from the status.
func (h *Handler) clearRefusal(ctx context.Context, cluster string) error {
	c, err := h.State.Status(ctx, cluster)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Status.Condition(status.RequestAccepted) == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return h.State.UpdateStatus(ctx, cluster, func(s *status.Status) { s.Unset(status.RequestAccepted) })
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none at all"
	}
	return strings.Join(list, ", ")
}
