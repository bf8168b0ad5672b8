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

// What each answer to an eviction means for its pod, for its budget and for all others.
func TestWhatAnAnswerMeans(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	caused := func(err *apierrors.StatusError, cause metav1.CauseType, after int32) error {
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}, RetryAfterSeconds: after}
		return err
	}
	noBudget := func() error { return caused(apierrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause, 10) }
	for name, c := range map[string]struct {
		err error
		// uncounted pods need nothing of a budget; newer is that the budget's status was seen anew meanwhile; failures are those before.
		uncounted, newer bool
		failures         int
		// again is after which time the pod's turn comes again, and all is until when nobody's does.
		again, all time.Duration
		why        string
		uses       bool // the request counts against its budget
		left       int  // what the budget has
		gone       bool
		heard      bool
		fails      int
	}{
		"yes":                               {uses: true, left: 2},
		"the pod is gone":                   {err: apierrors.NewNotFound(pods, "a"), left: 2, gone: true},
		"the budget has less than was seen": {err: noBudget(), left: 0},
		"and that was seen meanwhile":       {err: noBudget(), newer: true, again: conflictPause, why: drain.WhyWritten, left: 1},
		"the pod was not to be counted":     {err: noBudget(), uncounted: true, again: failurePause, why: drain.WhyReadiness, left: 2},
		"the server is asked too much": {
			err: apierrors.NewTooManyRequests("slow down", 7), again: 7 * time.Second, all: 7 * time.Second, why: drain.WhyOverload,
			left: 2, heard: true,
		},
		"and does not say until when": {
			err: apierrors.NewTooManyRequestsError("slow down"), again: failurePause, all: failurePause, why: drain.WhyOverload,
			left: 2, heard: true,
		},
		"somebody wrote the budget": {
			err: apierrors.NewConflict(pods, "a", errors.New("no")), again: conflictPause, why: drain.WhyConflict, left: 2,
		},
		"the namespace ends": {
			err: caused(apierrors.NewForbidden(pods, "a", nil), corev1.NamespaceTerminatingCause, 0), again: refusedPause,
			why: drain.WhyTerminating, left: 2,
		},
		"a webhook says no": {
			err: apierrors.NewForbidden(pods, "a", errors.New("not now")), again: refusedPause, why: drain.WhyRefused + ": ", left: 2,
		},
		"the credentials are no good": {
			err: apierrors.NewUnauthorized("who?"), again: refusedPause, why: drain.WhyRefused + ": ", left: 2,
		},
		"two budgets, or another failure": {
			err: apierrors.NewInternalError(errors.New("etcd")), again: failurePause, why: drain.WhyFailed + ": ", left: 2, heard: true, fails: 1,
		},
		"no answer, for the third time": {
			err: errors.New("connection reset"), failures: 2, again: 4 * failurePause, why: drain.WhyFailed + ": ", left: 2, heard: true, fails: 3,
		},
		"for ever": {
			err: errors.New("connection reset"), failures: 1000, again: longestPause, why: drain.WhyFailed + ": ", left: 2, heard: true, fails: 1001,
		},
		"a refusal ends a row of failures": {
			err: apierrors.NewForbidden(pods, "a", nil), failures: 3, again: refusedPause, why: drain.WhyRefused + ": ", left: 2,
		},
		"the pod is gone after a row of failures": {err: apierrors.NewNotFound(pods, "a"), failures: 3, left: 2, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod, seen := &drain.Pod{UID: "uid", Namespace: "shop", Name: "a"}, &drain.Budget{Key: "shop/web", Allowed: 2}
			d := &operation{inFlight: 1, view: drain.View{
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
			if c.why == "" {
				require.Empty(t, try.Why)
			}
			require.Contains(t, try.Why, c.why)
			require.Equal(t, c.left, d.view.Budgets["shop/web"].Allowed)
			require.Equal(t, 2, seen.Allowed, "what others hold is not changed")
			require.Equal(t, c.gone, d.view.Pods["uid"] == nil)
			require.Equal(t, c.heard, d.report.Message != "")
			require.Equal(t, c.fails, try.Failures)
			evicted := 0
			if c.err == nil {
				evicted = 1
			}
			require.Equal(t, evicted, d.report.Evicted)
		})
	}
	t.Run("yes to a deletion against its budget", func(t *testing.T) {
		var told []string
		pod := &drain.Pod{UID: "uid", Namespace: "shop", Name: "a"}
		d := &operation{inFlight: 1, forced: func(pod string) { told = append(told, pod) }, view: drain.View{Tries: map[types.UID]drain.Try{}}}
		d.answer(result{request: drain.Request{Pod: pod, Forced: true}, answered: time.Now()})
		require.Equal(t, []string{"shop/a"}, told)
		require.Equal(t, told, d.report.Forced)
		require.Zero(t, d.report.Evicted)
	})
}
