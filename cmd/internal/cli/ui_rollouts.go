package cli

// What the page shows of rollouts, and the decisions that its buttons make.

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/cmd/internal/ui"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
)

func (p *pageSource) Rollouts(ctx context.Context) ([]byte, error) {
	all, err := readRollouts(ctx, p.c.State)
	if err != nil {
		return nil, err
	}
	return overview.RolloutsJSON(all)
}

func (p *pageSource) Rollout(ctx context.Context, name string) ([]byte, error) {
	s, _, err := p.c.State.RolloutStatus(ctx, name)
	if err == nil && s == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func (p *pageSource) Plan(ctx context.Context, digest string) ([]byte, error) {
	plan, err := p.c.State.RolloutPlan(ctx, digest)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plan)
}

func (p *pageSource) Meanings(context.Context) ([]byte, error) {
	return json.Marshal(overview.Meanings())
}

func (p *pageSource) Decide(ctx context.Context, spec api.DecisionSpec) (string, error) {
	return p.c.decider().upload(ctx, spec)
}

func (p *pageSource) Answer(ctx context.Context, rollout, decision string) ([]byte, error) {
	answer, err := p.c.State.DecisionAnswer(ctx, rollout, decision)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// publishRollouts writes the documents of all rollouts: their statuses, their plans, and last the list.
func publishRollouts(ctx context.Context, p *pageSource, write func(name string, body []byte) error) error {
	all, err := readRollouts(ctx, p.c.State)
	if err != nil {
		return err
	}
	err = overview.Each(ctx, len(all), func(ctx context.Context, i int) error {
		s := all[i]
		digests := map[string]bool{}
		if s.Plan != nil {
			digests[s.Plan.Digest] = true
		}
		if s.Run != nil {
			digests[s.Run.Plan] = true
		}
		for digest := range digests {
			body, err := p.Plan(ctx, digest)
			if errors.Is(err, store.ErrNotFound) {
				continue // it expired
			} else if err != nil {
				return err
			}
			if err := write(names.RolloutPlan(digest), body); err != nil {
				return err
			}
		}
		body, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return write(names.RolloutStatus(s.Metadata.Name), body)
	})
	if err != nil {
		return err
	}
	meanings, err := p.Meanings(ctx)
	if err != nil {
		return err
	}
	if err := write(ui.MeaningsPath, meanings); err != nil {
		return err
	}
	list, err := overview.RolloutsJSON(all)
	if err != nil {
		return err
	}
	return write(ui.RolloutsPath, list)
}
