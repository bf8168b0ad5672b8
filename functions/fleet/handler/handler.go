// Package handler implements the fleet function: the part of a cell in rollouts. It copies new assignments to its clusters within the limit
// of the cell, and starts drover-converge for each. It withdraws assignments whose upgrade has not begun. It reports a fact about each
// cluster and then invokes the function rollout, which ticks the runs. drover-upgrade makes the upgrades.
//
// An event observes its cluster alone. The sweep's call and the audit's observe every cluster that may have changed, so no event needs to
// arrive: see clusters.go.
//
// Every step may be repeated. The order of the writes matters: a cluster is on the list of open clusters before its assignment is copied,
// and the assignment is copied before the cluster is planned because of it.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/stack"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	List(ctx context.Context, prefix string) ([]store.Entry, error)
}

// State is the state bucket: a subset of store.State.
type State interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	DesiredState(ctx context.Context, cell string) (*rollout.DesiredState, string, error)
	CellReport(ctx context.Context, cell string) (*rollout.Report, string, error)
	PutCellReport(ctx context.Context, cell string, report *rollout.Report, etag string) error
	Assignment(ctx context.Context, cluster string) (*rollout.CellAssignment, string, error)
	PutAssignment(ctx context.Context, assignment *rollout.CellAssignment, etag string) (string, error)
	CellFreezes(ctx context.Context) (*rollout.CellFreezes, string, error)
	PutCellFreezes(ctx context.Context, freezes *rollout.CellFreezes, etag string) error
	Looks(ctx context.Context) (*rollout.Looks, error)
	Status(ctx context.Context, cluster string) (*status.Cluster, error)
	ReleaseStatus(ctx context.Context, release string) (*status.Release, error)
	Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error)
	AddDue(ctx context.Context, cluster string, at time.Time) error
	Holder(ctx context.Context, cluster string, running func(ctx context.Context, execution string) (bool, error)) (execution string,
		err error)
}

// Stacks describes stacks: a subset of cloudformation.Stacks.
type Stacks interface {
	Describe(ctx context.Context, stackName string) (stack.Deployed, error)
	All(ctx context.Context) (map[string]stack.Deployed, error)
}

// Executions are those of drover-converge: a subset of stepfunctions.Executions.
type Executions interface {
	Running(ctx context.Context, execution string) (bool, error)
	ConvergeDue(ctx context.Context, cluster string, at time.Time) error
}

// Alarms of CloudWatch: a subset of cloudwatch.Alarms.
type Alarms interface {
	// States returns the alarms of these names that exist.
	States(ctx context.Context, named []string) ([]preflight.Alarm, error)
}

// Functions starts functions: a subset of lambda.Functions.
type Functions interface {
	Start(ctx context.Context, function string, payload []byte) error
}

// Handler is the function.
type Handler struct {
	Specs      Specs
	State      State
	Stacks     Stacks
	Executions Executions
	Alarms     Alarms
	Functions  Functions
	// Account and Region identify the cell.
	Account, Region string
	// Limit is how many clusters rollouts may work on at once. 0 is a tenth of the clusters, and at least minLimit.
	Limit int
	// Parallel is how many clusters are read at the same time.
	Parallel int
	// Pause waits between attempts.
	Pause func(ctx context.Context, attempt int) error
	Now   func() time.Time
}

const (
	// minLimit is the lowest default of Limit.
	minLimit = 3
	// refreshActive and refreshIdle are how often all clusters are observed: while a run has members in this cell, and otherwise.
	refreshActive, refreshIdle = 30 * time.Minute, 6 * time.Hour
	// repeatEvery is how often a cluster is planned because of an assignment that has not begun.
	repeatEvery = 30 * time.Minute
	// maxAttempts bounds the attempts to write the report.
	maxAttempts = 6
	// rereads bounds the repeated reads of a cluster whose status may not be written yet.
	rereads = 3
)

// call is one call of the function.
type call struct {
	*Handler
	now time.Time
	// event is the cluster of an event: the only one that the call observes. It is empty in other calls.
	event   string
	report  *rollout.Report
	desired *rollout.DesiredState
	looks   *rollout.Looks
	// stacks are those of all clusters; nil if they were not listed.
	stacks map[string]stack.Deployed
	// wanted are the assignments of runs that have not ended, by cluster, with the section of each.
	wanted map[string]wantedState

	mu sync.Mutex
	// facts are the observed ones, by cluster. A cluster without a spec has nil.
	facts map[string]*rollout.Fact
	// ended are the clusters whose upgrade has just ended.
	ended []string
}

type wantedState struct {
	rollout.Assignment
	overrides []string
}

// Handle brings the cell up to date: see the package.
func (h *Handler) Handle(ctx context.Context, in events.Fleet) (struct{}, error) {
	for attempt := range maxAttempts {
		if attempt > 0 {
			if err := h.Pause(ctx, attempt); err != nil {
				return struct{}{}, err
			}
		}
		if err := h.handle(ctx, in); !errors.Is(err, store.ErrConflict) {
			return struct{}{}, err
		}
	}
	return struct{}{}, &fault.Transient{Cause: fmt.Errorf("cell %s: conflicted with other writers %d times", h.cell(), maxAttempts)}
}

// handle is one attempt. store.ErrConflict means: try again.
func (h *Handler) handle(ctx context.Context, in events.Fleet) error {
	c := &call{Handler: h, now: h.Now().UTC().Round(0), facts: map[string]*rollout.Fact{}, wanted: map[string]wantedState{}}
	var etag string
	var err error
	// The report is read before the assignments: an assignment of the report that is no longer assigned was withdrawn.
	if c.report, etag, err = h.State.CellReport(ctx, h.cell()); err != nil {
		return err
	}
	desiredETag := ""
	if c.desired, desiredETag, err = h.State.DesiredState(ctx, h.cell()); err != nil {
		return err
	}
	claims := c.readWanted()
	if c.report != nil {
		c.event = in.Cluster
	}
	if desiredETag != "" && c.event == "" {
		if err := c.writeFreezes(ctx, claims); err != nil {
			return err
		}
	}
	if err := c.readLooks(ctx, claims); err != nil {
		return err
	}
	clusters, all, err := c.clusters(ctx, in, len(claims) > 0)
	if err != nil {
		return err
	}
	usable, err := c.usable(ctx)
	if err != nil || len(clusters) == 0 && !all && slices.Equal(usable, c.report.Usable) {
		return err
	}
	if c.report == nil {
		c.report = &rollout.Report{}
	}
	if err := c.reserve(ctx, clusters, etag); err != nil {
		return err
	}
	failed := c.forEach(clusters, func(cluster string) error {
		if err := c.update(ctx, cluster); err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		return nil
	})
	changed, err := c.writeReport(ctx, all, failed == nil, usable)
	if err == nil && len(c.ended) > 0 {
		slices.Sort(c.ended)
		payload, _ := json.Marshal(events.Sweep{Look: c.ended}) // names
		err = h.Functions.Start(ctx, names.Function("sweep"), payload)
	}
	if err == nil && changed {
		err = h.Functions.Start(ctx, names.Function("rollout"), []byte("{}"))
	}
	return errors.Join(failed, err)
}

func (h *Handler) cell() string { return names.Cell(h.Account, h.Region) }

// readWanted fills in wanted and returns the clusters that runs claim, sorted. Only runs that have not ended have claims. Two of them never
// claim the same cluster.
func (c *call) readWanted() (claims []string) {
	for _, name := range slices.Sorted(maps.Keys(c.desired.Sections)) {
		section := c.desired.Sections[name]
		claims = append(claims, section.Claims...)
		for _, a := range section.Assignments {
			if _, claimed := slices.BinarySearch(section.Claims, a.Cluster); claimed {
				c.wanted[a.Cluster] = wantedState{a, section.Overrides}
			}
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// writeFreezes copies the freezes and the claims for planning.
func (c *call) writeFreezes(ctx context.Context, claims []string) error {
	had, etag, err := c.State.CellFreezes(ctx)
	if err != nil {
		return err
	}
	want := rollout.CellFreezes{Freezes: c.desired.Freezes, Claims: claims}
	if had.Equal(&want) {
		return nil
	}
	return c.State.PutCellFreezes(ctx, &want, etag)
}

// readLooks reads the looks of the sweep if a fact may need them.
func (c *call) readLooks(ctx context.Context, claims []string) (err error) {
	c.looks = &rollout.Looks{}
	if _, isWanted := c.wanted[c.event]; isWanted || c.event == "" && len(claims) > 0 {
		c.looks, err = c.State.Looks(ctx)
	}
	return err
}

// isOf reports whether an attempt is that of the assignment.
func (w *wantedState) isOf(a *rollout.Attempt) bool {
	return a.Rollout == w.Rollout && a.Run == w.Run && a.Number == w.Attempt
}

// reserve puts those of the clusters on the list of open ones whose assignments are not copied yet, up to the limit of the cell. The others
// are no longer wanted in this call. A cluster that is on the list gets a new reservation, so that no call that observed it earlier removes
// it. A call that read older assignments conflicts here with one that removed the cluster.
func (c *call) reserve(ctx context.Context, clusters []string, etag string) error {
	attempts := map[string]*rollout.Attempt{}
	for i := range c.report.Facts {
		attempts[c.report.Facts[i].Cluster] = c.report.Facts[i].Attempt
	}
	next := *c.report
	next.Open = maps.Clone(c.report.Open)
	if next.Open == nil {
		next.Open = map[string]int64{}
	}
	for _, cluster := range clusters {
		w, isWanted := c.wanted[cluster]
		a := attempts[cluster]
		if !isWanted || w.Withdrawn || a != nil && w.isOf(a) {
			continue
		}
		if _, isOpen := next.Open[cluster]; !isOpen && len(next.Open) >= c.limit() {
			logging.From(ctx).Info("cell limit reached", "cluster", cluster, "limit", c.limit())
			delete(c.wanted, cluster)
			continue
		}
		next.Reservations++
		next.Open[cluster] = next.Reservations
	}
	if next.Reservations == c.report.Reservations {
		return nil
	}
	next.Limit = c.limit()
	if next.At.IsZero() {
		next.At = c.now
	}
	if err := c.State.PutCellReport(ctx, c.cell(), &next, etag); err != nil {
		return err
	}
	c.report = &next
	return nil
}

// limit is how many clusters rollouts may work on at once.
func (c *call) limit() int {
	if c.Limit > 0 {
		return c.Limit
	}
	return max(minLimit, len(c.report.Facts)/10)
}

// forEach calls do for each cluster, several at a time.
func (c *call) forEach(clusters []string, do func(cluster string) error) error {
	failed := make([]error, len(clusters))
	limit := make(chan struct{}, max(1, c.Parallel))
	if c.Parallel <= 1 {
		for i, cluster := range clusters {
			failed[i] = do(cluster)
		}
		return errors.Join(failed...)
	}
	var work sync.WaitGroup
	for i, cluster := range clusters {
		limit <- struct{}{}
		work.Go(func() {
			defer func() { <-limit }()
			failed[i] = do(cluster)
		})
	}
	work.Wait()
	return errors.Join(failed...)
}

// writeReport merges the observed facts into the newest report. all reports that the call observed all clusters, complete that it could
// read each. changed reports whether that adds anything.
func (c *call) writeReport(ctx context.Context, all, complete bool, usable []string) (changed bool, err error) {
	for attempt := range maxAttempts {
		if attempt > 0 {
			if err := c.Pause(ctx, attempt); err != nil {
				return false, err
			}
		}
		had, etag, err := c.State.CellReport(ctx, c.cell())
		if err != nil {
			return false, err
		}
		if had == nil {
			had = &rollout.Report{}
		}
		next := c.merge(had, all && complete, usable)
		if all {
			next.Full = c.now
		}
		if next.Same(had) && etag != "" {
			return false, nil
		}
		if err = c.State.PutCellReport(ctx, c.cell(), next, etag); err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return false, err
		}
	}
	return false, store.ErrConflict
}

// merge returns a report with the observed facts, unless it has newer ones. The facts of clusters without a spec are removed.
func (c *call) merge(had *rollout.Report, all bool, usable []string) *rollout.Report {
	next := &rollout.Report{
		At: c.now, Full: had.Full, Open: map[string]int64{}, Limit: c.limit(), Reservations: had.Reservations, Usable: usable,
	}
	if c.event != "" {
		next.Usable = had.Usable
	}
	facts := map[string]rollout.Fact{}
	for _, f := range had.Facts {
		if observed, found := c.facts[f.Cluster]; found && observed == nil || all && !found && !f.Observed.After(c.now) {
			continue
		}
		facts[f.Cluster] = f
	}
	for cluster, f := range c.facts {
		if old, found := facts[cluster]; f != nil && (!found || !old.Observed.After(f.Observed)) {
			facts[cluster] = *f
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(facts)) {
		next.Facts = append(next.Facts, facts[cluster])
	}
	for cluster, reservation := range had.Open {
		f, found := c.facts[cluster]
		_, isWanted := c.wanted[cluster]
		a := (*rollout.Attempt)(nil)
		if f != nil {
			a = f.Attempt
		}
		// Another call may have reserved the cluster after this one observed it.
		known := c.report.Open[cluster] == reservation
		if found && known && (a == nil && !isWanted || a != nil && a.State.Ended() && !c.waitsFor(cluster, a)) {
			continue
		}
		next.Open[cluster] = reservation
	}
	return next
}

// waitsFor reports whether another attempt of a cluster waits to be copied.
func (c *call) waitsFor(cluster string, a *rollout.Attempt) bool {
	w, found := c.wanted[cluster]
	return found && !w.Withdrawn && !w.isOf(a)
}
