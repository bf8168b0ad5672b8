package calendar

// Windows: stretches of time that come again and again.

import (
	"slices"
	"time"
)

// Window opens at its starts, and is open for a duration from each: hours that pass, whatever clocks are put to meanwhile. The zero
// Window is always open.
type Window struct {
	// start is the first start after a time, or the zero time.
	start    func(after time.Time) time.Time
	duration time.Duration
}

// OfCron is the window that opens at the times of a cron expression.
func OfCron(cron Cron, zone *time.Location, duration time.Duration) Window {
	return Window{func(after time.Time) time.Time { return cron.Next(after, zone) }, duration}
}

// Weekly is the window that opens on days of the week, at so much after midnight as clocks show it; every day if none is given. When
// clocks are put forward over it, it opens as that is done.
func Weekly(days []time.Weekday, sinceMidnight time.Duration, zone *time.Location, duration time.Duration) Window {
	return Window{func(after time.Time) time.Time {
		wall := after.In(zone)
		for ahead := -1; ; ahead++ { // within nine days there is one
			day := time.Date(wall.Year(), wall.Month(), wall.Day()+ahead, 0, 0, 0, 0, time.UTC)
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

// Span is from one time until another, without the latter.
type Span struct{ From, Until time.Time }

func (s Span) holds(t time.Time) bool { return !t.Before(s.From) && t.Before(s.Until) }

// Limits keep a window shut: before a time, and within spans.
type Limits struct {
	// NotBefore is the zero time when there is no such limit.
	NotBefore time.Time
	Excluded  []Span
}

func (l Limits) allow(t time.Time) bool {
	return !t.Before(l.NotBefore) && !slices.ContainsFunc(l.Excluded, func(s Span) bool { return s.holds(t) })
}

// Open says whether a window is open, and when it opens next: for one that is open, when it does so after now, by a new start or as an
// exclusion ends. next is the zero time if it never does.
func (w Window) Open(l Limits, now time.Time) (open bool, next time.Time) {
	earliest := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	// It opens at a start, or within what a start opened, as a limit ends.
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

// Shut says which limits shut out all that is left of a window from now on, for one that does not open any more: whether NotBefore does,
// and the indices of the spans. Without limits in its way, a window has come to its end by itself.
func (w Window) Shut(l Limits, now time.Time) (notBefore bool, spans []int) {
	if w.start == nil {
		return false, nil
	}
	start := w.start(now.Add(-w.duration)) // one that is open by its start counts
	for !start.IsZero() && !l.allow(start) {
		past := start
		if start.Before(l.NotBefore) {
			notBefore, past = true, l.NotBefore
		}
		for i, s := range l.Excluded {
			if s.holds(start) {
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

// covers says whether a time is within the duration of a start.
func (w Window) covers(t time.Time) bool {
	if w.start == nil {
		return true
	}
	start := w.start(t.Add(-w.duration))
	return !start.IsZero() && !start.After(t)
}

// allowedStart is the first start after a time that the limits allow, or the zero time. Each round leaves a limit behind.
func (w Window) allowedStart(l Limits, after time.Time) time.Time {
	if w.start == nil {
		return time.Time{}
	}
	start := w.start(after)
	for !start.IsZero() && !l.allow(start) {
		past := l.NotBefore
		for _, s := range l.Excluded {
			if s.holds(start) && s.Until.After(past) {
				past = s.Until
			}
		}
		start = w.start(past.Add(-time.Nanosecond))
	}
	return start
}
