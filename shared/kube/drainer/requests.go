package drainer

// Evictions and deletions, and how their results change the view.

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/drain"
)

// Pauses after a failed request, unless the pod does not exist.
const (
	conflictPause = 50 * time.Millisecond
	failurePause  = time.Second // doubled by each consecutive failure, up to longestPause
	longestPause  = 30 * time.Second
	refusedPause  = 5 * time.Second
)

// send starts a request. Its result arrives in results. It may outlive ctx, so that its result is known.
func (c *drainRun) send(ctx context.Context, request drain.Request) {
	pod := request.Pod
	c.inFlight++
	c.report.Requests++
	c.view.Tries[pod.UID] = drain.Try{Pod: pod.Name, InFlight: true, Budget: request.Budget, Failures: c.view.Tries[pod.UID].Failures}
	budget := c.view.Budgets[request.Budget]
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		err := c.remove(ctx, request)
		c.results <- result{request: request, budget: budget, err: err, answered: time.Now()} // its buffer holds maxInFlight
	}()
}

// remove evicts or deletes the pod with this UID, never another pod of the same name.
func (d *Drainer) remove(ctx context.Context, request drain.Request) error {
	pod := request.Pod
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if request.Grace > 0 {
		options.GracePeriodSeconds = &request.Grace
	}
	// The drainer retries: it can handle other pods during the pause.
	if request.Forced {
		return d.cluster.Core.Delete().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).Body(&options).Do(ctx).Error()
	}
	return d.cluster.Policy.Post().MaxRetries(0).AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options}).Do(ctx).Error()
}

// answer applies the result of a request to the view and the report.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
func (c *drainRun) answer(r result) {
	c.inFlight--
	pod, now := r.request.Pod, r.answered
	try := c.view.Tries[pod.UID]
	try.InFlight = false
	failures := try.Failures
	try.Failures = 0
	later := func(pause time.Duration, code drain.Code, detail string) {
		try.NotBefore, try.Why, try.Budget = now.Add(pause), drain.Reason{Code: code, Detail: detail}, ""
	}
	switch err := r.err; {
	case err == nil:
		try.Accepted = now
		if r.request.Forced {
			c.report.Forced = append(c.report.Forced, pod.ID())
			c.forced(pod.ID())
		} else {
			c.report.Evicted++
		}
	case apierrors.IsNotFound(err):
		delete(c.view.Pods, pod.UID)
		try.Budget = ""
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		// The budget allows less than when the request was sent. If no newer version has arrived, the budget counts as
		// exhausted until it arrives.
		switch b := c.view.Budgets[r.request.Budget]; {
		case r.budget == nil:
			// The pod needed no budget when the request was sent. Its readiness has changed.
			later(failurePause, drain.ReadinessChanges, "")
		case b == r.budget:
			none := *b
			none.Allowed = 0
			c.view.Budgets[b.Key] = &none
			try.Budget = ""
		default:
			later(conflictPause, drain.BudgetChanges, "")
		}
	case apierrors.IsTooManyRequests(err):
		// The cause is an overloaded server, not the budget.
		pause := failurePause
		if after, ok := apierrors.SuggestsClientDelay(err); ok && after > 0 {
			pause = time.Duration(after) * time.Second
		}
		c.pause = now.Add(pause)
		later(pause, drain.Overload, "")
		c.recordTrouble(err)
	case apierrors.IsConflict(err):
		// The budget was written at the same time, or the pod was replaced. The watch will show it.
		later(conflictPause, drain.Conflict, "")
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		later(refusedPause, drain.NamespaceTerminating, "")
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		later(refusedPause, drain.Refused, err.Error())
	default: // 5xx, or no response
		try.Failures = failures + 1
		later(min(longestPause, failurePause<<min(failures, 5)), drain.Failed, err.Error())
		c.recordTrouble(err)
	}
	c.view.Tries[pod.UID] = try
}

// volumesDetached reports whether the node's volumes are detached, and waits for them until ctx ends. After a wait it
// returns false, since pods may have arrived: the caller verifies again.
func (c *drainRun) volumesDetached(ctx context.Context) bool {
	source := c.allAttachments()
	for waited := false; ; waited = true {
		items, version, err := source.list(ctx)
		if err != nil {
			c.wait(ctx, err)
			return false
		}
		attached := map[types.UID]bool{}
		for i := range items {
			if items[i].Spec.NodeName == c.node {
				attached[items[i].UID] = true
			}
		}
		// Pods that stay keep their volumes. Only their number matters.
		kept := 0
		for _, pod := range c.view.Pods {
			if pod.Class != drain.Finished {
				kept += pod.Claims
			}
		}
		c.report.Volumes = max(0, len(attached)-kept)
		if c.report.Volumes == 0 {
			return !waited
		}
		since, err := c.emptySince(ctx)
		if apierrors.IsNotFound(err) {
			return true
		}
		if err != nil {
			c.wait(ctx, err)
			return false
		}
		left := time.Until(since.Add(volumesTimeout))
		if left <= 0 {
			c.report.Message = fmt.Sprintf("%s %s after the pods left", events.AttachedVolumes(c.report.Volumes), volumesTimeout)
			return !waited
		}
		if err := c.awaitDetached(ctx, source, version, attached, left); err != nil {
			c.wait(ctx, err)
			return false
		}
		if ctx.Err() != nil {
			return false
		}
	}
}
