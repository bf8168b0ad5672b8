package drainer

// Drains in virtual time, over the API server in memory: when they call the server, and when they report.

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/local/kubernetes/apiserver"
	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

// simulation is a cluster, its requests and its reports.
type simulation struct {
	t      *testing.T
	server *apiserver.Server
	nodes  *Drainer
	// evicting is how long an eviction takes.
	evicting time.Duration
	// intercept answers a request in place of the server if it returns true.
	intercept func(http.ResponseWriter, *http.Request) bool
	// ends is the timeout policy after one minute; "" waits without a timeout.
	ends events.OnTimeout
	// deletes: the whole cluster is deleted.
	deletes  bool
	began    time.Time
	mu       sync.Mutex
	asked    []timedRequest
	reported []timedReport
}

// timedRequest is a request: "GET /api/v1/nodes/n1", or "watch pods".
type timedRequest struct {
	what string
	at   time.Duration
}

// timedReport is a report of what blocks.
type timedReport struct {
	at     time.Duration
	report drain.Report
}

func simulate(t *testing.T) *simulation {
	s := &simulation{t: t, server: apiserver.New(&clock.Clock{}), began: time.Now()}
	t.Cleanup(s.server.Close)
	cluster, err := kube.Connect(&rest.Config{Host: "http://api", Transport: inprocess.Transport(s), QPS: -1})
	require.NoError(t, err)
	s.nodes = New(cluster)
	return s
}

func (s *simulation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + r.URL.Path
	if r.URL.Query().Get("watch") != "" {
		what = "watch " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	}
	s.mu.Lock()
	s.asked = append(s.asked, timedRequest{what, time.Since(s.began)})
	s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/eviction") {
		time.Sleep(s.evicting)
	}
	if s.intercept != nil && s.intercept(w, r) {
		return
	}
	s.server.ServeHTTP(w, r)
}

// when returns the times of a request.
func (s *simulation) when(what string) (at []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a.what == what {
			at = append(at, a.at)
		}
	}
	return at
}

func (s *simulation) node(name string) {
	s.t.Helper()
	_, err := s.nodes.cluster.Dynamic.Resource(schema.GroupVersionResource{
		Version: "v1", Resource: "nodes",
	}).Create(s.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "annotations": map[string]any{"local.drover.run/network": "ready"}},
		"spec":     map[string]any{"providerID": "aws:///zone/i-" + name},
	}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// waits is the annotation of what the drain waits for.
func (s *simulation) waits(name string) string {
	s.t.Helper()
	return s.read(name).Annotations[annotationWaits]
}

func (s *simulation) read(name string) (node corev1.Node) {
	s.t.Helper()
	require.NoError(s.t, s.nodes.cluster.Core.Get().Resource("nodes").Name(name).Do(s.t.Context()).Into(&node))
	return node
}

// drain drains n1 within a time that starts now.
func (s *simulation) drain(within time.Duration) drain.Report {
	s.mu.Lock()
	s.began, s.asked, s.reported = time.Now(), nil, nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	task := drain.Task{Policy: drain.Policy{OnTimeout: drain.Wait, DeleteEmptyDirData: true, UnmanagedPods: drain.EvictUnmanaged}}
	task.Policy.ClusterDeleting = s.deletes
	if s.ends != "" {
		task.Policy.Timeout, task.Policy.OnTimeout = 60, s.ends
	}
	return s.nodes.Drain(ctx, "n1", task, func(string) {}, func(_ context.Context, report drain.Report) {
		s.reported = append(s.reported, timedReport{time.Since(s.began), report})
	})
}

// inSimulation runs a test in virtual time: a node with apps, and a second node that joins later.
func inSimulation(t *testing.T, do func(*testing.T, *simulation), apps ...apiserver.App) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t)
		s.node("n1")
		time.Sleep(time.Minute)
		for _, a := range apps {
			s.server.Run(a)
		}
		time.Sleep(time.Minute)
		s.node("n2")
		time.Sleep(time.Minute)
		do(t, s)
		s.server.Close()
		synctest.Wait()
	})
}

const slice = 50 * time.Second

func TestBlockersAreReportedDuringTheCall(t *testing.T) {
	app := func(name string, out int) apiserver.App {
		return apiserver.App{Name: name, Replicas: 3, MaxUnavailable: out, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
	}
	inSimulation(t, func(t *testing.T, s *simulation) {
		read := make(chan string, 1)
		time.AfterFunc(10*time.Second, func() { read <- s.waits("n1") })
		report := s.drain(slice)
		noted := <-read
		require.Equal(t, drain.Remaining, report.Outcome)
		require.Len(t, s.reported, 1, "once")
		require.Equal(t, 7*time.Second, s.reported[0].at)
		require.Equal(t, 3, s.reported[0].report.Evicted, "pods that are not blocked are evicted")
		require.Len(t, s.reported[0].report.Blocked, 3)
		require.Equal(t, []string{"default/frozen"}, s.reported[0].report.Blocked[0].Budgets)
		require.Equal(t, s.reported[0].report.Summary(), noted)
		require.Contains(t, noted, "3 pods are left, 0 of them terminating; blocked: default/frozen-")
		require.Equal(t, noted, s.waits("n1"))
		require.Len(t, s.when("PATCH /api/v1/nodes/n1"), 2, "the cordon and the report: the end of the slice has the same blockers")

		s.drain(slice)
		require.Empty(t, s.reported, "the next slice has the same blockers")
		require.Empty(t, s.when("PATCH /api/v1/nodes/n1"))
	}, app("free", 1), app("frozen", 0))
}

func TestNewBlockersAreReportedLater(t *testing.T) {
	app := func(name string, out int) apiserver.App {
		return apiserver.App{Name: name, Replicas: 6, MaxUnavailable: out, Start: 2 * time.Second, Stop: time.Second, Grace: 30 * time.Second}
	}
	inSimulation(t, func(t *testing.T, s *simulation) {
		// The other app's budget is changed when some of its pods have ended.
		time.AfterFunc(6500*time.Millisecond, func() { s.server.Run(app("web", 0)) })
		report := s.drain(slice)
		require.Equal(t, drain.Remaining, report.Outcome)
		require.Len(t, s.reported, 2, "%+v", s.reported)
		require.Equal(t, 7*time.Second, s.reported[0].at)
		require.Equal(t, 22*time.Second, s.reported[1].at, "a quarter of a minute later at the earliest")
		require.NotEqual(t, s.reported[0].report.Summary(), s.reported[1].report.Summary())
		require.Len(t, s.when("PATCH /api/v1/nodes/n1"), 3)
	}, app("frozen", 0), app("web", 1))
}

// A drain that is not blocked makes no further requests and reports nothing, however long it takes.
func TestUnblockedDrainReportsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		app apiserver.App
		// long is the least duration.
		long time.Duration
		// over: the drain ends within the slice, and verifies that with two lists. Otherwise the node is annotated.
		over bool
	}{
		"pods that end slowly": {
			apiserver.App{Name: "slow", Replicas: 5, MaxUnavailable: -1, Start: time.Second, Stop: 40 * time.Second, Grace: time.Minute},
			40 * time.Second, true,
		},
		"one after the other, as its budget allows": {
			apiserver.App{Name: "web", Replicas: 15, MaxUnavailable: 1, Start: 2 * time.Second, Stop: time.Second, Grace: time.Minute},
			28 * time.Second, true,
		},
		"longer than a slice": {
			apiserver.App{Name: "web", Replicas: 60, MaxUnavailable: 1, Start: time.Second, Stop: 2 * time.Second, Grace: time.Minute}, slice, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				report := s.drain(slice)
				require.GreaterOrEqual(t, time.Since(s.began), c.long)
				require.Equal(t, c.over, report.Outcome == drain.Done, "%+v", report)
				require.Empty(t, s.reported)
				want := map[string]int{
					"GET /api/v1/nodes/n1": 1, "PATCH /api/v1/nodes/n1": 1, "GET /api/v1/pods": 1, "watch pods": 1,
					"GET /apis/policy/v1/poddisruptionbudgets": 1, "watch poddisruptionbudgets": 1,
				}
				if c.over {
					want["GET /api/v1/pods"] += 2
					want["GET /api/v1/nodes/n1"]++
					want["GET /apis/storage.k8s.io/v1/volumeattachments"]++
				} else {
					want["PATCH /api/v1/nodes/n1"]++
				}
				counted := map[string]int{}
				for _, a := range s.asked {
					if !strings.HasSuffix(a.what, "/eviction") {
						counted[a.what]++
					}
				}
				require.Equal(t, want, counted)
			}, c.app)
		})
	}
}

// A report that hangs delays neither evictions nor, for long, the end of the drain.
func TestDrainDoesNotWaitForItsReports(t *testing.T) {
	frozen := apiserver.App{Name: "frozen", Replicas: 3, MaxUnavailable: 0, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
	inSimulation(t, func(t *testing.T, s *simulation) {
		began := time.Now()
		time.AfterFunc(8*time.Second, func() { frozen.MaxUnavailable = 3; s.server.Run(frozen) })
		ctx, cancel := context.WithTimeout(t.Context(), slice)
		defer cancel()
		var evicted time.Duration
		s.server.OnRemoval(func(apiserver.Removal) { evicted = time.Since(began) })
		report := s.nodes.Drain(ctx, "n1", drain.Task{
			Policy: drain.Policy{OnTimeout: drain.Wait},
		}, func(string) {}, func(ctx context.Context, _ drain.Report) {
			<-ctx.Done()
		})
		require.Equal(t, drain.Done, report.Outcome)
		require.InDelta(t, 8*time.Second, evicted, float64(50*time.Millisecond))
		require.Equal(t, 7*time.Second+reportTimeout, time.Since(began), "an interim report must not follow the final one")
	}, frozen)
}

// Pods are not watched while there are requests to send, for at most watchDelay.
func TestPodsAreWatchedOnceAllRequestsAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		pods     int
		evicting time.Duration
		watched  time.Duration
	}{
		"all are sent":                      {maxInFlight - 1, 2 * time.Second, 0},
		"all are sent after a while":        {maxInFlight + 1, 2 * time.Second, 2 * time.Second},
		"there is always something to send": {4 * maxInFlight, 2 * time.Second, watchDelay},
		"there is, and responses take long": {2 * maxInFlight, 12 * time.Second, watchDelay},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, func(t *testing.T, s *simulation) {
				s.evicting = c.evicting
				report := s.drain(slice)
				require.Equal(t, drain.Done, report.Outcome, "%+v", report)
				require.Equal(t, c.pods, report.Requests, "no pod is evicted twice")
				watched := s.when("watch pods")
				require.NotEmpty(t, watched)
				require.InDelta(t, c.watched, watched[0], float64(50*time.Millisecond))
			}, apiserver.App{Name: "web", Replicas: c.pods, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second})
		})
	}
}

// Pods that tolerate the cordon return after each eviction. drover evicts them once, or twice in the first seconds, when it cannot know
// whether they existed before the cordon. Then they stay until the node is terminated.
func TestPodThatReturnsToACordonedNode(t *testing.T) {
	for name, out := range map[string]int{"without a budget": -1, "under a budget": 1} {
		t.Run(name, func(t *testing.T) {
			tolerant := apiserver.App{
				Name: "agent", Replicas: 3, MaxUnavailable: out, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second, Tolerant: true,
			}
			web := apiserver.App{Name: "web", Replicas: 5, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
			inSimulation(t, func(t *testing.T, s *simulation) {
				report := s.drain(slice)
				require.Equal(t, drain.Done, report.Outcome, "%+v", report)
				require.LessOrEqual(t, report.Evicted, 5+2*3, "evictions end")
				require.GreaterOrEqual(t, report.Evicted, 5+3, "all pods that existed before are evicted")
				require.Equal(t, report.Evicted, report.Requests)
				require.NotEmpty(t, report.Returned)
				require.Contains(t, report.Summary(), "came back")
				there := 0
				for _, p := range s.server.Pods() {
					if p.Node == "n1" {
						there++
						require.Equal(t, "agent", p.App)
						require.Contains(t, report.Returned, "default/"+p.Name, "pods that stay are named")
					}
				}
				require.Len(t, report.Returned, there)
			}, tolerant, web)
		})
	}
}

// A silence is an outage if it is longer than two pauses of the function.
func TestOutage(t *testing.T) {
	for name, c := range map[string]struct{ taken, silence time.Duration }{
		"from the beginning":  {0, 30 * time.Second},
		"after ten minutes":   {10 * time.Minute, 90 * time.Second},
		"after an hour":       {time.Hour, 30*time.Second + 6*time.Minute},
		"after hours":         {100 * time.Minute, 30*time.Second + 10*time.Minute},
		"waits have a limit":  {20 * time.Hour, 30*time.Second + 10*time.Minute},
		"as long as they may": {47 * time.Hour, 30*time.Second + 10*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
			h := cordonState{began: began, contact: began.Add(c.taken)}
			require.False(t, h.isOutage(h.contact.Add(c.silence)))
			require.True(t, h.isOutage(h.contact.Add(c.silence+1)))
		})
	}
}

// A drain ends at its deadline if the cluster was always reachable. After an outage it first tries evictions for a while, within one slice.
func TestDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		ends events.OnTimeout
		// down is when an outage of the API server starts, and lasts is its duration.
		down, lasts time.Duration
		// pause is between two slices. least and most limit when the pods are deleted, or the drain ends.
		pause       time.Duration
		least, most time.Duration
	}{
		"Continue, in the middle of a slice": {ends: drain.Continue, pause: time.Second, least: time.Minute, most: time.Minute},
		"Force, in the middle of a slice":    {ends: drain.Force, pause: time.Second, least: time.Minute, most: time.Minute + time.Second},
		"Continue, between two slices":       {ends: drain.Continue, pause: 12 * time.Second, least: 62 * time.Second, most: 62 * time.Second},
		"Force, between two slices":          {ends: drain.Force, pause: 12 * time.Second, least: 62 * time.Second, most: 63 * time.Second},
		"Continue, during an outage": {
			ends: drain.Continue, down: 55 * time.Second, lasts: 20 * time.Second, pause: time.Second, least: 75 * time.Second,
			most: 80 * time.Second,
		},
		"Continue, after an outage that began before": {
			ends: drain.Continue, down: 40 * time.Second, lasts: 40 * time.Second, pause: time.Second, least: 110 * time.Second,
			most: 132 * time.Second,
		},
		"Force, after an outage that began before": {
			ends: drain.Force, down: 40 * time.Second, lasts: 40 * time.Second, pause: time.Second, least: 110 * time.Second,
			most: 132 * time.Second,
		},
		"Continue, after a pause of minutes": {ends: drain.Continue, pause: 5 * time.Minute, least: 380 * time.Second, most: 380 * time.Second},
		"Force, after a pause of minutes":    {ends: drain.Force, pause: 5 * time.Minute, least: 380 * time.Second, most: 381 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			frozen := apiserver.App{Name: "frozen", Replicas: 3, MaxUnavailable: 0, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
			inSimulation(t, func(t *testing.T, s *simulation) {
				s.ends = c.ends
				began := time.Now()
				if c.lasts > 0 {
					time.AfterFunc(c.down, func() { s.server.Down(c.lasts) })
				}
				var removed []time.Duration
				s.server.OnRemoval(func(apiserver.Removal) { removed = append(removed, time.Since(began)) })
				report := s.drain(slice)
				for slices := 1; report.Outcome == drain.Remaining; slices++ {
					require.Less(t, slices, 9)
					time.Sleep(c.pause)
					report = s.drain(slice)
				}
				at := time.Since(began)
				if c.ends == drain.Force {
					require.Equal(t, drain.Done, report.Outcome)
					require.Len(t, removed, 3)
					at = removed[0]
				} else {
					require.Equal(t, drain.TimedOut, report.Outcome)
					require.Equal(t, "the drain timeout of 1m0s is over: the node is terminated with the pods that are left", report.Message)
					require.Equal(t, 3, report.Left)
					require.Empty(t, removed)
				}
				require.GreaterOrEqual(t, at, c.least)
				require.LessOrEqual(t, at, c.most+100*time.Millisecond)
			}, frozen)
		})
	}
}

// An operator uncordons the node during its drain. The drain cordons it again, and also evicts the pods that arrived.
func TestNodeIsUncordonedDuringItsDrain(t *testing.T) {
	uncordon := func(s *simulation) error {
		return s.nodes.cluster.Core.Patch(types.MergePatchType).Resource("nodes").Name("n1").Body([]byte(`{"spec":{"unschedulable":null}}`)).
			Do(s.t.Context()).Error()
	}
	for name, undo := range map[string]func(*simulation) error{
		"by an operator":                      uncordon,
		"by Restore, with all other settings": func(s *simulation) error { return s.nodes.Restore(s.t.Context(), "n1", false) },
	} {
		t.Run(name, func(t *testing.T) {
			web := apiserver.App{Name: "web", Replicas: 8, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second}
			inSimulation(t, func(t *testing.T, s *simulation) {
				began := time.Now()
				// No pod is left, and the second list has not been requested: then new pods arrive.
				time.AfterFunc(900*time.Millisecond, func() {
					require.NoError(t, undo(s))
					web.Replicas = 16
					s.server.Run(web)
				})
				report := s.drain(slice)
				require.Equal(t, drain.Done, report.Outcome, "%+v", report)
				for _, n := range s.server.Nodes() {
					require.Equal(t, n.Name == "n1", n.Cordoned, n.Name)
				}
				for _, p := range s.server.Pods() {
					require.NotEqual(t, "n1", p.Node)
				}
				require.Greater(t, report.Evicted, 8, "pods arrived")
				require.Less(t, time.Since(began), 10*time.Second)
				require.LessOrEqual(t, len(s.when("GET /api/v1/nodes/n1")), 1+3, "one for each verification")
				at, err := time.Parse(time.RFC3339Nano, s.read("n1").Annotations[annotationBegan])
				require.NoError(t, err)
				require.WithinDuration(t, began, at, 10*time.Millisecond, "its time continues")
			}, web)
		})
	}
	t.Run("when no pod is left and none arrives", func(t *testing.T) {
		inSimulation(t, func(t *testing.T, s *simulation) {
			time.AfterFunc(1050*time.Millisecond, func() { require.NoError(t, uncordon(s)) }) // between the two lists
			report := s.drain(slice)
			require.Equal(t, drain.Done, report.Outcome)
			require.True(t, s.server.Nodes()[0].Cordoned)
		}, apiserver.App{Name: "web", Replicas: 8, MaxUnavailable: -1, Start: time.Second, Stop: time.Second, Grace: 30 * time.Second})
	})
}
