package storm

// A cluster that becomes Ready equals its spec at that moment, unless something happened to it after the plan.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// readiness is the state of a cluster between a plan and Ready. Moments are turns, because time may stand still.
type readiness struct {
	// planned is when planning last started to read, at the time then.
	planned int
	at      time.Time
	// disturbed is when something else last happened to the cluster: an external change, a stack operation, a requested
	// roll. recorded is when the record of its upgrade was written.
	disturbed, recorded int
	// ready is the phase at the last check.
	ready bool
}

// ready returns the readiness of a cluster. The caller holds the lock.
func (k *observations) ready(cluster string) *readiness {
	if k.readiness[cluster] == nil {
		k.readiness[cluster] = &readiness{}
	}
	return k.readiness[cluster]
}

// disturb records that something happened to a cluster.
func (w *world) disturb(cluster string) {
	w.observed.Lock()
	defer w.observed.Unlock()
	w.observed.ready(cluster).disturbed = w.turns.count
}

// seeObject observes reads and writes of the buckets.
func (w *world) seeObject(call endpoint.Call) {
	_, key, _ := strings.Cut(call.Resource[strings.LastIndex(call.Resource, ":")+1:], "/")
	folder, name, _ := strings.Cut(key, "/")
	cluster := strings.TrimSuffix(name, ".json")
	w.observed.Lock()
	defer w.observed.Unlock()
	switch call.Action + " " + folder {
	case "GetObject leases":
		if harness.CalledBy(call) == "plan" { // first of all
			r := w.observed.ready(cluster)
			r.planned, r.at = w.turns.count, w.now()
		}
	case "PutObject status":
		cluster = strings.TrimPrefix(cluster, "clusters/")
		if harness.CalledBy(call) == "upgrade" { // if something changes, the end of an upgrade reports the state before it
			w.observed.ready(cluster).recorded = w.turns.count
		}
		if harness.CalledBy(call) == "prepare" { // it writes only the volumes to retain
			w.observed.volumesListed[cluster] = true
		}
		w.observed.writtenStatuses = append(w.observed.writtenStatuses, cluster)
	case "PutObject upgrades":
		w.observed.ready(cluster).recorded = w.turns.count
	case "PutObject rolls":
		w.observed.ready(cluster).disturbed = w.turns.count
	}
}

// seeReady checks the clusters whose status was written, while everything waits.
func (w *world) seeReady() {
	w.observed.Lock()
	written := w.observed.writtenStatuses
	w.observed.writtenStatuses = nil
	w.observed.Unlock()
	slices.Sort(written)
	for _, cluster := range slices.Compact(written) {
		if w.desired[cluster] == nil {
			continue
		}
		w.observed.Lock()
		r := w.observed.ready(cluster)
		w.observed.Unlock()
		w.asForetold(cluster, r)
		s, was := w.Status(cluster), r.ready
		r.ready = s.Phase == status.Ready
		became := r.ready && !was && w.undisturbed(cluster, s, r)
		w.seeEndedUpgrade(cluster, s)
		w.seeWaits(cluster, s)
		w.seeLastDrains(cluster, s, became, r.planned)
		if became {
			p, reason, message, err := w.Functions.Planner.Preview(context.Background(), cluster)
			w.check(2, err == nil && reason == "" && len(p.Changes) == 0, "%s became Ready and would be changed: %+v %s %s %v", cluster, p.Changes,
				reason, message, err)
		}
	}
}

// undisturbed reports whether nothing happened to a cluster since its plan.
func (w *world) undisturbed(cluster string, s *status.Status, r *readiness) bool {
	want := w.desired[cluster]
	waits, accepted := s.Condition(status.AddonsDeployed), s.Condition(status.SpecAccepted)
	switch {
	case want.broken() || s.PlannedVersion != w.versions[cluster] || accepted != nil && accepted.Status == "False":
		return false // Ready at its last good spec
	case r.planned <= r.disturbed, r.planned <= r.recorded && (s.Upgrade == nil || s.Upgrade.Phase != string(upgrade.Done)),
		w.hasUndetectedDeletion(cluster):
		return false
	case waits != nil && waits.Status == "False": // for a node, which may have joined
		return false
	}
	return !slices.ContainsFunc(want.pools, func(p wishedPool) bool {
		at := w.began.Add(p.rollAt)
		return p.rollAt > 0 && !at.Before(r.at) && !at.After(w.now())
	})
}
