package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// droverRun is a run of drover's own code, as the function rollout executes it.
type droverRun struct {
	plan     *rollout.Plan
	run      rollout.Run
	clusters map[string]*cluster
	bad      bool
	to       upgrade.Target
	facts    map[string]rollout.Fact
	ticked   time.Time
	changed  bool
}

// onlyCell is the cell of all clusters.
const onlyCell = "111122223333-eu-west-1"

var from = upgrade.Target{Release: "1.36-1", SHA256: strings.Repeat("a", 64), KubernetesVersion: "1.36"}

// newDrover plans a rollout of one stage. settings are fields of the stage.
func newDrover(clusters []*cluster, bad bool, settings string) (*droverRun, error) {
	spec, errs := api.ReadRollout("next.yaml", fmt.Appendf(nil, `apiVersion: drover.run/v1alpha1
kind: Rollout
metadata: {name: next}
spec:
  subject: {release: "1.37-1"}
  clusters: {}
  stages: [{name: all, selector: {}%s}]
`, settings), api.Options{})
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	release := rollout.Release{Name: "1.37-1", SHA256: strings.Repeat("b", 64), KubernetesVersion: "1.37"}
	d := &droverRun{bad: bad, to: release.Target(), clusters: map[string]*cluster{}, facts: map[string]rollout.Fact{}}
	var facts []rollout.Fact
	for _, c := range clusters {
		d.clusters[c.name] = c
		f := rollout.Fact{
			Cluster: c.name, Region: "eu-west-1", Account: "111122223333", Stack: "arn:" + c.name, Deployed: from, Nodes: 10, Observed: epoch,
		}
		d.facts[c.name], facts = f, append(facts, f)
	}
	if d.plan, errs = rollout.Compute(spec, rollout.Subject{Releases: []rollout.Release{release}}, facts); len(errs) > 0 {
		return nil, errs.Err()
	}
	d.run = rollout.Begin(d.plan, 1, nil, epoch)
	return d, nil
}

// Next reports the facts and ticks. Facts that did not change are reported every five minutes: the sweep looks every four to six.
func (d *droverRun) Next(now time.Time) (start []*cluster, done bool, err error) {
	for i := range d.run.Members {
		m := &d.run.Members[i]
		c, f := d.clusters[m.Cluster], d.facts[m.Cluster]
		if c.started.IsZero() {
			continue
		}
		before, notReady := f.Attempt, f.NotReady
		state := rollout.AttemptBegun
		if !now.Before(c.ready()) {
			state, f.Deployed = rollout.AttemptDone, d.to
		}
		f.Attempt = &rollout.Attempt{Rollout: d.plan.Rollout, Run: d.run.Number, Number: m.Attempt, State: state}
		if c.broken(d.bad, now) {
			f.NotReady = f.Nodes
		}
		d.changed = d.changed || before == nil || *before != *f.Attempt || notReady != f.NotReady
		d.facts[m.Cluster] = f
	}
	if !d.changed && now.Sub(d.ticked) < reportPeriod {
		return nil, false, nil
	}
	d.ticked, d.changed = now, false
	for name, f := range d.facts {
		f.Observed = now
		d.facts[name] = f
	}
	in := rollout.Inputs{Facts: d.facts, FactsAt: map[string]time.Time{onlyCell: now}}
	var actions []rollout.Action
	d.run, actions, _ = rollout.Tick(d.plan, d.run, in, now)
	for _, action := range actions {
		if assign, ok := action.(rollout.Assign); ok && !assign.Withdrawn && d.clusters[assign.Cluster].started.IsZero() {
			start = append(start, d.clusters[assign.Cluster])
		}
	}
	return start, d.run.State.Final() || d.run.State == rollout.Halted, nil
}
