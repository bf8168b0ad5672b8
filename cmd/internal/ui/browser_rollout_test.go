package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// madeUpRollout is a run whose canary passed, with a failure in prod and a second group that needs an approval. It answers decisions as the
// function rollout does: it applies them to the record.
type madeUpRollout struct {
	mu      sync.Mutex
	plan    *rollout.Plan
	record  *rollout.Record
	answers map[string]rollout.DecisionAnswer
	made    []api.DecisionSpec
}

func newMadeUpRollout() *madeUpRollout {
	stages := []struct {
		name    string
		members int
		before  []api.Approval
	}{{"canary", 3, nil}, {"prod/eu-west-1/1", 40, nil}, {"prod/us-east-1/1", 60, []api.Approval{{Count: 1}}}}
	p, n := &rollout.Plan{Rollout: "kubernetes-1.37", Start: api.StartManual}, 0
	p.Subject.Releases = []rollout.Release{{Name: "1.37-1", SHA256: strings.Repeat("3f9a", 16)}}
	for i, s := range stages {
		stage := rollout.Stage{
			Number: i + 1, Name: s.name, FromStage: strings.SplitN(s.name, "/", 2)[0], MaxConcurrency: 5, MaxFailures: 3, Before: s.before,
			Budget: api.BudgetStrict, Settle: rollout.Duration(15 * time.Minute), Soak: rollout.Duration(12 * time.Hour),
		}
		for range s.members {
			stage.Members = append(stage.Members, rollout.Member{
				Cluster: fmt.Sprintf("c%05d", n), From: upgrade.Target{Release: "1.36-1"}, To: upgrade.Target{Release: "1.37-1"},
			})
			n++
		}
		p.Stages = append(p.Stages, stage)
	}
	p.LeftOut = []rollout.LeftOut{{Cluster: "c09999", Reason: rollout.ReasonPinned}}
	run := rollout.Begin(p, 4, nil, began)
	for i := range run.Members {
		m := &run.Members[i]
		m.Since = began
		switch {
		case i < 3:
			m.State, m.Reason, m.GoodSince = rollout.Good, "", began
		case i == 3:
			m.State, m.Reason, m.Attempt = rollout.Failed, rollout.ReasonUpgrade, 1
		case i < 6:
			m.State, m.Reason, m.Attempt = rollout.Changing, "", 1
		case i < 43:
			m.Reason, m.Until = rollout.ReasonClusterWindow, time.Now().Add(3*time.Hour)
		}
	}
	run.Members[1].RegressedAt = began
	run.Stages[0].Began, run.Stages[0].Passed, run.Stages[1].Began = began, began.Add(time.Hour), began.Add(time.Hour)
	return &madeUpRollout{plan: p, answers: map[string]rollout.DecisionAnswer{},
		record: &rollout.Record{Rollout: p.Rollout, Revision: 1, Plan: p.Digest(), Planned: began, Number: 4, Run: &run}}
}

func (m *madeUpRollout) status() *rollout.Status {
	s := rollout.StatusOf(m.record, m.plan, m.plan)
	return &s
}

func (m *madeUpRollout) Rollouts(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return overview.RolloutsJSON([]*rollout.Status{m.status()})
}

func (m *madeUpRollout) Rollout(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name != m.plan.Rollout {
		return nil, store.ErrNotFound
	}
	return json.Marshal(m.status())
}

func (m *madeUpRollout) Plan(_ context.Context, digest string) ([]byte, error) {
	if digest != m.plan.Digest() {
		return nil, store.ErrNotFound
	}
	return json.Marshal(m.plan)
}

func (m *madeUpRollout) Meanings(context.Context) ([]byte, error) {
	return json.Marshal(overview.Meanings())
}

func (m *madeUpRollout) Decide(_ context.Context, spec api.DecisionSpec) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = append(m.made, spec)
	name := fmt.Sprintf("%s-%d", strings.ToLower(string(spec.Verb)), len(m.made))
	now := began.Add(time.Duration(len(m.made)) * time.Minute)
	decided := []rollout.UploadedDecision{{Name: name, Version: "1", At: now, Spec: spec}}
	run, _, _ := rollout.Tick(m.plan, *m.record.Run, rollout.Inputs{Decisions: decided}, now)
	m.record.Run = &run
	m.answers[name] = rollout.DecisionAnswer{Rollout: spec.Rollout, Decision: name, Answer: run.Answers[name]}
	return name, nil
}

func (m *madeUpRollout) Answer(_ context.Context, _, decision string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, ok := m.answers[decision]
	if !ok {
		return nil, store.ErrNotFound
	}
	return json.Marshal(answer)
}

// The page shows a run, and its buttons make decisions that name the digest of the plan that it shows.
func TestRolloutInBrowser(t *testing.T) {
	needBrowser(t)
	m := makeUp(t, 200)
	server := start(t, m)
	arguments := []string{server.URL(), m.plan.Digest()}
	if folder := os.Getenv("DROVER_SCREENSHOTS"); folder != "" {
		arguments = append(arguments, folder)
	}
	require.Contains(t, run(t, "rollout.mjs", arguments...), "every check passed")
	digest := m.plan.Digest()
	require.Equal(t, []api.DecisionSpec{
		{Rollout: "kubernetes-1.37", Verb: api.VerbRetry, Plan: digest, Clusters: []string{"c00003"}, Reason: "quota was raised"},
		{Rollout: "kubernetes-1.37", Verb: api.VerbSkip, Plan: digest, Clusters: []string{"c00006"}},
		{Rollout: "kubernetes-1.37", Verb: api.VerbPause},
		{Rollout: "kubernetes-1.37", Verb: api.VerbResume, Plan: digest},
		{Rollout: "kubernetes-1.37", Verb: api.VerbAbort},
	}, m.made)
}

// A published copy shows the same run, and has no button that makes a decision.
func TestPublishedRolloutInBrowser(t *testing.T) {
	needBrowser(t)
	m := makeUp(t, 200)
	server := start(t, m)
	server.Page.Decides, server.Page.PublishedAt = false, began
	require.Contains(t, run(t, "rollout.mjs", server.URL(), m.plan.Digest(), "", "published"), "every check passed")
	require.Empty(t, m.made)
}

// The plan that waits for its start is shown with its digest, and one button starts it.
func TestStartInBrowser(t *testing.T) {
	needBrowser(t)
	m := makeUp(t, 200)
	m.record.Run, m.record.Number = nil, 0
	server := start(t, startable{m})
	require.Contains(t, run(t, "start.mjs", server.URL(), m.plan.Digest()), "every check passed")
	require.Equal(t, []api.DecisionSpec{{Rollout: "kubernetes-1.37", Verb: api.VerbStart, Plan: m.plan.Digest()}}, m.made)
}

// startable begins a run and approves a stage.
type startable struct{ madeUp }

func (s startable) Decide(_ context.Context, spec api.DecisionSpec) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, spec)
	run := rollout.Begin(s.plan, 1, nil, began)
	s.record.Run, s.record.Number = &run, 1
	s.answers["start-1"] = rollout.DecisionAnswer{Answer: rollout.Answer{Applied: true, Message: "run 1 has started"}}
	return "start-1", nil
}
