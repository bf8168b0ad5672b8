package storm

// The end of each pod: evicted within its budget, deleted after its drain's timeout, or lost with a node that no drain
// could save.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
)

// seeCluster gives a new cluster its apps and watches its pods.
func (w *world) seeCluster(name string, api *apiserver.Server) {
	if !w.checksApply() {
		return
	}
	cluster := strings.TrimPrefix(name, names.Prefix)
	for _, a := range w.plot.apps[cluster] {
		api.Run(a)
	}
	if _, ok := w.blocked[cluster]; ok {
		api.Run(w.blockingApp(cluster))
	}
	api.OnRemoval(func(r apiserver.Removal) { w.seeRemoval(cluster, r) })
}

// seeRemoval judges the end of a pod.
func (w *world) seeRemoval(cluster string, r apiserver.Removal) {
	if !w.checksApply() {
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

// deletionDrainTime limits drains while their cluster is deleted, whatever their pool's policy, unless that is Force.
const deletionDrainTime = 5 * time.Minute

// due reports whether a drain of the node has lasted longer than a policy of the cluster allows.
func (w *world) due(cluster string, r apiserver.Removal, onTimeout string) bool {
	w.observed.Lock()
	since, ok := w.observed.drainStarts[r.Instance]
	w.observed.Unlock()
	if !ok {
		return false
	}
	since = since.Add(-time.Second) // drains count in seconds
	if w.deleted[cluster] && onTimeout != "Force" && r.At.Sub(since) >= deletionDrainTime {
		return true
	}
	return slices.ContainsFunc(w.policies[cluster], func(p wishedPool) bool {
		return p.onTimeout == onTimeout && r.At.Sub(since) >= p.timeout
	})
}

// excused reports whether a node may have ended with pods on it.
func (w *world) excused(cluster string, r apiserver.Removal) bool {
	w.observed.Lock()
	lost := w.observed.lostInstances[r.Instance]
	w.observed.Unlock()
	if w.deleted[cluster] && w.due(cluster, r, "Wait") { // Wait means Continue while a cluster is deleted, and that is final
		return true
	}
	return lost || w.desired[cluster] == nil || w.due(cluster, r, "Continue") || w.due(cluster, r, "Force") || w.tooLong(r) || w.unnoticed(r)
}

// unattendedHook is how long the hook of an ending instance waits without heartbeats: see ADR 7.
const unattendedHook = 30 * time.Minute

// unnoticed reports whether drover could not drain an instance in that time: no execution of drover-drain-node ran for it, and no
// sweep ran that would have started one. Its event was lost, or drover was removed during its drain. Then the schedule of the sweep was
// lost, or the account was at its Lambda limit, until the hook ended.
func (w *world) unnoticed(r apiserver.Removal) bool {
	executions := w.StepFunctions.Executions()
	w.observed.Lock()
	defer w.observed.Unlock()
	since, ok := w.observed.drainStarts[r.Instance]
	if !ok || r.At.Sub(since) < unattendedHook {
		return false
	}
	for _, x := range executions {
		switch drains := x.MachineName == names.Prefix+"drain-node" && strings.Contains(x.Input, r.Instance); {
		case !drains:
		case x.Status != string(asl.Aborted):
			return false // it runs, or the instance is drained
		case x.Stopped.After(since):
			since = x.Stopped
		}
	}
	return w.observed.lastSweep.Before(since)
}

// maxHookTime is Auto Scaling's limit for an open hook, with any number of heartbeats.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html
const maxHookTime = 48 * time.Hour

// tooLong reports whether a drain reached Auto Scaling's limit.
func (w *world) tooLong(r apiserver.Removal) bool {
	w.observed.Lock()
	defer w.observed.Unlock()
	since, ok := w.observed.drainStarts[r.Instance]
	return ok && r.At.Sub(since) >= maxHookTime-time.Minute
}
