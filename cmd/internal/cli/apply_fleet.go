package cli

// Uploads and deletions of the files of fleets: rollouts, freezes and decisions.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/view"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// applyFleet uploads a file of a fleet, and prints what drover makes of it.
func applyFleet(ctx context.Context, out io.Writer, c *Cell, m manifest, watch bool) error {
	timeout := verdictTimeout
	if watch {
		timeout = verdictWatchTimeout
	}
	polls := polls{report: func(text string) { fmt.Fprintln(out, text) }, strict: !watch}
	switch {
	case m.decision != nil:
		return applyDecision(ctx, out, c.decider(), &polls, m, timeout)
	case m.freeze != nil:
		if err := c.upload(ctx, out, m); err != nil {
			return err
		}
		fmt.Fprintf(out, "drover begins no work by itself on the clusters %s while the freeze lasts; work in flight continues\n",
			m.freeze.Spec.Clusters.String())
		return nil
	}
	full, err := withStages(ctx, c.Specs, m)
	if err != nil {
		return err
	}
	if err := c.upload(ctx, out, m); err != nil {
		return err
	}
	s, err := awaitPlan(ctx, &polls, c.State, full, time.Now().Truncate(time.Second), timeout)
	switch {
	case err != nil && watch:
		return err
	case err != nil: // an upload alone needs no permission to read
		fmt.Fprintf(out, "drover could not read the plan: %v\n", err)
		return nil
	case s == nil && watch:
		return fmt.Errorf("there is no plan of %s after %s: run drover rollout status %s; without a plan there, "+
			"read the errors of the function in /aws/lambda/drover-rollout", m.name, timeout, m.name)
	case s == nil:
		fmt.Fprintf(out, "its plan is pending: drover rollout status %s\n", m.name)
		return nil
	case len(s.Problems) > 0:
		return fmt.Errorf("%s cannot be planned: %s: %s", m.name, s.Problems[0].File, s.Problems[0].Message)
	}
	fmt.Fprintf(out, "planned: %s in %s, %d left out; plan %s\n", view.Count(s.Plan.Members, "cluster"),
		view.Count(len(s.Plan.Stages), "stage"), s.Plan.LeftOut, s.Plan.Digest)
	if next := nextDecision(s); next != "" {
		fmt.Fprintf(out, "read it: drover rollout diff %s\n%s\n", m.name, next)
	} else {
		fmt.Fprintf(out, "follow it: drover rollout status %s --watch\n", m.name)
	}
	return nil
}

// upload uploads a file.
func (c *Cell) upload(ctx context.Context, out io.Writer, m manifest) error {
	if _, err := c.Specs.Put(ctx, m.key, m.data); err != nil {
		return err
	}
	fmt.Fprintf(out, "uploaded %s to s3://%s/%s\n", m.file, c.Specs.Name(), m.key)
	return nil
}

// applyDecision uploads the file of a decision. A decision applies once, so its name must be new.
func applyDecision(ctx context.Context, out io.Writer, d *decider, polls *polls, m manifest, timeout time.Duration) error {
	of := m.decision.Spec.Rollout
	old, err := d.state.DecisionAnswer(ctx, of, m.name)
	switch {
	case err == nil:
		return fmt.Errorf("the decision %s was answered before: %s; a decision applies once: give this one another name, in its file and in "+
			"the name of the file", m.name, old.Message)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if _, err := d.specs.Put(ctx, m.key, m.data); err != nil {
		return err
	}
	fmt.Fprintf(out, "uploaded %s to s3://%s/%s\n", m.file, d.specs.Name(), m.key)
	return printAnswer(ctx, out, d, polls, of, m.name, max(timeout, answerTimeout))
}

// awaitPlan waits for the plan of an uploaded rollout, or for the problems of one that was uploaded after a time. It returns nil if there
// is neither in time.
func awaitPlan(ctx context.Context, polls *polls, state *store.State, full *api.Rollout, after time.Time, timeout time.Duration) (
	*rollout.Status, error) {
	want := rollout.SpecDigest(full)
	for deadline := time.Now().Add(timeout); ; {
		s, found, err := pollPlan(ctx, state, full.Metadata.Name, want, after)
		if ends := polls.next(ctx, err); ends != nil {
			return nil, ends
		}
		if found {
			return s, nil
		}
		if !time.Now().Before(deadline) {
			if s != nil && len(s.Problems) > 0 { // those of the file before are the same
				return s, nil
			}
			return nil, nil
		}
		if err := sleep(ctx, watchInterval); err != nil {
			return nil, err
		}
	}
}

// pollPlan reads the status of a rollout. found reports whether it is about a spec with the digest.
func pollPlan(ctx context.Context, state *store.State, name, digest string, after time.Time) (s *rollout.Status, found bool, err error) {
	s, _, err = state.RolloutStatus(ctx, name)
	if err != nil || s == nil {
		return nil, false, err
	}
	if len(s.Problems) > 0 && !s.UpdatedAt.Before(after) {
		return s, true, nil
	}
	if s.Plan == nil {
		return s, false, nil
	}
	newest, err := state.RolloutPlan(ctx, s.Plan.Digest)
	return s, err == nil && newest.Spec == digest && len(s.Problems) == 0, err
}

// parseFleetFile parses TYPE/NAME of drover delete. ok is false for the name of a cluster.
func parseFleetFile(argument string) (key, rolloutName string, ok bool, err error) {
	kind, name, slash := strings.Cut(argument, "/")
	if !slash {
		return "", "", false, nil
	}
	switch kind {
	case "cluster":
		return "", "", false, nil
	case "rollout":
		key, rolloutName = names.Rollout(name), name
	case "freeze":
		key = names.Freeze(name)
	case "decision":
		of, decision, two := strings.Cut(name, "/")
		if !two {
			return "", "", true, fmt.Errorf("%q names no decision: use decision/ROLLOUT/NAME", argument)
		}
		key = names.Decision(of, decision)
	default:
		return "", "", true, fmt.Errorf("%q is of an unknown type: use rollout/NAME, freeze/NAME, decision/ROLLOUT/NAME or the name of a cluster",
			argument)
	}
	return key, rolloutName, true, nil
}

// deleteFleetFile deletes a file of a fleet, if it did not change since it was read.
func deleteFleetFile(ctx context.Context, out io.Writer, specs store.Objects, state *store.State, key, rolloutName string) error {
	object, err := specs.Get(ctx, key, api.MaxFile)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("s3://%s/%s does not exist: it was deleted before, or has another name", specs.Name(), key)
	} else if err != nil {
		return err
	}
	if err := specs.DeleteIf(ctx, key, object.ETag); err != nil {
		return err
	}
	fmt.Fprintf(out, "deleted s3://%s/%s\n", specs.Name(), key)
	if rolloutName == "" {
		return nil
	}
	s, _, err := state.RolloutStatus(ctx, rolloutName)
	if err == nil && s != nil && activeRun(s) != nil {
		fmt.Fprintf(out, "this ends run %d once no member is at risk: drover rollout status %s --watch\n", s.Run.Number, rolloutName)
	}
	return err
}
