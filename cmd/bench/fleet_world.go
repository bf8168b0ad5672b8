package main

// A cell with rollouts in virtual time. The handlers of the functions rollout and fleet, and the part of the sweep, run over stores in
// memory. Calls are counted and work is measured; the times of calls and of upgrades are assumed. A call of a function takes effect at its
// start. It starts other functions at its end. Calls do not overlap, so no conditional write conflicts.

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	fleethandler "github.com/drover-run/drover/functions/fleet/handler"
	rollouthandler "github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/functions/sweep/passes"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

const (
	worldAccount, worldRegion = "111122223333", "us-east-1"
	// The assumed times of asynchronous starts of functions, of events of the bus, and of a converge until the upgrade begins.
	startTakes  = 100 * time.Millisecond
	eventTakes  = 500 * time.Millisecond
	beginsAfter = 30 * time.Second
	// changesNotified are the notices of an upgrade that invoke the function fleet, except those of its begin and of its end. An upgrade in
	// local/testkit/worlds/rollout has four such notices: Upgrading, Checking, Ready and Done.
	changesNotified = 2
	// memories of the functions in GB: infra/functions.go.
	rolloutMemory, fleetMemory = 1.0, 0.5
	// lambdaProcessor is how much memory gets a whole processor, in GB.
	lambdaProcessor = 1769. / 1024
)

// cellWorld is a cell. Its clusters match their specs until a rollout changes them.
type cellWorld struct {
	now           time.Time
	random        *rand.Rand
	specs, bucket *storetest.Bucket
	state         *store.State
	rollout       *rollouthandler.Handler
	fleet         *fleethandler.Handler
	sweep         passes.Fleet
	stacks        map[string]stack.Deployed
	queue         moments
	sequence      int

	// spent is what the calls of each function took. doing is the call that runs now; nil if something else runs.
	spent map[string]*spending
	doing *doing
	// converges are the executions that fleet started, by name.
	converges map[string]bool
	// ended are the times at which upgrades ended, begun those at which fleet started the converge of an upgrade.
	ended, begun []time.Time
	notices      int
}

// moment is something that happens at a time.
type moment struct {
	at       time.Time
	sequence int
	do       func(context.Context) error
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, j int) bool {
	return cmp.Or(m[i].at.Compare(m[j].at), cmp.Compare(m[i].sequence, m[j].sequence)) < 0
}
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// spending is what calls of one function took.
type spending struct {
	invocations, reads, writes, others float64
	gigabyteSeconds, work              float64
}

func (s *spending) add(o *spending) {
	s.invocations, s.reads, s.writes, s.others = s.invocations+o.invocations, s.reads+o.reads, s.writes+o.writes, s.others+o.others
	s.gigabyteSeconds, s.work = s.gigabyteSeconds+o.gigabyteSeconds, s.work+o.work
}

// dollars include the log and the trace of each invocation.
func (s *spending) dollars() float64 {
	return s.reads*s3ReadPrice + s.writes*s3WritePrice + s.gigabyteSeconds*gigabyteSecondPrice +
		s.invocations*(invocationPrice+logSize*logsPrice+tracePrice)
}

// doing is a call of a function while it runs.
type doing struct {
	spending
	// serial is the time of calls one after another, parallel that of calls for clusters, which run at the same time.
	serial, parallel time.Duration
	clusters         map[string]bool
	starts           []func(at time.Time)
}

func (d *doing) takes(key string, each time.Duration) {
	for _, prefix := range []string{names.ClusterSpecs, names.Assignments, "status/clusters/", "upgrades/", "leases/", names.Dues} {
		if strings.HasPrefix(key, prefix) && key != prefix {
			d.parallel += each
			d.clusters[key[strings.LastIndex(key, "/")+1:]] = true
			return
		}
	}
	d.serial += each
}

// newCellWorld returns a cell with clusters at the release 1.36-1. One in a hundred is a canary.
func newCellWorld(ctx context.Context, size int) (*cellWorld, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the functions log each assignment
	w := &cellWorld{
		now: fleetStart, random: rand.New(rand.NewPCG(1, 2)), specs: storetest.NewBucket("specs"), bucket: storetest.NewBucket("state"),
		stacks: map[string]stack.Deployed{}, spent: map[string]*spending{}, converges: map[string]bool{},
	}
	now := func() time.Time { return w.now }
	w.specs.Now, w.bucket.Now = now, now
	w.state = store.NewState(w.bucket, store.Silent, now)
	w.rollout = &rollouthandler.Handler{
		Specs: w.specs, State: w.state, Alarms: w, Functions: w, Notifier: w, Cell: names.Cell(worldAccount, worldRegion), Now: now,
	}
	w.fleet = &fleethandler.Handler{
		Specs: w.specs, State: w.state, Stacks: w, Executions: w, Alarms: w, Functions: w, Account: worldAccount, Region: worldRegion,
		Limit: 100, Pause: func(context.Context, int) error { return nil }, Now: now,
	}
	w.sweep = passes.Fleet{
		State: w.state, Stacks: w, Nodes: w, Functions: w, Cell: names.Cell(worldAccount, worldRegion), Parallel: 1, Now: now,
	}
	old := worldRelease("1.36-1", "1.36")
	w.specs.Upload(names.ReleaseSpec("1.36-1"), old)
	for i := range size {
		cluster, stage := fmt.Sprintf("shop-%05d", i), "prod"
		if i%100 == 0 {
			stage = "canary"
		}
		w.specs.Upload(names.ClusterSpec(cluster), fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Cluster\n"+
			"metadata: {name: %s, labels: {stage: %s}}\nspec:\n  release: {name: 1.36-1}\n"+
			"  network: {cidr: 10.0.0.0/16, zones: [us-east-1a, us-east-1b]}\n", cluster, stage))
		w.pin(cluster, upgrade.Target{Release: "1.36-1", SHA256: names.SHA256([]byte(old)), KubernetesVersion: "1.36"})
		document := status.New(cluster)
		document.Status.Phase = status.Ready
		if err := w.put(names.Status(cluster), document); err != nil {
			return nil, err
		}
	}
	w.specs.OnCall, w.bucket.OnCall = w.called, w.called
	w.invoke("fleet", []byte(`{"audit":true}`), 0)
	return w, w.until(ctx, w.now.Add(time.Minute), nil)
}

func worldRelease(name, version string) string {
	return fmt.Sprintf("apiVersion: drover.run/v1alpha1\nkind: Release\nmetadata: {name: %s}\nspec:\n  kubernetesVersion: %q\n"+
		"  images: {amd64: ami-0000000000000000a}\n  addons: [{name: coredns, version: v1.13.2}]\n  templateVersion: v1\n", name, version)
}

func (w *cellWorld) pin(cluster string, t upgrade.Target) {
	name := names.Stack(cluster, names.ControlPlane)
	w.stacks[name] = stack.Deployed{
		ID: "arn:" + cluster, Status: "UPDATE_COMPLETE", Tags: map[string]string{names.TagRelease: t.Release + "@" + t.SHA256},
		Outputs: map[string]string{"KubernetesVersion": t.KubernetesVersion, stack.OutputEndpoint: "https://" + cluster},
	}
}

func (w *cellWorld) put(key string, document any) error {
	body, err := json.Marshal(document)
	if err == nil {
		w.bucket.Upload(key, string(body))
	}
	return err
}

// after has something happen after a time.
func (w *cellWorld) after(d time.Duration, do func(context.Context) error) { w.at(w.now.Add(d), do) }

func (w *cellWorld) at(at time.Time, do func(context.Context) error) {
	w.sequence++
	heap.Push(&w.queue, moment{at, w.sequence, do})
}

// until lets time pass until a moment, or until something that happened makes done hold.
func (w *cellWorld) until(ctx context.Context, at time.Time, done func() bool) error {
	for len(w.queue) > 0 && !w.queue[0].at.After(at) {
		next := heap.Pop(&w.queue).(moment)
		w.now = next.at
		if err := next.do(ctx); err != nil {
			return err
		}
		if done != nil && done() {
			return nil
		}
	}
	if done != nil {
		return fmt.Errorf("not done at %s", at)
	}
	w.now = at
	return nil
}

// schedules start what drover's schedules start.
func (w *cellWorld) schedules() {
	every := func(period time.Duration, do func(context.Context) error) {
		var again func(context.Context) error
		again = func(ctx context.Context) error {
			w.after(period, again)
			return do(ctx)
		}
		w.after(period, again)
	}
	every(backoff.SweepPeriod, func(ctx context.Context) error {
		// The sweep runs anyway: only its calls for rollouts count.
		return w.run(ctx, "sweep", 0, sweepMemory, w.sweep.Run)
	})
	every(backoff.AuditPeriod, func(context.Context) error {
		w.invoke("fleet", []byte(`{"audit":true}`), startTakes)
		return nil
	})
	every(backoff.RolloutPlanPeriod, func(context.Context) error {
		w.invoke("rollout", []byte(`{"audit":true}`), startTakes)
		return nil
	})
}

// invoke has a function called after a time.
func (w *cellWorld) invoke(function string, payload []byte, delay time.Duration) {
	w.after(delay, func(ctx context.Context) error { return w.call(ctx, function, payload) })
}

// call calls a function now.
func (w *cellWorld) call(ctx context.Context, function string, payload []byte) error {
	switch function {
	case "rollout":
		return w.run(ctx, function, 1, rolloutMemory, func(ctx context.Context) error {
			var in rollouthandler.Input
			if err := json.Unmarshal(payload, &in); err != nil {
				return err
			}
			_, err := w.rollout.Handle(ctx, in)
			return err
		})
	case "fleet":
		return w.run(ctx, function, 1, fleetMemory, func(ctx context.Context) error {
			var in events.Fleet
			if err := json.Unmarshal(payload, &in); err != nil {
				return err
			}
			_, err := w.fleet.Handle(ctx, in)
			return err
		})
	}
	return w.run(ctx, "sweep: looks", 1, sweepMemory, func(ctx context.Context) error {
		var in events.Sweep
		if err := json.Unmarshal(payload, &in); err != nil {
			return err
		}
		return w.sweep.Look(ctx, in.Look)
	})
}

// run runs a call of a function and adds what it took.
func (w *cellWorld) run(ctx context.Context, function string, invocations, memory float64, do func(context.Context) error) error {
	d := &doing{clusters: map[string]bool{}}
	w.doing = d
	begun := time.Now()
	err := do(ctx)
	work := time.Since(begun)
	w.doing = nil
	if err != nil {
		return fmt.Errorf("%s at %s: %w", function, w.now, err)
	}
	parallel := time.Duration(max(1, min(sweepWorkers, len(d.clusters))))
	took := d.serial + d.parallel/parallel + time.Duration(float64(work)/min(1, memory/lambdaProcessor))
	d.invocations, d.work, d.gigabyteSeconds = invocations, work.Seconds(), took.Seconds()*memory
	total := w.spent[function]
	if total == nil {
		total = &spending{}
		w.spent[function] = total
	}
	total.add(&d.spending)
	for _, start := range d.starts {
		start(w.now.Add(took))
	}
	return nil
}

// called counts a call of S3.
func (w *cellWorld) called(c storetest.Call) error {
	d := w.doing
	if d == nil {
		return nil
	}
	switch c.Operation {
	case "Get":
		d.reads++
	case "Put", "List":
		d.writes++
	}
	d.takes(c.Key, s3Takes)
	return nil
}

// other counts a call of another service. cluster is empty if it is of none.
func (w *cellWorld) other(cluster string, takes time.Duration) {
	if w.doing == nil {
		return
	}
	w.doing.others++
	if cluster == "" {
		w.doing.serial += takes
		return
	}
	w.doing.takes(names.Assignments+cluster, takes)
}

// Start implements the functions of the handlers.
func (w *cellWorld) Start(_ context.Context, function string, payload []byte) error {
	w.other("", startTakes)
	name := strings.TrimPrefix(function, names.Prefix)
	w.doing.starts = append(w.doing.starts, func(at time.Time) {
		w.at(at.Add(startTakes), func(ctx context.Context) error { return w.call(ctx, name, payload) })
	})
	return nil
}

// Describe and All implement the stacks of the handlers.
func (w *cellWorld) Describe(_ context.Context, stackName string) (stack.Deployed, error) {
	w.other(stackName, stacksTake/5) // one stack
	return w.stacks[stackName], nil
}

// All lists six more stacks of each cluster.
func (w *cellWorld) All(context.Context) (map[string]stack.Deployed, error) {
	for range pages(len(w.stacks) * 7) {
		w.other("", stacksTake+stacksPause)
	}
	return w.stacks, nil
}

// Health implements the nodes of the sweep.
func (w *cellWorld) Health(_ context.Context, cluster string, _ stack.API) ([]pool.NodeHealth, error) {
	w.other(cluster, nodesTake)
	return slices.Repeat([]pool.NodeHealth{{Ready: true}}, 10), nil
}

// States implements the alarms of the handlers.
func (w *cellWorld) States(context.Context, []string) ([]preflight.Alarm, error) {
	w.other("", eksTakes)
	return nil, nil
}

// RolloutChanging and RolloutState implement the notifier of the function rollout.
func (w *cellWorld) RolloutChanging(_ context.Context, changes []events.RolloutEvent) error {
	for range changes {
		w.other("", 2*s3Takes) // the topic and the bus
		w.notices++
	}
	return nil
}

// RolloutState writes a metric to the log.
func (w *cellWorld) RolloutState(string) error { return nil }

// Running implements the executions of the function fleet.
func (w *cellWorld) Running(context.Context, string) (bool, error) { return false, nil }

// ConvergeDue starts the converge of an upgrade, once.
func (w *cellWorld) ConvergeDue(_ context.Context, cluster string, at time.Time) error {
	w.other(cluster, eksTakes)
	name := names.DueExecution(cluster, at)
	if w.converges[name] {
		return nil
	}
	w.converges[name] = true
	w.doing.starts = append(w.doing.starts, func(at time.Time) {
		w.begun = append(w.begun, at)
		w.at(at.Add(beginsAfter), func(ctx context.Context) error { return w.upgrade(ctx, cluster) })
	})
	return nil
}

// notify has the function fleet observe a cluster.
func (w *cellWorld) notify(cluster string) {
	payload, _ := json.Marshal(events.Fleet{Cluster: cluster}) // a name
	w.invoke("fleet", payload, eventTakes)
}

// upgrade is an upgrade of 20 to 40 minutes, as drover-upgrade leaves its traces.
func (w *cellWorld) upgrade(ctx context.Context, cluster string) error {
	a, etag, err := w.state.Assignment(ctx, cluster)
	if err != nil || a.Request("arn:"+cluster) == nil || a.Begun {
		return err
	}
	a.Begun = true
	if _, err := w.state.PutAssignment(ctx, a, etag); err != nil {
		return err
	}
	from := w.stacks[names.Stack(cluster, names.ControlPlane)]
	release, sha, _ := strings.Cut(from.Tags[names.TagRelease], "@")
	u := &upgrade.Record{
		Number: 1, Stack: "arn:" + cluster, Execution: "upgrade", Origin: upgrade.OriginRollout, Key: a.Key(), Overridden: release,
		From:   upgrade.Target{Release: release, SHA256: sha, KubernetesVersion: "1.36"},
		Target: upgrade.Target{Release: a.To.Name, SHA256: a.To.SHA256, KubernetesVersion: "1.37"}, State: upgrade.Running,
		Steps: []upgrade.Step{
			{Kind: upgrade.StepControlPlane, KubernetesVersion: "1.37", Started: w.now}, {Kind: upgrade.StepNodes, KubernetesVersion: "1.37"},
		},
		Started: w.now, Answered: map[upgrade.Origin]string{upgrade.OriginRollout: a.Key()},
	}
	if err := w.change(cluster, u, status.Upgrading); err != nil {
		return err
	}
	takes := 20*time.Minute + time.Duration(w.random.Int64N(int64(20*time.Minute)))
	for i := range changesNotified {
		w.after(takes*time.Duration(i)/changesNotified, func(context.Context) error {
			w.notify(cluster)
			return nil
		})
	}
	w.after(takes, func(context.Context) error {
		done := *u
		done.State, done.Ended = upgrade.Done, w.now
		w.ended = append(w.ended, w.now)
		w.pin(cluster, u.Target)
		return w.change(cluster, &done, status.Ready)
	})
	return nil
}

// change writes the record of an upgrade and the status of its cluster, and notifies of both.
func (w *cellWorld) change(cluster string, u *upgrade.Record, phase status.Phase) error {
	document := status.New(cluster)
	document.Status.Phase = phase
	if err := w.put(names.Upgrade(cluster), u); err != nil {
		return err
	}
	if err := w.put(names.Status(cluster), document); err != nil {
		return err
	}
	w.notify(cluster)
	return nil
}

// upload uploads an object to the specs bucket, whose event starts the function rollout.
func (w *cellWorld) upload(key, body string) {
	w.specs.Upload(key, body)
	var in rollouthandler.Input
	in.Detail.Object.Key = key
	payload, _ := json.Marshal(in) // a key
	w.invoke("rollout", payload, eventTakes)
}

// total returns what all functions spent.
func (w *cellWorld) total() (sum spending) {
	for _, s := range w.spent {
		sum.add(s)
	}
	return sum
}
