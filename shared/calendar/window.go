package calendar

// Windows: recurring periods.

import (
	"slices"
	"time"
)

// Window opens at recurring starts. It stays open for a duration of elapsed time, even if clocks change. The zero Window
// is always open.
type Window struct {
	// start returns the first start after a time, or the zero time.
	start    func(after time.Time) time.Time
	duration time.Duration
}

// OfCron returns the window that opens at the times of a cron expression.
func OfCron(cron Cron, zone *time.Location, duration time.Duration) Window {
	return Window{func(after time.Time) time.Time { return cron.Next(after, zone) }, duration}
}

// Weekly returns the window that opens at a wall clock time on days of the week, or every day if days is empty. If clocks are put
// forward over that time, the window opens at that moment.
func Weekly(days []time.Weekday, sinceMidnight time.Duration, zone *time.Location, duration time.Duration) Window {
	return Window{func(after time.Time) time.Time {
		wall := after.In(zone)
		for offset := -1; ; offset++ { // a start lies within nine days
			day := time.Date(wall.Year(), wall.Month(), wall.Day()+offset, 0, 0, 0, 0, time.UTC)
			if len(days) > 0 && !slices.Contains(days, day.Weekday()) {
				continue
			}
			t, exists := Instant(day.Add(sinceMidnight), zone)
			if !exists {
				t = putForward(day.Add(sinceMidnight), zone)
			}
			if t.After(after) {
				return t
			}
		}
	}, duration}
}

// Span is a period from From until, and without, Until.
type Span struct{ From, Until time.Time }

func (s Span) contains(t time.Time) bool { return !t.Before(s.From) && t.Before(s.Until) }

// Limits keep a window shut: before a time, and within spans.
type Limits struct {
	// NotBefore is the zero time when there is no such limit.
	NotBefore time.Time
	Excluded  []Span
}

func (l Limits) allow(t time.Time) bool {
	return !t.Before(l.NotBefore) && !slices.ContainsFunc(l.Excluded, func(s Span) bool { return s.contains(t) })
}

// Open reports whether a window is open at now, and when it opens next. For an open window, next is its next opening
// after now: a new start, or the end of an exclusion. next is the zero time if there is none.
func (w Window) Open(l Limits, now time.Time) (open bool, next time.Time) {
	earliest := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	// A window opens at a start. It also opens when a limit ends after a start and before that start's duration has passed.
	earliest(w.allowedStart(l, now))
	ends := []time.Time{l.NotBefore}
	for _, s := range l.Excluded {
		ends = append(ends, s.Until)
	}
	for _, end := range ends {
		if w.covers(end) && l.allow(end) {
			earliest(end)
		}
	}
	return w.covers(now) && l.allow(now), next
}

// Closes reports whether the window is open at now, and until when. Starts within that time extend it. until is zero if the window never
// closes.
func (w Window) Closes(now time.Time) (until time.Time, open bool) {
	if w.start == nil {
		return time.Time{}, true
	}
	start := w.start(now.Add(-w.duration))
	if start.IsZero() || start.After(now) {
		return time.Time{}, false
	}
	// A window that opens again before it closes stays open. One that always does so never closes.
	for range maxRepeats {
		until = start.Add(w.duration)
		if start = w.start(start); start.IsZero() || start.After(until) {
			return until, true
		}
	}
	return time.Time{}, true
}

// maxRepeats is the number of starts in a row after which a window counts as always open. A window of a week may open every minute.
const maxRepeats = 400

// Shut returns which limits cover all that is left of a window that never opens again: whether NotBefore does, and the indices of the
// exclusions. If no limit does, the window itself has no further start.
func (w Window) Shut(l Limits, now time.Time) (notBefore bool, spans []int) {
	if w.start == nil {
		return false, nil
	}
	start := w.start(now.Add(-w.duration)) // the start of a window that is open now counts
	for !start.IsZero() && !l.allow(start) {
		past := start
		if start.Before(l.NotBefore) {
			notBefore, past = true, l.NotBefore
		}
		for i, s := range l.Excluded {
			if s.contains(start) {
				spans = append(spans, i)
				if s.Until.After(past) {
					past = s.Until
				}
			}
		}
		start = w.start(past.Add(-time.Nanosecond))
	}
	slices.Sort(spans)
	return notBefore, slices.Compact(spans)
}

// covers reports whether a time is within the duration of a start.
func (w Window) covers(t time.Time) bool {
	if w.start == nil {
		return true
	}
	start := w.start(t.Add(-w.duration))
	return !start.IsZero() && !start.After(t)
}

// allowedStart returns the first start after a time that the limits allow, or the zero time. Each round skips past one limit.
func (w Window) allowedStart(l Limits, after time.Time) time.Time {
	if w.start == nil {
		return time.Time{}
	}
	start := w.start(after)
	for !start.IsZero() && !l.allow(start) {
		past := l.NotBefore
		for _, s := range l.Excluded {
			if s.contains(start) && s.Until.After(past) {
				past = s.Until
			}
		}
		start = w.start(past.Add(-time.Nanosecond))
	}
	return start
}
