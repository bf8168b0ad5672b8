// Package drainer drains nodes: it carries out the decisions of shared/drain. It watches disruption budgets, so it
// sends an eviction as soon as a budget allows one. It lists the pods first. It watches them once it has no request
// left to send, or after watchDelay. It keeps no state between calls: the next call reads the drain's state from the
// cluster. functions/drain calls it.
package drainer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-run/drover/shared/drain"
	"github.com/drover-run/drover/shared/kube"
)

const (
	// maxInFlight limits the concurrent requests of one drain.
	maxInFlight = 32
	// requestTimeout limits one eviction. The API server itself retries a conflicting budget update for 10 s.
	requestTimeout = 15 * time.Second
	// flushTimeout limits the wait for results that are outstanding when the time of a call is over.
	flushTimeout = 3 * time.Second
	// A drain ends after two lists without pods. A pod that was bound while the node was being cordoned may appear late:
	// confirmPause is between the lists, up to bindTimeout after the cordon.
	confirmPause, bindTimeout = 100 * time.Millisecond, time.Second
	// decisionInterval is the least time between two decisions. Each decision examines every pod, so changes within it are
	// handled together.
	decisionInterval = 5 * time.Millisecond
	// volumesTimeout limits the wait for volumes after the pods left. It is longer than the six minutes after which
	// Kubernetes detaches volumes by force.
	volumesTimeout = 10 * time.Minute
	// watchDelay is how long pods stay unwatched while there are requests to send.
	watchDelay = 5 * time.Second
	// troubleTimeout is how long the report contains an error that did not occur again. Failing lists and watches repeat
	// sooner than that.
	troubleTimeout = kube.CallTimeout + longPause + 5*time.Second
)

// Drainer drains the nodes of one cluster.
type Drainer struct{ cluster *kube.Cluster }

// New returns the drainer of an opened cluster.
func New(cluster *kube.Cluster) *Drainer { return &Drainer{cluster} }

// Cluster is an opened cluster whose nodes can be drained.
type Cluster struct {
	*kube.Cluster
	*Drainer
}

// NewCluster returns an opened cluster with its nodes.
func NewCluster(cluster *kube.Cluster) Cluster { return Cluster{cluster, New(cluster)} }

// Drain cordons a node and removes its pods, until none is left or ctx ends. The report then lists the remaining pods, and
// the next call continues. The task's time starts with the first cordon. A failing or unreachable API server does not fail
// a drain: Drain waits for it. Drain calls forced right after each deletion of a pod against its budget, since the report
// may be lost. It calls blocked concurrently, once something has blocked the drain for a while. It reports the same
// blockers only once.
func (d *Drainer) Drain(ctx context.Context, node string, task drain.Task, forced func(pod string),
	blocked func(context.Context, drain.Report)) drain.Report {
	run := &drainRun{
		Drainer: d, node: node, task: task, forced: forced, blocked: blockedReports{send: blocked}, results: make(chan result, maxInFlight),
		trouble:   make(chan error, 8),
		watchPods: make(chan struct{}),
		view:      drain.View{Pods: map[types.UID]*drain.Pod{}, Budgets: map[drain.Key]*drain.Budget{}, Tries: map[types.UID]drain.Try{}},
	}
	run.report.Outcome = drain.Remaining
	held, err := d.cordonNode(ctx, node, time.Time{})
	switch {
	case apierrors.IsNotFound(err):
		run.report.Outcome, run.report.Message = drain.Gone, fmt.Sprintf("there is no node %s", node)
		return run.report
	case err != nil:
		run.report.Message = err.Error()
		return run.report
	}
	run.setCordon(held)
	inside, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches
	run.execute(inside)
	run.flushResults()
	run.awaitReports()
	if run.report.Outcome == drain.Remaining {
		if run.synced {
			run.clearTrouble(time.Now())
		}
		run.note(ctx)
		if run.report.Evicted == 0 && run.report.Terminating == 0 {
			run.report.Pending = run.pending(ctx, run.blockingBudgets())
		}
	}
	return run.report
}

// setCordon records that the node is held.
func (c *drainRun) setCordon(held cordonState) {
	c.awaitReports() // the report in progress sets cordon.waits
	c.cordon, c.view.Excluded, c.view.Cordoned, c.task.Started = held, held.since, held.since, held.began
}

// drainRun is one call of Drain. Its run goroutine owns all fields; watches and requests talk to it through channels.
type drainRun struct {
	*Drainer
	node    string
	task    drain.Task
	forced  func(pod string)
	cordon  cordonState
	view    drain.View
	report  drain.Report
	results chan result
	trouble chan error
	// synced reports whether this call has listed pods and budgets.
	synced bool
	// watchPods is closed once pods must be watched.
	watchPods chan struct{}
	// inFlight is the number of requests without a result. Before pause no request is sent: the API server is overloaded.
	inFlight int
	pause    time.Time
	// troubleAt is when the last error of the API server occurred.
	troubleAt time.Time
	blocked   blockedReports
}

// result of a request.
type result struct {
	request drain.Request
	// budget is the state of the budget when the request was sent.
	budget *drain.Budget
	err    error
	// answered is when the result arrived.
	answered time.Time
}

// execute lists the pods and budgets, then decides and sends requests until no pod is left, the timeout passes, or ctx ends. It waits for
// changes between decisions.
func (c *drainRun) execute(ctx context.Context) {
	pods := make(chan change[corev1.Pod], 64)
	budgets := make(chan change[policyv1.PodDisruptionBudget], 64)
	// While there are requests to send, pods are not watched: each eviction causes four events, which would be a tenth of
	// the API server's load.
	podSource := c.podsOf(c.node)
	podSource.needed = c.watchPods
	go follow(ctx, podSource, pods, c.trouble)
	go follow(ctx, c.allBudgets(), budgets, c.trouble)
	// A decision needs both lists.
	for listed := [2]bool{}; listed != [2]bool{true, true}; {
		select {
		case change := <-pods:
			c.seePods(change)
			listed[0] = true
		case change := <-budgets:
			c.seeBudgets(change)
			listed[1] = true
		case err := <-c.trouble:
			c.report.Message = err.Error()
		case <-ctx.Done():
			return
		}
	}
	c.synced, c.report.Message = true, ""
	if now := time.Now(); c.cordon.isOutage(now) {
		c.task.ReachableAgain = now
	}
	var systemCheckAt time.Time // the next check whether other pods need the system pods
	for began := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		room := maxInFlight - c.inFlight
		if now.Before(c.pause) {
			room = 0
		}
		decision := drain.Decide(now, c.task, c.view, room)
		drain.Describe(&c.report, decision)
		c.clearTrouble(now)
		if decision.TimedOut {
			// The node stays while its pods cannot be listed. The report must contain the pods that are left.
			if !c.listPods(ctx) {
				continue
			}
			if decision = drain.Decide(time.Now(), c.task, c.view, 0); !decision.TimedOut {
				continue
			}
			drain.Describe(&c.report, decision)
			c.report.Outcome = drain.TimedOut
			c.report.Message = fmt.Sprintf("the drain timeout of %s is over: the node is terminated with the pods that are left",
				c.task.Policy.Timeout.Duration())
			return
		}
		if decision.OnlyBlockedSystemPods && c.inFlight == 0 && !now.Before(systemCheckAt) {
			if c.systemUnneeded(ctx) {
				c.report.Outcome = drain.Done
				c.report.Message = "the cluster is being deleted, and only system pods run in it: the node is terminated with them"
				return
			}
			systemCheckAt = time.Now().Add(systemCheckPause)
		}
		if decision.OnlyBlockedSystemPods {
			decision.Next = sooner(decision.Next, systemCheckAt)
		}
		if len(decision.Left) == 0 && c.inFlight == 0 {
			if c.confirmEmpty(ctx) {
				c.report.Outcome = drain.Done
				return
			}
			continue // the view has changed
		}
		for _, request := range decision.Send {
			c.send(ctx, request)
		}
		if watchFrom := began.Add(watchDelay); c.inFlight < maxInFlight || !now.Before(watchFrom) {
			c.startPodWatch()
		} else {
			decision.Next = sooner(decision.Next, watchFrom)
		}
		if c.pause.After(now) {
			decision.Next = sooner(decision.Next, c.pause)
		}
		c.next(ctx, now, sooner(decision.Next, c.reportBlocked(ctx, now, decision)), pods, budgets)
	}
}

// startPodWatch starts the watch of pods.
func (c *drainRun) startPodWatch() {
	select {
	case <-c.watchPods:
	default:
		close(c.watchPods)
	}
}

// next waits until something changes or the time has come. It then applies all changes that arrived within
// decisionInterval since the last decision.
func (c *drainRun) next(ctx context.Context, decided, at time.Time, pods <-chan change[corev1.Pod],
	budgets <-chan change[policyv1.PodDisruptionBudget]) {
	var alarm <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case change := <-pods:
		c.seePods(change)
	case change := <-budgets:
		c.seeBudgets(change)
	case r := <-c.results:
		c.answer(r)
	case err := <-c.trouble:
		c.recordTrouble(err)
	case <-alarm:
		return
	case <-ctx.Done():
		return
	}
	time.Sleep(time.Until(decided.Add(decisionInterval)))
	for {
		select {
		case change := <-pods:
			c.seePods(change)
		case change := <-budgets:
			c.seeBudgets(change)
		case r := <-c.results:
			c.answer(r)
		case err := <-c.trouble:
			c.recordTrouble(err)
		default:
			return
		}
	}
}

// flushResults reads the results of requests that are outstanding at the end of the call. They may have removed pods.
func (c *drainRun) flushResults() {
	patience := time.After(flushTimeout)
	for c.inFlight > 0 {
		select {
		case r := <-c.results:
			c.answer(r)
		case <-patience:
			return
		}
	}
}

// recordTrouble adds an error of the API server to the report.
func (c *drainRun) recordTrouble(err error) { c.report.Message, c.troubleAt = err.Error(), time.Now() }

// clearTrouble removes an old error from the report.
func (c *drainRun) clearTrouble(now time.Time) {
	if now.Sub(c.troubleAt) > troubleTimeout {
		c.report.Message = ""
	}
}

func (c *drainRun) seePods(change change[corev1.Pod]) {
	applyTo(c.view.Pods, change, func(p *corev1.Pod) (types.UID, *drain.Pod) {
		pod := drain.NewPod(p)
		return pod.UID, pod
	})
}

func (c *drainRun) seeBudgets(change change[policyv1.PodDisruptionBudget]) {
	for _, b := range applyTo(c.view.Budgets, change, func(p *policyv1.PodDisruptionBudget) (drain.Key, *drain.Budget) {
		budget := drain.NewBudget(p)
		return budget.Key, budget
	}) {
		for uid, try := range c.view.Tries {
			if try.Budget != b.Key || try.Counted {
				continue
			}
			_, counted := b.Disrupted[try.Pod]
			// A list includes every eviction that was accepted before the list was requested.
			if counted || change.all && !try.Accepted.IsZero() && try.Accepted.Before(change.asked) {
				try.Counted = true
				c.view.Tries[uid] = try
			}
		}
	}
}

// listPods replaces the pods of the view by a new list.
func (c *drainRun) listPods(ctx context.Context) bool {
	items, _, err := c.podsOf(c.node).list(ctx)
	if err != nil {
		c.wait(ctx, err)
		return false
	}
	c.seePods(change[corev1.Pod]{all: true, items: items})
	return true
}

// confirmEmpty verifies with two new lists that no pods are left, and that the volumes are detached. If the node was
// uncordoned or restored between the lists, pods may have arrived: confirmEmpty cordons the node again and returns false.
func (c *drainRun) confirmEmpty(ctx context.Context) bool {
	for pass := range 2 {
		if pass > 0 {
			select {
			case <-time.After(min(confirmPause, time.Until(c.cordon.since.Add(bindTimeout)))):
			case <-ctx.Done():
				return false
			}
			if c.cordonChanged(ctx) {
				return false
			}
		}
		if !c.listPods(ctx) {
			return false
		}
		decision := drain.Decide(time.Now(), c.task, c.view, 0)
		if len(decision.Left) > 0 {
			return false
		}
		drain.Describe(&c.report, decision)
	}
	return c.volumesDetached(ctx)
}

// cordonChanged cordons the node again if necessary. It reports whether the node had lost its cordon, or may have lost
// it.
func (c *drainRun) cordonChanged(ctx context.Context) bool {
	held, err := c.cordonNode(ctx, c.node, c.cordon.began)
	switch {
	case apierrors.IsNotFound(err): // no pod starts on it
		return false
	case err != nil:
		c.recordTrouble(err)
		return true
	case held.uid == c.cordon.uid && held.since.Equal(c.cordon.since):
		return false
	}
	c.setCordon(held)
	return true
}

// wait pauses after an error of the API server.
func (c *drainRun) wait(ctx context.Context, err error) {
	c.recordTrouble(err)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}
