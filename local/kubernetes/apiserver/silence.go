package apiserver

// Silent kubelets, and how the cluster reacts.

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// toleratedTime is how long pods remain on a node that is not Ready, by default.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
const toleratedTime = 5 * time.Minute

// silenceAnnotation marks a node with a silent kubelet. An update of the network plugin does not end the silence.
const silenceAnnotation = "local.drover.run/silent"

// Silence silences the kubelet of a node, or ends its silence. A silent node and its pods are not Ready. After a while
// its pods are deleted and replaced on other nodes, but no kubelet confirms their end. Silence returns false if the node
// does not exist or is in that state already.
func (s *Server) Silence(node string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.find(nodes, "", node)
	if err != nil || on == s.world.silent(node) || on && !ready(n) {
		return false
	}
	uid, next := meta(n)["uid"], s.world.withReady(n, !on)
	if on {
		_ = unstructured.SetNestedField(next, "true", "metadata", "annotations", silenceAnnotation) // the annotations are strings
	} else {
		unstructured.RemoveNestedField(next, "metadata", "annotations", silenceAnnotation)
	}
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
	s.world.later(toleratedTime, func() {
		if n, err := s.find(nodes, "", node); err != nil || meta(n)["uid"] != uid || !s.world.silent(node) {
			return
		}
		for _, p := range s.world.on(node) {
			if !terminating(p) {
				deleted := runtime.DeepCopyJSON(p)
				meta(deleted)["deletionTimestamp"] = metav1.NewTime(s.clock.Now()).UTC().Format(time.RFC3339)
				s.settle(pods, "MODIFIED", deleted)
			}
		}
	})
	return true
}

// silent reports whether the kubelet of a node is silent.
func (w *world) silent(node string) bool {
	n, err := w.server.find(nodes, "", node)
	return err == nil && annotation(n, silenceAnnotation) != ""
}

// on returns the pods of a node.
func (w *world) on(node string) (all []object) {
	for _, p := range w.server.list(pods, "", matcher{}) {
		if text(p, "spec", "nodeName") == node {
			all = append(all, p)
		}
	}
	return all
}
