package drain

// What blocks a drain is worth telling while the drain still waits, but not what only has its turn to come: something that has been blocked
// for a while, and under whose budget nothing has gone meanwhile.

import (
	"maps"
	"strings"
	"time"
)

const (
	// tellAfter is how long it takes until what blocks is told.
	tellAfter = 7 * time.Second
	// tellAgain is the least time between two tellings.
	tellAgain = 15 * time.Second
	// looksApart is the least time between two looks: each goes through all tries.
	looksApart = time.Second
	// askedFor is how long a pod that is not blocked any more may be so again as if nothing had been: it was asked for meanwhile, in vain.
	askedFor = 15 * time.Second
)

// Waits are what a drain has waited for so far. The zero value is a drain that begins.
type Waits struct {
	pods         map[string]wait
	told         map[string]bool
	looked, last time.Time
}

// wait of one pod.
type wait struct {
	since time.Time
	// until is when it was not blocked any more; zero while it is.
	until time.Time
}

// Due says whether what blocks is to be told now: once, and once more when something else blocks, too. Otherwise it says when to ask again
// though nothing has happened until then; zero is never.
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
