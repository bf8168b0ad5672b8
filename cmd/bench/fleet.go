package main

// The cost of rollouts over 10,000 clusters: planning, and ticks of a run. Everything is computed in memory on one core.

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

const (
	fleetClusters = 10_000
	fleetRegions  = 20
	maxPlanning   = 2000 // milliseconds
	maxTick       = 300  // milliseconds
	maxRecord     = 1200 // kilobytes
)

const fleetRollout = `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: next}
spec:
  subject: {release: "1.37-1"}
  clusters: {}
  stages:
    - {name: canary, selector: {matchLabels: {stage: canary}}, maxConcurrency: 10%, maxFailures: 10%, budget: Soft}
    - name: prod
      selector: {matchExpressions: [{key: stage, operator: In, values: [prod]}]}
      groupBy: drover.run/region
      waves: [1, 10%, 50%, 100%]
      order: blast-radius
      maxConcurrency: 25%
      maxFailures: 25%
`

const fleetFreeze = `apiVersion: drover.run/v1alpha1
kind: Freeze
metadata: {name: other}
spec: {clusters: {matchLabels: {stage: none}}, from: "2026-01-01T00:00:00Z", until: "2027-01-01T00:00:00Z"}
`

var fleetStart = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// measureFleet plans, and ticks through a whole run.
func measureFleet(ctx context.Context, s *settings, r *report) error {
	if err := measureFleetPlanning(s, r); err != nil {
		return err
	}
	return measureFleetRun(ctx, r)
}

// measureFleetPlanning measures the pure part.
func measureFleetPlanning(s *settings, r *report) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	spec, errs := api.ReadRollout("next.yaml", []byte(fleetRollout), api.Options{})
	if len(errs) > 0 {
		return errs.Err()
	}
	freeze, errs := api.ReadFreeze("other.yaml", []byte(fleetFreeze), api.Options{})
	if len(errs) > 0 {
		return errs.Err()
	}
	release := rollout.Release{Name: "1.37-1", SHA256: strings.Repeat("b", 64), KubernetesVersion: "1.37"}
	facts := fleetFacts()
	var plan *rollout.Plan
	var planning []float64
	for range s.count {
		begun := time.Now()
		if plan, errs = rollout.Compute(spec, rollout.Subject{Releases: []rollout.Release{release}}, facts); len(errs) > 0 {
			return errs.Err()
		}
		plan.Digest()
		planning = append(planning, milliseconds(time.Since(begun)))
	}
	if plan.Size() != fleetClusters {
		return fmt.Errorf("the plan has %d members, want %d", plan.Size(), fleetClusters)
	}
	body, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	r.add(fmt.Sprintf("plan %d clusters", fleetClusters), median(planning), "ms", atMost(maxPlanning),
		fmt.Sprintf("one core; %d expanded stages, digest included, %d kB of JSON", len(plan.Stages), len(body)/1000))

	f := &fleetRun{plan: plan, facts: facts, freezes: []api.Freeze{*freeze}, now: fleetStart, to: release.Target()}
	f.run = rollout.Begin(plan, 1, nil, f.now)
	if err := f.live(); err != nil {
		return err
	}
	r.add("tick: p99 of a whole run", quantile(f.took, 0.99), "ms", atMost(maxTick),
		fmt.Sprintf("one core; %d ticks until Done, every fact new in each; median %s ms", f.ticks, number(median(f.took))))
	flapping, err := f.flap()
	if err != nil {
		return err
	}
	r.add("tick: all members regress at once", flapping, "ms", atMost(maxTick), "one core; all members were Good")
	if body, err = json.Marshal(f.largest); err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err = w.Write(body); err == nil {
		err = w.Close()
	}
	r.add("record of a run", float64(packed.Len())/1000, "kB", atMost(maxRecord), fmt.Sprintf("gzip; %d kB of JSON", len(body)/1000))
	return err
}

// fleetFacts are clusters of 20 regions; one in a hundred is a canary.
func fleetFacts() []rollout.Fact {
	facts := make([]rollout.Fact, fleetClusters)
	for i := range facts {
		stage := "prod"
		if i%100 == 0 {
			stage = "canary"
		}
		facts[i] = rollout.Fact{
			Cluster: fmt.Sprintf("shop-%05d", i), Region: fmt.Sprintf("eu-west-%d", 1+i%fleetRegions), Account: "111122223333",
			Stack:  fmt.Sprintf("arn:aws:cloudformation:eu-west-1:111122223333:stack/drover-shop-%05d-control-plane/x", i),
			Labels: map[string]string{"stage": stage, "team": "shop", "blast-radius": fmt.Sprint(i % 7)}, Observed: fleetStart, Nodes: 10,
			Deployed: upgrade.Target{Release: "1.36-1", SHA256: strings.Repeat("a", 64), KubernetesVersion: "1.36"},
		}
	}
	return facts
}

// fleetRun is a run whose clusters are changed as soon as they start.
type fleetRun struct {
	plan    *rollout.Plan
	facts   []rollout.Fact
	freezes []api.Freeze
	to      upgrade.Target
	run     rollout.Run
	now     time.Time
	largest rollout.Run
	ticks   int
	took    []float64 // milliseconds of each tick
}

// tick ticks over new facts of all clusters. change changes them first.
func (f *fleetRun) tick(change func(m *rollout.MemberRun, fact *rollout.Fact)) float64 {
	members := map[string]*rollout.MemberRun{}
	for i := range f.run.Members {
		members[f.run.Members[i].Cluster] = &f.run.Members[i]
	}
	in := rollout.Inputs{Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{}, Freezes: f.freezes}
	for i := range f.facts {
		fact := &f.facts[i]
		fact.Observed = f.now
		change(members[fact.Cluster], fact)
		in.Facts[fact.Cluster], in.FactsAt[fact.Cell()] = *fact, f.now
	}
	runtime.GC() // garbage of the facts is not the tick's
	begun := time.Now()
	f.run, _, _ = rollout.Tick(f.plan, f.run, in, f.now)
	took := milliseconds(time.Since(begun))
	f.ticks++
	f.now = f.now.Add(10 * time.Minute)
	return took
}

// live ticks until the run is Done. f.largest is a late record, in which most members are Good.
func (f *fleetRun) live() error {
	const limit = 20_000
	for f.ticks < limit && !f.run.State.Final() {
		f.largest = f.run
		f.took = append(f.took, f.tick(func(m *rollout.MemberRun, fact *rollout.Fact) {
			if m.State == rollout.Started {
				fact.Attempt = &rollout.Attempt{Rollout: "next", Run: 1, Number: m.Attempt, State: rollout.AttemptDone}
				fact.Deployed = f.to
			}
		}))
	}
	if f.run.State != rollout.Done {
		return fmt.Errorf("the run is %s after %d ticks", f.run.State, f.ticks)
	}
	return nil
}

// flap makes all members of the last record before the end not well, and returns the time of the tick.
func (f *fleetRun) flap() (float64, error) {
	f.run = f.largest
	took := f.tick(func(_ *rollout.MemberRun, fact *rollout.Fact) { fact.NotReady = fact.Nodes })
	for i := range f.run.Members {
		if state := f.run.Members[i].State; state != rollout.Settling {
			return 0, fmt.Errorf("%s is %s after a look that found it not well", f.run.Members[i].Cluster, state)
		}
	}
	return took, nil
}
