package passes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
)

// Fleet observes the clusters of rollouts whose upgrades are in flight or done. While a run is active, it starts the functions fleet and
// rollout, which find lost events, and what time alone changes: windows that open, soaks that end and alarms that enter ALARM.
type Fleet struct {
	State     FleetState
	Stacks    FleetStacks
	Nodes     FleetNodes
	Functions FleetFunctions
	// Cell is that of this deployment: see names.Cell. Without it the pass does nothing.
	Cell string
	// Parallel is how many clusters are observed in the same time.
	Parallel int
	Now      func() time.Time
}

// FleetState is a subset of store.State.
type FleetState interface {
	ActiveRuns(ctx context.Context) (*rollout.Active, string, error)
	DesiredState(ctx context.Context, cell string) (*rollout.DesiredState, string, error)
	CellReport(ctx context.Context, cell string) (*rollout.Report, string, error)
	Looks(ctx context.Context) (*rollout.Looks, error)
	PutLooks(ctx context.Context, looks *rollout.Looks) error
}

// FleetStacks describes stacks: a subset of cloudformation.Stacks.
type FleetStacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
}

// FleetNodes lists the nodes of a cluster with the Kubernetes API: a subset of kube.Clusters.
type FleetNodes interface {
	Health(ctx context.Context, cluster string, api stack.API) ([]pool.NodeHealth, error)
}

// FleetFunctions starts functions: a subset of lambda.Functions.
type FleetFunctions interface {
	Start(ctx context.Context, function string, payload []byte) error
}

const (
	// maxLooks bounds the clusters that one sweep observes.
	maxLooks = 200
	// lookEvery is the shortest time between two observations of a cluster. With the period of the sweep, these are four to six minutes apart.
	lookEvery = 4 * time.Minute
)

// Run costs one read while no run is active. The audit starts the function fleet for what a run left open.
func (p Fleet) Run(ctx context.Context) error {
	if p.Cell == "" {
		return nil
	}
	active, _, err := p.State.ActiveRuns(ctx)
	if err != nil || len(active.Runs) == 0 {
		return err
	}
	return errors.Join(p.run(ctx), p.Functions.Start(ctx, names.Function("rollout"), []byte("{}")))
}

// Look observes clusters whose upgrades have just ended. It starts the function fleet for each cluster whose nodes it could read.
func (p Fleet) Look(ctx context.Context, clusters []string) error {
	if p.Cell == "" {
		return nil
	}
	members, report, _, err := p.read(ctx)
	if err != nil || report == nil {
		return err
	}
	looked, failed := p.look(ctx, members, report, clusters)
	for _, cluster := range looked {
		failed = errors.Join(failed, p.startFleet(ctx, events.Fleet{Cluster: cluster}))
	}
	return failed
}

func (p Fleet) run(ctx context.Context) error {
	members, report, claims, err := p.read(ctx)
	if err != nil || !claims && (report == nil || len(report.Open) == 0) {
		return err
	}
	var failed error
	if report != nil {
		_, failed = p.look(ctx, members, report, nil)
	}
	return errors.Join(failed, p.startFleet(ctx, events.Fleet{Sweep: true}))
}

func (p Fleet) startFleet(ctx context.Context, in events.Fleet) error {
	payload, _ := json.Marshal(in) // names
	return p.Functions.Start(ctx, names.Function("fleet"), payload)
}

// read returns the assigned clusters of runs that have not ended, and the report of the cell. The value of a cluster reports whether its
// run measures time. claims reports whether there is such a run.
func (p Fleet) read(ctx context.Context) (members map[string]bool, report *rollout.Report, claims bool, err error) {
	desired, _, err := p.State.DesiredState(ctx, p.Cell)
	if err != nil || len(desired.Sections) == 0 {
		return nil, nil, false, err
	}
	if report, _, err = p.State.CellReport(ctx, p.Cell); err != nil {
		return nil, nil, false, err
	}
	members = map[string]bool{}
	for _, section := range desired.Sections {
		watched := slices.ContainsFunc(section.Watches, func(w rollout.Watch) bool { return w.Until.After(p.Now()) })
		claims = claims || len(section.Claims) > 0
		for _, a := range section.Assignments {
			if _, member := slices.BinarySearch(section.Claims, a.Cluster); member && !a.Rollback {
				members[a.Cluster] = watched
			}
		}
	}
	return members, report, claims, nil
}

// look observes two kinds of clusters: those whose upgrade is in flight, because it may just have ended, and those of watched runs whose
// upgrade is done. It begins with those that it has not observed for the longest time. If only is given, it observes no others. It returns
// the clusters that it observed. The next sweep observes a cluster again whose API server does not answer.
func (p Fleet) look(ctx context.Context, members map[string]bool, report *rollout.Report, only []string) (looked []string, err error) {
	every := map[string]time.Duration{}
	for _, f := range report.Facts {
		watched, member := members[f.Cluster]
		switch a := f.Attempt; {
		case !member || a == nil:
		case a.State == rollout.AttemptBegun:
			every[f.Cluster] = 0
		case a.State == rollout.AttemptDone && watched:
			every[f.Cluster] = lookEvery
		}
	}
	if len(every) == 0 {
		return nil, nil
	}
	looks, err := p.State.Looks(ctx)
	if err != nil {
		return nil, err
	}
	next := rollout.Looks{Clusters: map[string]rollout.Look{}}
	var due []string
	for _, cluster := range slices.Sorted(maps.Keys(every)) {
		last, seen := looks.Clusters[cluster]
		if seen {
			next.Clusters[cluster] = last
		}
		if p.Now().Sub(last.At) >= every[cluster] && (only == nil || slices.Contains(only, cluster)) {
			due = append(due, cluster)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int {
		return cmp.Or(looks.Clusters[a].At.Compare(looks.Clusters[b].At), strings.Compare(a, b))
	})
	if due = due[:min(len(due), maxLooks)]; len(due) == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	failed := work.ForEach(p.Parallel, due, func(cluster string) error {
		at := p.Now().UTC().Round(0)
		deployed, err := p.Stacks.Describe(ctx, names.Stack(cluster, names.ControlPlane))
		if err != nil {
			return err
		}
		if deployed.API().Endpoint == "" {
			return nil
		}
		nodes, err := p.Nodes.Health(ctx, cluster, deployed.API())
		if err != nil {
			logging.From(ctx).Warn("nodes not listed", "cluster", cluster, "error", err.Error())
			return nil
		}
		look := rollout.Look{At: at, Nodes: len(nodes)}
		for _, n := range nodes {
			if !n.Ready {
				look.NotReady++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		next.Clusters[cluster], looked = look, append(looked, cluster)
		return nil
	})
	if len(looked) == 0 {
		return nil, failed
	}
	if err := p.State.PutLooks(ctx, &next); err != nil {
		return nil, errors.Join(failed, err) // the function fleet would only request another look
	}
	slices.Sort(looked)
	return looked, failed
}
