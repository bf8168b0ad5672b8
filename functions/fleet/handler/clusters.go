package handler

// Which clusters a call observes.
//
// An event observes its cluster. New assignments observe theirs. So the cost of a call does not depend on how many clusters are in flight.
//
// Events may be lost, late or out of order. While a run is active, the sweep starts the function every two minutes. Then it observes each
// cluster whose fact may be out of date: see addChanged. Every half hour a call observes all clusters, because a fact that is an hour old
// allows no start.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// clockSkew is how much earlier than the clock of this function that of S3 may be. The times of S3 are whole seconds.
const clockSkew = 10 * time.Second

// clusters returns the clusters to observe, sorted. all reports that those are all clusters. active reports that a run has members in the
// cell.
func (c *call) clusters(ctx context.Context, in events.Fleet, active bool) (list []string, all bool, err error) {
	if c.event != "" {
		return []string{c.event}, false, nil
	}
	if c.report == nil || c.isRefreshDue(in, active) {
		if c.stacks, err = c.Stacks.All(ctx); err != nil {
			return nil, false, err
		}
		specs, err := c.Specs.List(ctx, names.ClusterSpecs)
		return clustersOf(specs), err == nil, err
	}
	set := map[string]bool{}
	c.addAssigned(set)
	if in.Sweep || in.Audit {
		err = c.addChanged(ctx, set, active)
	}
	return slices.Sorted(maps.Keys(set)), false, err
}

// isRefreshDue reports whether the call observes all clusters. The first call of a run is not an event, so a run begins with new facts.
func (c *call) isRefreshDue(in events.Fleet, active bool) bool {
	age := c.now.Sub(c.report.Full)
	return active && age >= refreshActive || in.Audit && age >= refreshIdle
}

// addAssigned adds the clusters whose fact does not show yet what runs assign to them.
func (c *call) addAssigned(set map[string]bool) {
	for cluster := range c.wanted {
		set[cluster] = true
	}
	for i := range c.report.Facts {
		f := &c.report.Facts[i]
		a := f.Attempt
		isOpen := a != nil && a.State == rollout.AttemptOpen
		w, isWanted := c.wanted[f.Cluster]
		switch {
		case !isWanted && isOpen: // withdrawn
			set[f.Cluster] = true
		case isWanted && a != nil && w.isOf(a) && !(w.Withdrawn && isOpen):
			delete(set, f.Cluster)
		}
	}
}

// addChanged adds the clusters that may have changed since they were observed. While a run is active it lists specs and statuses, which
// also finds new and deleted clusters.
func (c *call) addChanged(ctx context.Context, set map[string]bool, active bool) error {
	for cluster := range c.report.Open {
		set[cluster] = true
	}
	for i := range c.report.Facts {
		if f := &c.report.Facts[i]; c.changes(f) || c.blocks(f) {
			set[f.Cluster] = true
		}
	}
	if !active {
		return nil
	}
	specs, err := c.Specs.List(ctx, names.ClusterSpecs)
	if err != nil {
		return err
	}
	statuses, err := c.State.List(ctx, names.Statuses)
	if err != nil {
		return err
	}
	written := map[string]time.Time{} // by key
	for _, entry := range slices.Concat(specs, statuses) {
		written[entry.Key] = entry.Modified
	}
	known := map[string]bool{}
	for i := range c.report.Facts {
		f := &c.report.Facts[i]
		known[f.Cluster] = true
		spec, exists := written[names.ClusterSpec(f.Cluster)]
		since := f.Observed.Add(-clockSkew)
		if !exists || c.waits(f) && (spec.After(since) || written[names.Status(f.Cluster)].After(since)) {
			set[f.Cluster] = true
		}
	}
	for _, cluster := range clustersOf(specs) {
		if !known[cluster] {
			set[cluster] = true
		}
	}
	return nil
}

// clustersOf returns the clusters of specs.
func clustersOf(specs []store.Entry) (list []string) {
	for _, entry := range specs {
		if cluster, ok := names.ClusterOfKey(entry.Key); ok {
			list = append(list, cluster)
		}
	}
	return list
}

// changes reports whether the fact of a cluster may be another one now: its attempt is in flight, or it was observed. A run that has not
// read how an attempt ended gets a newer fact of it.
func (c *call) changes(f *rollout.Fact) bool {
	a := f.Attempt
	if a == nil {
		return false
	}
	w, isWanted := c.wanted[f.Cluster]
	switch {
	case !a.State.Ended():
		return true
	case a.State == rollout.AttemptDone:
		return isWanted && c.looks.Clusters[f.Cluster].At.After(f.Observed)
	}
	return isWanted && w.isOf(a) && c.now.Sub(f.Observed) >= time.Minute
}

// waits reports whether a run claims a cluster, and its last attempt there is not done. A fact of an attempt that is done has the time of
// its look: see changes.
func (c *call) waits(f *rollout.Fact) bool {
	return c.claims(f.Cluster) && (f.Attempt == nil || f.Attempt.State != rollout.AttemptDone)
}

// blocks reports whether the fact keeps a claimed cluster from its start. The cluster may be idle: a notice is sent before its status is
// written, so a call that the notice caused may have read the earlier status.
func (c *call) blocks(f *rollout.Fact) bool { return (f.Busy || f.Unready) && c.claims(f.Cluster) }

// claims reports whether a run claims a cluster.
func (c *call) claims(cluster string) bool {
	for _, section := range c.desired.Sections {
		if _, found := slices.BinarySearch(section.Claims, cluster); found {
			return true
		}
	}
	return false
}
