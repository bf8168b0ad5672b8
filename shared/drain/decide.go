package drain

// The decision: given what is known now, what is to be sent, what waits for what, and whether anything is left.

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is all that is known of a node's drain.
type View struct {
	// Pods are replaced when they change: decisions point to them.
	Pods    map[types.UID]*Pod
	Budgets map[Key]*Budget
	// Tries are the requests sent so far, by pod; also of pods that are gone since.
	Tries map[types.UID]Try
	// Excluded is when the node was taken out of load balancers.
	Excluded time.Time
	// Cordoned is when it was cordoned; zero if it is not, or nobody knows.
	Cordoned time.Time
}

// Try is the last request about a pod.
type Try struct {
	// Pod is its name.
	Pod string
	// InFlight requests have no answer yet.
	InFlight bool
	// Accepted is when the API server said yes; zero if it has not.
	Accepted time.Time
	// Budget that the request used up, "" for none; Counted once the observed status of the budget has it.
	Budget  Key
	Counted bool
	// NotBefore is when a refused request may be repeated, and Why it was refused.
	NotBefore time.Time
	Why       string
	// Failures of the API server in a row, when asked about this pod.
	Failures int
}

// Request to remove a pod.
type Request struct {
	Pod *Pod
	// Grace in seconds, when it is not the pod's own; 0 is its own.
	Grace int64
	// Forced requests delete; others ask for an eviction.
	Forced bool
	// Budget that the eviction uses up, "" for none.
	Budget Key
}

// Decision says what to do now.
type Decision struct {
	// Send these, now, at once.
	Send []Request
	// Left are the pods that the node still has and that must go; Terminating of them are on their way.
	Left, Terminating []*Pod
	// Blocked names those of Left that wait for something else than their own end.
	Blocked []Blocked
	// Stuck pods are waited for no more. Returned ones came when the node was cordoned, which they tolerate, and end with it.
	Stuck, Returned []*Pod
	// Begins is when evictions may, while load balancers still have time; zero is now.
	Begins time.Time
	// Over says that the time is over and the node goes with what is left, if anything is.
	Over bool
	// Served says that only system pods are left, each blocked by its budget, of a cluster that is deleted: once they
	// serve nothing else, the node goes with them. See ADR 12.
	Served bool
	// Next is when the decision may be another although nothing has happened; zero is never.
	Next time.Time
	// Estimate of the time left, if pods use their whole grace periods and others replace them at once; negative when
	// something blocks for which there is no estimate.
	Estimate time.Duration
	// Stalled: a budget blocks pods, and none of its pods is leaving this node. What the budget waits for happens elsewhere: Estimate, which
	// takes replacements as Ready at once, is too short by a time that nobody knows.
	Stalled bool
}

const (
	// perBudget bounds the evictions in flight under one budget: the API server writes the budget's status for each, and
	// those that conflict wait for half a second.
	perBudget = 4
	// settle is for how long an accepted eviction is held against its budget when no watch tells that it was counted.
	settle = time.Second
	// replacementTime is how long the replacement of an evicted pod usually takes until it is Ready.
	replacementTime = 30 * time.Second
	// resend is when an accepted eviction is sent again if its pod shows no sign of it.
	resend = 10 * time.Second
)

// Decide what to do now, with at most room requests.
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
	// free is what the budgets allow beyond what was sent, inFlight what has no answer.
	free, inFlight map[Key]int
	budgets        map[string][]*Budget
	// waiting are the pods under each budget that are still to go, for the estimate.
	waiting map[Key][]*Pod
}

// count what the budgets have left.
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

func (d *decider) decide() Decision {
	deadline, ends := d.task.deadline(d.view.Excluded), d.task.Ends()
	over := ends && !d.now.Before(deadline)
	if ends && !over {
		d.wake(deadline)
	}
	begin := d.view.Excluded.Add(d.task.Policy.LoadBalancerWait.Duration())
	if d.now.Before(begin) && !over {
		d.wake(begin)
		d.out.Begins = begin
	}
	var ready []Request
	send := func(r Request) {
		if len(ready) < d.room {
			ready = append(ready, r)
		}
	}
	d.out.Left = d.sorted()
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
			continue // blocked by nothing but the wait for load balancers
		case force && try.Why != "":
			// Whatever refuses its eviction has had its time.
			send(d.forced(p))
			continue
		}
		switch request, blocked := d.request(p); {
		case request.Pod != nil:
			send(request)
		case blocked == nil: // queued behind others under its budget
		case force:
			send(d.forced(p))
		default:
			d.out.Blocked = append(d.out.Blocked, *blocked)
		}
	}
	d.out.Over = over && d.task.Policy.OnTimeout == Continue && len(d.out.Left) > 0
	if !d.out.Over {
		d.out.Send = ready
	}
	d.out.Served = d.task.Policy.Deletes && len(d.out.Left) > 0 && len(ready) == 0 && d.onlySystem()
	d.out.Estimate = d.estimate(begin)
	d.out.Stalled = d.out.Estimate >= 0 && slices.ContainsFunc(d.out.Blocked, d.stalled)
	return d.out
}

// onlySystem says whether all pods that are left are system pods that only their budgets hold.
func (d *decider) onlySystem() bool {
	return len(d.out.Blocked) == len(d.out.Left) && !slices.ContainsFunc(d.out.Left, func(p *Pod) bool { return !p.System }) &&
		!slices.ContainsFunc(d.out.Blocked, func(b Blocked) bool { return b.Why != WhyBudget })
}

// sorted are the pods that must leave: the least important first, so that what others need goes last.
func (d *decider) sorted() []*Pod {
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

// request to evict a pod, or why it is blocked; neither when the budget has room but enough is on its way.
func (d *decider) request(p *Pod) (Request, *Blocked) {
	policy := d.task.Policy
	blocked := func(why string, budgets ...string) (Request, *Blocked) {
		return Request{}, &Blocked{Pod: p.ID(), Why: why, Budgets: budgets}
	}
	request := Request{Pod: p}
	if grace, capped := p.gives(policy); capped {
		request.Grace = seconds(grace)
	}
	if !p.Managed && policy.UnmanagedPods == WaitForUnmanaged {
		return blocked(WhyUnmanaged)
	}
	if p.EmptyDir && !policy.DeleteEmptyDirData {
		return blocked(WhyEmptyDir)
	}
	if p.Pending {
		return request, nil // before it asks for budgets, the API server lets pending pods go
	}
	var over []*Budget
	for _, b := range d.budgets[p.Namespace] {
		if b.Covers(p) {
			over = append(over, b)
		}
	}
	switch {
	case len(over) == 0:
		return request, nil
	case len(over) > 1:
		var names []string
		for _, b := range over {
			names = append(names, string(b.Key))
		}
		slices.Sort(names)
		return blocked(WhyBudgets, names...)
	case !over[0].Counts(p):
		return request, nil
	}
	key := over[0].Key
	d.waiting[key] = append(d.waiting[key], p)
	if d.free[key] <= 0 {
		return blocked(WhyBudget, string(key))
	}
	d.free[key]--
	if d.inFlight[key] >= perBudget {
		return Request{}, nil
	}
	d.inFlight[key]++
	request.Budget = key
	return request, nil
}

// forced is the deletion of a pod, with the grace period that it would have had.
func (d *decider) forced(p *Pod) Request {
	grace, _ := p.gives(d.task.Policy)
	return Request{Pod: p, Grace: seconds(grace), Forced: true}
}

// estimate how long the rest takes. Under a budget as many as may be out go at once, and each of the others as soon as one is back.
func (d *decider) estimate(begin time.Time) time.Duration {
	var longest time.Duration
	for _, p := range d.out.Left {
		left, _ := p.gives(d.task.Policy)
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
		out := make([]time.Duration, min(slots, len(pods))) // when each slot is free again
		for _, p := range pods {
			grace, _ := p.gives(d.task.Policy)
			first := 0
			for i := range out {
				if out[i] < out[first] {
					first = i
				}
			}
			out[first] += grace
			longest = max(longest, out[first])
		}
	}
	for _, b := range d.out.Blocked {
		if b.Why != WhyBudget {
			return -1
		}
	}
	return longest + max(0, begin.Sub(d.now))
}

// stalled says whether a pod waits for a budget that none of the node's pods is using.
func (d *decider) stalled(b Blocked) bool {
	if b.Why != WhyBudget {
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

// wake at a time, if no earlier one is known.
func (d *decider) wake(at time.Time) {
	if at.After(d.now) && (d.out.Next.IsZero() || at.Before(d.out.Next)) {
		d.out.Next = at
	}
}

func seconds(d time.Duration) int64 { return max(1, int64(d/time.Second)) }
