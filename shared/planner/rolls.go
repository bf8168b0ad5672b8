package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// RollRefused means that a requested roll is not possible. The message is for the caller. The cluster does not change.
type RollRefused struct{ Message string }

func (r *RollRefused) Error() string { return r.Message }

// RollRefusal says why a roll of these pools would be refused now. It is empty if the roll would be accepted. It only reads.
func (p *Planner) RollRefusal(ctx context.Context, cluster string, pools []string) (string, error) {
	spec, err := p.SpecToRoll(ctx, cluster)
	if err == nil {
		err = VerifyRoll(cluster, pools, spec)
	}
	var refused *RollRefused
	if errors.As(err, &refused) {
		return refused.Message, nil
	}
	return "", err
}

// SpecToRoll returns the spec whose pools may be rolled: the newest, or the last good one while the newest is
// invalid. Without such a spec it returns RollRefused.
func (p *Planner) SpecToRoll(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, err := p.effectiveSpec(ctx, cluster)
	if err != nil {
		return nil, refuseRolls(cluster, err)
	}
	return spec, nil
}

func (p *Planner) effectiveSpec(ctx context.Context, cluster string) (*api.Cluster, error) {
	spec, _, err := p.newestSpec(ctx, &work{cluster: cluster})
	var rejected *Stop
	if !errors.As(err, &rejected) || rejected.Reason != status.ReasonSpecInvalid {
		return spec, err
	}
	good, _, goodErr := p.lastGoodSpec(ctx, &work{cluster: cluster})
	var stopped *Stop
	switch {
	case errors.Is(goodErr, store.ErrNotFound), errors.As(goodErr, &stopped):
		return nil, rejected
	}
	return good, goodErr
}

// VerifyRoll refuses a roll of pools that the spec does not have.
func VerifyRoll(cluster string, roll []string, spec *api.Cluster) error {
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
	return &RollRefused{
		fmt.Sprintf("nothing was rolled: cluster %s has no pool %s: its pools are %s", cluster, strings.Join(unknown, ", "), orNone(pools)),
	}
}

// refuseRolls turns the reason why no spec applies into the refusal of the roll. Other errors stay as they are.
func refuseRolls(cluster string, why error) error {
	var stopped *Stop
	switch {
	case errors.As(why, &stopped) && stopped.Reason == status.ReasonPaused:
		return &RollRefused{
			fmt.Sprintf("nothing was rolled: cluster %s is paused: spec.paused is true; upload its spec with paused: false, then roll again",
				cluster),
		}
	case errors.As(why, &stopped):
		return &RollRefused{"nothing was rolled: " + stopped.Message}
	case errors.Is(why, ErrAbsent):
		return &RollRefused{
			fmt.Sprintf("nothing was rolled: cluster %s has no spec %s: it was deleted, or never uploaded", cluster, names.ClusterSpec(cluster)),
		}
	}
	return why
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
