package drain

// Reports of blocked pods while a drain is running. A pod is reported when it has been blocked for some seconds and no
// pod of its budget left in that time. Other pods only wait for their turn.

import (
	"maps"
	"strings"
	"time"
)

const (
	// tellAfter is how long a pod is blocked before it is reported.
	tellAfter = 7 * time.Second
	// tellAgain is the least time between two reports.
	tellAgain = 15 * time.Second
	// looksApart is the least time between two checks: each check reads all tries.
	looksApart = time.Second
	// askedFor bridges a gap: a pod that is blocked again within this time counts as blocked without a break. In the
	// gap drover requested its eviction, and the API refused.
	askedFor = 15 * time.Second
)

// Waits records since when each pod has blocked a drain. The zero value is that of a new drain.
type Waits struct {
	pods         map[string]wait
	told         map[string]bool
	looked, last time.Time
}

// wait of one pod.
type wait struct {
	since time.Time
	// until is when the pod stopped being blocked; zero while it is blocked.
	until time.Time
}

// Due reports whether the blocked pods must be reported now: once, and again when another pod is blocked too. Otherwise
// again is when to call Due next, even without an event; zero means never.
func (w *Waits) Due(now time.Time, decision Decision, view View) (due bool, again time.Time) {
	if len(decision.Blocked) == 0 && len(w.pods) == 0 {
		return false, time.Time{}
	}
	if next := w.looked.Add(looksApart); now.Before(next) {
		return false, next
	}
	w.looked = now
	w.note(now, decision.Blocked)
	went := map[string]time.Time{} // the last of each budget's pods
	for _, try := range view.Tries {
		if b := string(try.Budget); b != "" && try.Accepted.After(went[b]) {
			went[b] = try.Accepted
		}
	}
	long := map[string]bool{}
	sooner := func(at time.Time) {
		if again.IsZero() || at.Before(again) {
			again = at
		}
	}
	for _, b := range decision.Blocked {
		since := w.pods[b.Pod].since
		if len(b.Budgets) == 1 && went[b.Budgets[0]].After(since) {
			since = went[b.Budgets[0]]
		}
		switch at := since.Add(tellAfter); {
		case w.told[cause(b)]:
		case now.Before(at):
			sooner(at)
		case now.Before(w.last.Add(tellAgain)):
			sooner(w.last.Add(tellAgain))
		default:
			due = true
			long[cause(b)] = true
		}
	}
	if due {
		maps.Copy(w.told, long)
		w.last = now
	}
	return due, again
}

// note which pods are blocked.
func (w *Waits) note(now time.Time, blocked []Blocked) {
	if w.pods == nil {
		w.pods, w.told = map[string]wait{}, map[string]bool{}
	}
	is := make(map[string]bool, len(blocked))
	for _, b := range blocked {
		is[b.Pod] = true
		if was, known := w.pods[b.Pod]; known {
			w.pods[b.Pod] = wait{since: was.since}
		} else {
			w.pods[b.Pod] = wait{since: now}
		}
	}
	for pod, was := range w.pods {
		switch {
		case is[pod]:
		case was.until.IsZero():
			w.pods[pod] = wait{since: was.since, until: now}
		case now.Sub(was.until) > askedFor:
			delete(w.pods, pod)
		}
	}
}

// cause is what blocks a pod, whichever pod it is: what the API server says beside it may be different with each.
func cause(b Blocked) string {
	why, _, _ := strings.Cut(b.Why, ": ")
	return why + " " + strings.Join(b.Budgets, " ")
}
