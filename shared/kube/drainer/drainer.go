// Package drainer drains nodes: it carries out what shared/drain decides. It watches budgets, so that it sends an eviction
// as soon as a budget allows one. It lists pods first. It watches them when it has no request to send, or after watchDelay.
// It keeps no state between calls: the next call finds the drain in the cluster. functions/drain calls it.
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
	// atOnce bounds the requests in flight of one drain.
	atOnce = 32
	// requestTimeout bounds one eviction: the API server itself tries for 10 s to write a budget.
	requestTimeout = 15 * time.Second
	// lastAnswers is for how long answers are read that had not come when a call's time was over.
	lastAnswers = 3 * time.Second
	// confirmAfter is between the two lists that must show no pods, as long as a pod that was bound while the node was being
	// cordoned may not show yet: for boundBy after that.
	confirmAfter, boundBy = 100 * time.Millisecond, time.Second
	// looksApart is between two decisions, each of which looks at every pod: while hundreds of pods change in a second, what
	// changes within it is looked at together.
	looksApart = 5 * time.Millisecond
	// volumesTimeout is how long volumes are waited for once the pods are gone: longer than the six minutes after which
	// Kubernetes detaches them by force.
	volumesTimeout = 10 * time.Minute
	// watchDelay is how long pods are not watched while there is something to send.
	watchDelay = 5 * time.Second
	// troubleFor is how long trouble is told of that was not heard of again: lists and watches that fail are asked for again, and answered
	// with another failure, sooner than that.
	troubleFor = kube.CallTimeout + longPause + 5*time.Second
)

// Nodes drains the nodes of one cluster.
type Nodes struct{ cluster *kube.Cluster }

// New returns the nodes of an opened cluster.
func New(cluster *kube.Cluster) *Nodes { return &Nodes{cluster} }

// Drain cordons a node and takes its pods off it, until nothing is left or ctx ends: what is left then is in the report, and the next call
// goes on with it. The task's time counts from when the node was cordoned first. API servers that fail or cannot be reached are no failure
// of a drain, they are waited for. It calls forced with each pod that it deleted against its budget, as soon as that is done: the report
// may be lost. It calls blocked, beside the drain, with what is left once something has blocked it for a while, and not again for the same.
func (n *Nodes) Drain(ctx context.Context, node string, task drain.Task, forced func(pod string),
	blocked func(context.Context, drain.Report)) drain.Report {
	d := &operation{
		Nodes: n, node: node, task: task, forced: forced, tell: telling{blocked: blocked}, results: make(chan result, atOnce),
		trouble: make(chan error, 8),
		waits:   make(chan struct{}),
		view:    drain.View{Pods: map[types.UID]*drain.Pod{}, Budgets: map[drain.Key]*drain.Budget{}, Tries: map[types.UID]drain.Try{}},
	}
	d.report.Outcome = drain.Remaining
	held, err := n.hold(ctx, node, time.Time{})
	switch {
	case apierrors.IsNotFound(err):
		d.report.Outcome, d.report.Message = drain.Gone, fmt.Sprintf("there is no node %s", node)
		return d.report
	case err != nil:
		d.report.Message = err.Error()
		return d.report
	}
	d.holds(held)
	inside, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches
	d.run(inside)
	d.flushResults()
	d.awaitReports()
	if d.report.Outcome == drain.Remaining {
		if d.known {
			d.forget(time.Now())
		}
		d.note(ctx)
		if d.report.Evicted == 0 && d.report.Terminating == 0 {
			d.report.Pending = d.pending(ctx, d.holding())
		}
	}
	return d.report
}

// holds takes in that the node is held.
func (d *operation) holds(held held) {
	d.awaitReports() // it reads of the node
	d.held, d.view.Excluded, d.view.Cordoned, d.task.Started = held, held.since, held.since, held.began
}

// operation is one call of Drain. Its run goroutine owns all fields; watches and requests talk to it through channels.
type operation struct {
	*Nodes
	node    string
	task    drain.Task
	forced  func(pod string)
	held    held
	view    drain.View
	report  drain.Report
	results chan result
	trouble chan error
	// known says that this call has seen pods and budgets.
	known bool
	// waits is closed once there is nothing to send before something happens.
	waits chan struct{}
	// inFlight requests, and until when the API server asked for none at all.
	inFlight int
	pause    time.Time
	// heard is when trouble was heard of last.
	heard time.Time
	tell  telling
}

// result of a request.
type result struct {
	request drain.Request
	// budget as it was when the request was sent.
	budget *drain.Budget
	err    error
	// answered is when.
	answered time.Time
}

func (d *operation) run(ctx context.Context) {
	pods := make(chan change[corev1.Pod], 64)
	budgets := make(chan change[policyv1.PodDisruptionBudget], 64)
	// While there is something to send, nobody has to be told of what that does to the pods: four times each, which
	// would be a tenth of all that the API server has to do.
	mine := d.podsOf(d.node)
	mine.needed = d.waits
	go follow(ctx, mine, pods, d.trouble)
	go follow(ctx, d.allBudgets(), budgets, d.trouble)
	// Before both lists are there, nothing is known that a decision could be made on.
	for known := [2]bool{}; known != [2]bool{true, true}; {
		select {
		case change := <-pods:
			d.seePods(change)
			known[0] = true
		case change := <-budgets:
			d.seeBudgets(change)
			known[1] = true
		case err := <-d.trouble:
			d.report.Message = err.Error()
		case <-ctx.Done():
			return
		}
	}
	d.known, d.report.Message = true, ""
	if now := time.Now(); d.held.lost(now) {
		d.task.Regained = now
	}
	var servedAt time.Time // when to check again whether system pods serve anything
	for began := time.Now(); ctx.Err() == nil; {
		now := time.Now()
		room := atOnce - d.inFlight
		if now.Before(d.pause) {
			room = 0
		}
		decision := drain.Decide(now, d.task, d.view, room)
		drain.Describe(&d.report, decision)
		d.forget(now)
		if decision.Over {
			// A cluster that cannot be asked keeps its nodes, and what is left is told as it is.
			if !d.look(ctx) {
				continue
			}
			if decision = drain.Decide(time.Now(), d.task, d.view, 0); !decision.Over {
				continue
			}
			drain.Describe(&d.report, decision)
			d.report.Outcome = drain.TimedOut
			d.report.Message = fmt.Sprintf("the node goes after %s with what is left", d.task.Policy.Timeout.Duration())
			return
		}
		if decision.Served && d.inFlight == 0 && !now.Before(servedAt) {
			if d.servesNothing(ctx) {
				d.report.Outcome = drain.Done
				d.report.Message = "the cluster is deleted, and nothing else runs on it: the node goes with its system pods"
				return
			}
			servedAt = time.Now().Add(servedPause)
		}
		if decision.Served {
			decision.Next = sooner(decision.Next, servedAt)
		}
		if len(decision.Left) == 0 && d.inFlight == 0 {
			if d.confirm(ctx) {
				d.report.Outcome = drain.Done
				return
			}
			continue // it knows more now
		}
		for _, request := range decision.Send {
			d.send(ctx, request)
		}
		if sighted := began.Add(watchDelay); d.inFlight < atOnce || !now.Before(sighted) {
			d.startPodWatch()
		} else {
			decision.Next = sooner(decision.Next, sighted)
		}
		if d.pause.After(now) {
			decision.Next = sooner(decision.Next, d.pause)
		}
		d.next(ctx, now, sooner(decision.Next, d.tellBlocked(ctx, now, decision)), pods, budgets)
	}
}

// startPodWatch has the pods watched from now on.
func (d *operation) startPodWatch() {
	select {
	case <-d.waits:
	default:
		close(d.waits)
	}
}

// next waits until something happens or the time has come, and takes in all that has happened by then, looksApart from the
// last look.
func (d *operation) next(ctx context.Context, looked, at time.Time, pods <-chan change[corev1.Pod],
	budgets <-chan change[policyv1.PodDisruptionBudget]) {
	var alarm <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case change := <-pods:
		d.seePods(change)
	case change := <-budgets:
		d.seeBudgets(change)
	case r := <-d.results:
		d.answer(r)
	case err := <-d.trouble:
		d.hear(err)
	case <-alarm:
		return
	case <-ctx.Done():
		return
	}
	time.Sleep(time.Until(looked.Add(looksApart)))
	for {
		select {
		case change := <-pods:
			d.seePods(change)
		case change := <-budgets:
			d.seeBudgets(change)
		case r := <-d.results:
			d.answer(r)
		case err := <-d.trouble:
			d.hear(err)
		default:
			return
		}
	}
}

// flushResults reads the results of requests that were sent before the call's time was over: they may have removed pods.
func (d *operation) flushResults() {
	patience := time.After(lastAnswers)
	for d.inFlight > 0 {
		select {
		case r := <-d.results:
			d.answer(r)
		case <-patience:
			return
		}
	}
}

// hear of trouble with the API server, for the report.
func (d *operation) hear(err error) { d.report.Message, d.heard = err.Error(), time.Now() }

// forget trouble that is over.
func (d *operation) forget(now time.Time) {
	if now.Sub(d.heard) > troubleFor {
		d.report.Message = ""
	}
}

func (d *operation) seePods(change change[corev1.Pod]) {
	if change.all {
		clear(d.view.Pods)
	}
	for i := range change.items {
		pod := drain.NewPod(&change.items[i])
		if change.gone {
			delete(d.view.Pods, pod.UID)
		} else {
			d.view.Pods[pod.UID] = pod
		}
	}
}

func (d *operation) seeBudgets(change change[policyv1.PodDisruptionBudget]) {
	if change.all {
		clear(d.view.Budgets)
	}
	for i := range change.items {
		b := drain.NewBudget(&change.items[i])
		if change.gone {
			delete(d.view.Budgets, b.Key)
		} else {
			d.view.Budgets[b.Key] = b
		}
		for uid, try := range d.view.Tries {
			if try.Budget != b.Key || try.Counted {
				continue
			}
			_, counted := b.Disrupted[try.Pod]
			// A list is newer than every answer that came before it was asked for.
			if counted || change.all && !try.Accepted.IsZero() && try.Accepted.Before(change.asked) {
				try.Counted = true
				d.view.Tries[uid] = try
			}
		}
	}
}

// look at the pods by a list of its own.
func (d *operation) look(ctx context.Context) bool {
	items, _, err := d.podsOf(d.node).list(ctx)
	if err != nil {
		d.wait(ctx, err)
		return false
	}
	d.seePods(change[corev1.Pod]{all: true, items: items})
	return true
}

// confirm that no pods are left by two lists of their own, and that the volumes are gone. Between the lists the node must be held as it
// was: whoever uncordoned it, or gave it back, let pods come, and it is held again.
func (d *operation) confirm(ctx context.Context) bool {
	for pass := range 2 {
		if pass > 0 {
			select {
			case <-time.After(min(confirmAfter, time.Until(d.held.since.Add(boundBy)))):
			case <-ctx.Done():
				return false
			}
			if d.released(ctx) {
				return false
			}
		}
		if !d.look(ctx) {
			return false
		}
		decision := drain.Decide(time.Now(), d.task, d.view, 0)
		if len(decision.Left) > 0 {
			return false
		}
		drain.Describe(&d.report, decision)
	}
	return d.detached(ctx)
}

// released says whether the node was not held any more, as it is now, or that nobody knows.
func (d *operation) released(ctx context.Context) bool {
	held, err := d.hold(ctx, d.node, d.held.began)
	switch {
	case apierrors.IsNotFound(err): // nothing is started on it
		return false
	case err != nil:
		d.hear(err)
		return true
	case held.uid == d.held.uid && held.since.Equal(d.held.since):
		return false
	}
	d.holds(held)
	return true
}

// wait a little after an error of the API server.
func (d *operation) wait(ctx context.Context, err error) {
	d.hear(err)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}
