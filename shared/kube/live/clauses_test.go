package live

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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

// bare is a pod of no controller on a node.
func (w *world) bare(name, node, extra string) {
	w.t.Helper()
	w.create(pods, w.name, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {app: %[1]s}},
		spec: {nodeName: %[2]s, terminationGracePeriodSeconds: 1, containers: [{name: c, image: c}]%[3]s}}`, name, node, extra))
	w.eventually(func() bool {
		var p corev1.Pod
		w.read(pods, w.name, name, &p)
		return podReady(&p)
	}, name+" does not run")
}

// heldPod is a pod whose end a finalizer holds up.
func (w *world) heldPod(name, node string) {
	w.bare(name, node, "")
	require.NoError(w.t, w.patch(pods, w.name, name, `{"metadata":{"finalizers":["example.com/hold"]}}`))
	w.t.Cleanup(func() { _ = w.patch(pods, w.name, name, `{"metadata":{"finalizers":null}}`) })
}

func TestTheNodeIsCordonedExcludedAndHeldByOnePatch(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	w.bare("p", node, "")
	p := policy()
	p.LoadBalancerWait = 3600
	report := w.drain(node, p, time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Zero(t, report.Requests, "load balancers first")
	n := w.readNode(node)
	require.True(t, n.Spec.Unschedulable)
	require.Contains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
	require.Equal(t, "true", n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"])
	require.Contains(t, n.Annotations["drover.run/drain-waits-for"], "1 pods are left")
	since := n.Annotations["drover.run/draining-since"]

	w.drain(node, p, time.Second)
	require.Equal(t, since, w.readNode(node).Annotations["drover.run/draining-since"], "the wait goes on, it does not begin again")

	require.NoError(t, w.cluster.Release(context.Background(), node, true))
	n = w.readNode(node)
	require.True(t, n.Spec.Unschedulable, "who drained it wanted it empty")
	for key := range n.Annotations {
		require.False(t, strings.HasPrefix(key, "drover.run/") || strings.HasPrefix(key, "cluster-autoscaler"), key)
	}
	require.NoError(t, w.cluster.Release(context.Background(), node, true), "again is no error")
}

func TestSomebodyElsesHoldOnTheAutoscalerStays(t *testing.T) {
	w := newWorld(t)
	node := w.node("a")
	require.NoError(t, w.patch(nodes, "", node, `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`))
	require.Equal(t, drain.Done, w.drain(node, policy(), 20*time.Second).Outcome)
	require.NoError(t, w.cluster.Release(context.Background(), node, true))
	require.Contains(t, w.readNode(node).Annotations, "cluster-autoscaler.kubernetes.io/scale-down-disabled")
}

func TestANodeThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, drain.Gone, w.drain("nowhere", policy(), 10*time.Second).Outcome)
}

func TestWhatStaysAndWhatGoes(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.create(daemonSets, w.name, fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}},
		template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {world: %s}, containers: [{name: c, image: c}]}}}}`, w.name))
	w.bare("static", from, "")
	require.NoError(t, w.patch(pods, w.name, "static", `{"metadata":{"annotations":{"local":"x"}}}`))
	w.create(pods, w.name, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: mirror, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: %s, containers: [{name: c, image: c}]}}`, from))
	w.bare("finished", from, "")
	_, err := w.api.Resource(pods).Namespace(w.name).Patch(context.Background(), "finished", "application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	w.bare("scratch", from, ", volumes: [{name: v, emptyDir: {}}]")
	w.bare("alone", from, "")
	w.eventually(func() bool { return len(w.podsOn(from)) == 6 }, "the daemon does not run")

	careful := policy()
	careful.UnmanagedPods, careful.DeleteEmptyDirData = drain.WaitForUnmanaged, false
	report := w.drain(from, careful, 2*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Len(t, report.Blocked, 3, "%+v", report.Blocked)
	require.Zero(t, report.Requests)

	report = w.drain(from, policy(), 30*time.Second)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	var left []string
	for _, p := range w.podsOn(from) {
		left = append(left, strings.SplitN(p.Name, "-", 2)[0])
	}
	require.ElementsMatch(t, []string{"agent", "mirror", "finished"}, left)
}

func TestBlockedPodsAndTheirBudgetsAreNamed(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 2, "a", "")
	w.budget("none", "{minAvailable: 2, selector: {matchLabels: {app: web}}}", 0)
	report := w.drain(from, policy(), 2*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Len(t, report.Blocked, 2)
	require.Equal(t, []string{w.name + "/none"}, report.Blocked[0].Budgets)
	require.Zero(t, report.Requests, "what a budget does not allow is not asked for")
	require.Contains(t, w.readNode(from).Annotations["drover.run/drain-waits-for"], w.name+"/none")

	t.Run("and go the moment the budget does", func(t *testing.T) {
		w.node("b")
		p := w.through(t)
		ended := make(chan drain.Report, 1)
		go func() { ended <- w.drain(from, policy(), 30*time.Second) }()
		w.eventually(func() bool { return p.watching() == 2 }, "pods and budgets are not watched")
		require.NoError(t, w.patch(budgets, w.name, "none", `{"spec":{"minAvailable":1}}`))
		report := <-ended
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
		require.LessOrEqual(t, report.Requests, 4)
	})
}

func TestTwoBudgetsBlockAndAreNamed(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 2, "a", "")
	w.deploy("free", 2, "a", "")
	w.budget("one", "{maxUnavailable: 1, selector: {matchLabels: {app: web}}}", 1)
	w.budget("two", "{maxUnavailable: 1, selector: {matchLabels: {app: web}}}", 1)
	w.node("b")
	report := w.drain(from, policy(), 5*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Equal(t, 2, report.Left)
	require.Equal(t, []string{w.name + "/one", w.name + "/two"}, report.Blocked[0].Budgets)
	require.Equal(t, 2, report.Evicted, "the others go")
	require.NoError(t, w.api.Resource(budgets).Namespace(w.name).Delete(context.Background(), "two", metav1.DeleteOptions{}))
	require.Equal(t, drain.Done, w.drain(from, policy(), 30*time.Second).Outcome)
}

func TestABudgetOfAnotherNamespaceDoesNotMatter(t *testing.T) {
	other := newWorld(t)
	other.create(budgets, other.name, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all}, spec: {minAvailable: 99, selector: {}}}")
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 3, "a", "")
	require.Equal(t, drain.Done, w.drain(from, policy(), 30*time.Second).Outcome)
}

func TestForcedAfterTheDeadlineAndNotBefore(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 3, "a", "")
	w.budget("none", "{minAvailable: 3, selector: {matchLabels: {app: web}}}", 0)
	p := policy()
	p.Timeout, p.OnTimeout = 3, drain.Force
	began := time.Now()
	early := w.drain(from, p, 2*time.Second)
	require.Equal(t, drain.Remaining, early.Outcome)
	require.Empty(t, early.Forced)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	report := w.cluster.Drain(ctx, from, drain.Task{Policy: p, Started: began})
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
	require.Len(t, report.Forced, 3, "by name")
	require.Zero(t, report.Evicted)
}

func TestGoingOnLeavesAndNamesWhatIsLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 1, "a", "")
	w.budget("none", "{minAvailable: 1, selector: {matchLabels: {app: web}}}", 0)
	p := policy()
	p.Timeout, p.OnTimeout = 1, drain.Continue
	report := w.drain(from, p, 20*time.Second)
	require.Equal(t, drain.TimedOut, report.Outcome)
	require.Len(t, report.Pods, 1)
	require.Len(t, w.podsOn(from), 1)
}

func TestAPodThatIsStuckHoldsUpNothingForLong(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.heldPod("stuck", from)
	report := w.drain(from, policy(), 3*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Equal(t, 1, report.Terminating)
	if testing.Short() {
		t.Skip("a minute must pass")
	}
	report = w.drain(from, policy(), 70*time.Second)
	require.Equal(t, drain.Done, report.Outcome)
	require.Equal(t, []string{w.name + "/stuck"}, report.Stuck)
}

func TestAPodThatIsReplacedUnderTheSameNameIsAnother(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.node("b")
	w.create(statefuls, w.name, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, replicas: 3, podManagementPolicy: Parallel,
		selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {world: %s}, containers: [{name: c, image: c}]}}}}`, w.name))
	w.eventually(func() bool { return len(w.podsOn(from))+len(w.podsOn(w.name+"-b")) == 3 }, "the pods do not run")
	report := w.drain(from, policy(), 30*time.Second)
	require.Equal(t, drain.Done, report.Outcome)
	w.eventually(func() bool {
		n := 0
		for _, p := range w.podsOn(w.name + "-b") {
			if podReady(&p) {
				n++
			}
		}
		return n == 3
	}, "the pods are not back")
}

func TestVolumesAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	name := w.name + "-volume"
	w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: example.com, nodeName: %s, source: {persistentVolumeName: pv}}}", name, from))
	w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s-other}, spec: {attacher: example.com, nodeName: other, source: {persistentVolumeName: pv}}}", name))
	t.Cleanup(func() {
		_ = w.api.Resource(attachments).Delete(context.Background(), name+"-other", metav1.DeleteOptions{})
	})
	report := w.drain(from, policy(), 2*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Equal(t, 1, report.Volumes)
	require.NotEmpty(t, w.readNode(from).Annotations["drover.run/pods-gone-since"])
	p := w.through(t)
	ended := make(chan drain.Report, 1)
	go func() { ended <- w.drain(from, policy(), 30*time.Second) }()
	w.eventually(func() bool { return p.watching() == 3 }, "the attachments are not watched")
	require.NoError(t, w.api.Resource(attachments).Delete(context.Background(), name, metav1.DeleteOptions{}))
	report = <-ended
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)

	t.Run("but not for ever", func(t *testing.T) {
		w.create(attachments, "", fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: example.com, nodeName: %s, source: {persistentVolumeName: pv}}}", name, from))
		t.Cleanup(func() { _ = w.api.Resource(attachments).Delete(context.Background(), name, metav1.DeleteOptions{}) })
		require.NoError(t, w.patch(nodes, "", from, `{"metadata":{"annotations":{"drover.run/pods-gone-since":"`+time.Now().Add(-11*time.Minute).UTC().Format(time.RFC3339)+`"}}}`))
		report := w.drain(from, policy(), 10*time.Second)
		require.Equal(t, drain.Done, report.Outcome)
		require.Contains(t, report.Message, "1 volumes are still attached")
	})
}

// proxy stands between the drain and the API server, and can be told to misbehave.
type proxy struct {
	*httptest.Server
	// misbehave answers a request itself if it wants to.
	misbehave atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	mu        sync.Mutex
	watches   int
	// closers end the watches that are open.
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

// watching is how many watches are open.
func (p *proxy) watching() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.closers)
}

func (p *proxy) behave(f func(http.ResponseWriter, *http.Request) bool) { p.misbehave.Store(&f) }

// answer as the API server answers errors.
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
	fmt.Fprintf(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d,"details":{"retryAfterSeconds":%d,"causes":[%s]}}`,
		message, reason, code, retryAfter, strings.Join(list, ","))
	return true
}

// firstEvictions lets do answer the first n evictions of each pod.
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

func TestAnswersThatAreNoYes(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(http.ResponseWriter) bool
		requests int // at most, for three pods
	}{
		"somebody wrote the budget at the same time": {func(rw http.ResponseWriter) bool {
			return answer(rw, 409, "Conflict", "the object has been modified", 0)
		}, 6},
		"the server fails": {func(rw http.ResponseWriter) bool { return answer(rw, 500, "InternalError", "etcd is gone", 0) }, 6},
		"the server is overloaded": {func(rw http.ResponseWriter) bool {
			return answer(rw, 429, "TooManyRequests", "too many requests", 1)
		}, 6},
		"a proxy is between": {func(rw http.ResponseWriter) bool { rw.WriteHeader(503); return true }, 6},
		"the connection breaks": {func(rw http.ResponseWriter) bool {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return true
		}, 6},
		"a webhook forbids it for now": {func(rw http.ResponseWriter) bool {
			return answer(rw, 403, "Forbidden", "admission webhook denied the request", 0)
		}, 6},
		"its namespace is being deleted": {func(rw http.ResponseWriter) bool {
			return answer(rw, 403, "Forbidden", "being terminated", 0, "NamespaceTerminating")
		}, 6},
		"the session is over for a moment": {func(rw http.ResponseWriter) bool { return answer(rw, 401, "Unauthorized", "Unauthorized", 0) }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			from := w.node("a")
			w.deploy("web", 3, "a", "")
			p := w.through(t)
			p.behave(firstEvictions(1, c.do))
			report := w.drain(from, policy(), 40*time.Second)
			require.Equal(t, drain.Done, report.Outcome, "%+v", report)
			require.Equal(t, 3, report.Evicted)
			require.LessOrEqual(t, report.Requests, c.requests)
		})
	}
}

func TestWhatRefusesIsNamed(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 1, "a", "")
	p := w.through(t)
	p.behave(firstEvictions(1000, func(rw http.ResponseWriter) bool { return answer(rw, 403, "Forbidden", "admission webhook says no", 0) }))
	report := w.drain(from, policy(), 3*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome)
	require.Contains(t, report.Blocked[0].Why, "admission webhook says no")
	require.Equal(t, 1, report.Requests, "not again and again")
	forced := policy()
	forced.Timeout, forced.OnTimeout = 7, drain.Force
	require.Len(t, w.drain(from, forced, 30*time.Second).Forced, 1)
}

func TestAPodThatIsGoneBeforeItsEviction(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 3, "a", "")
	p := w.through(t)
	p.behave(firstEvictions(1, func(rw http.ResponseWriter) bool { return answer(rw, 404, "NotFound", "pods not found", 0) }))
	// The lie is found out: a list shows the pods again.
	report := w.drain(from, policy(), 30*time.Second)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Empty(t, w.podsOn(from))
}

func TestWatchesThatAreClosed(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 40, "a", "")
	w.budget("web", "{maxUnavailable: 4, selector: {matchLabels: {app: web}}}", 4)
	w.node("b")
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
	report := w.drain(from, policy(), 60*time.Second)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Greater(t, p.watches, 4)
}

func TestTheAPIServerIsAwayForAWhile(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 10, "a", "")
	p := w.through(t)
	p.behave(func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(503); return true })
	report := w.drain(from, policy(), 3*time.Second)
	require.Equal(t, drain.Remaining, report.Outcome, "a cluster that does not answer keeps its nodes")
	require.NotEmpty(t, report.Message)
	var refused atomic.Int32
	p.behave(func(rw http.ResponseWriter, _ *http.Request) bool {
		if refused.Add(1) > 6 {
			return false
		}
		rw.WriteHeader(503)
		return true
	})
	report = w.drain(from, policy(), 40*time.Second)
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
}

func TestSlicesThatAreKilledAnywhere(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 30, "a", "")
	w.budget("web", "{maxUnavailable: 3, selector: {matchLabels: {app: web}}}", 3)
	w.node("b")
	slices := 0
	for {
		slices++
		require.Less(t, slices, 300)
		// Longer from one to the next, as nothing says how long a first look takes on a busy machine.
		report := w.drain(from, policy(), time.Duration(50+slices*37%400+slices*5)*time.Millisecond)
		if report.Outcome == drain.Done {
			break
		}
		require.Equal(t, drain.Remaining, report.Outcome)
	}
	require.Empty(t, w.podsOn(from))
	require.Greater(t, slices, 1)
}

// Many drains share one budget: none breaks it, none fails, and none waits on another's client.
func TestManyNodesUnderOneBudget(t *testing.T) {
	w := newWorld(t)
	var from []string
	for i := range 8 {
		from = append(from, w.node(fmt.Sprintf("n%d", i)))
	}
	w.create(deployments, w.name, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 64, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, nodeSelector: {world: %s}, containers: [{name: c, image: c}]}}}}`, w.name))
	w.budget("web", "{maxUnavailable: 10%, selector: {matchLabels: {app: web}}}", 7)
	w.node("to")
	least := make(chan int, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { least <- w.leastHealthy(ctx, "web") }()
	began := time.Now()
	var wg sync.WaitGroup
	reports := make([]drain.Report, len(from))
	for i, node := range from {
		wg.Go(func() { reports[i] = w.drain(node, policy(), 2*time.Minute) })
	}
	wg.Wait()
	t.Logf("64 pods on 8 nodes, 10%%: %s", time.Since(began).Round(10*time.Millisecond))
	cancel()
	for _, report := range reports {
		require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	}
	require.GreaterOrEqual(t, <-least, 64-7, "10 %% of 64, rounded up, may be out")
}

// leastHealthy watches what a budget says of its pods until ctx ends.
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

// It takes the server of all tests away for a while. Those that run beside each other begin when the others are over, and so after it.
func TestZTheAPIServerRestartsInTheMiddle(t *testing.T) {
	w := newWorld(t)
	from := w.node("a")
	w.deploy("web", 60, "a", "")
	w.budget("web", "{maxUnavailable: 2, selector: {matchLabels: {app: web}}}", 2)
	w.node("b")
	ended := make(chan drain.Report, 1)
	go func() { ended <- w.drain(from, policy(), 2*time.Minute) }()
	w.eventually(func() bool { return len(w.podsOn(from)) < 55 }, "the drain does not begin")
	require.NoError(t, plane.SetMinor(context.Background(), "1.36"))
	report := <-ended
	require.Equal(t, drain.Done, report.Outcome, "%+v", report)
	require.Empty(t, w.podsOn(from))
}
