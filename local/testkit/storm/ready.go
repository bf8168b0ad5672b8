package storm

// A cluster that becomes Ready is what its spec says at that moment, unless something happened to it since it was planned.

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

// readiness is what is known of a cluster's way to Ready. Moments are turns: time may stand still meanwhile.
type readiness struct {
	// planned is when planning last began to read, at the time then.
	planned int
	at      time.Time
	// disturbed is when something else happened to the cluster: somebody did something, a stack went on, a roll was asked for. recorded
	// is when the record of its upgrade was written.
	disturbed, recorded int
	// ready is what its status said when it was last looked at.
	ready bool
}

// ready is the caller's to lock.
func (k *known) ready(cluster string) *readiness {
	if k.readiness[cluster] == nil {
		k.readiness[cluster] = &readiness{}
	}
	return k.readiness[cluster]
}

// disturb notes that something happened to a cluster.
func (w *world) disturb(cluster string) {
	w.known.Lock()
	defer w.known.Unlock()
	w.known.ready(cluster).disturbed = w.turns.count
}

// seeObject sees what is read from and written to the buckets.
func (w *world) seeObject(call endpoint.Call) {
	_, key, _ := strings.Cut(call.Resource[strings.LastIndex(call.Resource, ":")+1:], "/")
	folder, name, _ := strings.Cut(key, "/")
	cluster := strings.TrimSuffix(name, ".json")
	w.known.Lock()
	defer w.known.Unlock()
	switch call.Action + " " + folder {
	case "GetObject leases":
		if harness.CalledBy(call) == "plan" { // first of all
			r := w.known.ready(cluster)
			r.planned, r.at = w.turns.count, w.now()
		}
	case "PutObject status":
		cluster = strings.TrimPrefix(cluster, "clusters/")
		if harness.CalledBy(call) == "upgrade" { // where there is something to change, the end of an upgrade tells what the cluster was
			w.known.ready(cluster).recorded = w.turns.count
		}
		if harness.CalledBy(call) == "prepare" { // it writes nothing but the survey
			w.known.surveyed[cluster] = true
		}
		w.known.told = append(w.known.told, cluster)
	case "PutObject upgrades":
		w.known.ready(cluster).recorded = w.turns.count
	case "PutObject rolls":
		w.known.ready(cluster).disturbed = w.turns.count
	}
}

// seeReady looks at the clusters whose status was written, when all stand still.
func (w *world) seeReady() {
	w.known.Lock()
	told := w.known.told
	w.known.told = nil
	w.known.Unlock()
	slices.Sort(told)
	for _, cluster := range slices.Compact(told) {
		if w.wishes[cluster] == nil {
			continue
		}
		w.known.Lock()
		r := w.known.ready(cluster)
		w.known.Unlock()
		w.asForetold(cluster, r)
		s, was := w.Status(cluster), r.ready
		r.ready = s.Phase == status.Ready
		became := r.ready && !was && w.undisturbed(cluster, s, r)
		w.seeWaits(cluster, s)
		w.seeLastDrains(cluster, s, became, r.planned)
		if became {
			p, reason, message, err := w.Functions.Planner.Preview(context.Background(), cluster)
			w.check(2, err == nil && reason == "" && len(p.Changes) == 0, "%s became Ready and would be changed: %+v %s %s %v", cluster, p.Changes,
				reason, message, err)
		}
	}
}

// undisturbed says whether nothing happened to a cluster since it was planned.
func (w *world) undisturbed(cluster string, s *status.Status, r *readiness) bool {
	want := w.wishes[cluster]
	waits, accepted := s.Condition(status.AddonsDeployed), s.Condition(status.SpecAccepted)
	switch {
	case want.broken() || s.SpecVersion != w.versions[cluster] || accepted != nil && accepted.Status == "False":
		return false // Ready as its last good spec
	case r.planned <= r.disturbed, r.planned <= r.recorded && (s.Upgrade == nil || s.Upgrade.Phase != string(upgrade.Done)),
		w.unfound(cluster):
		return false
	case waits != nil && waits.Status == "False": // for a node, which may have come
		return false
	}
	return !slices.ContainsFunc(want.pools, func(p wishedPool) bool {
		at := w.began.Add(p.rollAt)
		return p.rollAt > 0 && !at.Before(r.at) && !at.After(w.now())
	})
}
