package drainer

// API servers that are slow, or asked too much: what a drain makes of late answers, and of none.

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

// A server that is asked too much is asked for nothing at all until the time that it says, and then for all that is left.
func TestAServerThatIsAskedTooMuchIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		frozen  int  // pods whose budget lets none of them go
		deleted bool // by somebody, which was refused
	}{
		"nothing else is to come":           {},
		"something else is told before":     {frozen: 3}, // what blocks, after seven seconds
		"what was refused is gone by then":  {deleted: true},
		"and something else is told before": {frozen: 3, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			const pause = 12 * time.Second
			drained(t, func(t *testing.T, s *simulated) {
				var refused atomic.Bool
				s.instead = func(w http.ResponseWriter, r *http.Request) bool {
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
				evicted, late := 2*atOnce, atOnce+1 // what was refused, and what had not been asked for
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
			}, quick("web", 2*atOnce, -1), quick("frozen", c.frozen, 0))
		})
	}
}

// What was asked for when the time of a call is over counts once it is answered, but nobody waits for long.
func TestAnswersThatComeWhenACallIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		evicting, took time.Duration
		evicted        int
	}{
		"soon": {2 * time.Second, 2 * time.Second, 5},
		"late": {20 * time.Second, time.Second + lastAnswers, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, func(t *testing.T, s *simulated) {
				s.evicting = c.evicting
				report := s.drain(time.Second)
				require.Equal(t, c.took, time.Since(s.began))
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Equal(t, 5, report.Requests)
				require.Equal(t, c.evicted, report.Evicted)
				time.Sleep(time.Minute) // they are answered by then
			}, quick("web", 5, -1))
		})
	}
}

// Trouble is told of while it lasts, and not long after.
func TestTroubleIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		told  bool
	}{
		"it is over for long": {10 * time.Second, false},
		"it was just there":   {30 * time.Second, true},
		"it lasts":            {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, func(t *testing.T, s *simulated) {
				time.AfterFunc(5*time.Second, func() { s.server.Down(c.lasts) })
				report := s.drain(slice)
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Equal(t, c.told, report.Message != "", report.Message)
				require.Equal(t, c.told, strings.Contains(report.Summary(), "down"), report.Summary())
				if c.lasts < slice {
					require.Equal(t, report.Summary(), s.waits("n1"))
				}
			}, quick("frozen", 3, 0))
		})
	}
	t.Run("it was over for long when the drain was", func(t *testing.T) {
		drained(t, func(t *testing.T, s *simulated) {
			time.AfterFunc(5*time.Second, func() { s.server.Down(10 * time.Second) })
			time.AfterFunc(45*time.Second, func() { s.server.Run(quick("frozen", 3, 3)) })
			report := s.drain(slice)
			require.Equal(t, drain.Done, report.Outcome)
			require.Equal(t, "no pods are left", report.Summary())
		}, quick("frozen", 3, 0))
	})
	t.Run("it was there from the beginning", func(t *testing.T) {
		drained(t, func(t *testing.T, s *simulated) {
			time.AfterFunc(time.Millisecond, func() { s.server.Down(time.Hour) })
			s.instead = func(w http.ResponseWriter, r *http.Request) bool { // nothing is known of the pods
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

// Nobody is told of what blocks shortly before a call is over: its end tells.
func TestWhatBlocksIsLeftToTheEndOfTheCall(t *testing.T) {
	for within, told := range map[time.Duration]int{7*time.Second + tellWithin - 1: 0, 7*time.Second + tellWithin: 1} {
		t.Run(within.String(), func(t *testing.T) {
			drained(t, func(t *testing.T, s *simulated) {
				report := s.drain(within)
				require.Equal(t, drain.Remaining, report.Outcome)
				require.Len(t, s.told, told)
				require.Equal(t, report.Summary(), s.waits("n1"))
			}, quick("frozen", 3, 0))
		})
	}
}

// A drain whose time is over looks for itself before its node goes: nobody has told it that all pods are gone.
func TestADrainLooksBeforeItsNodeGoes(t *testing.T) {
	for name, c := range map[string]struct {
		left int
		want drain.Outcome
	}{
		"nothing is left":   {0, drain.Done},
		"something is left": {2, drain.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, func(t *testing.T, s *simulated) {
				s.ends = drain.Continue
				s.instead = func(_ http.ResponseWriter, r *http.Request) bool {
					deaf := r.URL.Query().Get("watch") != ""
					if deaf {
						<-r.Context().Done()
					}
					return deaf
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

// A drain of a node that is not there is over, and one that cannot say so is not.
func TestADrainOfANodeThatIsNotThere(t *testing.T) {
	drained(t, func(t *testing.T, s *simulated) {
		require.True(t, apierrors.IsNotFound(s.nodes.Release(t.Context(), "n9", false)))
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
