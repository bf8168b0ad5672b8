package storm

// Pools whose nodes all get a taint that system pods do not tolerate. The drain of the last old node cannot end before a
// spec without the taint: see docs/adr/0020.

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

const (
	// waitGrace is the time beyond its pool's drain.timeout for which drover waits for a drain: see docs/adr/0020.
	waitGrace = 15 * time.Minute
	// waitSlack covers the time between the start of a drain and its observation by the storm, and slow calls.
	waitSlack = 2 * time.Minute
)

// systemApps do not tolerate the taint of a locked pool: CoreDNS and the controller of the EBS driver.
func systemApps() []apiserver.App {
	app := apiserver.App{Replicas: 2, MaxUnavailable: 1, Start: 5 * time.Second, Stop: time.Second, Grace: 30 * time.Second}
	dns, ebs := app, app
	dns.Name, ebs.Name = "coredns", "ebs-csi-controller"
	return []apiserver.App{dns, ebs}
}

// lock adds the taint to all pools, or removes it.
func (w *wish) lock(on bool) {
	for i := range w.pools {
		w.pools[i].locked = on
	}
}

// locks reports whether one of the acts locks the pools of a cluster.
func locks(acts []act, cluster string) bool {
	return slices.ContainsFunc(acts, func(a act) bool {
		return a.cluster == cluster && a.spec != nil && slices.ContainsFunc(a.spec.pools, func(p wishedPool) bool { return p.locked })
	})
}

// seeWaits checks the limits of waits for drains. Each drained instance has drain.timeout and waitGrace from the start of its drain.
// A limit that an upload extended is later than that.
func (w *world) seeWaits(cluster string, s *status.Status) {
	for _, stack := range s.Stacks {
		if stack.Delay == nil || stack.Delay.Until.IsZero() {
			continue
		}
		list, drained := strings.CutSuffix(stack.Delay.Message, " been drained")
		list = strings.TrimSuffix(strings.TrimSuffix(list, " has"), " have")
		_, list, found := strings.Cut(list, " when ")
		if !drained || !found {
			continue
		}
		var latest time.Time
		w.observed.Lock()
		for instance := range strings.SplitSeq(list, ", ") {
			if began := w.observed.terminatingSince[instance]; began.After(latest) {
				latest = began
			}
		}
		w.observed.Unlock()
		limit := latest.Add(w.drainTime(cluster, stack.Name))
		w.out.Acts["wait"]++
		w.check(9, !stack.Delay.Until.After(limit.Add(waitSlack)), "%s: %s of %s waits until %s, and the drains have had their time at %s",
			cluster, stack.Delay.Message, stack.Name, stack.Delay.Until.Sub(w.began), limit.Sub(w.began))
	}
}

// drainTime returns how long drover waits for a drain of a pool's stack.
func (w *world) drainTime(cluster, stack string) (most time.Duration) {
	for _, p := range w.policies[cluster] {
		if names.PoolStack(p.name) == stack {
			most = max(most, p.timeout+waitGrace)
		}
	}
	return most
}

// seeLastDrains checks that the message of a Ready cluster names the nodes that rolls replaced and that are still being drained: the nodes
// that the status lists and, if the cluster became Ready undisturbed, the nodes whose drain pods still block.
func (w *world) seeLastDrains(cluster string, s *status.Status, undisturbed bool, planned int) {
	if s.Phase != status.Ready {
		return
	}
	says := strings.Contains(s.Message, status.ButDrains)
	w.check(9, says == s.DrainsRoll(), "%s is Ready, and its message does not agree with its nodes: %q %+v", cluster, s.Message, s.Nodes)
	if !undisturbed {
		return
	}
	for _, instance := range w.lastDrains(cluster, planned) {
		w.out.Acts["last-drain"]++
		listed := slices.ContainsFunc(s.Nodes, func(n status.Node) bool { return n.Instance == instance && n.Roll })
		w.check(9, says && listed, "%s became Ready, and its status does not say that %s is still being drained: %q %+v", cluster, instance,
			s.Message, s.Nodes)
	}
}

// lastDrains are the instances that rolls replaced, whose drain began before the turn of a plan and is blocked: pods
// run on them, and their pool's timeout has not passed.
func (w *world) lastDrains(cluster string, planned int) (blocked []string) {
	api := w.API(names.EKSCluster(cluster))
	if api == nil {
		return nil
	}
	occupied := map[string]bool{}
	for _, p := range api.Pods() {
		occupied[p.Node] = true
	}
	runs := map[string]bool{}
	for _, n := range api.Nodes() {
		runs[instanceOf(n)] = occupied[n.Name]
	}
	w.observed.Lock()
	defer w.observed.Unlock()
	for _, p := range w.desired[cluster].pools {
		view := w.observed.groupViews[names.Group(cluster, p.name)]
		serving := 0 // the template of the nodes that serve, 0 while they differ
		for _, i := range view.Instances {
			if i.State == "InService" && serving == 0 {
				serving = i.TemplateVersion
			} else if i.State == "InService" && serving != i.TemplateVersion {
				serving = 0
				break
			}
		}
		for _, i := range view.Instances {
			began, drained := w.observed.drainStarts[i.ID]
			old := i.TemplateVersion < serving && w.observed.drainStartTurns[i.ID] < planned
			if i.State == "Terminating:Wait" && old && drained && runs[i.ID] && time.Since(began) < p.timeout {
				blocked = append(blocked, i.ID)
			}
		}
	}
	return blocked
}
