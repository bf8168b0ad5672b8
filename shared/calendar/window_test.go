package calendar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/calendar"
)

// reference is a second definition of a window, independent of the code: the wall clock minutes at which it starts.
type reference struct {
	starts   func(wall time.Time) bool
	duration time.Duration
	// opensLate opens the window at the moment when clocks are put forward over a start.
	opensLate bool
}

// minutes holds, for each minute of a period, whether the window starts and whether it is open. The test compares Open with it.
type minutes struct {
	from         time.Time
	begins, open []bool
}

// minutes walks through each minute of a zone's clocks in order. A minute that the clocks show twice counts the first time.
func (r reference) minutes(zone *time.Location, l calendar.Limits, from, until time.Time) minutes {
	n := int(until.Sub(from) / time.Minute)
	m := minutes{from, make([]bool, n), make([]bool, n)}
	shown, left := int64(0), 0 // the latest minute shown, and for how many minutes the window stays open
	// The window may have started before the period.
	before := int(r.duration/time.Minute) + 2*24*60
	wasOpen, earlier := false, 0
	for i := -before; i < n; i++ {
		t := from.Add(time.Duration(i) * time.Minute)
		wall := t.In(zone)
		_, offset := wall.Zone()
		begins := false
		if shows := t.Unix() + int64(offset); shows > shown {
			shown, begins = shows, r.starts(wall)
		}
		for skipped := earlier; r.opensLate && i > -before && skipped < offset; skipped += 60 {
			begins = begins || r.starts(t.UTC().Add(time.Duration(skipped)*time.Second))
		}
		earlier = offset
		if begins {
			left = int(r.duration / time.Minute)
		}
		allowed := !t.Before(l.NotBefore) && !slices.ContainsFunc(l.Excluded, func(s calendar.Span) bool {
			return !t.Before(s.From) && t.Before(s.Until)
		})
		open := left > 0 && allowed
		if i >= 0 {
			m.open[i] = open
			m.begins[i] = open && (begins || !wasOpen)
		}
		wasOpen = open
		left--
	}
	return m
}

// walkMinutes returns the periods whose minutes the test walks through, and the clock changes of a zone within two years. There is a period
// around each clock change, and one around each limit. Every window starts before the end of a period.
func walkMinutes(zone *time.Location, l calendar.Limits, from, until time.Time) (periods []calendar.Span, changes []time.Time) {
	const day = 24 * time.Hour
	for _, change := from.In(zone).ZoneBounds(); change.Before(until); _, change = change.ZoneBounds() {
		changes = append(changes, change)
		periods = append(periods, calendar.Span{From: change.Add(-2 * day), Until: change.Add(12 * day)})
	}
	newYear := time.Date(from.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	periods = append(periods, calendar.Span{From: newYear.Add(-7 * day), Until: newYear.Add(7 * day)})
	if !l.NotBefore.IsZero() {
		periods = append(periods, calendar.Span{From: l.NotBefore.Add(-2 * day), Until: l.NotBefore.Add(12 * day)})
	}
	for _, excluded := range l.Excluded {
		periods = append(periods, calendar.Span{From: excluded.From.Add(-2 * day), Until: excluded.Until.Add(12 * day)})
	}
	for i := range periods {
		periods[i].From = periods[i].From.UTC().Truncate(time.Hour)
	}
	return periods, changes
}

// TestOpenMinuteByMinute compares Open with the minutes around clock changes of two years and around limits. Open must report the same
// minutes as open, and the earliest later start as the next opening.
func TestOpenMinuteByMinute(t *testing.T) {
	cron := func(text string) func(*time.Location, time.Duration) calendar.Window {
		parsed, err := calendar.ParseCron(text)
		require.NoError(t, err)
		return func(zone *time.Location, d time.Duration) calendar.Window { return calendar.OfCron(parsed, zone, d) }
	}
	weekly := func(at time.Duration, days ...time.Weekday) func(*time.Location, time.Duration) calendar.Window {
		return func(zone *time.Location, d time.Duration) calendar.Window { return calendar.Weekly(days, at, zone, d) }
	}
	clock := func(hour, minute int, days ...time.Weekday) func(time.Time) bool {
		return func(wall time.Time) bool {
			return wall.Hour() == hour && wall.Minute() == minute && (len(days) == 0 || slices.Contains(days, wall.Weekday()))
		}
	}
	from, until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	limits := calendar.Limits{
		NotBefore: from.Add(40*24*time.Hour + 17*time.Minute),
		Excluded: []calendar.Span{
			{From: time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)},
			{From: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 7, 1, 3, 7, 0, 0, time.UTC)},
			{From: time.Date(2026, 6, 20, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 7, 2, 0, 0, 0, 0, time.UTC)},
		},
	}
	windows := map[string]struct {
		window    func(*time.Location, time.Duration) calendar.Window
		starts    func(time.Time) bool
		duration  time.Duration
		opensLate bool
	}{
		"every night, in the hour that clocks change": {weekly(2*time.Hour + 30*time.Minute), clock(2, 30), 4 * time.Hour, true},
		"weekends, across midnight": {
			weekly(22*time.Hour, time.Saturday, time.Sunday), clock(22, 0, time.Saturday, time.Sunday), 8 * time.Hour, true,
		},
		"longer than a day, every day":       {weekly(0), clock(0, 0), 25 * time.Hour, true},
		"Mondays, for most of a week":        {weekly(9*time.Hour, time.Monday), clock(9, 0, time.Monday), 150 * time.Hour, true},
		"cron of Sundays as AWS counts them": {cron("30 1 ? * 1 *"), clock(1, 30, time.Sunday), 90 * time.Minute, false},
		"cron in the hour that clocks change": {cron("15,45 2 * * ? *"), func(w time.Time) bool {
			return w.Hour() == 2 && (w.Minute() == 15 || w.Minute() == 45)
		}, 30 * time.Minute, false},
		"cron of a part of the month": {cron("0 1 1-21 * ? *"), func(w time.Time) bool {
			return w.Hour() == 1 && w.Minute() == 0 && w.Day() <= 21
		}, 4 * time.Hour, false},
	}
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"} {
		zone, err := calendar.Zone(name)
		require.NoError(t, err)
		for what, w := range windows {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				for _, l := range []calendar.Limits{{}, limits} {
					window := w.window(zone, w.duration)
					periods, changes := walkMinutes(zone, l, from, until)
					require.Len(t, changes, 4)
					for _, period := range periods {
						m := reference{w.starts, w.duration, w.opensLate}.minutes(zone, l, period.From, period.Until)
						require.Empty(t, m.firstDifference(window, l, changes))
					}
				}
			})
		}
	}
}

// firstDifference describes the first minute at which a window differs from m. It checks the minutes at which the window starts or
// ends, every minute near a change of the clocks, and a sample of the others.
func (m minutes) firstDifference(w calendar.Window, l calendar.Limits, clockChanges []time.Time) string {
	// next[i] is the first minute after i at which the window begins.
	next, last := make([]int, len(m.open)), -1
	for i := len(m.open) - 1; i >= 0; i-- {
		next[i] = last
		if m.begins[i] {
			last = i
		}
	}
	for i := range m.open {
		changes := m.begins[i] || i > 0 && (m.open[i] != m.open[i-1] || m.begins[i-1]) || i+1 < len(m.open) && (m.open[i] != m.open[i+1] ||
			m.begins[i+1])
		now := m.from.Add(time.Duration(i) * time.Minute)
		near := slices.ContainsFunc(clockChanges, func(change time.Time) bool { return now.Sub(change).Abs() <= 3*time.Hour })
		if !changes && !near && i%1009 != 0 {
			continue
		}
		if next[i] < 0 {
			break // no later start within m
		}
		open, opens := w.Open(l, now)
		if want := m.from.Add(time.Duration(next[i]) * time.Minute); open != m.open[i] || !opens.Equal(want) {
			return fmt.Sprintf("%s: open is %v and should be %v; next is %s and should be %s", now, open, m.open[i], opens, want)
		}
		// Nothing changes within a minute.
		if open, opens := w.Open(l, now.Add(59*time.Second)); open != m.open[i] || !opens.Equal(m.from.Add(time.Duration(next[i])*time.Minute)) {
			return fmt.Sprintf("%s: open differs one second before the next minute", now)
		}
	}
	return ""
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

// The days on which clocks change, by name. They are also part of TestOpenMinuteByMinute, but easier to read here.
func TestOpenOnClockChanges(t *testing.T) {
	berlin, err := calendar.Zone("Europe/Berlin")
	require.NoError(t, err)
	cron, err := calendar.ParseCron("30 2 * * ? *")
	require.NoError(t, err)
	nightly, scheduled := calendar.Weekly(nil, 150*time.Minute, berlin, 4*time.Hour), calendar.OfCron(cron, berlin, 4*time.Hour)
	for name, c := range map[string]struct {
		window calendar.Window
		now    string
		next   string
	}{
		"weekly, skipped: opens when clocks change":    {nightly, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		"cron, skipped: opens the next day, as in AWS": {scheduled, "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"weekly, shown twice: opens the first time":    {nightly, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"cron, shown twice: opens the first time":      {scheduled, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"weekly, shown twice: not the second time":     {nightly, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"cron, shown twice: not the second time":       {scheduled, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			_, next := c.window.Open(calendar.Limits{}, at(t, c.now))
			require.Equal(t, at(t, c.next), next.UTC())
			open, _ := c.window.Open(calendar.Limits{}, next)
			require.True(t, open)
			open, _ = c.window.Open(calendar.Limits{}, next.Add(4*time.Hour-time.Second))
			require.True(t, open, "the duration is elapsed time")
			open, _ = c.window.Open(calendar.Limits{}, next.Add(4*time.Hour))
			require.False(t, open)
		})
	}
}

func TestOpenOfPastAndImpossibleDates(t *testing.T) {
	now := at(t, "2026-11-20T12:00:00Z")
	for _, text := range []string{"0 0 30 2 ? *", "0 0 1 1 ? 2020"} {
		cron, err := calendar.ParseCron(text)
		require.NoError(t, err)
		open, next := calendar.OfCron(cron, time.UTC, time.Hour).Open(calendar.Limits{}, now)
		require.False(t, open)
		require.Zero(t, next)
	}
}

func TestZeroWindowIsOpen(t *testing.T) {
	now := at(t, "2026-11-20T12:00:00Z")
	open, next := calendar.Window{}.Open(calendar.Limits{}, now)
	require.True(t, open)
	require.Zero(t, next)
	open, next = calendar.Window{}.Open(calendar.Limits{
		NotBefore: now.Add(time.Hour), Excluded: []calendar.Span{{now, now.Add(2 * time.Hour)}},
	}, now)
	require.False(t, open)
	require.Equal(t, now.Add(2*time.Hour), next)
}

func TestZones(t *testing.T) {
	for _, name := range []string{"Local", "Europe/Nowhere", "../etc/passwd", "CET+1"} {
		_, err := calendar.Zone(name)
		require.ErrorContains(t, err, "unknown time zone "+name)
	}
	zone, err := calendar.Zone("")
	require.NoError(t, err)
	require.Equal(t, time.UTC, zone)
}
