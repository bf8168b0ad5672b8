package drain

// Reports of blocked pods while a drain is running. A pod is reported when it has been blocked for some seconds and no
// pod of its budget left in that time. Other pods only wait for their turn.

import (
	"maps"
	"strings"
	"time"
)

const (
	// reportAfter is how long a pod is blocked before it is reported.
	reportAfter = 7 * time.Second
	// minReportPause is the least time between two reports.
	minReportPause = 15 * time.Second
	// minCheckPause is the least time between two checks. Each check reads all tries.
	minCheckPause = time.Second
	// maxGap bridges a gap: a pod that is blocked again within this time counts as blocked without a break. In the gap drover requested its
	// eviction, and the API refused.
	maxGap = 15 * time.Second
)

// Waits records since when each pod has blocked a drain during one call of the drainer. The zero value is that of a new call. What must
// outlast a call is in annotations of the node.
type Waits struct {
	pods map[string]wait
	// reported holds the causes that were reported.
	reported map[string]bool
	// checked is the time of the last check, last that of the last report.
	checked, last time.Time
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
	if next := w.checked.Add(minCheckPause); now.Before(next) {
		return false, next
	}
	w.checked = now
	w.note(now, decision.Blocked)
	lastEviction := map[string]time.Time{} // by budget
	for _, try := range view.Tries {
		if b := string(try.Budget); b != "" && try.Accepted.After(lastEviction[b]) {
			lastEviction[b] = try.Accepted
		}
	}
	overdue := map[string]bool{}
	checkAt := func(at time.Time) {
		if again.IsZero() || at.Before(again) {
			again = at
		}
	}
	for _, b := range decision.Blocked {
		since := w.pods[b.Pod].since
		if len(b.Budgets) == 1 && lastEviction[b.Budgets[0]].After(since) {
			since = lastEviction[b.Budgets[0]]
		}
		switch at := since.Add(reportAfter); {
		case w.reported[causeOf(b)]:
		case now.Before(at):
			checkAt(at)
		case now.Before(w.last.Add(minReportPause)):
			checkAt(w.last.Add(minReportPause))
		default:
			due = true
			overdue[causeOf(b)] = true
		}
	}
	if due {
		maps.Copy(w.reported, overdue)
		w.last = now
	}
	return due, again
}

// note records which pods are blocked.
func (w *Waits) note(now time.Time, blocked []Blocked) {
	if w.pods == nil {
		w.pods, w.reported = map[string]wait{}, map[string]bool{}
	}
	current := make(map[string]bool, len(blocked))
	for _, b := range blocked {
		current[b.Pod] = true
		if previous, ok := w.pods[b.Pod]; ok {
			w.pods[b.Pod] = wait{since: previous.since}
		} else {
			w.pods[b.Pod] = wait{since: now}
		}
	}
	for pod, previous := range w.pods {
		switch {
		case current[pod]:
		case previous.until.IsZero():
			w.pods[pod] = wait{since: previous.since, until: now}
		case now.Sub(previous.until) > maxGap:
			delete(w.pods, pod)
		}
	}
}

// causeOf returns what blocks a pod, without the pod's own details: the API server's message may differ for each pod.
func causeOf(b Blocked) string {
	return b.Why.Code.String() + " " + strings.Join(b.Budgets, " ")
}
