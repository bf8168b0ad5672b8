package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

const cell = "111122223333-eu-west-1"

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// errKilled ends a call of the function as if its environment was killed.
var errKilled = errors.New("killed")

// fixture has the function rollout, and a cell of clusters that do what it assigns. It implements the interfaces of the handler.
type fixture struct {
	t              *testing.T
	now            time.Time
	specs, objects *storetest.Bucket
	state          *store.State
	handler        *handler.Handler
	// clusters by name, with the release that they have.
	clusters map[string]*cluster
	alarms   map[string]preflight.Alarm
	notices  []events.RolloutEvent
	states   []string
	started  []string
	// calls counts calls of the current invocation. kill is the number of the call before which it is killed; 0 is none.
	calls, kill int
	killed      bool
}

// cluster is a cluster with the cell's copy of its assignment.
type cluster struct {
	labels  map[string]string
	release upgrade.Target
	has     rollout.Assignment
	state   rollout.AttemptState
	// outcome of its next upgrade.
	outcome rollout.AttemptState
	unwell  bool
}

func newFixture(t *testing.T, clusters ...string) *fixture {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f := &fixture{
		t: t, now: noon, specs: storetest.NewBucket("specs"), objects: storetest.NewBucket("state"), clusters: map[string]*cluster{},
		alarms: map[string]preflight.Alarm{},
	}
	f.connect()
	f.specs.Upload(names.ReleaseSpec("r1"), release("r1", "1.35"))
	f.specs.Upload(names.ReleaseSpec("r2"), release("r2", "1.36"))
	for _, name := range clusters {
		f.clusters[name] = &cluster{
			labels: map[string]string{"stage": name}, release: upgrade.Target{Release: "r1", SHA256: f.sha("r1"), KubernetesVersion: "1.35"},
			outcome: rollout.AttemptDone,
		}
	}
	f.report()
	return f
}

// connect builds the handler over the buckets.
func (f *fixture) connect() {
	now := func() time.Time { return f.now }
	f.specs.Now, f.objects.Now = now, now
	f.specs.OnCall, f.objects.OnCall = f.onCall, f.onCall
	f.state = store.NewState(f.objects, store.Silent, now)
	f.handler = &handler.Handler{
		Specs: f.specs, State: f.state, Alarms: f, Functions: f, Notifier: f, Cell: cell, Now: now,
	}
}

// clone copies the world and everything in it.
func (f *fixture) clone() *fixture {
	out := &fixture{
		t: f.t, now: f.now, specs: f.specs.Clone(), objects: f.objects.Clone(), clusters: map[string]*cluster{}, alarms: maps.Clone(f.alarms),
		notices: slices.Clone(f.notices), states: slices.Clone(f.states), started: slices.Clone(f.started),
	}
	for name, c := range f.clusters {
		copied := *c
		out.clusters[name] = &copied
	}
	out.connect()
	return out
}

func (f *fixture) sha(release string) string {
	return names.SHA256(f.specs.Body(names.ReleaseSpec(release)))
}

func release(name, version string) string {
	return fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Release
metadata: {name: %s}
spec:
  kubernetesVersion: "%s"
  images: {amd64: ami-0000000000000000a}
  addons: [{name: coredns, version: v1.13.2}]
  templateVersion: v1
`, name, version)
}

// file returns a rollout of r2 with one stage for each cluster in it.
func file(name, spec string, stages ...string) string {
	text := fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Rollout\nmetadata: {name: %s}\n"+
		"spec:\n  subject: {release: r2}\n%s  stages:\n", name, spec)
	for _, stage := range stages {
		cluster, rest, _ := strings.Cut(stage, " ")
		text += fmt.Sprintf("    - {name: %s, selector: {matchLabels: {stage: %s}}, settle: 5m, soak: 10m%s}\n", cluster, cluster, rest)
	}
	return text
}

func (f *fixture) onCall(storetest.Call) error {
	if f.calls++; f.kill > 0 && f.calls >= f.kill {
		f.killed = true
		return errKilled
	}
	return nil
}

// States implements handler.Alarms.
func (f *fixture) States(_ context.Context, named []string) (found []preflight.Alarm, err error) {
	if err := f.onCall(storetest.Call{}); err != nil {
		return nil, err
	}
	for _, name := range named {
		if a, ok := f.alarms[name]; ok {
			found = append(found, a)
		}
	}
	return found, nil
}

// Start implements handler.Functions.
func (f *fixture) Start(_ context.Context, function string, _ []byte) error {
	if err := f.onCall(storetest.Call{}); err != nil {
		return err
	}
	f.started = append(f.started, function)
	return nil
}

// RolloutChanging implements handler.Notifier.
func (f *fixture) RolloutChanging(_ context.Context, changes []events.RolloutEvent) error {
	if err := f.onCall(storetest.Call{}); err != nil {
		return err
	}
	f.notices = append(f.notices, changes...)
	return nil
}

// RolloutState implements handler.Notifier.
func (f *fixture) RolloutState(state string) error {
	f.states = append(f.states, state)
	return nil
}

// upload uploads a file and delivers its event.
func (f *fixture) upload(key, body string) error {
	f.specs.Upload(key, body)
	return f.deliver(key)
}

// deliver delivers the S3 event of a key. Without one it ticks. The key "plan all" is the schedule's event.
func (f *fixture) deliver(key string) error {
	var in handler.Input
	if in.PlanAll = key == "plan all"; !in.PlanAll {
		in.Detail.Object.Key = key
	}
	return f.handle(in)
}

func (f *fixture) handle(in handler.Input) error {
	f.calls, f.killed = 0, false
	_, err := f.handler.Handle(f.t.Context(), in)
	return err
}

// tick evaluates each active run.
func (f *fixture) tick() { require.NoError(f.t, f.handle(handler.Input{})) }

// decision returns a decision on the rollout next.
func (f *fixture) decision(name string, verb api.Verb, more string) (key, body string) {
	record, _, err := f.state.RolloutRecord(f.t.Context(), "next")
	require.NoError(f.t, err)
	plan := record.Plan
	if run := record.Running(); run != nil {
		plan = run.Plan
	}
	return names.Decision("next", name), fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Decision\nmetadata: {name: %s}\nspec:\n"+
		"  rollout: next\n  plan: %s\n  verb: %s\n%s", name, plan, verb, more)
}

// decide uploads a decision on the rollout next and delivers its event.
func (f *fixture) decide(name string, verb api.Verb, more string) {
	f.t.Helper()
	require.NoError(f.t, f.upload(f.decision(name, verb, more)))
}

func (f *fixture) answer(name string) rollout.Answer {
	f.t.Helper()
	answer, err := f.state.DecisionAnswer(f.t.Context(), "next", name)
	require.NoError(f.t, err)
	return answer.Answer
}

func (f *fixture) record(name string) *rollout.Record {
	f.t.Helper()
	record, _, err := f.state.RolloutRecord(f.t.Context(), name)
	require.NoError(f.t, err)
	return record
}

func (f *fixture) status(name string) *rollout.Status {
	f.t.Helper()
	status, _, err := f.state.RolloutStatus(f.t.Context(), name)
	require.NoError(f.t, err)
	require.NotNil(f.t, status)
	return status
}

// members returns the state and the reason of each member of the newest run.
func (f *fixture) members(name string) (all []string) {
	f.t.Helper()
	for _, m := range f.record(name).Run.Members {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s %s", m.Cluster, m.State, m.Reason), " "))
	}
	return all
}

func (f *fixture) desiredState() *rollout.DesiredState {
	f.t.Helper()
	desired, _, err := f.state.DesiredState(f.t.Context(), cell)
	require.NoError(f.t, err)
	return desired
}

// events returns the kinds of the notices so far.
func (f *fixture) events() (kinds []rollout.Event) {
	for _, n := range f.notices {
		kinds = append(kinds, rollout.Event(n.Event))
	}
	return kinds
}

// work lets each cluster do its next thing as its run assigned it.
func (f *fixture) work() {
	for _, section := range f.desiredState().Sections {
		for _, a := range section.Assignments {
			c := f.clusters[a.Cluster]
			switch {
			case c == nil:
			case a.Run > c.has.Run || a.Attempt > c.has.Attempt || a.Rollout != c.has.Rollout:
				c.has, c.state = a, rollout.AttemptOpen
			case c.state == rollout.AttemptOpen && a.Withdrawn:
				c.state = rollout.AttemptWithdrawn
			case c.state == rollout.AttemptOpen:
				c.state = rollout.AttemptBegun
			case c.state == rollout.AttemptBegun:
				if c.state = c.outcome; c.state == rollout.AttemptDone {
					version := map[string]string{"r1": "1.35", "r2": "1.36"}[a.To.Name]
					c.release = upgrade.Target{Release: a.To.Name, SHA256: a.To.SHA256, KubernetesVersion: version}
				}
			}
		}
	}
}

// report writes the facts of all clusters.
func (f *fixture) report() {
	f.t.Helper()
	report := rollout.Report{At: f.now}
	for name, c := range f.clusters {
		fact := rollout.Fact{
			Cluster: name, Region: "eu-west-1", Account: "111122223333", Labels: c.labels, Observed: f.now, Deployed: c.release, Nodes: 10,
			Stack: "arn:" + name, RollbackUntil: noon.Add(7 * 24 * time.Hour),
		}
		if c.unwell {
			fact.NotReady = 5
		}
		if c.state != "" {
			fact.Attempt = &rollout.Attempt{Rollout: c.has.Rollout, Run: c.has.Run, Number: c.has.Attempt, State: c.state}
		}
		report.Facts = append(report.Facts, fact)
	}
	slices.SortFunc(report.Facts, func(a, b rollout.Fact) int { return strings.Compare(a.Cluster, b.Cluster) })
	report.Usable = []string{f.sha("r1"), f.sha("r2")}
	body, err := json.Marshal(report)
	require.NoError(f.t, err)
	f.objects.Upload(names.CellReport(cell), string(body))
}

// pass lets time pass in steps of five minutes, in which clusters work and report, and the function ticks. It ends when done is true.
func (f *fixture) pass(done func() bool) {
	f.t.Helper()
	for range 100 {
		if done() {
			return
		}
		f.now = f.now.Add(5 * time.Minute)
		f.work()
		f.report()
		f.tick()
	}
	require.FailNow(f.t, "it does not end", "%v", f.members("next"))
}

// hasEnded reports whether the run of a rollout has ended.
func (f *fixture) hasEnded(name string) func() bool {
	return func() bool { return f.record(name).Running() == nil }
}

func alarm(state string, since time.Time) preflight.Alarm {
	return preflight.Alarm{Name: "errors", State: state, Since: since}
}

func replace(text, old, with string) string { return strings.ReplaceAll(text, old, with) }
