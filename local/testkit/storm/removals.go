package storm

// The end of every pod: evicted within its budget, deleted once its drain's time is over, or gone with a node for
// which nobody could do more.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// seeCluster gives a new cluster its apps, and watches its pods.
func (w *world) seeCluster(name string, api *apiserver.Server) {
	if !w.judges() {
		return
	}
	cluster := strings.TrimPrefix(name, names.Prefix)
	for _, a := range w.plot.apps[cluster] {
		api.Run(a)
	}
	if _, there := w.blocked[cluster]; there {
		api.Run(w.rock(cluster))
	}
	api.OnRemoval(func(r apiserver.Removal) { w.seeRemoval(cluster, r) })
}

// seeRemoval judges the end of a pod.
func (w *world) seeRemoval(cluster string, r apiserver.Removal) {
	if !w.judges() {
		return
	}
	switch r.How {
	case "evicted":
		w.check(7, r.Healthy >= r.Desired, "%s of %s was evicted, which leaves %d of %d", r.Pod, cluster, r.Healthy, r.Desired)
	case "deleted":
		w.check(7, w.due(cluster, r, "Force"), "%s of %s was deleted from %s before its drain's time was over", r.Pod, cluster, r.Node)
	default:
		w.check(7, r.Healthy >= r.Desired || w.excused(cluster, r), "%s of %s went with %s, which leaves %d of %d", r.Pod, cluster, r.Node,
			r.Healthy, r.Desired)
	}
}

// farewell is how long drains may take while their cluster is deleted, whatever their pool says, unless that is Force.
const farewell = 5 * time.Minute

// due says whether a drain of the node has lasted longer than some policy of the cluster allows.
func (w *world) due(cluster string, r apiserver.Removal, onTimeout string) bool {
	w.known.Lock()
	since, ok := w.known.drains[r.Instance]
	w.known.Unlock()
	if !ok {
		return false
	}
	since = since.Add(-time.Second) // drains reckon in seconds
	if w.deleted[cluster] && onTimeout != "Force" && r.At.Sub(since) >= farewell {
		return true
	}
	return slices.ContainsFunc(w.policies[cluster], func(p wishedPool) bool {
		return p.onTimeout == onTimeout && r.At.Sub(since) >= p.timeout
	})
}

// excused says whether a node may have gone with pods on it.
func (w *world) excused(cluster string, r apiserver.Removal) bool {
	w.known.Lock()
	lost := w.known.lost[r.Instance]
	w.known.Unlock()
	if w.deleted[cluster] && w.due(cluster, r, "Wait") { // Wait counts as Continue while a cluster is deleted, and that is not undone
		return true
	}
	return lost || w.wishes[cluster] == nil || w.due(cluster, r, "Continue") || w.due(cluster, r, "Force") || w.tooLong(r) || w.untold(r)
}

// unkept is how long the hook of an instance waits that ends, when nobody keeps it open: see ADR 7.
const unkept = 30 * time.Minute

// untold says whether nobody could know of an instance for all that time: its event was lost, and no sweep came.
func (w *world) untold(r apiserver.Removal) bool {
	w.known.Lock()
	defer w.known.Unlock()
	since, ok := w.known.drains[r.Instance]
	return ok && r.At.Sub(since) >= unkept && !w.known.attended[r.Instance] && w.known.swept.Before(since)
}

// mostWaiting is as long as Auto Scaling lets a hook wait, whoever asks for more.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html
const mostWaiting = 48 * time.Hour

// tooLong says whether a drain lasted so long that Auto Scaling ended it.
func (w *world) tooLong(r apiserver.Removal) bool {
	w.known.Lock()
	defer w.known.Unlock()
	since, ok := w.known.drains[r.Instance]
	return ok && r.At.Sub(since) >= mostWaiting-time.Minute
}
