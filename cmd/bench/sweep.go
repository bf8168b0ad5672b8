package main

// The cost of sweeps and audits without findings, for 100 and 1,000 clusters like the demo. The function's handler runs over stores in
// memory. Calls are counted, work is measured, and network times are assumed. Prices are list prices.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/handler"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/backoff"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/planner"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/render"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/cache"
	"github.com/drover-run/drover/shared/upgrade"
)

// The assumed times of calls to AWS.
const (
	s3Takes      = 20 * time.Millisecond
	stacksTake   = 500 * time.Millisecond // a page of 100 stacks
	stacksPause  = 400 * time.Millisecond // shared/aws/cloudformation: between two pages
	groupsTake   = 300 * time.Millisecond // a page of 100 groups
	nodesTake    = 150 * time.Millisecond // a connection and one listing
	eksTakes     = 100 * time.Millisecond // DescribeCluster
	sweepMemory  = 0.5                    // GB: infra/functions.go
	sweepShare   = 512. / 1769            // of a processor, which Lambda gives by memory
	sweepWorkers = 16
	monthHours   = 730
	// firstAudits is the assumed number of the hour's four audits that run in a new environment with an empty cache. Lambda keeps an
	// environment that is invoked every two minutes for longer.
	firstAudits = 1
	// firstSweeps is the assumed number of the hour's sweeps that do so. The first sweep of an environment lists all stacks, to find the
	// clusters with a relay.
	firstSweeps = 1
	// formerPeriod was the time between two sweeps until November 2026. maxAdded is what the shorter one may add, in dollars a month.
	formerPeriod, maxAdded = 5 * time.Minute, 1
	// A call on a schedule: https://aws.amazon.com/eventbridge/pricing/
	schedulePrice = 1.00 / 1e6
	// pagesPerSecond of DescribeStacks leave capacity to other callers: about five a second are allowed.
	pagesPerSecond = 2.5
)

// fleet is an account of clusters without drift.
type fleet struct {
	specs    []store.Entry
	spec     func(cluster string) []byte
	release  []byte
	statuses map[string]*status.Cluster
	stacks   map[string]stack.Deployed
	groups   []pool.Group

	gets, lists, stackPages, groupPages, executionLists, nodeLists, eksCalls, invocations atomic.Int64
	// upgradeCalls are the calls, of those counted, that find out whether an upgrade is due.
	upgradeCalls atomic.Int64
}

func pages(n int) int64 { return max(1, int64(math.Ceil(float64(n)/100))) }

func (f *fleet) List(_ context.Context, prefix string) ([]store.Entry, error) {
	if prefix != names.ClusterSpecs && prefix != names.Statuses {
		f.lists.Add(1)
		return nil, nil
	}
	listed := f.specs
	if prefix == names.Statuses {
		listed = nil
		for cluster := range f.statuses {
			listed = append(listed, store.Entry{Key: names.Status(cluster), Modified: time.Now().Add(time.Hour), ETag: cluster})
		}
	}
	f.lists.Add(max(1, int64(math.Ceil(float64(len(listed))/1000))))
	return listed, nil
}

func (f *fleet) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	f.gets.Add(1)
	if cluster, ok := names.ClusterOfKey(key); ok {
		return store.Object{Body: f.spec(cluster), Version: "1", ETag: cluster}, nil
	}
	if strings.HasPrefix(key, "releases/") {
		return store.Object{Body: f.release, Version: "1"}, nil
	}
	return store.Object{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
}

func (f *fleet) GetVersion(ctx context.Context, key, _ string, limit int64) (store.Object, error) {
	return f.Get(ctx, key, limit)
}

// GetUnless reads the channels, which did not change.
func (f *fleet) GetUnless(context.Context, string, string, int64) (object store.Object, changed bool, err error) {
	f.gets.Add(1)
	f.upgradeCalls.Add(1)
	return store.Object{}, false, nil
}

func (f *fleet) Status(_ context.Context, cluster string) (*status.Cluster, error) {
	f.gets.Add(1)
	return f.statuses[cluster], nil
}

func (f *fleet) All(context.Context) (map[string]stack.Deployed, error) {
	f.stackPages.Add(pages(len(f.stacks)))
	return f.stacks, nil
}

func (*fleet) Compat(context.Context, []string) (upgrade.Compat, error) { return nil, nil }

func (*fleet) SettingBounds(context.Context, string, string) (*preflight.SettingBounds, error) {
	return &preflight.SettingBounds{}, nil
}

func (f *fleet) Offered(context.Context) ([]string, error) { return []string{minor}, nil }

func (f *fleet) Exists(context.Context, string) (bool, error) { return false, nil }

func (f *fleet) ControlPlane(context.Context, string) (preflight.ControlPlane, error) {
	f.eksCalls.Add(1)
	return preflight.ControlPlane{Version: minor, Status: "ACTIVE", Access: api.Endpoint{}.Access()}, nil
}

// fleetState is the state bucket as cache.Snapshot reads it for planning. A method that only a fleet with problems needs panics: the
// embedded interface is nil. A test of functions/sweep shows the number of calls of a snapshot.
type fleetState struct {
	*fleet
	planner.State

	mu       sync.Mutex
	releases map[string]store.Object
}

// Refresh lists rolls, upgrades and assignments: no cluster has any.
func (s *fleetState) Refresh(context.Context) error {
	s.lists.Add(3)
	return nil
}

// Assignment is none: no rollout works on a cluster.
func (s *fleetState) Assignment(context.Context, string) (*rollout.CellAssignment, string, error) {
	return nil, "", nil
}

// Get reads a release once.
func (s *fleetState) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object, read := s.releases[key]; read {
		return object, nil
	}
	object, err := s.fleet.Get(ctx, key, limit)
	if err == nil {
		s.releases[key] = object
	}
	return object, err
}

func (s *fleetState) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	return s.fleet.Status(ctx, cluster)
}

// Rolls are none: no roll was requested.
func (s *fleetState) Rolls(context.Context, string) (map[string]time.Time, error) { return nil, nil }

// Upgrade is none: no cluster was ever upgraded.
func (s *fleetState) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return nil, "", nil
}

type fleetSweep struct {
	*fleet
	handler.State
}

func (s fleetSweep) Dues(ctx context.Context, _ time.Time) ([]store.Due, error) {
	s.upgradeCalls.Add(1)
	_, err := s.List(ctx, names.Dues)
	return nil, err
}

// ActiveRuns are none.
func (s fleetSweep) ActiveRuns(context.Context) (*rollout.Active, string, error) {
	s.gets.Add(1)
	return &rollout.Active{}, "", nil
}

func (s fleetSweep) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return s.fleet.List(ctx, prefix)
}

// UpdateIgnored reads the document and lists the specs bucket four times a day, which is too rare to count as a call of an audit.
func (s fleetSweep) UpdateIgnored(context.Context, store.Lister) error { return nil }

func (s fleetSweep) Held(context.Context) ([]string, error) { s.lists.Add(1); return nil, nil }
func (s fleetSweep) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	return s.fleet.Status(ctx, cluster)
}

type fleetStacks struct {
	*fleet
	handler.Stacks
}

func (s fleetStacks) All(ctx context.Context) (map[string]stack.Deployed, error) {
	return s.fleet.All(ctx)
}

type fleetGroups struct {
	*fleet
	handler.Groups
}

func (g fleetGroups) All(context.Context) ([]pool.Group, error) {
	g.groupPages.Add(pages(len(g.groups)))
	return g.groups, nil
}

// fleetMachine is a machine without aborted executions.
type fleetMachine struct{ *fleet }

func (m fleetMachine) Unsuccessful(context.Context, time.Time) ([]string, error) {
	m.executionLists.Add(1)
	return nil, nil
}

func (m fleetMachine) Running(context.Context) ([]string, error) { return nil, nil }

func (m fleetMachine) Start(context.Context, string, any) error {
	return errors.New("started an execution: a fleet without drift needs none")
}

func (m fleetMachine) Input(context.Context, string, any) error {
	return errors.New("read the input of an execution: a fleet without drift has none")
}

// fleetFunctions counts invocations of other functions.
type fleetFunctions struct{ *fleet }

func (f fleetFunctions) Start(context.Context, string, []byte) error {
	f.invocations.Add(1)
	return nil
}

type fleetNodes struct{ *fleet }

func (n fleetNodes) Health(_ context.Context, cluster string, _ stack.API) ([]pool.NodeHealth, error) {
	n.nodeLists.Add(1)
	var all []pool.NodeHealth
	for _, instance := range n.groups[0].Instances {
		all = append(all, pool.NodeHealth{Name: instance.ID, Instance: instance.ID, Ready: true})
	}
	return all, nil
}

// minor of Kubernetes that every cluster of the fleet has.
const minor = "1.36"

// newFleet creates clusters like the demo, each in the state after its creation, and the statuses of deleted clusters. It returns the
// handler of the sweep function over them.
func newFleet(ctx context.Context, root string, size, deleted int) (f *fleet, h *handler.Handler, err error) {
	demoText, err := os.ReadFile(filepath.Join(root, demoSpec))
	if err != nil {
		return nil, nil, err
	}
	f = &fleet{statuses: map[string]*status.Cluster{}, stacks: map[string]stack.Deployed{}}
	for i := range deleted {
		cluster := fmt.Sprintf("deleted%04d", i)
		f.statuses[cluster] = status.New(cluster)
		f.statuses[cluster].Status.Phase = status.Deleted
	}
	f.spec = func(cluster string) []byte {
		return []byte(strings.Replace(string(demoText), "name: "+demo, "name: "+cluster, 1))
	}
	if f.release, err = os.ReadFile(filepath.Join(root, demoRelease)); err != nil {
		return nil, nil, err
	}
	state := &fleetState{fleet: f, releases: map[string]store.Object{}}
	specs := cache.NewETagCache(f, time.Now, names.ClusterSpecs, names.ReleaseSpecs)
	p := &planner.Planner{
		Specs: specs, State: state, EKS: f, Now: time.Now,
		Cell: render.Cell{Partition: "aws", Region: "us-east-1", Account: "111122223333", StateBucket: "state"},
	}
	for i := range size {
		cluster := fmt.Sprintf("c%04d", i)
		f.specs = append(f.specs, store.Entry{Key: names.ClusterSpec(cluster), Modified: time.Now().Add(-time.Hour), ETag: cluster})
		document := status.New(cluster)
		document.Status.Phase, document.Status.PlannedVersion, document.Status.ObservedVersion = status.Ready, "1", "1"
		document.Status.KubernetesVersion = minor
		f.statuses[cluster] = document
		preview, err := p.PreviewWith(ctx, cluster, nil)
		if err != nil || len(preview.Plan.Changes) == 0 {
			return nil, nil, fmt.Errorf("planning %s: %s %w", cluster, preview.Message, err)
		}
		for _, change := range preview.Plan.Changes {
			f.stacks[change.StackName] = stackAfter(change)
			if poolName, ok := strings.CutPrefix(change.Stack, names.PoolPrefix); ok {
				group := pool.Group{Name: names.Group(cluster, poolName), TemplateVersion: "1"}
				for n := range 3 {
					instance := pool.Instance{ID: fmt.Sprint("i-", n), State: pool.InService, TemplateVersion: "1"}
					group.Instances = append(group.Instances, instance)
				}
				f.groups = append(f.groups, group)
			}
		}
	}
	f.gets.Store(0)
	clear(state.releases)
	return f, &handler.Handler{
		Specs: specs, State: fleetSweep{fleet: f}, Stacks: fleetStacks{fleet: f}, Groups: fleetGroups{fleet: f}, Nodes: fleetNodes{f}, EKS: f,
		Planner: p, Snapshot: state, JoinNode: fleetMachine{f}, DrainNode: fleetMachine{f},
		Fleet: fleetFunctions{f}, Cell: names.Cell(p.Cell.Account, p.Cell.Region),
		Parallel: sweepWorkers, EventGrace: 2 * time.Minute, Now: time.Now,
	}, nil
}

// stackAfter returns a stack in its state after a change, with the outputs that the audit reads. Values from other stacks are "out".
func stackAfter(change plan.Change) stack.Deployed {
	d := stack.Deployed{
		Name: change.Stack, Status: "CREATE_COMPLETE", Tags: change.Tags, Parameters: map[string]string{},
		TerminationProtection: change.Protected,
		Outputs:               map[string]string{"KubernetesVersion": minor, "ClusterEndpoint": "out", "ClusterCertificateAuthority": "out"},
	}
	for _, parameter := range change.Parameters {
		d.Parameters[parameter.Name] = parameter.Value
		if parameter.From != nil {
			d.Parameters[parameter.Name] = "out"
		}
	}
	return d
}

// cost of one sweep or audit.
type cost struct {
	gets, lists, stacks, scaling, executions, eks, nodes, upgradeCalls, invocations float64
	// seconds of Lambda. work is the part of them that was measured here.
	seconds, work, dollars float64
}

func (c cost) calls() float64 {
	return c.gets + c.lists + c.stacks + c.scaling + c.executions + c.eks + c.invocations
}

func (c cost) String() string {
	return fmt.Sprintf("%.0f s3:GetObject, %.0f s3:ListBucket, %.0f DescribeStacks, %.0f DescribeAutoScalingGroups, %.0f ListExecutions, "+
		"%.0f DescribeCluster, %.0f lambda:InvokeFunction; %.0f to clusters' own APIs",
		c.gets, c.lists, c.stacks, c.scaling, c.executions, c.eks, c.invocations, c.nodes)
}

// once sweeps or audits a fleet, and returns the cost.
func (f *fleet) once(ctx context.Context, h *handler.Handler, in events.Sweep) (c cost, err error) {
	for _, counter := range []*atomic.Int64{
		&f.gets, &f.lists, &f.stackPages, &f.groupPages, &f.executionLists, &f.nodeLists, &f.eksCalls, &f.upgradeCalls, &f.invocations,
	} {
		counter.Store(0)
	}
	started := time.Now()
	if _, err := h.Handle(ctx, in); err != nil {
		return c, fmt.Errorf("%+v of %d clusters: %w", in, len(f.specs), err)
	}
	c = cost{
		gets: float64(f.gets.Load()), lists: float64(f.lists.Load()), stacks: float64(f.stackPages.Load()), scaling: float64(f.groupPages.Load()),
		executions: float64(f.executionLists.Load()), eks: float64(f.eksCalls.Load()), nodes: float64(f.nodeLists.Load()),
		upgradeCalls: float64(f.upgradeCalls.Load()), invocations: float64(f.invocations.Load()), work: time.Since(started).Seconds(),
	}
	// Sequential, except for calls that run for several clusters in parallel.
	c.seconds = (c.lists+c.executions)*s3Takes.Seconds() + c.stacks*(stacksTake+stacksPause).Seconds() + c.scaling*groupsTake.Seconds() +
		(c.gets*s3Takes.Seconds()+c.eks*eksTakes.Seconds()+c.nodes*nodesTake.Seconds())/sweepWorkers + c.work/sweepShare
	c.dollars = c.gets*s3ReadPrice + c.lists*s3WritePrice + c.seconds*sweepMemory*gigabyteSecondPrice +
		(1+c.invocations)*invocationPrice + schedulePrice
	return c, nil
}

// measureSweep counts and prices a month of sweeps and audits.
func measureSweep(ctx context.Context, s *settings, r *report) error {
	bySize, perMonth, added := map[int]float64{}, 0., map[int]float64{}
	for _, size := range []int{0, 100, 1000} {
		f, h, err := newFleet(ctx, s.root, size, 0)
		if err != nil {
			return err
		}
		dollars, calls := 0., 0.
		for _, run := range []struct {
			name     string
			in       events.Sweep
			anHour   float64 // how often
			repeated bool    // a figure of this kind was reported already
		}{
			{"first sweep of a function", events.Sweep{}, firstSweeps, false},
			{"sweep", events.Sweep{}, sweepsAnHour(backoff.SweepPeriod) - firstSweeps, true},
			{"first audit of a function", events.Sweep{Audit: true}, firstAudits, false},
			{"audit", events.Sweep{Audit: true}, 4 - firstAudits, true},
		} {
			c, err := f.once(ctx, h, run.in)
			if err != nil {
				return err
			}
			if run.name == "sweep" {
				more := (sweepsAnHour(backoff.SweepPeriod) - sweepsAnHour(formerPeriod)) * monthHours
				added[size] = more * (c.dollars + logSize*logsPrice + tracePrice)
			}
			dollars, calls = dollars+c.dollars*run.anHour*monthHours, calls+run.anHour*monthHours
			if size == 0 {
				continue
			}
			what := fmt.Sprintf("%s of %d clusters", run.name, size)
			if !run.in.Audit {
				takes := c.upgradeCalls * s3Takes.Seconds()
				r.add(what+": of these, whether an upgrade is due", c.upgradeCalls, "", nil, fmt.Sprintf(
					"s3:GetObject of the channels, s3:ListBucket of what is due; %.2f s; $%.7f", takes, s3ReadPrice+s3WritePrice+
						takes*sweepMemory*gigabyteSecondPrice))
			}
			r.add(what+": calls to AWS", c.calls(), "", nil, c.String())
			r.add(what+": Lambda", c.seconds, "s", atMost(600), fmt.Sprintf("of which %s s of work here; $%.6f", number(c.work), c.dollars))
			if c.stacks > 0 && !run.repeated {
				r.add(what+": DescribeStacks a second", c.stacks/math.Max(1, c.stacks*(stacksTake+stacksPause).Seconds()), "", atMost(pagesPerSecond),
					"about 5 are allowed")
			}
		}
		bySize[size], perMonth = dollars, calls
		if size == 0 {
			continue
		}
		r.add(fmt.Sprintf("sweeps and audits of %d clusters", size), dollars, "$/month", nil,
			fmt.Sprintf("%s $ a cluster; a sweep every %.0f minutes, an audit every %.0f, %d of an hour's the first of a function",
				number(dollars/float64(size)), backoff.SweepPeriod.Minutes(), backoff.AuditPeriod.Minutes(), firstAudits))
	}
	if err := measureDeleted(ctx, s, r); err != nil {
		return err
	}
	if err := measureIdle(ctx, s, r, bySize, perMonth); err != nil {
		return err
	}
	for _, size := range []int{0, 100, 1000} {
		limit := atMost(maxAdded)
		if size > 100 {
			limit = nil
		}
		r.add(fmt.Sprintf("— of these, for sweeping every %.0f minutes instead of %.0f, with %d clusters", backoff.SweepPeriod.Minutes(),
			formerPeriod.Minutes(), size), added[size], "$/month", limit, "sweeps, their logs and traces")
	}
	return nil
}

// sweepsAnHour returns the number of sweeps in an hour.
func sweepsAnHour(period time.Duration) float64 { return time.Hour.Minutes() / period.Minutes() }

// measureDeleted counts the calls that deleted clusters still cost: their statuses stay, with the phase Deleted.
func measureDeleted(ctx context.Context, s *settings, r *report) error {
	const existing, deleted = 100, 1000
	f, h, err := newFleet(ctx, s.root, existing, deleted)
	if err != nil {
		return err
	}
	for _, run := range []struct {
		name string
		in   events.Sweep
	}{{"first sweep of a function", events.Sweep{}}, {"sweep", events.Sweep{}}, {"first audit of a function", events.Sweep{Audit: true}},
		{"audit", events.Sweep{Audit: true}}} {
		c, err := f.once(ctx, h, run.in)
		if err != nil {
			return err
		}
		r.add(fmt.Sprintf("%s of %d clusters and %d deleted ones: calls to AWS", run.name, existing, deleted), c.calls(),
			"", nil, c.String())
	}
	return nil
}
