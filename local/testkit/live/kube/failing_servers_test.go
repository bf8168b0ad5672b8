package kube_test

// API servers that refuse, fail, close watches or restart, and functions that are killed: the drain continues.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

// proxy is between the drain and the API server, and can answer in its place.
type proxy struct {
	*httptest.Server
	// misbehave answers a request if it returns true.
	misbehave atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	mu        sync.Mutex
	watches   int
	// closers end the open watches.
	closers map[int]context.CancelFunc
}

func (w *world) through(t *testing.T) *proxy {
	t.Helper()
	target, err := url.Parse(plane.Endpoint)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config())
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	forward.ErrorHandler = func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) }
	p := &proxy{closers: map[int]context.CancelFunc{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if f := p.misbehave.Load(); f != nil && (*f)(rw, r) {
			return
		}
		p.mu.Lock()
		id := -1
		if r.URL.Query().Get("watch") != "" {
			ctx, cancel := context.WithCancel(r.Context())
			r = r.WithContext(ctx)
			id = p.watches
			p.watches++
			p.closers[id] = cancel
		}
		p.mu.Unlock()
		defer func() {
			_ = recover() // a watch that was cut ends the response in the middle
			if id >= 0 {
				p.mu.Lock()
				delete(p.closers, id)
				p.mu.Unlock()
			}
		}()
		forward.ServeHTTP(rw, r)
	}))
	t.Cleanup(p.Close)
	w.cluster, err = kube.Connect(&rest.Config{Host: p.URL})
	require.NoError(t, err)
	return p
}

// watching returns the number of open watches.
func (p *proxy) watching() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.closers)
}

func (p *proxy) behave(f func(http.ResponseWriter, *http.Request) bool) { p.misbehave.Store(&f) }

// answer writes an error of the API server.
func answer(rw http.ResponseWriter, code int, reason, message string, retryAfter int, causes ...string) bool {
	rw.Header().Set("Content-Type", "application/json")
	var list []string
	for _, c := range causes {
		list = append(list, fmt.Sprintf(`{"reason":%q,"message":"x"}`, c))
	}
	if retryAfter > 0 {
		rw.Header().Set("Retry-After", fmt.Sprint(retryAfter))
	}
	rw.WriteHeader(code)
	fmt.Fprintf(rw,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d,"details":{"retryAfterSeconds":%d,`+
			`"causes":[%s]}}`,
		message, reason, code, retryAfter, strings.Join(list, ","))
	return true
}

// firstEvictions answers the first n evictions of each pod with do.
func firstEvictions(n int, do func(http.ResponseWriter) bool) func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/eviction") {
			return false
		}
		mu.Lock()
		seen[r.URL.Path]++
		first := seen[r.URL.Path] <= n
		mu.Unlock()
		return first && do(rw)
	}
}

func TestFailedEvictions(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, c := range map[string]struct {
		do       func(http.ResponseWriter) bool
		requests int // at most, for three pods
	}{
		"the budget was written at the same time": {func(rw http.ResponseWriter) bool {
			return answer(rw, 409, "Conflict", "the object has been modified", 0)
		}, 6},
		"the server fails": {func(rw http.ResponseWriter) bool { return answer(rw, 500, "InternalError", "etcd does not answer", 0) }, 6},
		"the server is overloaded": {func(rw http.ResponseWriter) bool {
			return answer(rw, 429, "TooManyRequests", "too many requests", 1)
		}, 6},
		"a proxy fails": {func(rw http.ResponseWriter) bool { rw.WriteHeader(503); return true }, 6},
		"the connection breaks": {func(rw http.ResponseWriter) bool {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return true
		}, 6},
		"a webhook forbids it at first": {func(rw http.ResponseWriter) bool {
			return answer(rw, 403, "Forbidden", "admission webhook denied the request", 0)
		}, 6},
		"its namespace is being deleted": {func(rw http.ResponseWriter) bool {
			return answer(rw, 403, "Forbidden", "being terminated", 0, "NamespaceTerminating")
		}, 6},
		"the credentials are rejected once": {func(rw http.ResponseWriter) bool { return answer(rw, 401, "Unauthorized", "Unauthorized", 0) }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, from := web(t, 3)
			p := w.through(t)
			p.behave(firstEvictions(1, c.do))
			report := w.drain(from, policy(), patience)
			require.Equal(t, drain.Done, report.Outcome, "%+v", report)
			require.Equal(t, 3, report.Evicted)
			require.LessOrEqual(t, report.Requests, c.requests)
		})
	}
}

func TestRefusalIsReported(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 1)
	p := w.through(t)
	p.behave(firstEvictions(1000, func(rw http.ResponseWriter) bool { return answer(rw, 403, "Forbidden", "admission webhook says no", 0) }))
	report := w.slices(from, policy(), func(report drain.Report) bool { return len(report.Blocked) > 0 && report.Blocked[0].Why != "" })
	require.Contains(t, report.Blocked[0].Why, "admission webhook says no")
	require.Equal(t, 1, report.Requests, "only once")
	forced := policy()
	forced.Timeout, forced.OnTimeout = 7, drain.Force
	require.Len(t, w.drain(from, forced, patience).Forced, 1)
}

// A webhook without pods fails each eviction.
func TestFailingServerGetsFewerRequests(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 10)
	p := w.through(t)
	p.behave(firstEvictions(1000, func(rw http.ResponseWriter) bool {
		return answer(rw, 500, "InternalError", `failed calling webhook "pods.example.com"`, 0)
	}))
	report := w.drain(from, policy(), 16*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Contains(t, report.Blocked[0].Why, "pods.example.com")
	require.LessOrEqual(t, report.Requests, 10*5, "each after 0, 1, 3, 7 and 15 seconds")
	require.Greater(t, report.Requests, 10*2, "fewer on a busy machine")
}

func TestPodIsDeletedBeforeItsEviction(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 3)
	p := w.through(t)
	p.behave(firstEvictions(1, func(rw http.ResponseWriter) bool { return answer(rw, 404, "NotFound", "pods not found", 0) }))
	// The answer was false: a list shows the pods again.
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Empty(t, w.podsOn(from))
}

func TestClosedWatches(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := startWithBudget(t, 40, 4)
	p := w.through(t)
	p.behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, cut := range p.closers {
				cut()
			}
		}
		return false
	})
	report := w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Greater(t, p.watches, 4)
}

func TestAPIServerOutage(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := web(t, 10)
	p := w.through(t)
	p.behave(func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(503); return true })
	report := w.drain(from, policy(), 3*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome, "an unreachable cluster keeps its nodes")
	require.NotEmpty(t, report.Message)
	var refused atomic.Int32
	p.behave(func(rw http.ResponseWriter, _ *http.Request) bool {
		if refused.Add(1) > 6 {
			return false
		}
		rw.WriteHeader(503)
		return true
	})
	report = w.drain(from, policy(), patience)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
}

func TestKilledSlices(t *testing.T) {
	t.Parallel() // it waits most of the time
	w, from := startWithBudget(t, 30, 3)
	slices := 0
	for {
		slices++
		require.Less(t, slices, 300)
		// Each slice is longer, because a busy machine may need any time for the first decision.
		report := w.drain(from, policy(), time.Duration(50+slices*37%400+slices*5)*time.Millisecond)
		if report.Outcome == drain.Done {
			break
		}
		require.Equal(t, drain.Remaining, report.Outcome)
	}
	require.Empty(t, w.podsOn(from))
	require.Greater(t, slices, 1)
}

// Many drains share one budget: none violates it, none fails, and none waits for another's client.
func TestManyNodesUnderOneBudget(t *testing.T) {
	w := newWorld(t)
	var from []string
	for i := range 8 {
		from = append(from, w.node(fmt.Sprintf("n%d", i)))
	}
	w.create(deployments, w.name,
		fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 64, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {world: %s}, `+
			`containers: [{name: c, image: c}]}}}}`, w.name))
	w.budget("web", "{maxUnavailable: 10%, selector: {matchLabels: {app: web}}}", 7)
	w.node("to")
	least := make(chan int, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { least <- w.leastHealthy(ctx, "web") }()
	began := time.Now()
	var wg sync.WaitGroup
	reports := make([]drain.Report, len(from))
	for i, node := range from {
		wg.Go(func() { reports[i] = w.drain(node, policy(), patience) })
	}
	wg.Wait()
	t.Logf("64 pods on 8 nodes, 10%%: %s", time.Since(began).Round(10*time.Millisecond))
	cancel()
	for _, report := range reports {
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	}
	require.GreaterOrEqual(t, <-least, 64-7, "10 %% of 64, rounded up, may be out")
}

// leastHealthy watches the healthy pods in the status of a budget until ctx ends.
func (w *world) leastHealthy(ctx context.Context, budget string) int {
	least := 1 << 30
	for ctx.Err() == nil {
		watch, err := w.api.Resource(budgets).Namespace(w.name).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for event := range watch.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok && object.GetName() == budget {
				if n, found, _ := unstructured.NestedInt64(object.Object, "status", "currentHealthy"); found {
					least = min(least, int(n))
				}
			}
		}
	}
	return least
}

// This test stops the API server that all tests share. Parallel tests start after it.
func TestZAPIServerRestart(t *testing.T) {
	w, from := startWithBudget(t, 60, 2)
	ended := make(chan drain.Report, 1)
	go func() { ended <- w.drain(from, policy(), patience) }()
	w.eventually(func() bool { return len(w.podsOn(from)) < 55 }, "the drain does not begin")
	require.NoError(t, plane.SetMinor(context.Background(), "1.36"))
	report := <-ended
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Empty(t, w.podsOn(from))
}
