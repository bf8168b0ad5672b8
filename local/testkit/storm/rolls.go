package storm

// Pools while their nodes are replaced: the number of nodes that are out, and whether a batch began before the end of
// the previous one.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	localautoscaling "github.com/drover-run/drover/local/aws/autoscaling"
	"github.com/drover-run/drover/local/engine/resource"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
)

// seeGroup follows a pool's group.
func (w *world) seeGroup(step, cluster, stack string, r resource.Request) {
	group := names.Stack(cluster, stack)
	w.observed.Lock()
	known := w.observed.watchedGroups[group]
	w.observed.watchedGroups[group] = true
	if most, err := strconv.Atoi(fmt.Sprint(r.Properties["MaxSize"])); step == "update" && err == nil {
		v := w.observed.groupViews[group]
		out, _ := w.mayBeOut(cluster, strings.TrimPrefix(stack, names.PoolPrefix))
		desired := v.Desired
		if n, ok := w.observed.paceDesired[group]; ok {
			desired = min(desired, n)
		}
		// A rollback leaves the group as large as the roll made it, which is not in the spec.
		least := max(0, min(inService(v), min(desired, most, w.maxSizeOf(cluster, strings.TrimPrefix(stack, names.PoolPrefix)))-out))
		for _, rolls := range []map[string]int{w.observed.minInService, w.observed.suspendedMin} {
			if was, rolling := rolls[group]; rolling { // a rollback: the group is larger by a batch, which is not in the spec
				least = min(least, was)
			}
		}
		if !w.observed.updatedByOperator[group] {
			w.observed.minInService[group] = least
		}
	}
	w.observed.Unlock()
	if !known {
		w.AutoScaling.Watch(group, func(v localautoscaling.View) { w.seeView(group, v) })
	}
}

// mayBeOut returns how many nodes of a pool its specs allow to be out during an update, and how many may drain at once.
func (w *world) mayBeOut(cluster, pool string) (out, batch int) {
	for _, p := range w.policies[cluster] {
		if p.name == pool {
			out, batch = max(out, p.unavailable), max(batch, p.unavailable+p.surge)
		}
	}
	return out, batch
}

// maxSizeOf returns the greatest maxSize of a pool in any of its specs.
func (w *world) maxSizeOf(cluster, pool string) (most int) {
	for _, p := range w.policies[cluster] {
		if p.name == pool {
			most = max(most, p.max)
		}
	}
	return most
}

// inService returns the number of instances whose nodes take pods: those in service, and those that passed their launch
// hook. One that was abandoned at the hook does not count.
func inService(v localautoscaling.View) (n int) {
	for _, i := range v.Instances {
		if i.State == pool.InService || i.State == pool.PendingProceed {
			n++
		}
	}
	return n
}

// seeView observes every state of a group.
func (w *world) seeView(group string, v localautoscaling.View) {
	if !w.checksApply() {
		return
	}
	w.observed.Lock()
	was := w.observed.groupViews[group]
	w.observed.groupViews[group] = v
	least, rolling := w.observed.minInService[group]
	lost := 0
	for id := range w.observed.lostInstances {
		for _, i := range was.Instances {
			if i.ID == id {
				lost++
			}
		}
	}
	going := 0
	cluster, stack := clusterOf(group)
	hadTime := w.drainTime(cluster, stack)
	for _, i := range v.Instances {
		if _, ok := w.observed.drainStarts[i.ID]; !ok && i.State == "Terminating:Wait" {
			w.observed.drainStarts[i.ID], w.observed.drainStartTurns[i.ID] = time.Now(), w.turns.count
		}
		if _, ok := w.observed.terminatingSince[i.ID]; !ok && strings.HasPrefix(i.State, "Terminating") {
			w.observed.terminatingSince[i.ID] = time.Now()
		}
		if i.State == "InService" {
			w.observed.wasInService[i.ID] = true
		}
		// Others never joined. A drain that used its time delays no batch: see docs/adr/0020.
		late := time.Since(w.observed.terminatingSince[i.ID]) >= hadTime-waitSlack
		if w.observed.wasInService[i.ID] && !w.observed.abandonedDrains[i.ID] && !late &&
			(i.State == "Terminating" || i.State == "Terminating:Wait") {
			going++
		}
	}
	if !slices.ContainsFunc(v.Instances, func(i localautoscaling.InstanceView) bool { return i.State != "InService" }) {
		delete(w.observed.replacedByAudit, group)
		delete(w.observed.unhealthy, group)
	}
	grown, inPlace := w.observed.lastGrowth[group], w.observed.inPlace[group]
	serving, served := inService(v), inService(was)
	if whole := v.Desired > 0 && serving >= v.Desired; whole != w.observed.groupFull[group] {
		if w.observed.groupFull[group] = whole; whole {
			w.observed.lastGroupFull = time.Now()
		}
	}
	w.observed.Unlock()
	if inPlace {
		replaced := replacedInPlace(was, v)
		w.check(14, len(replaced) == 0, "the change of %s is in place, and these instances are replaced: %+v", group, replaced)
	}
	if !rolling || serving == served {
		return
	}
	w.check(8, serving+lost >= min(least, v.Desired), "%s has %d of %d instances in service during its update: %+v, before %+v", group,
		serving, least, v, was)
	_, batch := w.mayBeOut(cluster, strings.TrimPrefix(stack, names.PoolPrefix))
	if refreshed := func(p wishedPool) bool {
		return names.PoolStack(p.name) == stack && p.refresh
	}; time.Since(grown.at) < growthCounts && slices.ContainsFunc(w.policies[cluster], refreshed) {
		batch += grown.by
	}
	w.check(8, going <= batch+lost || serving >= served, "%d instances of %s are going at once", going, group)
}

// growth of a group. The percentages of a refresh apply to the size just before it, so a larger group has larger
// batches.
type growth struct {
	at time.Time
	by int
}

// growthCounts is how long a growth counts: a batch of a refresh ends within it.
const growthCounts = 10 * time.Minute

// seeReplacement observes that the audit replaces an instance with an unhealthy node: one at a time. Two audits at the same time may mark
// the same instance, which replaces it once.
func (w *world) seeReplacement(group string) {
	v, _ := w.AutoScaling.View(group)
	w.observed.Lock()
	before, another := w.observed.unhealthy[group], false
	now := map[string]bool{}
	for _, i := range v.Instances {
		if i.Unhealthy {
			now[i.ID] = true
			another = another || !before[i.ID]
		}
	}
	w.observed.unhealthy[group] = now
	if another {
		w.observed.replacedByAudit[group]++
	}
	n := w.observed.replacedByAudit[group]
	w.observed.Unlock()
	w.check(8, n <= 1, "the audit has %d instances of %s replaced at once", n, group)
}
