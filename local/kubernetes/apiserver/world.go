package apiserver

// The cluster's own reactions: the controllers create pods, the scheduler places them, kubelets make them ready and end
// them, and the disruption controller counts. All invariants hold after every change.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// App is a Deployment with a disruption budget. The ReplicaSet of its pods exists only in their owner references.
type App struct {
	Name     string
	Replicas int
	// MaxUnavailable of its budget. Below 0 there is no budget.
	MaxUnavailable int
	// Start is the time until a pod is ready, Stop the time until it has ended. Grace is its grace period.
	Start, Stop, Grace time.Duration
	// Tolerant pods tolerate every taint and prefer cordoned nodes: the worst scheduling for a drain.
	Tolerant bool
}

// Removal is the removal of a pod that had not finished.
type Removal struct {
	Pod, App, Node string
	// Instance of the pod's node.
	Instance string
	// How is "evicted", "deleted" or "lost with its node".
	How string
	At  time.Time
	// Healthy is the number of the app's other healthy pods. Desired is the number that its budget requires, or 0.
	Healthy, Desired int
}

type world struct {
	server *Server
	apps   map[string]App
	made   int
	// dirty is true from a change until all invariants hold, busy while they are being restored.
	dirty, busy bool
	onRemoval   func(Removal)
	// instances by node name, including those of deleted nodes.
	instances map[string]string
}

// networkAnnotation marks a node whose network plugin runs, as for KWOK: see local/kubernetes/stages.yaml.
const networkAnnotation = "local.drover.run/network"

// readyWork is the time from a node's network until it is Ready.
const readyWork = 3 * time.Second

// Run creates an app or changes it.
func (s *Server) Run(a App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.apps[a.Name] = a
	if _, err := s.find(deployments, "default", a.Name); err != nil {
		_, _ = s.create(deployments, object{ // it does not exist
			"metadata": object{"name": a.Name, "namespace": "default"}, "spec": object{"selector": object{"matchLabels": object{"app": a.Name}}},
		})
	}
	s.world.budget(a)
	s.world.hold()
}

// budget makes an app's budget as specified.
func (w *world) budget(a App) {
	s := w.server
	b, err := s.find(budgets, "default", a.Name)
	switch {
	case err != nil && a.MaxUnavailable >= 0:
		_, _ = s.create(budgets, object{ // it does not exist
			"metadata": object{"name": a.Name, "namespace": "default", "generation": int64(1)},
			"spec":     object{"maxUnavailable": int64(a.MaxUnavailable), "selector": object{"matchLabels": object{"app": a.Name}}},
		})
	case err == nil && a.MaxUnavailable < 0:
		s.remove(budgets, b)
	case err == nil:
		if was, _, _ := unstructured.NestedInt64(b, "spec", "maxUnavailable"); was == int64(a.MaxUnavailable) {
			return
		}
		next := runtime.DeepCopyJSON(b)
		generation, _, _ := unstructured.NestedInt64(b, "metadata", "generation")
		meta(next)["generation"] = generation + 1
		next["spec"].(object)["maxUnavailable"] = int64(a.MaxUnavailable)
		s.settle(budgets, "MODIFIED", next)
	}
}

// OnRemoval calls f for each pod that is removed before it finished. f must not call the server.
func (s *Server) OnRemoval(f func(Removal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.onRemoval = f
}

// Pod is a pod for observers.
type Pod struct {
	Name, App, Node    string
	Ready, Terminating bool
}

// Pods returns all pods by name.
func (s *Server) Pods() (all []Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.list(pods, "", matcher{}) {
		all = append(all, Pod{nameOf(p), text(p, "metadata", "labels", "app"), text(p, "spec", "nodeName"), ready(p), terminating(p)})
	}
	return all
}

// Node is a node for observers.
type Node struct {
	Name, ProviderID, KubeletVersion string
	Ready, Cordoned                  bool
}

// Nodes returns all nodes by name.
func (s *Server) Nodes() (all []Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.list(nodes, "", matcher{}) {
		cordoned, _, _ := unstructured.NestedBool(n, "spec", "unschedulable")
		all = append(all, Node{nameOf(n), text(n, "spec", "providerID"), text(n, "status", "nodeInfo", "kubeletVersion"), ready(n), cordoned})
	}
	return all
}

// complete adds what an object's controller writes immediately.
func (w *world) complete(k kind, o object) {
	// the server does not play its pods
	if _, played := w.apps[nameOf(o)]; k == deployments && !(played && text(o, "metadata", "namespace") == "default") {
		replicas, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
		o["status"] = object{"availableReplicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas}
	}
}

// follow reacts to a change.
func (w *world) follow(k kind, o object, typ string) {
	if k == nodes {
		provider := text(o, "spec", "providerID")
		w.instances[nameOf(o)] = provider[strings.LastIndex(provider, "/")+1:]
	}
	if k == nodes && typ != "DELETED" && !ready(o) && annotation(o, networkAnnotation) == "ready" && annotation(o, silenceAnnotation) == "" {
		w.becomeReady(o)
	}
	if k == nodes || k == pods || k == deployments || k == budgets { // other kinds have no effect here
		w.hold()
	}
}

func annotation(o object, name string) string {
	v, _, _ := unstructured.NestedString(o, "metadata", "annotations", name)
	return v
}

// becomeReady makes a node Ready after a while, unless its kubelet fell silent.
func (w *world) becomeReady(o object) {
	uid := meta(o)["uid"]
	w.later(readyWork, func() {
		n, err := w.server.find(nodes, "", nameOf(o))
		if err == nil && meta(n)["uid"] == uid && !ready(n) && annotation(n, silenceAnnotation) == "" {
			w.server.settle(nodes, "MODIFIED", w.withReady(n, true))
		}
	})
}

// later calls do with the lock held after a time.
func (w *world) later(d time.Duration, do func()) {
	s := w.server
	turn := s.clock.Ticket("kubernetes: later")
	go func() {
		turn()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-s.closed:
				cancel()
			case <-ctx.Done():
			}
		}()
		if s.clock.Work(ctx, d) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	}()
}

// hold restores the invariants until nothing changes.
func (w *world) hold() {
	w.dirty = true
	if w.busy {
		return
	}
	w.busy = true
	for w.dirty {
		w.dirty = false
		w.collect()
		w.replicate()
		w.schedule()
		w.sum()
		w.count()
	}
	w.busy = false
}

// collect removes the pods of deleted nodes.
func (w *world) collect() {
	s := w.server
	for _, p := range s.list(pods, "", matcher{}) {
		node := text(p, "spec", "nodeName")
		if node == "" {
			continue
		}
		if _, err := s.find(nodes, "", node); err != nil {
			if !terminating(p) {
				w.recordRemoval(p, "lost with its node")
			}
			s.remove(pods, p)
		}
	}
}

func (w *world) of(app string) (all []object) {
	for _, p := range w.server.list(pods, "default", matcher{}) {
		if text(p, "metadata", "labels", "app") == app {
			all = append(all, p)
		}
	}
	return all
}

// replicate creates and deletes pods until each app has its replicas.
func (w *world) replicate() {
	for _, name := range slices.Sorted(maps.Keys(w.apps)) {
		a := w.apps[name]
		alive := slices.DeleteFunc(w.of(name), terminating)
		for range a.Replicas - len(alive) {
			w.made++
			_, _ = w.server.create(pods, object{ // a new name
				"metadata": object{
					"name": fmt.Sprintf("%s-%d", name, w.made), "namespace": "default", "labels": object{"app": name},
					"ownerReferences": []any{object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "of-" + name, "controller": true}},
				},
				"spec":   a.spec(),
				"status": object{"phase": "Pending"},
			})
		}
		for i := a.Replicas; i < len(alive); i++ {
			_ = w.server.delete(pods, alive[i], &metav1.DeleteOptions{}) // without preconditions it cannot fail
		}
	}
}

// spec returns the spec of an app's pods.
func (a App) spec() object {
	spec := object{"terminationGracePeriodSeconds": int64(a.Grace / time.Second), "containers": []any{object{"name": "main", "image": "app"}}}
	if a.Tolerant {
		spec["tolerations"] = []any{object{"operator": "Exists"}}
	}
	return spec
}

// schedule places pods on the node with the fewest pods.
func (w *world) schedule() {
	s := w.server
	count := map[string]int{}
	for _, p := range s.list(pods, "", matcher{}) {
		count[text(p, "spec", "nodeName")]++
	}
	for _, p := range s.list(pods, "", matcher{}) {
		if text(p, "spec", "nodeName") != "" || terminating(p) {
			continue
		}
		best, last := "", false // last resort
		all, cordons, tainted := 0, 0, 0
		for _, n := range s.list(nodes, "", matcher{}) {
			cordoned, _, _ := unstructured.NestedBool(n, "spec", "unschedulable")
			tolerant := w.apps[text(p, "metadata", "labels", "app")].Tolerant
			all++
			switch {
			case !ready(n): // its taint is node.kubernetes.io/not-ready
				tainted++
				continue
			case repels(n) && !tolerant:
				tainted++
				continue
			case cordoned && !tolerant:
				cordons++
				continue
			}
			if second := tolerant && !cordoned; best == "" || last && !second || last == second && count[nameOf(n)] < count[best] {
				best, last = nameOf(n), second
			}
		}
		if best == "" {
			w.unschedulable(p, all, cordons, tainted)
			continue
		}
		count[best]++
		next := runtime.DeepCopyJSON(p)
		next["spec"].(object)["nodeName"] = best
		next["status"] = object{"phase": "Running"}
		s.settle(pods, "MODIFIED", w.withReady(next, false))
		uid := meta(p)["uid"]
		w.later(w.apps[text(p, "metadata", "labels", "app")].Start, func() {
			if now, err := s.find(pods, "default", nameOf(p)); err == nil && meta(now)["uid"] == uid && !terminating(now) &&
				!w.silent(text(now, "spec", "nodeName")) {
				s.settle(pods, "MODIFIED", w.withReady(now, true))
			}
		})
	}
}

// repels reports whether a node has a taint that keeps pods away.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#concepts
func repels(n object) bool {
	taints, _, _ := unstructured.NestedSlice(n, "spec", "taints")
	return slices.ContainsFunc(taints, func(taint any) bool {
		m, _ := taint.(object)
		return m["effect"] == "NoSchedule" || m["effect"] == "NoExecute"
	})
}

// unschedulable records why a pod has no node in its condition PodScheduled, as the scheduler does.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions
func (w *world) unschedulable(p object, all, cordoned, tainted int) {
	var why []string
	if tainted > 0 {
		why = append(why, fmt.Sprintf("%d node(s) had untolerated taint(s)", tainted))
	}
	if cordoned > 0 {
		why = append(why, fmt.Sprintf("%d node(s) were unschedulable", cordoned))
	}
	message := fmt.Sprintf("0/%d nodes are available: %s.", all, strings.Join(why, ", "))
	if all == 0 {
		message = "no nodes available to schedule pods"
	}
	condition := object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
	next := runtime.DeepCopyJSON(p)
	status, _ := next["status"].(object)
	if conditions, _ := status["conditions"].([]any); len(conditions) == 1 && same(conditions[0].(object), condition) {
		return
	}
	status["conditions"] = []any{condition}
	w.server.settle(pods, "MODIFIED", next)
}

// count updates the counts of deployments, as the deployment controller does.
func (w *world) count() {
	s := w.server
	for _, name := range slices.Sorted(maps.Keys(w.apps)) {
		d, err := s.find(deployments, "default", name)
		if err != nil {
			continue
		}
		total, up := int64(0), int64(0)
		for _, p := range w.of(name) {
			if terminating(p) {
				continue
			}
			if total++; ready(p) {
				up++
			}
		}
		replicas, status := int64(w.apps[name].Replicas), object{
			"replicas": total, "updatedReplicas": total, "readyReplicas": up, "availableReplicas": up,
		}
		specified, _, _ := unstructured.NestedInt64(d, "spec", "replicas")
		if was, _ := d["status"].(object); specified == replicas && was != nil && same(was, status) {
			continue
		}
		next := runtime.DeepCopyJSON(d)
		next["spec"].(object)["replicas"], next["status"] = replicas, status
		s.settle(deployments, "MODIFIED", next)
	}
}

// sum updates the status of budgets, as the disruption controller does.
func (w *world) sum() {
	s := w.server
	for _, b := range s.list(budgets, "", matcher{}) {
		selector, _, _ := unstructured.NestedStringMap(b, "spec", "selector", "matchLabels")
		disrupted, _, _ := unstructured.NestedMap(b, "status", "disruptedPods")
		still, expected, healthy := object{}, 0, 0
		for _, p := range s.list(pods, text(b, "metadata", "namespace"), matcher{labels: labels.SelectorFromSet(selector)}) {
			if terminating(p) {
				continue
			}
			expected++
			if at, ok := disrupted[nameOf(p)]; ok {
				still[nameOf(p)] = at
			} else if ready(p) {
				healthy++
			}
		}
		if a, ok := w.apps[nameOf(b)]; ok {
			expected = a.Replicas
		}
		unavailable, _, _ := unstructured.NestedInt64(b, "spec", "maxUnavailable")
		desired := max(0, expected-int(unavailable))
		generation, _, _ := unstructured.NestedInt64(b, "metadata", "generation")
		status := object{
			"observedGeneration": generation, "expectedPods": int64(expected), "currentHealthy": int64(healthy), "desiredHealthy": int64(desired),
			"disruptionsAllowed": int64(max(0, healthy-desired)),
		}
		if len(still) > 0 {
			status["disruptedPods"] = still
		}
		if was, _ := b["status"].(object); was == nil || !same(was, status) {
			next := runtime.DeepCopyJSON(b)
			next["status"] = status
			s.settle(budgets, "MODIFIED", next)
		}
	}
}

func (w *world) recordRemoval(p object, how string) {
	if w.onRemoval == nil || text(p, "status", "phase") == "Succeeded" || text(p, "status", "phase") == "Failed" {
		return
	}
	r := Removal{
		Pod: nameOf(p), App: text(p, "metadata", "labels", "app"), Node: text(p, "spec", "nodeName"), How: how, At: w.server.clock.Now(),
	}
	r.Instance = w.instances[r.Node]
	for _, other := range w.of(r.App) {
		if ready(other) && !terminating(other) && nameOf(other) != r.Pod {
			r.Healthy++
		}
	}
	if a := w.apps[r.App]; a.MaxUnavailable >= 0 {
		r.Desired = a.Replicas - a.MaxUnavailable
	}
	w.onRemoval(r)
}

func terminating(p object) bool { return text(p, "metadata", "deletionTimestamp") != "" }

func ready(o object) bool {
	conditions, _, _ := unstructured.NestedSlice(o, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(object); ok && m["type"] == "Ready" {
			return m["status"] == "True"
		}
	}
	return false
}

// withReady returns a copy with a Ready condition. The transition time changes only with the status.
func (w *world) withReady(o object, isReady bool) object {
	next := runtime.DeepCopyJSON(o)
	status, _ := next["status"].(object)
	if status == nil {
		status = object{}
		next["status"] = status
	}
	condition := object{
		"type": "Ready", "status": map[bool]string{
			true: "True", false: "False",
		}[isReady], "lastTransitionTime": w.server.clock.Now().UTC().Format(time.RFC3339),
	}
	conditions := []any{condition}
	old, _ := status["conditions"].([]any)
	for _, c := range old {
		switch m, ok := c.(object); {
		case !ok || m["type"] != "Ready":
			conditions = append(conditions, c)
		case m["status"] == condition["status"] && m["lastTransitionTime"] != nil:
			condition["lastTransitionTime"] = m["lastTransitionTime"]
		}
	}
	status["conditions"] = conditions
	return next
}
