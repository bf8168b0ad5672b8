package main

// What looking after clusters costs when nothing is wrong: the sweep and the audit of 100 and 1,000 clusters like the demo, by the
// function's own handler over stores in memory that count every call. The calls are counted, the work is measured, what the
// network takes is assumed; prices are list prices.

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/events"
	planner "github.com/drover-run/drover/functions/plan/handler"
	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/shared/groups"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// What calls take on AWS, as a function sees them: assumed.
const (
	s3Takes      = 20 * time.Millisecond
	stacksTake   = 500 * time.Millisecond // a page of 100 stacks
	stacksPause  = 400 * time.Millisecond // shared/stacks: between two pages
	groupsTake   = 300 * time.Millisecond // a page of 100 groups
	nodesTake    = 150 * time.Millisecond // a connection and one listing
	sweepMemory  = 0.5                    // GB: infra/functions.go
	sweepShare   = 512. / 1769            // of a processor, which Lambda gives by memory
	sweepWorkers = 16
	monthHours   = 730
	// A call on a schedule: https://aws.amazon.com/eventbridge/pricing/
	schedulePrice = 1.00 / 1e6
	// pagesPerSecond of DescribeStacks that leave others room: about five a second are allowed.
	pagesPerSecond = 2.5
)

// fleet is an account of clusters that all are what their specs say.
type fleet struct {
	specs    []store.Entry
	spec     func(cluster string) []byte
	release  []byte
	statuses map[string]*status.Cluster
	stacks   map[string]plan.Deployed
	groups   []groups.Group

	gets, lists, stackPages, groupPages, executionLists, nodeLists atomic.Int64
}

func pages(n int) int64 { return max(1, int64(math.Ceil(float64(n)/100))) }

func (f *fleet) List(_ context.Context, prefix string) ([]store.Entry, error) {
	if prefix != names.ClusterSpecs && prefix != names.Statuses {
		f.lists.Add(1)
		return nil, nil
	}
	f.lists.Add(max(1, int64(math.Ceil(float64(len(f.specs))/1000))))
	if prefix == names.ClusterSpecs {
		return f.specs, nil
	}
	var told []store.Entry
	for cluster := range f.statuses {
		told = append(told, store.Entry{Key: names.Status(cluster), Modified: time.Now().Add(time.Hour)})
	}
	return told, nil
}

func (f *fleet) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	f.gets.Add(1)
	if cluster, ok := names.ClusterOfKey(key); ok {
		return store.Object{Body: f.spec(cluster), Version: "1"}, nil
	}
	if strings.HasPrefix(key, "releases/") {
		return store.Object{Body: f.release, Version: "1"}, nil
	}
	return store.Object{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
}

// GetUnless is of the channels, which did not change.
func (f *fleet) GetUnless(context.Context, string, string, int64) (object store.Object, changed bool, err error) {
	f.gets.Add(1)
	return store.Object{}, false, nil
}

func (f *fleet) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	f.gets.Add(1)
	return f.statuses[cluster], nil
}

func (f *fleet) All(context.Context) (map[string]plan.Deployed, error) {
	f.stackPages.Add(pages(len(f.stacks)))
	return f.stacks, nil
}

func (f *fleet) Offered(context.Context) ([]string, error) { return []string{"1.36"}, nil }

// fleetState is the part of the state bucket that only a fleet in which something is wrong needs: any call is an error.
type fleetState struct {
	*fleet
	planner.State
}

func (s fleetState) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	return s.fleet.Get(ctx, key, limit)
}

func (s fleetState) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	return s.fleet.Status(ctx, cluster)
}

// Rolls is one read: nobody asked for one.
func (s fleetState) Rolls(context.Context, string) (map[string]time.Time, error) {
	s.gets.Add(1)
	return nil, nil
}

// Upgrade: none of them was ever upgraded.
func (s fleetState) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	s.gets.Add(1)
	return nil, "", nil
}

type fleetSweep struct {
	*fleet
	handler.State
}

func (s fleetSweep) Dues(ctx context.Context, _ time.Time) ([]store.Due, error) {
	_, err := s.List(ctx, names.Dues)
	return nil, err
}

func (s fleetSweep) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return s.fleet.List(ctx, prefix)
}
func (s fleetSweep) Held(context.Context) ([]string, error) { s.lists.Add(1); return nil, nil }
func (s fleetSweep) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	return s.fleet.Status(ctx, cluster)
}

type fleetStacks struct {
	*fleet
	handler.Stacks
}

func (s fleetStacks) All(ctx context.Context) (map[string]plan.Deployed, error) {
	return s.fleet.All(ctx)
}

type fleetGroups struct {
	*fleet
	handler.Groups
}

func (g fleetGroups) All(context.Context) ([]groups.Group, error) {
	g.groupPages.Add(pages(len(g.groups)))
	return g.groups, nil
}

// fleetMachine is a machine in whose executions nothing was cut off.
type fleetMachine struct {
	*fleet
	handler.Machine
}

func (m fleetMachine) Broken(context.Context, time.Time) ([]string, error) {
	m.executionLists.Add(3)
	return nil, nil
}

type fleetNodes struct{ *fleet }

func (n fleetNodes) Health(_ context.Context, cluster, _, _ string) ([]kube.Health, error) {
	n.nodeLists.Add(1)
	var all []kube.Health
	for _, instance := range n.groups[0].Instances {
		all = append(all, kube.Health{Name: instance.ID, Instance: instance.ID, Ready: true})
	}
	return all, nil
}

// newFleet makes clusters like the demo, each as creating it would have left it.
func newFleet(ctx context.Context, root string, size int) (*fleet, *planner.Handler, error) {
	demoText, err := os.ReadFile(filepath.Join(root, demoSpec))
	if err != nil {
		return nil, nil, err
	}
	f := &fleet{statuses: map[string]*status.Cluster{}, stacks: map[string]plan.Deployed{}}
	f.spec = func(cluster string) []byte {
		return []byte(strings.Replace(string(demoText), "name: "+demo, "name: "+cluster, 1))
	}
	if f.release, err = os.ReadFile(filepath.Join(root, demoRelease)); err != nil {
		return nil, nil, err
	}
	p := &planner.Handler{
		Specs: planSpecs{f}, State: fleetState{fleet: f}, Versions: f, Now: time.Now,
		Cell: render.Cell{Partition: "aws", Region: "us-east-1", Account: "111122223333", StateBucket: "state"},
	}
	for i := range size {
		cluster := fmt.Sprintf("c%04d", i)
		f.specs = append(f.specs, store.Entry{Key: names.ClusterSpec(cluster), Modified: time.Now().Add(-time.Hour)})
		document := status.New(cluster)
		document.Status.Phase, document.Status.SpecVersion = status.Ready, "1"
		f.statuses[cluster] = document
		made, _, message, err := p.PreviewOver(ctx, cluster, nil)
		if err != nil || len(made.Changes) == 0 {
			return nil, nil, fmt.Errorf("planning %s: %s %w", cluster, message, err)
		}
		for _, change := range made.Changes {
			f.stacks[change.StackName] = deployed(change)
			if pool, ok := strings.CutPrefix(change.Stack, names.PoolPrefix); ok {
				group := groups.Group{Name: names.Group(cluster, pool), TemplateVersion: "1"}
				for n := range 3 {
					group.Instances = append(group.Instances, groups.Instance{ID: fmt.Sprint("i-", n), State: groups.InService, TemplateVersion: "1"})
				}
				f.groups = append(f.groups, group)
			}
		}
	}
	f.gets.Store(0)
	return f, p, nil
}

// planSpecs are the specs as planning reads them.
type planSpecs struct{ *fleet }

func (s planSpecs) GetVersion(ctx context.Context, key, _ string, limit int64) (store.Object, error) {
	return s.Get(ctx, key, limit)
}

// deployed is a stack as a change leaves it, with the outputs that the audit reads; every value of another stack's is "out".
func deployed(change plan.Change) plan.Deployed {
	d := plan.Deployed{
		Name: change.Stack, Status: "CREATE_COMPLETE", Tags: change.Tags, Parameters: map[string]string{}, TerminationProtection: change.Protected,
		Outputs: map[string]string{"KubernetesVersion": "1.36", "ClusterEndpoint": "out", "ClusterCertificateAuthority": "out"},
	}
	for _, parameter := range change.Parameters {
		d.Parameters[parameter.Name] = parameter.Value
		if parameter.From != nil {
			d.Parameters[parameter.Name] = "out"
		}
	}
	return d
}

// measureSweep counts and prices a month of sweeps and audits.
func measureSweep(ctx context.Context, s *settings, r *report) error {
	bySize, perMonth := map[int]float64{}, 0.
	for _, size := range []int{0, 100, 1000} {
		f, p, err := newFleet(ctx, s.root, size)
		if err != nil {
			return err
		}
		h := &handler.Handler{
			Auditor: handler.Auditor{Planner: p, Nodes: fleetNodes{f}, Parallel: sweepWorkers},
			Groups:  fleetGroups{fleet: f}, JoinNode: fleetMachine{fleet: f}, DrainNode: fleetMachine{fleet: f},
			Specs: f, State: fleetSweep{fleet: f}, Stacks: fleetStacks{fleet: f}, Now: time.Now, Patience: 2 * time.Minute,
		}
		dollars, calls := 0., 0.
		for _, round := range []struct {
			name  string
			in    events.Sweep
			month float64 // how often
		}{
			{"sweep", events.Sweep{}, monthHours * 12},
			{"audit", events.Sweep{Audit: true}, monthHours * 4},
		} {
			for _, counter := range []*atomic.Int64{&f.gets, &f.lists, &f.stackPages, &f.groupPages, &f.executionLists, &f.nodeLists} {
				counter.Store(0)
			}
			started := time.Now()
			if _, err := h.Handle(ctx, round.in); err != nil {
				return fmt.Errorf("a %s of %d clusters: %w", round.name, size, err)
			}
			work := time.Since(started).Seconds()
			gets, lists, stacks := float64(f.gets.Load()), float64(f.lists.Load()), float64(f.stackPages.Load())
			scaling, executions, nodes := float64(f.groupPages.Load()), float64(f.executionLists.Load()), float64(f.nodeLists.Load())
			// One after the other, but for what is done for several clusters at a time.
			seconds := (lists+executions)*s3Takes.Seconds() + stacks*(stacksTake+stacksPause).Seconds() + scaling*groupsTake.Seconds() +
				(gets*s3Takes.Seconds()+nodes*nodesTake.Seconds())/sweepWorkers + work/sweepShare
			cost := gets*s3ReadPrice + lists*s3WritePrice + seconds*sweepMemory*gigabyteSecondPrice + invocationPrice + schedulePrice
			dollars, calls = dollars+cost*round.month, calls+round.month
			if size == 0 {
				continue
			}
			what := fmt.Sprintf("%s of %d clusters", round.name, size)
			r.add(what+": calls to AWS", gets+lists+stacks+scaling+executions, "", nil, fmt.Sprintf(
				"%.0f s3:GetObject, %.0f s3:ListBucket, %.0f DescribeStacks, %.0f DescribeAutoScalingGroups, %.0f ListExecutions; %.0f to clusters' own APIs",
				gets, lists, stacks, scaling, executions, nodes))
			r.add(what+": Lambda", seconds, "s", atMost(600), fmt.Sprintf("of which %s s of work here; $%.6f", number(work), cost))
			if stacks > 0 {
				r.add(what+": DescribeStacks a second", stacks/math.Max(1, stacks*(stacksTake+stacksPause).Seconds()), "", atMost(pagesPerSecond), "about 5 are allowed")
			}
		}
		bySize[size], perMonth = dollars, calls
		if size == 0 {
			continue
		}
		r.add(fmt.Sprintf("sweeps and audits of %d clusters", size), dollars, "$/month", nil, fmt.Sprintf("%s $ a cluster; a sweep every 5 minutes, an audit every 15", number(dollars/float64(size))))
	}
	return measureIdle(s, r, bySize, perMonth)
}
