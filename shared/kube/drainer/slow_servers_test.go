package drainer

// Slow and overloaded API servers: late and missing responses.

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/drain"
)

func quick(name string, replicas, out int) apiserver.App {
	return apiserver.App{Name: name, Replicas: replicas, MaxUnavailable: out, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
}

// An overloaded server gets no request until the time that it suggests, and then all the rest.
func TestOverloadedServerGetsAPause(t *testing.T) {
	for name, c := range map[string]struct {
		frozen  int  // pods whose budget allows no eviction
		deleted bool // the pod of the refused request is deleted
	}{
		"nothing else happens":               {},
		"blockers are reported in the pause": {frozen: 3}, // after seven seconds
		"the pod is deleted in the pause":    {deleted: true},
		"both":                               {frozen: 3, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			const pause = 12 * time.Second
			inSimulation(t, func(t *testing.T, s *simulation) {
				var refused atomic.Bool
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/eviction") || refused.Swap(true) {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = fmt.Fprintf(w,
						`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"slow down",`+
							`"details":{"retryAfterSeconds":%d}}`, pause/time.Second)
					if pod := strings.TrimSuffix(r.URL.Path, "/eviction"); c.deleted {
						time.AfterFunc(3*time.Second, func() { require.NoError(t, s.nodes.cluster.Core.Delete().AbsPath(pod).Do(t.Context()).Error()) })
					}
					return true
				}
				report := s.drain(slice)
				require.Equal(t, c.frozen, report.Left, "%+v", report)
				evicted, late := 2*maxInFlight, maxInFlight+1 // the refused requests, and those not sent yet
				if c.deleted {
					evicted, late = evicted-1, late-1
				}
				require.Equal(t, evicted, report.Evicted)
				for _, a := range s.asked {
					if !strings.HasSuffix(a.what, "/eviction") {
						continue
					}
					if a.at > 0 {
						late--
						require.InDelta(t, pause, a.at, float64(50*time.Millisecond))
					}
				}
				require.Zero(t, late)
			}, quick("web", 2*maxInFlight, -1), quick("frozen", c.frozen, 0))
		})
	}
}

// Results of outstanding requests count at the end of a call. The call waits for them at most flushTimeout.
func TestResultsAtTheEndOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		evicting, took time.Duration
		evicted        int
	}{
		"soon": {2 * time.Second, 2 * time.Second, 5},
		"late": {20 * time.Second, time.Second + flushTimeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				s.evicting = c.evicting
				report := s.drain(time.Second)
				require.Equal(t, c.took, time.Since(s.began))
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Equal(t, 5, report.Requests)
				require.Equal(t, c.evicted, report.Evicted)
				time.Sleep(time.Minute) // until the requests have ended
			}, quick("web", 5, -1))
		})
	}
}

// The report contains an error while it lasts, and not long after.
func TestTroubleIsCleared(t *testing.T) {
	for name, c := range map[string]struct {
		lasts    time.Duration
		reported bool
	}{
		"it ended long ago": {10 * time.Second, false},
		"it ended recently": {30 * time.Second, true},
		"it lasts":          {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				time.AfterFunc(5*time.Second, func() { s.server.Down(c.lasts) })
				report := s.drain(slice)
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Equal(t, c.reported, report.Message != "", report.Message)
				require.Equal(t, c.reported, strings.Contains(report.Summary(), "down"), report.Summary())
				if c.lasts < slice {
					require.Equal(t, report.Summary(), s.waits("n1"))
				}
			}, quick("frozen", 3, 0))
		})
	}
	t.Run("it ended long before the drain", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			time.AfterFunc(5*time.Second, func() { s.server.Down(10 * time.Second) })
			time.AfterFunc(45*time.Second, func() { s.server.Run(quick("frozen", 3, 3)) })
			report := s.drain(slice)
			require.Equal(t, drain.Done, report.Outcome)
			require.Equal(t, "no pods are left", report.Summary())
		}, quick("frozen", 3, 0))
	})
	t.Run("it exists from the beginning", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			time.AfterFunc(time.Millisecond, func() { s.server.Down(time.Hour) })
			s.intercept = func(w http.ResponseWriter, r *http.Request) bool { // the pods are unknown
				if r.URL.Path == "/api/v1/pods" {
					time.Sleep(time.Second)
				}
				return false
			}
			report := s.drain(slice)
			require.Equal(t, drain.Remaining, report.Outcome)
			require.NotEmpty(t, report.Message)
		}, quick("frozen", 3, 0))
	})
}

// Shortly before the end of a call blockers are not reported separately: the final report has them.
func TestBlockersShortlyBeforeTheEndOfACall(t *testing.T) {
	for within, reports := range map[time.Duration]int{7*time.Second + reportTimeout - 1: 0, 7*time.Second + reportTimeout: 1} {
		t.Run(within.String(), func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				report := s.drain(within)
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Len(t, s.reported, reports)
				require.Equal(t, report.Summary(), s.waits("n1"))
			}, quick("frozen", 3, 0))
		})
	}
}

// A drain that timed out lists the pods before it ends: its watch may have missed that all pods left.
func TestTimedOutDrainListsPodsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		left int
		want drain.Outcome
	}{
		"no pod is left":    {0, drain.Done},
		"something is left": {2, drain.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				s.ends = drain.Continue
				s.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
					isWatch := r.URL.Query().Get("watch") != ""
					if isWatch {
						<-r.Context().Done()
					}
					return isWatch
				}
				time.AfterFunc(45*time.Second, func() { s.server.Run(quick("frozen", c.left, 0)) })
				report := s.drain(2 * time.Minute)
				require.Equal(t, c.want, report.Outcome, "%+v", report)
				require.Equal(t, c.left, report.Left)
				require.Len(t, report.Blocked, c.left)
				require.GreaterOrEqual(t, time.Since(s.began), time.Minute)
			}, quick("frozen", 5, 0))
		})
	}
}

func TestSooner(t *testing.T) {
	never, early, late := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range [][3]time.Time{
		{early, late, early}, {late, early, early}, {never, late, late}, {late, never, late}, {never, never, never},
	} {
		require.Equal(t, c[2], sooner(c[0], c[1]))
	}
}

// The drain of a missing node has ended. If the API server does not respond, it continues.
func TestDrainOfAMissingNode(t *testing.T) {
	inSimulation(t, func(t *testing.T, s *simulation) {
		require.True(t, apierrors.IsNotFound(s.nodes.Restore(t.Context(), "n9", false)))
		require.NoError(t, s.nodes.cluster.Core.Delete().Resource("nodes").Name("n1").Do(t.Context()).Error())
		report := s.drain(slice)
		require.Equal(t, drain.Gone, report.Outcome)
		require.Equal(t, "there is no node n1", report.Message)

		s.server.Down(time.Hour)
		report = s.drain(slice)
		require.Equal(t, drain.Remaining, report.Outcome)
		require.NotEmpty(t, report.Message)
	})
}
