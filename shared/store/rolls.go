package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
)

// Rolls are the times of requested rolls of a cluster's pools, by pool.
func (s *State) Rolls(ctx context.Context, cluster string) (map[string]time.Time, error) {
	rolls, _, err := s.rolls(ctx, cluster)
	return rolls, err
}

func (s *State) rolls(ctx context.Context, cluster string) (map[string]time.Time, string, error) {
	rolls := map[string]time.Time{}
	etag, err := s.GetJSON(ctx, names.RollsOf(cluster), &rolls)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return rolls, etag, err
}

// AddRolls requests a roll of pools at a time. It writes nothing if the same or a later roll is requested already.
func (s *State) AddRolls(ctx context.Context, cluster string, pools []string, at time.Time) error {
	const attempts = 8
	for range attempts {
		rolls, etag, err := s.rolls(ctx, cluster)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pools, func(pool string) bool { return rolls[pool].Before(at) }) {
			return nil
		}
		for _, pool := range pools {
			if rolls[pool].Before(at) {
				rolls[pool] = at.UTC()
			}
		}
		body, err := json.Marshal(rolls)
		if err != nil {
			return err
		}
		if _, err = s.Replace(ctx, names.RollsOf(cluster), body, etag); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("requesting a roll of %s: conflicted with other writers %d times", cluster, attempts)}
}
