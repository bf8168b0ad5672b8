package apiserver

// Kubelets that fall silent, and what the cluster makes of it.

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// tolerated is how long pods stay on a node that is not Ready, unless they say otherwise.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
const tolerated = 5 * time.Minute

// silence is networkAnnotation's value for a node whose kubelet is silent.
const silence = "silent"

// Silence has the kubelet of a node fall silent, or speak again. Meanwhile the node is not Ready, nor are its pods;
// after a while those are deleted, and others run elsewhere, but no kubelet confirms that they have ended. It says
// whether there is such a node, that spoke or was silent before.
func (s *Server) Silence(node string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.find(nodes, "", node)
	if err != nil || on == s.world.silent(node) || on && !ready(n) {
		return false
	}
	uid, annotated := meta(n)["uid"], "ready"
	if on {
		annotated = silence
	}
	next := s.world.withReady(n, !on)
	_ = unstructured.SetNestedField(next, annotated, "metadata", "annotations", networkAnnotation) // they are of strings
	s.settle(nodes, "MODIFIED", next)
	for _, p := range s.world.on(node) {
		switch {
		case !on && terminating(p):
			s.remove(pods, p)
		case on == ready(p):
			s.settle(pods, "MODIFIED", s.world.withReady(p, !on))
		}
	}
	if !on {
		return true
	}
	s.world.later(tolerated, func() {
		if n, err := s.find(nodes, "", node); err != nil || meta(n)["uid"] != uid || !s.world.silent(node) {
			return
		}
		for _, p := range s.world.on(node) {
			if !terminating(p) {
				gone := runtime.DeepCopyJSON(p)
				meta(gone)["deletionTimestamp"] = metav1.NewTime(s.clock.Now()).UTC().Format(time.RFC3339)
				s.settle(pods, "MODIFIED", gone)
			}
		}
	})
	return true
}

// silent says whether the kubelet of a node is.
func (w *world) silent(node string) bool {
	n, err := w.server.find(nodes, "", node)
	return err == nil && annotation(n, networkAnnotation) == silence
}

// on are the pods of a node.
func (w *world) on(node string) (all []object) {
	for _, p := range w.server.list(pods, "", matcher{}) {
		if text(p, "spec", "nodeName") == node {
			all = append(all, p)
		}
	}
	return all
}
