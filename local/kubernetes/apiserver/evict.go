package apiserver

// Evictions and deletions of pods, by the API server's rules.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works

import (
	"fmt"
	"net/http"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// evict evicts a pod if its budget allows it.
func (s *Server) evict(namespace, name string, options *metav1.DeleteOptions) error {
	p, err := s.find(pods, namespace, name)
	if err != nil {
		return err
	}
	if err := precondition(p, options); err != nil {
		return err
	}
	phase := text(p, "status", "phase")
	if phase == "Succeeded" || phase == "Failed" || phase == "Pending" || terminating(p) {
		return s.end(p, options, "")
	}
	var matching []object
	for _, b := range s.list(budgets, namespace, matcher{}) {
		selector, _, _ := unstructured.NestedStringMap(b, "spec", "selector", "matchLabels")
		if labels.SelectorFromSet(selector).Matches(labelsOf(p)) {
			matching = append(matching, b)
		}
	}
	switch len(matching) {
	case 0:
		return s.end(p, options, "evicted")
	case 1:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	b := matching[0]
	number := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(b, "status", field)
		return n
	}
	// IfHealthyBudget, the default: a pod that is not ready may be evicted if its app is healthy without it.
	if !ready(p) && number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy") {
		return s.end(p, options, "evicted")
	}
	if number("disruptionsAllowed") < 1 {
		refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
				nameOf(b), number("desiredHealthy"), number("currentHealthy")),
		})
		return refused
	}
	next := runtime.DeepCopyJSON(b)
	status := next["status"].(object)
	disrupted, _ := status["disruptedPods"].(object)
	if disrupted == nil {
		disrupted = object{}
	}
	disrupted[name] = s.clock.Now().Format(time.RFC3339)
	status["disruptedPods"], status["disruptionsAllowed"] = disrupted, number("disruptionsAllowed")-1
	s.put(budgets, "MODIFIED", next)
	return s.end(p, options, "evicted")
}

func precondition(o object, options *metav1.DeleteOptions) error {
	if options == nil || options.Preconditions == nil || options.Preconditions.UID == nil {
		return nil
	}
	if uid := string(*options.Preconditions.UID); uid != meta(o)["uid"] {
		return apierrors.NewConflict(pods.groupResource(), nameOf(o),
			fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %v", uid, meta(o)["uid"]))
	}
	return nil
}

// delete deletes an object. A pod has its grace period.
func (s *Server) delete(k kind, o object, options *metav1.DeleteOptions) error {
	if err := precondition(o, options); err != nil {
		return err
	}
	if k != pods {
		s.remove(k, o)
		return nil
	}
	return s.end(o, options, "deleted")
}

// end ends a pod after its grace period. how is empty if the pod was terminating before.
func (s *Server) end(p object, options *metav1.DeleteOptions, how string) error {
	if terminating(p) {
		return nil
	}
	if how != "" {
		s.world.recordRemoval(p, how)
	}
	if text(p, "spec", "nodeName") == "" {
		s.remove(pods, p)
		return nil
	}
	grace, _, _ := unstructured.NestedInt64(p, "spec", "terminationGracePeriodSeconds")
	if options != nil && options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	next := runtime.DeepCopyJSON(p)
	m := meta(next)
	m["deletionTimestamp"] = s.clock.Now().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	m["deletionGracePeriodSeconds"] = grace
	uid, stop := m["uid"], min(time.Duration(grace)*time.Second, s.world.apps[text(p, "metadata", "labels", "app")].Stop)
	s.settle(pods, "MODIFIED", next)
	s.world.later(stop, func() {
		if now, err := s.find(pods, text(p, "metadata", "namespace"), nameOf(p)); err == nil && meta(now)["uid"] == uid &&
			!s.world.silent(text(now, "spec", "nodeName")) {
			s.remove(pods, now)
		}
	})
	return nil
}
