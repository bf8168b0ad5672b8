package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

// decisionNow is the time of decisions in these tests.
var decisionNow = time.Date(2026, 11, 27, 14, 3, 12, 0, time.UTC)

// answerer has the two buckets, and answers each decision as the function rollout does. An empty answer is none.
type answerer struct {
	*decider
	bucket *storetest.Bucket
	answer rollout.Answer
	// uploaded are the decisions.
	uploaded []*api.Decision
}

func newAnswerer(t *testing.T, answer rollout.Answer) *answerer {
	t.Helper()
	specs, state := storetest.NewBucket("specs"), storetest.NewBucket("state")
	h := &answerer{bucket: state, answer: answer}
	h.decider = &decider{&answering{specs, h, t}, store.NewState(state, store.Silent, time.Now), func() time.Time { return decisionNow }}
	return h
}

// answering answers each decision after its upload.
type answering struct {
	*storetest.Bucket
	h *answerer
	t *testing.T
}

func (u *answering) Replace(ctx context.Context, key string, body []byte, etag string) (string, error) {
	newETag, err := u.Bucket.Replace(ctx, key, body, etag)
	require.NoError(u.t, err)
	of, name, ok := names.DecisionOfKey(key)
	require.True(u.t, ok, key)
	decision, errs := api.ReadDecision(key, body, api.Options{Name: name})
	require.Empty(u.t, errs)
	u.h.uploaded = append(u.h.uploaded, decision)
	if u.h.answer.Message != "" {
		require.NoError(u.t, u.h.state.PutDecisionAnswer(ctx, rollout.DecisionAnswer{Rollout: of, Decision: name, Answer: u.h.answer}))
	}
	return newETag, nil
}

// putStatus writes a status, and the plan of its run or its newest plan.
func (h *answerer) putStatus(t *testing.T, s *rollout.Status) {
	t.Helper()
	body, err := json.Marshal(s)
	require.NoError(t, err)
	_, err = h.bucket.Put(t.Context(), names.RolloutStatus(s.Metadata.Name), body)
	require.NoError(t, err)
}

// decisionPlan has a canary and two members of prod.
func decisionPlan() *rollout.Plan {
	to := upgrade.Target{Release: "1.37-1", KubernetesVersion: "1.37"}
	member := func(name string) rollout.Member {
		return rollout.Member{
			Cluster: name, Cell: "111122223333-eu-west-1", From: upgrade.Target{Release: "1.36-1", KubernetesVersion: "1.36"}, To: to,
		}
	}
	return &rollout.Plan{Rollout: "k", Subject: rollout.Subject{Releases: []rollout.Release{{Name: "1.37-1"}}}, Stages: []rollout.Stage{
		{Number: 1, Name: "canary", FromStage: "canary", MaxConcurrency: 1, Members: []rollout.Member{member("a")}},
		{Number: 2, Name: "prod", FromStage: "prod", MaxConcurrency: 1, Before: []api.Approval{{Count: 1}},
			Members: []rollout.Member{member("b"), member("c")}},
	}}
}

// statusOf returns the status of a run after a change of its record. Without a change, no run is active.
func statusOf(change func(*rollout.Run)) *rollout.Status {
	p := decisionPlan()
	record := &rollout.Record{Rollout: "k", Revision: 7, Plan: p.Digest(), Planned: decisionNow}
	if change != nil {
		run := rollout.Begin(p, 3, nil, decisionNow)
		change(&run)
		record.Number, record.Run = 3, &run
	}
	s := rollout.StatusOf(record, p, p)
	return &s
}

// needsApproval is a run whose canary passed.
func needsApproval(r *rollout.Run) {
	r.Stages[0].Began, r.Stages[0].Passed = decisionNow, decisionNow
	r.Members[0].State, r.Members[0].Reason = rollout.Good, ""
	r.Members[1].Reason, r.Members[2].Reason = rollout.ReasonApproval, rollout.ReasonApproval
}

func verbOf(t *testing.T, v api.Verb) verb {
	t.Helper()
	for _, c := range verbs() {
		if c.Verb == v {
			return c
		}
	}
	t.Fatal(v)
	return verb{}
}

func TestDecisions(t *testing.T) {
	digest := decisionPlan().Digest()
	start := api.DecisionSpec{Rollout: "k", Verb: api.VerbStart, Plan: digest, Reason: "go"}
	t.Run("an applied decision prints its answer", func(t *testing.T) {
		h := newAnswerer(t, rollout.Answer{Applied: true, Message: "run 3 has started"})
		var out strings.Builder
		require.NoError(t, decide(t.Context(), &out, h.decider, start))
		require.Regexp(t, `^uploaded the decision start-20261127-140312-[a-z0-9]{6} for the plan `+digest[:12]+"\napplied: run 3 has started\n$",
			out.String())
		require.Equal(t, start, h.uploaded[0].Spec)
	})
	t.Run("a refused one is an error with the explanation", func(t *testing.T) {
		h := newAnswerer(t, rollout.Answer{Message: "it names the plan 111111111111"})
		require.ErrorContains(t, decide(t.Context(), &strings.Builder{}, h.decider, start), "was refused: it names the plan 111111111111")
	})
	t.Run("two at the same time have two names", func(t *testing.T) {
		h := newAnswerer(t, rollout.Answer{Applied: true, Message: "done"})
		for range 2 {
			require.NoError(t, decide(t.Context(), &strings.Builder{}, h.decider, start))
		}
		require.NotEqual(t, h.uploaded[0].Metadata.Name, h.uploaded[1].Metadata.Name)
	})
	t.Run("an invalid one is not uploaded", func(t *testing.T) {
		h := newAnswerer(t, rollout.Answer{})
		err := decide(t.Context(), &strings.Builder{}, h.decider, api.DecisionSpec{Rollout: "k", Verb: api.VerbApprove, Plan: digest,
			Stage: "A b"})
		require.ErrorContains(t, err, "spec.stage")
		require.Empty(t, h.uploaded)
	})
	t.Run("no answer is an error that says where it will be", func(t *testing.T) {
		h := newAnswerer(t, rollout.Answer{})
		polls := polls{report: func(string) {}}
		_, err := h.decider.answer(t.Context(), &polls, "k", "none", 0)
		require.ErrorContains(t, err, "there is no answer to the decision none")
		require.ErrorContains(t, err, "drover rollout history k")
	})
}

func TestDecisionsNameThePlanThatWasSeen(t *testing.T) {
	digest := decisionPlan().Digest()
	other := strings.Repeat("1", 64)
	for name, test := range map[string]struct {
		verb        api.Verb
		status      *rollout.Status
		stage, plan string
		wantStage   string
		wantPlan    string
		refused     string
	}{
		"start needs --plan without a terminal": {verb: api.VerbStart, status: statusOf(nil),
			refused: "drover rollout start k --plan " + digest[:12]},
		"start with the first digits":       {verb: api.VerbStart, status: statusOf(nil), plan: digest[:12], wantPlan: digest},
		"start with too few digits":         {verb: api.VerbStart, status: statusOf(nil), plan: digest[:11], refused: "fewer than 12 digits"},
		"start with the digits of another":  {verb: api.VerbStart, status: statusOf(nil), plan: other[:12], refused: "is another one"},
		"start with the digest of an older": {verb: api.VerbStart, status: statusOf(nil), plan: other, wantPlan: other},
		"start while a run is active": {verb: api.VerbStart, status: statusOf(needsApproval), plan: digest,
			refused: "run 3 of k is active"},
		"approve finds the stage": {verb: api.VerbApprove, status: statusOf(needsApproval), plan: digest, wantStage: "prod",
			wantPlan: digest},
		"approve of a stage that is named": {verb: api.VerbApprove, status: statusOf(needsApproval), stage: "canary", plan: digest,
			wantStage: "canary", wantPlan: digest},
		"approve needs --plan": {verb: api.VerbApprove, status: statusOf(needsApproval),
			refused: "drover rollout approve k prod --plan"},
		"approve without a run": {verb: api.VerbApprove, status: statusOf(nil), plan: digest, refused: "no run of k is active"},
		"approve when no stage needs one": {verb: api.VerbApprove, status: statusOf(func(*rollout.Run) {}), plan: digest,
			refused: "no stage of k needs"},
		"resume takes the plan of the run": {verb: api.VerbResume, status: statusOf(needsApproval), wantPlan: digest},
		"resume of a pause without a run":  {verb: api.VerbResume, status: statusOf(nil), wantPlan: digest},
		"pause needs no plan":              {verb: api.VerbPause, status: statusOf(needsApproval)},
		"abort needs no status":            {verb: api.VerbAbort},
		"retry needs a status":             {verb: api.VerbRetry, refused: "rollout k does not exist"},
		"start of a rollout without a plan": {
			verb: api.VerbStart, status: &rollout.Status{Metadata: rollout.StatusMetadata{Name: "k"}, Message: "no such release"},
			refused: "k has no plan: no such release",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newAnswerer(t, rollout.Answer{})
			if test.status != nil {
				h.putStatus(t, test.status)
			}
			spec := api.DecisionSpec{Rollout: "k", Verb: test.verb, Stage: test.stage}
			_, err := verbOf(t, test.verb).complete(t.Context(), strings.NewReader("y\n"), &strings.Builder{}, h.state, &spec, test.plan)
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.wantPlan, spec.Plan)
			require.Equal(t, test.wantStage, spec.Stage)
		})
	}
}

func TestRolloutExitCodes(t *testing.T) {
	code := func(err error) int {
		if err == nil {
			return 0
		}
		return exitCode(err)
	}
	halted := func(r *rollout.Run) {
		r.State, r.Halt = rollout.Halted, &rollout.Halt{Stage: 1, Cause: rollout.HaltFailures, At: decisionNow}
		r.Members[0].State, r.Members[0].Reason = rollout.Failed, rollout.ReasonUpgrade
	}
	flying := func(r *rollout.Run) { r.Members[0].State, r.Members[0].Reason = rollout.Changing, "" }
	paused := func(r *rollout.Run) { r.State, r.PausedBy = rollout.Paused, "pause-1" }
	ended := func(state rollout.RunState) func(*rollout.Run) {
		return func(r *rollout.Run) { r.State, r.Ended = state, decisionNow }
	}
	for name, test := range map[string]struct {
		status *rollout.Status
		code   int
		// ends reports whether a watch that followed run 3 ends, and with which code.
		ends  bool
		watch int
	}{
		"a plan that waits for a start":     {statusOf(nil), 2, true, 2},
		"a run in progress":                 {statusOf(flying), 0, false, 0},
		"a stage that needs an approval":    {statusOf(needsApproval), 2, true, 2},
		"a paused run":                      {statusOf(paused), 2, true, 2},
		"a pause with a member in flight":   {statusOf(func(r *rollout.Run) { paused(r); flying(r) }), 2, false, 0},
		"a halted run":                      {statusOf(halted), 1, true, 1},
		"a halted run that rolls back":      {statusOf(func(r *rollout.Run) { halted(r); r.State = rollout.RollingBack }), 1, false, 0},
		"a run that is done":                {statusOf(ended(rollout.Done)), 2, true, 0},
		"a run that was aborted":            {statusOf(ended(rollout.Aborted)), 2, true, 1},
		"an invalid rollout":                {&rollout.Status{State: rollout.StatusInvalid}, 1, true, 1},
		"a rollout that changes nothing":    {&rollout.Status{State: rollout.StatusCurrent}, 0, true, 0},
		"a run that ends, member in flight": {statusOf(func(r *rollout.Run) { flying(r); r.Ending = rollout.Aborted }), 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.code, code(verdictOf(test.status)))
			followed := int64(0)
			if test.status.Run != nil {
				followed = 3
			}
			ends, err := watchEnds(func(_, _ string) {}, test.status, followed)
			require.Equal(t, test.ends, ends)
			require.Equal(t, test.watch, code(err))
		})
	}
}

func TestRolloutStatusText(t *testing.T) {
	text := func(s *rollout.Status, wide bool) string {
		var out strings.Builder
		d := newDisplay(&out, false)
		d.now = decisionNow.Add(time.Hour)
		d.rollout(s, wide)
		return out.String()
	}
	s := statusOf(needsApproval)
	got := text(s, false)
	for _, want := range []string{
		"k: run 3 is Running, started 1h ago", "prod needs an approval: drover rollout approve k prod --plan " + s.Run.Plan[:12],
		"1   canary  Passed  1        1", "2   prod    Open    2        0     0 of 1   2        0 of 0  needs an approval to begin",
		"b        prod   Waiting  Approval  1h     -      0",
	} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, "a        canary")
	require.Contains(t, text(s, true), "a        canary  Good")
	early := text(statusOf(func(r *rollout.Run) { r.Members[0].State, r.Members[0].Reason = rollout.Settling, "" }), false)
	require.Contains(t, early, "2 members wait for an earlier stage: -o wide shows them")
	require.Contains(t, text(statusOf(nil), false), "k is Planned\nnewest plan")
}

// A run without members ends at once: the watch that started it reports its end.
func TestWatchOfARunThatEndedAtOnce(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	s := statusOf(func(r *rollout.Run) { r.State, r.Ended = rollout.Done, decisionNow })
	h.putStatus(t, s)
	var out strings.Builder
	require.NoError(t, watchRollout(t.Context(), &out, h.state, "k", seenRun{start: true, number: 2, revision: 6}))
	require.Contains(t, out.String(), "run 3 of k is Done")
}

func TestWatchFollowsARun(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	steps := []*rollout.Status{statusOf(func(r *rollout.Run) { r.Members[0].State, r.Members[0].Reason = rollout.Changing, "" }),
		statusOf(needsApproval)}
	steps[0].Revision, steps[1].Revision = 8, 9
	reads := 0
	old := statusOf(nil)
	h.putStatus(t, old)
	h.bucket.OnCall = func(c storetest.Call) error {
		if c.Operation != "Get" {
			return nil
		}
		switch reads++; reads {
		case 2:
			return errors.New("a poll that fails")
		case 3, 4:
			h.putStatus(t, steps[reads-3])
		}
		return nil
	}
	var out strings.Builder
	err := watchRollout(t.Context(), &out, h.state, "k", seenOf(old, api.VerbStart))
	require.Equal(t, 2, exitCode(err))
	for _, want := range []string{"a poll failed; retrying", "run 3 is Running", "a is Changing", "stage canary is Passed",
		"prod needs an approval"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "waits for a start", "the status is older than the decision")
}
