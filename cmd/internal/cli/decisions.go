package cli

// Decisions on rollouts: their upload, and the wait for the answer of the function rollout.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// answerTimeout is how long a command waits for the answer to a decision. An answer takes seconds, unless the event of the upload was lost.
const answerTimeout = time.Minute

// decider uploads decisions, for the command line and the page.
type decider struct {
	specs store.Objects
	state *store.State
	now   func() time.Time
}

func (c *Cell) decider() *decider { return &decider{c.Specs, c.State, time.Now} }

// upload validates a decision, uploads it under a new name and returns the name.
func (d *decider) upload(ctx context.Context, spec api.DecisionSpec) (name string, err error) {
	// The time makes the names of a rollout sort as they were made. The random part makes them unique.
	name = strings.ToLower(fmt.Sprintf("%s-%s-%.6s", spec.Verb, d.now().UTC().Format("20060102-150405"), rand.Text()))
	body, err := yaml.Marshal(api.Decision{
		APIVersion: "drover.run/v1alpha1", Kind: api.KindDecision, Metadata: api.Metadata{Name: name}, Spec: spec,
	})
	if err != nil {
		return "", err
	}
	key := names.Decision(spec.Rollout, name)
	if _, errs := api.ReadDecision(key, body, api.Options{Name: name, Now: d.now()}); len(errs) > 0 {
		return "", errs.Err()
	}
	// The condition keeps the decision of another user, should both have the same name.
	if _, err := d.specs.Replace(ctx, key, body, ""); err != nil {
		return "", fmt.Errorf("uploading s3://%s/%s: %w", d.specs.Name(), key, err)
	}
	return name, nil
}

// Decide uploads a decision, as the verbs of drover rollout do, and returns the message of its answer. A refusal is an error.
func (c *Cell) Decide(ctx context.Context, spec api.DecisionSpec) (message string, err error) {
	d := c.decider()
	name, err := d.upload(ctx, spec)
	if err != nil {
		return "", err
	}
	answer, err := d.answer(ctx, &polls{report: func(string) {}}, spec.Rollout, name, answerTimeout)
	switch {
	case err != nil:
		return "", err
	case !answer.Applied:
		return "", fmt.Errorf("the decision %s was refused: %s", name, answer.Message)
	}
	return answer.Message, nil
}

// answer waits for the answer to a decision.
func (d *decider) answer(ctx context.Context, polls *polls, of, decision string, timeout time.Duration) (*rollout.DecisionAnswer, error) {
	for deadline := time.Now().Add(timeout); ; {
		answer, err := d.state.DecisionAnswer(ctx, of, decision)
		if err == nil {
			return answer, nil
		}
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		if ends := polls.next(ctx, err); ends != nil {
			return nil, ends
		}
		if !time.Now().Before(deadline) {
			return nil, fmt.Errorf("there is no answer to the decision %s after %s: its event may be lost; drover reads it within five minutes "+
				"during a run, and otherwise within 30: `drover rollout history %s` shows the answer", decision, timeout, of)
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}

// readRollout reads the status of a rollout.
func readRollout(ctx context.Context, state *store.State, name string) (*rollout.Status, error) {
	s, _, err := state.RolloutStatus(ctx, name)
	if err == nil && s == nil {
		return nil, fmt.Errorf("rollout %s does not exist in this account and region, or drover has not read it yet: check its name, AWS_REGION "+
			"and your credentials; `drover rollout status` lists the rollouts, and `drover apply %[1]s.yaml` uploads one", name)
	}
	return s, err
}

// planFor returns the digest of the plan to which a verb applies now: the newest for Start, otherwise that of the active run.
func planFor(s *rollout.Status, verb api.Verb) (digest string, err error) {
	active := s.Run != nil && !s.Run.State.Final()
	switch {
	case verb == api.VerbStart && active:
		return "", fmt.Errorf("run %d of %s is active: wait until it ends, or abort it", s.Run.Number, s.Metadata.Name)
	case verb != api.VerbStart && active:
		return s.Run.Plan, nil
	case verb != api.VerbStart && verb != api.VerbResume:
		return "", fmt.Errorf("no run of %s is active: start one with `drover rollout start %[1]s`", s.Metadata.Name)
	case s.Plan == nil:
		return "", fmt.Errorf("%s has no plan: %s", s.Metadata.Name, s.Message)
	}
	return s.Plan.Digest, nil
}

// minDigest is how many digits of a digest name a plan: as many as texts print.
const minDigest = 12

// sameDigest reports whether a user named a plan by its digest, or by the first digits of it.
func sameDigest(given, digest string) bool {
	return len(given) >= minDigest && strings.HasPrefix(digest, given)
}
