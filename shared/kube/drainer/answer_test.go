package drainer

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/shared/drain"
)

// The result of an eviction changes its pod, its budget and the pause of the drain.
func TestAnswer(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	caused := func(err *apierrors.StatusError, cause metav1.CauseType, after int32) error {
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}, RetryAfterSeconds: after}
		return err
	}
	noBudget := func() error { return caused(apierrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause, 10) }
	for name, c := range map[string]struct {
		err error
		// uncounted: the pod needs no budget. newer: a newer status of the budget has arrived. failures: consecutive earlier failures.
		uncounted, newer bool
		failures         int
		// again is the pause for this pod, and all is the pause for every pod.
		again, all time.Duration
		why        drain.Code
		uses       bool // the request counts against the budget
		left       int  // evictions that the budget allows
		deleted    bool
		trouble    bool
		fails      int
	}{
		"success":                 {uses: true, left: 2},
		"the pod does not exist":  {err: apierrors.NewNotFound(pods, "a"), left: 2, deleted: true},
		"the budget is exhausted": {err: noBudget(), left: 0},
		"the budget is exhausted, and a newer status has arrived": {
			err: noBudget(), newer: true, again: conflictPause, why: drain.BudgetChanges, left: 1,
		},
		"the pod has become Ready": {err: noBudget(), uncounted: true, again: failurePause, why: drain.ReadinessChanges, left: 2},
		"the server is overloaded": {
			err: apierrors.NewTooManyRequests("slow down", 7), again: 7 * time.Second, all: 7 * time.Second, why: drain.Overload,
			left: 2, trouble: true,
		},
		"the server is overloaded, and suggests no delay": {
			err: apierrors.NewTooManyRequestsError("slow down"), again: failurePause, all: failurePause, why: drain.Overload,
			left: 2, trouble: true,
		},
		"the budget was written at the same time": {
			err: apierrors.NewConflict(pods, "a", errors.New("no")), again: conflictPause, why: drain.Conflict, left: 2,
		},
		"the namespace is terminating": {
			err: caused(apierrors.NewForbidden(pods, "a", nil), corev1.NamespaceTerminatingCause, 0), again: refusedPause,
			why: drain.NamespaceTerminating, left: 2,
		},
		"a webhook denies it": {
			err: apierrors.NewForbidden(pods, "a", errors.New("not now")), again: refusedPause, why: drain.Refused, left: 2,
		},
		"the credentials are invalid": {
			err: apierrors.NewUnauthorized("who?"), again: refusedPause, why: drain.Refused, left: 2,
		},
		"two budgets, or another internal error": {
			err: apierrors.NewInternalError(errors.New("etcd")), again: failurePause, why: drain.Failed, left: 2, trouble: true, fails: 1,
		},
		"no response, for the third time": {
			err: errors.New("connection reset"), failures: 2, again: 4 * failurePause, why: drain.Failed, left: 2, trouble: true, fails: 3,
		},
		"no response, after 1000 failures": {
			err: errors.New("connection reset"), failures: 1000, again: longestPause, why: drain.Failed, left: 2, trouble: true, fails: 1001,
		},
		"a denial resets the number of failures": {
			err: apierrors.NewForbidden(pods, "a", nil), failures: 3, again: refusedPause, why: drain.Refused, left: 2,
		},
		"the pod does not exist, after failures": {err: apierrors.NewNotFound(pods, "a"), failures: 3, left: 2, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod, seen := &drain.Pod{UID: "uid", Namespace: "shop", Name: "a"}, &drain.Budget{Key: "shop/web", Allowed: 2}
			d := &drainRun{inFlight: 1, view: drain.View{
				Pods: map[types.UID]*drain.Pod{"uid": pod}, Budgets: map[drain.Key]*drain.Budget{"shop/web": seen},
				Tries: map[types.UID]drain.Try{"uid": {InFlight: true, Budget: "shop/web", Failures: c.failures}},
			}}
			now := time.Now()
			r := result{request: drain.Request{Pod: pod, Budget: "shop/web"}, budget: seen, err: c.err, answered: now}
			if c.uncounted {
				r.request.Budget, r.budget = "", nil
			}
			if c.newer {
				d.view.Budgets["shop/web"] = &drain.Budget{Key: "shop/web", Allowed: 1}
			}
			d.answer(r)
			try := d.view.Tries["uid"]
			require.Zero(t, d.inFlight)
			require.False(t, try.InFlight)
			require.Equal(t, c.err == nil, try.Accepted.Equal(now))
			require.Equal(t, c.uses, try.Budget != "")
			until := func(at time.Time) time.Duration {
				if at.IsZero() {
					return 0
				}
				return at.Sub(now)
			}
			require.Equal(t, c.again, until(try.NotBefore))
			require.Equal(t, c.all, until(d.pause))
			require.Equal(t, c.why, try.Why.Code)
			require.Equal(t, c.why == drain.Refused || c.why == drain.Failed, try.Why.Detail != "", "only these have the API server's message")
			require.Equal(t, c.left, d.view.Budgets["shop/web"].Allowed)
			require.Equal(t, 2, seen.Allowed, "the budget that others use is not modified")
			require.Equal(t, c.deleted, d.view.Pods["uid"] == nil)
			require.Equal(t, c.trouble, d.report.Message != "")
			require.Equal(t, c.fails, try.Failures)
			evicted := 0
			if c.err == nil {
				evicted = 1
			}
			require.Equal(t, evicted, d.report.Evicted)
		})
	}
	t.Run("success of a deletion against its budget", func(t *testing.T) {
		var forced []string
		pod := &drain.Pod{UID: "uid", Namespace: "shop", Name: "a"}
		d := &drainRun{inFlight: 1, forced: func(pod string) {
			forced = append(forced, pod)
		}, view: drain.View{Tries: map[types.UID]drain.Try{}}}
		d.answer(result{request: drain.Request{Pod: pod, Forced: true}, answered: time.Now()})
		require.Equal(t, []string{"shop/a"}, forced)
		require.Equal(t, forced, d.report.Forced)
		require.Zero(t, d.report.Evicted)
	})
}
