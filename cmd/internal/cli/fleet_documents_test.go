package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/internal/clitest"
	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// text returns what a display prints an hour after the decisions.
func text(show func(*display)) string {
	var out strings.Builder
	d := newDisplay(&out, false)
	d.now = decisionNow.Add(time.Hour)
	show(d)
	return out.String()
}

// putRun stores the plan, the record and the status of a run.
func (h *answerer) putRun(t *testing.T, change func(*rollout.Run)) *rollout.Record {
	t.Helper()
	p := decisionPlan()
	_, err := h.state.PutRolloutPlan(t.Context(), p)
	require.NoError(t, err)
	run := rollout.Begin(p, 3, nil, decisionNow)
	change(&run)
	record := &rollout.Record{Rollout: "k", Revision: 7, Plan: p.Digest(), Number: 3, Run: &run}
	_, err = h.state.PutRolloutRecord(t.Context(), record, "")
	require.NoError(t, err)
	s := rollout.StatusOf(record, p, p)
	h.putStatus(t, &s)
	return record
}

func TestRolloutHistory(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	for _, v := range []api.Verb{api.VerbPause, api.VerbAbort} {
		_, err := h.upload(t.Context(), api.DecisionSpec{Rollout: "k", Verb: v, Reason: "incident"})
		require.NoError(t, err)
	}
	paused := h.uploaded[0].Metadata.Name
	h.putRun(t, func(r *rollout.Run) {
		needsApproval(r)
		r.Answers[paused] = rollout.Answer{Version: "1", Applied: true, Message: "nothing starts until a decision resumes the run"}
	})
	ended := rollout.Begin(decisionPlan(), 2, nil, decisionNow)
	ended.State, ended.Ended = rollout.Aborted, decisionNow
	require.NoError(t, h.state.PutEndedRun(t.Context(), &ended))
	history, err := readHistory(t.Context(), h.specs, h.state, "k", 20)
	require.NoError(t, err)
	require.Len(t, history.Runs, 2, "run 1 has expired")
	require.Equal(t, map[rollout.State]int{rollout.Good: 1, rollout.Waiting: 2}, history.Runs[0].Members)
	got := text(func(d *display) { d.history(history) })
	for _, want := range []string{
		"3    Running", "2 Waiting, 1 Good", "2    Aborted", "3 Waiting",
		"Pause     -   applied  nothing starts until a decision resumes the run  incident",
		"Abort     -   pending  -",
	} {
		require.Contains(t, got, want)
	}
	short, err := readHistory(t.Context(), h.specs, h.state, "k", 1)
	require.NoError(t, err)
	require.Len(t, short.Runs, 1)
	require.Len(t, short.Decisions, 1)
	_, err = readHistory(t.Context(), h.specs, h.state, "other", 20)
	require.ErrorContains(t, err, "rollout other does not exist")
}

func TestRolloutDiff(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	record := h.putRun(t, needsApproval)
	d, err := diffRun(t.Context(), h.state, "k")
	require.NoError(t, err)
	require.False(t, d.differs())
	var out strings.Builder
	d.print(&out, false)
	require.Contains(t, out.String(), "the plan of run 3 is the same")

	newer := decisionPlan()
	newer.Stages[1].Members = newer.Stages[1].Members[:1]
	record.Plan, err = h.state.PutRolloutPlan(t.Context(), newer)
	require.NoError(t, err)
	s := rollout.StatusOf(record, newer, decisionPlan())
	h.putStatus(t, &s)
	d, err = diffRun(t.Context(), h.state, "k")
	require.NoError(t, err)
	require.True(t, d.differs())
	require.Equal(t, []string{"1 cluster left prod"}, d.Difference)
	out.Reset()
	d.print(&out, false)
	require.Contains(t, out.String(), "difference to the plan of run 3, "+decisionPlan().Digest()+":\n  1 cluster left prod\n")
}

func TestFleetWhy(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	require.NoError(t, h.state.UpdateStatus(t.Context(), "b", func(s *status.Status) { s.Phase, s.Release = status.Ready, "1.36-1" }))
	h.putRun(t, needsApproval)
	require.NoError(t, h.state.PutCellReport(t.Context(), "cell", &rollout.Report{At: decisionNow, Facts: []rollout.Fact{{
		Cluster: "b", Labels: map[string]string{"env": "prod"}, Opening: &rollout.Opening{Opens: decisionNow.Add(3 * time.Hour)},
	}}}, ""))
	freeze := api.Freeze{Metadata: api.Metadata{Name: "peak"}, Spec: api.FreezeSpec{
		Clusters: api.Selector{MatchLabels: map[string]string{"env": "prod"}}, From: "2026-11-26T00:00:00Z", Until: "2026-12-01T00:00:00Z",
		Reason: "peak sales", Stops: []api.Stop{api.StopRollouts},
	}}
	require.NoError(t, h.state.PutCellFreezes(t.Context(), &rollout.CellFreezes{Freezes: []api.Freeze{freeze}}, ""))
	why, err := explain(t.Context(), h.state, "cell", "b", decisionNow.Add(time.Hour))
	require.NoError(t, err)
	got := text(func(d *display) { d.why(why) })
	for _, want := range []string{
		"b is Healthy (Ready): release 1.36-1", "rollout k, run 3 (Running), stage prod: Waiting, Approval, since 1h\n",
		"  " + overview.Meaning(rollout.Waiting, rollout.ReasonApproval), "drover rollout approve k prod --plan",
		"freeze peak holds it until in 3d: peak sales", "its window opens in 2h",
	} {
		require.Contains(t, got, want)
	}
	_, err = explain(t.Context(), h.state, "cell", "other", decisionNow)
	require.ErrorContains(t, err, "cluster other does not exist")
}

func TestFleetWhySaysWhyAClusterIsLeftOut(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	require.NoError(t, h.state.UpdateStatus(t.Context(), "x", func(*status.Status) {}))
	p := decisionPlan()
	p.LeftOut = []rollout.LeftOut{{Cluster: "x", Reason: rollout.ReasonPinned, Message: "its spec opts out"}}
	digest, err := h.state.PutRolloutPlan(t.Context(), p)
	require.NoError(t, err)
	s := rollout.StatusOf(&rollout.Record{Rollout: "k", Plan: digest}, p, nil)
	h.putStatus(t, &s)
	why, err := explain(t.Context(), h.state, "cell", "x", decisionNow)
	require.NoError(t, err)
	require.Contains(t, text(func(d *display) { d.why(why) }), "the newest plan of k leaves it out: Pinned: its spec opts out")
}

func TestApplyOrder(t *testing.T) {
	files := map[string]string{
		"approve-prod.yaml": "rollouts/approve-prod.yaml", "kubernetes-1.37.yaml": "rollouts/kubernetes-1.37.yaml",
		"demo.yaml":   "clusters/demo.yaml",
		"1.36-1.yaml": "releases/1.36-1.yaml", "black-friday.yaml": "rollouts/black-friday.yaml",
	}
	var sources []string
	for name, path := range files {
		sources = append(sources, clitest.Write(t, name, example(t, path)))
	}
	all, err := readManifests(sources)
	require.NoError(t, err)
	var keys []string
	for _, m := range all {
		keys = append(keys, m.key)
	}
	require.Equal(t, []string{"freezes/black-friday.yaml", "releases/1.36-1.yaml", "clusters/demo.yaml", "rollouts/kubernetes-1.37.yaml",
		"decisions/kubernetes-1.37/approve-prod.yaml"}, keys)
}

func TestApplyDecisionOnce(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	m, err := readManifest(clitest.Write(t, "approve-prod.yaml", example(t, "rollouts/approve-prod.yaml")))
	require.NoError(t, err)
	require.NoError(t, h.state.PutDecisionAnswer(t.Context(), rollout.DecisionAnswer{Rollout: "kubernetes-1.37", Decision: "approve-prod",
		Answer: rollout.Answer{Applied: true, Message: "the stage may begin"}}))
	polls := polls{report: func(string) {}}
	err = applyDecision(t.Context(), &strings.Builder{}, h.decider, &polls, m, time.Second)
	require.ErrorContains(t, err, "was answered before: the stage may begin; a decision applies once: give this one another name")
	require.Empty(t, h.uploaded)
	d, err := diffDecision(t.Context(), h.state, m)
	require.NoError(t, err)
	require.False(t, d.differs())
	require.Contains(t, d.Message, "it was answered before")
}

func TestDiffDecision(t *testing.T) {
	digest := decisionPlan().Digest()
	for name, test := range map[string]struct {
		spec    api.DecisionSpec
		applies bool
		message string
	}{
		"an approval of the plan of the run": {api.DecisionSpec{Rollout: "k", Verb: api.VerbApprove, Plan: digest}, true, "applies to the plan"},
		"an approval of another plan": {api.DecisionSpec{Rollout: "k", Verb: api.VerbApprove, Plan: strings.Repeat("1", 64)}, false,
			"names the plan 111111111111, and k has the plan " + digest[:12]},
		"a brake":              {api.DecisionSpec{Rollout: "k", Verb: api.VerbPause}, true, "applies to any plan"},
		"a start during a run": {api.DecisionSpec{Rollout: "k", Verb: api.VerbStart, Plan: digest}, false, "run 3 of k is active"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newAnswerer(t, rollout.Answer{})
			h.putRun(t, needsApproval)
			d, err := diffDecision(t.Context(), h.state, manifest{name: "x", decision: &api.Decision{Spec: test.spec}})
			require.NoError(t, err)
			require.Equal(t, test.applies, d.differs())
			require.Contains(t, d.Message, test.message)
		})
	}
}

func TestPlansOfUploads(t *testing.T) {
	h := newAnswerer(t, rollout.Answer{})
	read := func(file string) *api.Rollout {
		m, err := readManifest(file)
		require.NoError(t, err)
		return m.rollout
	}
	full := read(clitest.Write(t, "kubernetes-1.37.yaml", example(t, "rollouts/kubernetes-1.37.yaml")))
	p := decisionPlan()
	p.Rollout, p.Spec = full.Metadata.Name, rollout.SpecDigest(full)
	digest, err := h.state.PutRolloutPlan(t.Context(), p)
	require.NoError(t, err)
	s := rollout.StatusOf(&rollout.Record{Rollout: full.Metadata.Name, Plan: digest}, p, nil)
	s.UpdatedAt = decisionNow
	poll := func(want string, after time.Time) bool {
		h.putStatus(t, &s)
		_, found, err := pollPlan(t.Context(), h.state, full.Metadata.Name, want, after)
		require.NoError(t, err)
		return found
	}
	require.True(t, poll(p.Spec, decisionNow))
	require.False(t, poll("another spec", decisionNow), "the plan is of the file before")
	s.Problems = []rollout.Problem{{File: "rollouts/kubernetes-1.37.yaml", Message: "there is no such release"}}
	require.True(t, poll("another spec", decisionNow))
	require.False(t, poll("another spec", decisionNow.Add(time.Second)), "the problem is of the file before")
	polls := polls{report: func(string) {}}
	late, err := awaitPlan(t.Context(), &polls, h.state, full, decisionNow.Add(time.Second), 0)
	require.NoError(t, err)
	require.Equal(t, "there is no such release", late.Problems[0].Message, "the same problem as before")
}

func TestDeleteFleetFiles(t *testing.T) {
	for argument, want := range map[string]string{
		"rollout/k": "rollouts/k.yaml", "freeze/peak": "freezes/peak.yaml", "decision/k/approve-1": "decisions/k/approve-1.yaml", "demo": "",
		"cluster/demo": "",
	} {
		key, _, ok, err := parseFleetFile(argument)
		require.NoError(t, err)
		require.Equal(t, want != "", ok)
		require.Equal(t, want, key)
	}
	_, _, _, err := parseFleetFile("decision/k")
	require.ErrorContains(t, err, "use decision/ROLLOUT/NAME")
	_, _, _, err = parseFleetFile("pool/a")
	require.ErrorContains(t, err, "unknown type")

	h := newAnswerer(t, rollout.Answer{})
	h.putRun(t, needsApproval)
	remove := func() (string, error) {
		var out strings.Builder
		err := deleteFleetFile(t.Context(), &out, h.specs, h.state, names.Rollout("k"), "k")
		return out.String(), err
	}
	_, err = remove()
	require.ErrorContains(t, err, "does not exist")
	_, err = h.specs.Put(t.Context(), names.Rollout("k"), []byte("x"))
	require.NoError(t, err)
	out, err := remove()
	require.NoError(t, err)
	require.Contains(t, out, "this ends run 3 once no member is at risk")
	_, err = h.specs.Get(t.Context(), names.Rollout("k"), api.MaxFile)
	require.ErrorIs(t, err, store.ErrNotFound)
}
