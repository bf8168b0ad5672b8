package drain

// The decision: what to send now, what waits for what, and whether anything is left.

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is the observed state of a node's drain.
type View struct {
	// Pods are replaced when they change, because decisions point to them.
	Pods    map[types.UID]*Pod
	Budgets map[Key]*Budget
	// Tries are the last requests, by pod. They include pods that no longer exist.
	Tries map[types.UID]Try
	// Excluded is when the node was excluded from load balancers.
	Excluded time.Time
	// Cordoned is when the node was cordoned. It is zero if it is not, or if that is unknown.
	Cordoned time.Time
}

// Try is the last request about a pod.
type Try struct {
	// Pod is its name.
	Pod string
	// InFlight requests have no response yet.
	InFlight bool
	// Accepted is when the API server accepted the request, or zero.
	Accepted time.Time
	// Budget that the request uses, "" for none. Counted reports whether the budget's observed status includes it.
	Budget  Key
	Counted bool
	// NotBefore is when a refused request may be repeated. Why is the reason for the refusal.
	NotBefore time.Time
	Why       Reason
	// Failures counts consecutive failures of the API server for this pod.
	Failures int
}

// Request to remove a pod.
type Request struct {
	Pod *Pod
	// Grace in seconds, if it is not the pod's own. 0 is the pod's own.
	Grace int64
	// Forced requests delete the pod. Others evict it.
	Forced bool
	// Budget that the eviction uses, "" for none.
	Budget Key
}

// Decision is what to do now.
type Decision struct {
	// Send these requests at once.
	Send []Request
	// Left are the pods of the node that must leave. Terminating are those of them that are terminating.
	Left, Terminating []*Pod
	// Blocked are the pods of Left that wait for something other than their own end.
	Blocked []Blocked
	// Stuck pods are no longer waited for. Returned pods tolerate the cordon and were created after it. They end with the node.
	Stuck, Returned []*Pod
	// EvictionsFrom is when evictions begin, while load balancers still have time. It is zero if they may begin now.
	EvictionsFrom time.Time
	// TimedOut reports that the timeout passed and that the node is terminated with the pods that are left, if any.
	TimedOut bool
	// OnlyBlockedSystemPods reports that only system pods are left, each blocked by its budget, and that the whole
	// cluster is being deleted. Once no other pod needs them, the node is terminated with them. See ADR 12.
	OnlyBlockedSystemPods bool
	// Next is when the decision may change without an event. It is zero if it cannot.
	Next time.Time
	// Estimate of the time left, if pods use their whole grace periods and replacements are Ready at once. It is negative if something
	// blocks for an unknown time.
	Estimate time.Duration
	// Stalled reports that a budget blocks pods and none of its pods is leaving this node. The budget waits for another node, so Estimate is
	// too short by an unknown time.
	Stalled bool
}

const (
	// perBudget bounds the evictions in flight under one budget. The API server writes the budget's status for each. Conflicting writes wait
	// for half a second.
	perBudget = 4
	// settle is how long an accepted eviction counts against its budget if no watch reports that it was counted.
	settle = time.Second
	// replacementTime is how long the replacement of an evicted pod usually needs to become Ready.
	replacementTime = 30 * time.Second
	// resend is how long after its acceptance an eviction is repeated, if its pod is not deleted.
	resend = 10 * time.Second
)

// Decide returns what to do now, with at most room requests.
func Decide(now time.Time, task Task, view View, room int) Decision {
	d := decider{now: now, task: task, view: view, room: room}
	d.count()
	return d.decide()
}

type decider struct {
	now  time.Time
	task Task
	view View
	room int
	out  Decision
	// free is what the budgets allow beyond the requests sent. inFlight counts the requests without a response.
	free, inFlight map[Key]int
	budgets        map[string][]*Budget
	// waiting are the pods under each budget that must still leave, for the estimate.
	waiting map[Key][]*Pod
}

// count computes what the budgets have left.
func (d *decider) count() {
	d.free, d.inFlight = make(map[Key]int, len(d.view.Budgets)), map[Key]int{}
	d.budgets, d.waiting = map[string][]*Budget{}, map[Key][]*Pod{}
	for key, b := range d.view.Budgets {
		d.free[key] = b.Allowed
		d.budgets[key.namespace()] = append(d.budgets[key.namespace()], b)
	}
	for _, try := range d.view.Tries {
		switch {
		case try.Budget == "":
		case try.InFlight:
			d.inFlight[try.Budget]++
			if !try.Counted {
				d.free[try.Budget]--
			}
		case !try.Accepted.IsZero() && !try.Counted && d.now.Before(try.Accepted.Add(settle)):
			d.free[try.Budget]--
			d.wake(try.Accepted.Add(settle))
		}
	}
}

// decide builds the decision. Each pod that must leave is terminating, in flight, blocked, or gets a request. Then it sets TimedOut, the
// estimate and the time of the next decision.
func (d *decider) decide() Decision {
	deadline, ends := d.task.deadline(d.view.Excluded), d.task.Ends()
	over := ends && !d.now.Before(deadline)
	if ends && !over {
		d.wake(deadline)
	}
	begin := d.view.Excluded.Add(d.task.Policy.LoadBalancerWait.Duration())
	if d.now.Before(begin) && !over {
		d.wake(begin)
		d.out.EvictionsFrom = begin
	}
	var ready []Request
	send := func(r Request) {
		if len(ready) < d.room {
			ready = append(ready, r)
		}
	}
	d.out.Left = d.sortedPods()
	for _, p := range d.out.Left {
		try := d.view.Tries[p.UID]
		switch {
		case !p.Deleted.IsZero():
			d.out.Terminating = append(d.out.Terminating, p)
			d.wake(p.Deleted.Add(stuckAfter))
			continue
		case try.InFlight:
			continue
		case !try.Accepted.IsZero() && d.now.Before(try.Accepted.Add(resend)):
			d.wake(try.Accepted.Add(resend))
			continue
		}
		force := over && d.task.Policy.OnTimeout == Force
		switch {
		case d.now.Before(try.NotBefore):
			d.wake(try.NotBefore)
			d.out.Blocked = append(d.out.Blocked, Blocked{Pod: p.ID(), Why: try.Why})
			continue
		case d.now.Before(p.unsure(d.view.Cordoned)):
			d.wake(p.unsure(d.view.Cordoned))
			continue
		case d.now.Before(begin) && !over:
			continue // only load balancers delay it
		case force && try.Why.Code != 0:
			// What refuses its eviction had time until the deadline.
			send(d.forcedDeletion(p))
			continue
		}
		switch request, blocked := d.request(p); {
		case request.Pod != nil:
			send(request)
		case blocked == nil: // queued behind others under its budget
		case force:
			send(d.forcedDeletion(p))
		default:
			d.out.Blocked = append(d.out.Blocked, *blocked)
		}
	}
	d.out.TimedOut = over && d.task.Policy.OnTimeout == Continue && len(d.out.Left) > 0
	if !d.out.TimedOut {
		d.out.Send = ready
	}
	d.out.OnlyBlockedSystemPods = d.task.Policy.ClusterDeleting && len(d.out.Left) > 0 && len(ready) == 0 && d.onlySystem()
	d.out.Estimate = d.estimate(begin)
	d.out.Stalled = d.out.Estimate >= 0 && slices.ContainsFunc(d.out.Blocked, d.stalled)
	return d.out
}

// onlySystem reports whether only system pods are left, and only their budgets block them.
func (d *decider) onlySystem() bool {
	return len(d.out.Blocked) == len(d.out.Left) && !slices.ContainsFunc(d.out.Left, func(p *Pod) bool { return !p.System }) &&
		!slices.ContainsFunc(d.out.Blocked, func(b Blocked) bool { return b.Why.Code != BudgetEmpty })
}

// sortedPods returns the pods that must leave by priority, the lowest first. So pods on which others depend leave last.
func (d *decider) sortedPods() []*Pod {
	pods := make([]*Pod, 0, len(d.view.Pods))
	for _, p := range d.view.Pods {
		switch {
		case p.Class != Leaving:
		case p.returned(d.view.Cordoned):
			d.out.Returned = append(d.out.Returned, p)
		case p.Stuck(d.now):
			d.out.Stuck = append(d.out.Stuck, p)
		default:
			pods = append(pods, p)
		}
	}
	order := func(a, b *Pod) int {
		if c := cmp.Compare(a.Priority, b.Priority); c != 0 {
			return c
		}
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	}
	slices.SortFunc(pods, order)
	slices.SortFunc(d.out.Stuck, order)
	slices.SortFunc(d.out.Returned, order)
	return pods
}

// request returns the request to evict a pod, or why the pod is blocked. It returns nothing if the budget allows the eviction,
// but enough evictions are in flight.
func (d *decider) request(p *Pod) (Request, *Blocked) {
	policy := d.task.Policy
	blocked := func(code Code, budgets ...string) (Request, *Blocked) {
		return Request{}, &Blocked{Pod: p.ID(), Why: Reason{Code: code}, Budgets: budgets}
	}
	request := Request{Pod: p}
	if grace, capped := p.gracePeriod(policy); capped {
		request.Grace = seconds(grace)
	}
	if !p.Managed && policy.UnmanagedPods == WaitForUnmanaged {
		return blocked(Unmanaged)
	}
	if p.EmptyDir && !policy.DeleteEmptyDirData {
		return blocked(KeepsEmptyDir)
	}
	if p.Pending {
		return request, nil // the API server evicts pending pods without checking budgets
	}
	var covering []*Budget
	for _, b := range d.budgets[p.Namespace] {
		if b.Covers(p) {
			covering = append(covering, b)
		}
	}
	switch {
	case len(covering) == 0:
		return request, nil
	case len(covering) > 1:
		var names []string
		for _, b := range covering {
			names = append(names, string(b.Key))
		}
		slices.Sort(names)
		return blocked(ManyBudgets, names...)
	case !covering[0].Counts(p):
		return request, nil
	}
	key := covering[0].Key
	d.waiting[key] = append(d.waiting[key], p)
	if d.free[key] <= 0 {
		return blocked(BudgetEmpty, string(key))
	}
	d.free[key]--
	if d.inFlight[key] >= perBudget {
		return Request{}, nil
	}
	d.inFlight[key]++
	request.Budget = key
	return request, nil
}

// forcedDeletion returns the deletion of a pod, with the grace period of an eviction.
func (d *decider) forcedDeletion(p *Pod) Request {
	grace, _ := p.gracePeriod(d.task.Policy)
	return Request{Pod: p, Grace: seconds(grace), Forced: true}
}

// estimate returns how long the rest takes. Under a budget, as many pods as it allows leave at once, and each further pod when another is
// replaced.
func (d *decider) estimate(begin time.Time) time.Duration {
	var longest time.Duration
	for _, p := range d.out.Left {
		left, _ := p.gracePeriod(d.task.Policy)
		if !p.Deleted.IsZero() {
			left = p.Deleted.Sub(d.now)
		}
		longest = max(longest, left)
	}
	for key, pods := range d.waiting {
		b := d.view.Budgets[key]
		slots := max(b.slots, b.Allowed)
		if slots <= 0 {
			return -1
		}
		freeAt := make([]time.Duration, min(slots, len(pods))) // by slot
		for _, p := range pods {
			grace, _ := p.gracePeriod(d.task.Policy)
			first := 0
			for i := range freeAt {
				if freeAt[i] < freeAt[first] {
					first = i
				}
			}
			freeAt[first] += grace
			longest = max(longest, freeAt[first])
		}
	}
	for _, b := range d.out.Blocked {
		if b.Why.Code != BudgetEmpty {
			return -1
		}
	}
	return longest + max(0, begin.Sub(d.now))
}

// stalled reports whether a pod waits for a budget while no pod of this node uses that budget.
func (d *decider) stalled(b Blocked) bool {
	if b.Why.Code != BudgetEmpty {
		return false
	}
	budget := d.view.Budgets[Key(b.Budgets[0])]
	for _, try := range d.view.Tries {
		if try.Budget == budget.Key && (try.InFlight || d.now.Before(try.Accepted.Add(replacementTime))) {
			return false
		}
	}
	return !slices.ContainsFunc(d.out.Send, func(r Request) bool { return r.Budget == budget.Key }) &&
		!slices.ContainsFunc(d.out.Terminating, budget.Covers)
}

// wake sets Next to a time, unless an earlier one is set.
func (d *decider) wake(at time.Time) {
	if at.After(d.now) && (d.out.Next.IsZero() || at.Before(d.out.Next)) {
		d.out.Next = at
	}
}

func seconds(d time.Duration) int64 { return max(1, int64(d/time.Second)) }
