package drainer

// Evictions and deletions, and what each answer means.

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

// Pauses after answers that are neither yes nor "no such pod".
const (
	conflictPause = 50 * time.Millisecond
	failurePause  = time.Second // doubled by each failure in a row, up to longestPause
	longestPause  = 30 * time.Second
	refusedPause  = 5 * time.Second
)

// send a request; its answer comes back in results. It outlives the call's time, or nobody would know what became of it.
func (d *operation) send(ctx context.Context, request drain.Request) {
	pod := request.Pod
	d.inFlight++
	d.report.Requests++
	d.view.Tries[pod.UID] = drain.Try{Pod: pod.Name, InFlight: true, Budget: request.Budget, Failures: d.view.Tries[pod.UID].Failures}
	budget := d.view.Budgets[request.Budget]
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		err := d.remove(ctx, request)
		d.results <- result{request: request, budget: budget, err: err, answered: time.Now()} // has room for all that may be in flight
	}()
}

// remove asks for the eviction of a pod, or deletes it: this one, not another that has its name meanwhile.
func (c *Nodes) remove(ctx context.Context, request drain.Request) error {
	pod := request.Pod
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if request.Grace > 0 {
		options.GracePeriodSeconds = &request.Grace
	}
	// Retries are the drainer's: it knows what else is to be done meanwhile.
	if request.Forced {
		return c.cluster.Core.Delete().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).Body(&options).Do(ctx).Error()
	}
	return c.cluster.Policy.Post().MaxRetries(0).AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options}).Do(ctx).Error()
}

// answer takes in what the API server said to a request.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
func (d *operation) answer(r result) {
	d.inFlight--
	pod, now := r.request.Pod, r.answered
	try := d.view.Tries[pod.UID]
	try.InFlight = false
	failures := try.Failures
	try.Failures = 0
	later := func(pause time.Duration, why string) {
		try.NotBefore, try.Why, try.Budget = now.Add(pause), why, ""
	}
	switch err := r.err; {
	case err == nil:
		try.Accepted = now
		if r.request.Forced {
			d.report.Forced = append(d.report.Forced, pod.ID())
			d.forced(pod.ID())
		} else {
			d.report.Evicted++
		}
	case apierrors.IsNotFound(err):
		delete(d.view.Pods, pod.UID)
		try.Budget = ""
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		// The budget has less than was seen when this was sent. If nothing newer has been seen since, something newer is on its
		// way, and until then the budget has nothing.
		switch b := d.view.Budgets[r.request.Budget]; {
		case r.budget == nil:
			// It was not to be counted, and its readiness changed meanwhile.
			later(failurePause, drain.WhyReadiness)
		case b == r.budget:
			none := *b
			none.Allowed = 0
			d.view.Budgets[b.Key] = &none
			try.Budget = ""
		default:
			later(conflictPause, drain.WhyWritten)
		}
	case apierrors.IsTooManyRequests(err):
		// Not the budget: the server is asked too much.
		pause := failurePause
		if after, ok := apierrors.SuggestsClientDelay(err); ok && after > 0 {
			pause = time.Duration(after) * time.Second
		}
		d.pause = now.Add(pause)
		later(pause, drain.WhyOverload)
		d.hear(err)
	case apierrors.IsConflict(err):
		// Somebody wrote the budget at the same time, or the pod is another by now, which the watch will tell.
		later(conflictPause, drain.WhyConflict)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		later(refusedPause, drain.WhyTerminating)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		later(refusedPause, drain.WhyRefused+": "+err.Error())
	default: // 5xx, or no answer at all
		try.Failures = failures + 1
		later(min(longestPause, failurePause<<min(failures, 5)), drain.WhyFailed+": "+err.Error())
		d.hear(err)
	}
	d.view.Tries[pod.UID] = try
}

// detached says whether the node's volumes are detached, waiting for them while it can. If it had to, pods may have come meanwhile, and it
// is to be asked again.
func (d *operation) detached(ctx context.Context) bool {
	source := d.allAttachments()
	for waited := false; ; waited = true {
		items, version, err := source.list(ctx)
		if err != nil {
			d.wait(ctx, err)
			return false
		}
		attached := map[types.UID]bool{}
		for i := range items {
			if items[i].Spec.NodeName == d.node {
				attached[items[i].UID] = true
			}
		}
		// Pods that stay keep theirs. Which ones, only the claims would tell; how many is enough.
		kept := 0
		for _, pod := range d.view.Pods {
			if pod.Class != drain.Finished {
				kept += pod.Claims
			}
		}
		d.report.Volumes = max(0, len(attached)-kept)
		if d.report.Volumes == 0 {
			return !waited
		}
		since, err := d.emptied(ctx)
		if apierrors.IsNotFound(err) {
			return true
		}
		if err != nil {
			d.wait(ctx, err)
			return false
		}
		left := time.Until(since.Add(volumesTimeout))
		if left <= 0 {
			d.report.Message = fmt.Sprintf("%s %s after the pods left", events.AttachedVolumes(d.report.Volumes), volumesTimeout)
			return !waited
		}
		if err := d.awaitDetached(ctx, source, version, attached, left); err != nil {
			d.wait(ctx, err)
			return false
		}
		if ctx.Err() != nil {
			return false
		}
	}
}
