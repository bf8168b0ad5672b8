package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

const (
	account, region = "111122223333", "eu-west-1"
	cell            = account + "-" + region
	planDigest      = "0123456789abcdef0123"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

var (
	r1 = upgrade.Target{Release: "r1", SHA256: "sha1", KubernetesVersion: "1.35"}
	r2 = upgrade.Target{Release: "r2", SHA256: "sha2", KubernetesVersion: "1.36"}
)

// world is a cell.
type world struct {
	t      *testing.T
	specs  *storetest.Bucket
	bucket *storetest.Bucket
	state  *store.State
	now    time.Time
	stacks map[string]stack.Deployed
	// running are the executions that run.
	running []string
	// started are the executions of drover-converge by name, and the functions.
	started []string
	alarms  []preflight.Alarm
	limit   int
	// die is called before every call to AWS. An error ends the function.
	die func(what string) error
}

func newWorld(t *testing.T, clusters ...string) *world {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	w := &world{
		t: t, specs: storetest.NewBucket("specs"), bucket: storetest.NewBucket("state"), now: noon, stacks: map[string]stack.Deployed{},
		limit: 100,
	}
	now := func() time.Time { return w.now }
	w.specs.Now, w.bucket.Now = now, now
	w.state = store.NewState(w.bucket, store.Silent, now)
	for _, cluster := range clusters {
		w.create(cluster)
	}
	w.bucket.OnCall = func(c storetest.Call) error { return w.call(c.Operation + " " + c.Key) }
	w.specs.OnCall = w.bucket.OnCall
	return w
}

// create adds a cluster at r1 that is Ready.
func (w *world) create(cluster string) {
	w.spec(cluster, "r1", "")
	w.pin(cluster, r1)
	w.phase(cluster, status.Ready)
}

// phase writes the status of a cluster.
func (w *world) phase(cluster string, phase status.Phase) {
	document := status.New(cluster)
	document.Status.Phase = phase
	w.putDocument(names.Status(cluster), document)
}

func (w *world) spec(cluster, release, more string) {
	w.specs.Upload(names.ClusterSpec(cluster), fmt.Sprintf(`apiVersion: drover.run/v1alpha1
kind: Cluster
metadata: {name: %s, labels: {stage: canary}}
spec:
  release: {name: %s}
  network: {cidr: 10.0.0.0/16, zones: [eu-west-1a, eu-west-1b]}
%s`, cluster, release, more))
}

func (w *world) pin(cluster string, t upgrade.Target) {
	w.stacks[names.Stack(cluster, names.ControlPlane)] = stack.Deployed{
		ID: "arn:" + cluster, Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagRelease: t.Release + "@" + t.SHA256},
		Outputs: map[string]string{"KubernetesVersion": t.KubernetesVersion},
	}
}

// putDocument writes a document that is not the function's.
func (w *world) putDocument(key string, document any) {
	body, err := json.Marshal(document)
	require.NoError(w.t, err)
	w.bucket.Upload(key, string(body))
}

// assign publishes what runs want.
func (w *world) assign(claims []string, assignments ...rollout.Assignment) {
	slices.Sort(claims)
	w.putDocument(names.DesiredState(cell), rollout.DesiredState{Sections: map[string]rollout.Section{"next": {
		Run: 1, Claims: claims, Assignments: assignments, Releases: []rollout.ReleaseRef{{Name: "1.36-1", SHA256: "sha"}},
	}}})
}

func assignment(cluster string, attempt int) rollout.Assignment {
	return rollout.Assignment{
		Cluster: cluster, Cell: cell, Rollout: "next", Run: 1, Attempt: attempt, Plan: planDigest,
		To: rollout.ReleaseRef{Name: "r2", SHA256: "sha2"},
	}
}

// record is the upgrade of the attempt.
func (w *world) record(a rollout.Assignment, state upgrade.State) {
	r := upgrade.Record{
		Number: 1, Stack: "arn:" + a.Cluster, Execution: "upgrade", Origin: upgrade.OriginRollout, Key: a.Key(), Overridden: "r1",
		From: r1, Target: r2, State: state, Started: noon, Answered: map[upgrade.Origin]string{upgrade.OriginRollout: a.Key()},
		Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.36", Ended: w.now}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.36"},
		},
	}
	if state.Final() {
		r.Ended = w.now
	}
	w.putDocument(names.Upgrade(a.Cluster), r)
}

func (w *world) handler() *Handler {
	return &Handler{
		Specs: w.specs, State: w.state, Stacks: w, Executions: w, Alarms: w, Functions: w, Account: account, Region: region, Limit: w.limit,
		Pause: func(context.Context, int) error { return w.call("Pause") }, Now: func() time.Time { return w.now },
	}
}

func (w *world) handle(in events.Fleet) {
	w.t.Helper()
	_, err := w.handler().Handle(w.t.Context(), in)
	require.NoError(w.t, err)
}

// later lets time pass, after which the sweep starts the function. No event arrives.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.handle(events.Fleet{Sweep: true})
}

func (w *world) call(what string) error {
	if w.die != nil {
		return w.die(what)
	}
	return nil
}

func (w *world) Describe(_ context.Context, stackName string) (stack.Deployed, error) {
	return w.stacks[stackName], w.call("Describe " + stackName)
}

func (w *world) All(context.Context) (map[string]stack.Deployed, error) {
	return w.stacks, w.call("All")
}

func (w *world) Running(_ context.Context, execution string) (bool, error) {
	return slices.Contains(w.running, execution), w.call("Running " + execution)
}

func (w *world) ConvergeDue(_ context.Context, cluster string, at time.Time) error {
	if err := w.call("Converge " + cluster); err != nil {
		return err
	}
	if name := names.DueExecution(cluster, at); !slices.Contains(w.started, name) {
		w.started = append(w.started, name)
	}
	return nil
}

func (w *world) States(context.Context, []string) ([]preflight.Alarm, error) {
	return w.alarms, w.call("States")
}

func (w *world) Start(_ context.Context, function string, _ []byte) error {
	if err := w.call("Start " + function); err != nil {
		return err
	}
	w.started = append(w.started, function)
	return nil
}

// report is what the cell reports.
func (w *world) report() *rollout.Report {
	w.t.Helper()
	die := w.die
	w.die = nil
	defer func() { w.die = die }()
	r, _, err := w.state.CellReport(w.t.Context(), cell)
	require.NoError(w.t, err)
	require.NotNil(w.t, r)
	return r
}

// open returns the clusters on the list of open ones, sorted.
func (w *world) open() []string {
	w.t.Helper()
	return slices.Sorted(maps.Keys(w.report().Open))
}

func (w *world) fact(cluster string) rollout.Fact {
	w.t.Helper()
	for _, f := range w.report().Facts {
		if f.Cluster == cluster {
			return f
		}
	}
	w.t.Fatalf("no fact of %s", cluster)
	return rollout.Fact{}
}

// has reports whether there is a fact of a cluster.
func (w *world) has(cluster string) bool {
	w.t.Helper()
	return slices.ContainsFunc(w.report().Facts, func(f rollout.Fact) bool { return f.Cluster == cluster })
}

// attempt is the state of the attempt that the fact of a cluster has.
func (w *world) attempt(cluster string) rollout.AttemptState {
	w.t.Helper()
	a := w.fact(cluster).Attempt
	if a == nil {
		return ""
	}
	return a.State
}

// copyOf is the cell's copy of an assignment.
func (w *world) copyOf(cluster string) *rollout.CellAssignment {
	w.t.Helper()
	die := w.die
	w.die = nil
	defer func() { w.die = die }()
	a, _, err := w.state.Assignment(w.t.Context(), cluster)
	require.NoError(w.t, err)
	return a
}

var errKilled = errors.New("killed")

func readRelease(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile("../../../examples/releases/1.36-1.yaml")
	require.NoError(t, err)
	return string(body)
}
