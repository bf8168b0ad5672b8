package calendar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/calendar"
)

// plainly is a window said another way than by the code: which minutes of a clock on the wall begin it.
type plainly struct {
	starts   func(wall time.Time) bool
	duration time.Duration
	// late opens a start that clocks are put forward over as that is done.
	late bool
}

// minutes of a stretch of time, each with whether the window begins at it and whether it is open: what Open is held against.
type minutes struct {
	from         time.Time
	begins, open []bool
}

// look at every minute of a zone's clocks, in the order in which they come. A minute that the clocks show twice counts the first time.
func (p plainly) look(zone *time.Location, l calendar.Limits, from, until time.Time) minutes {
	n := int(until.Sub(from) / time.Minute)
	m := minutes{from, make([]bool, n), make([]bool, n)}
	shown, left := int64(0), 0 // the latest minute that a clock showed
	// It may have begun before.
	before := int(p.duration/time.Minute) + 2*24*60
	wasOpen, earlier := false, 0
	for i := -before; i < n; i++ {
		t := from.Add(time.Duration(i) * time.Minute)
		wall := t.In(zone)
		_, offset := wall.Zone()
		begins := false
		if shows := t.Unix() + int64(offset); shows > shown {
			shown, begins = shows, p.starts(wall)
		}
		for skipped := earlier; p.late && i > -before && skipped < offset; skipped += 60 {
			begins = begins || p.starts(t.UTC().Add(time.Duration(skipped)*time.Second))
		}
		earlier = offset
		if begins {
			left = int(p.duration / time.Minute)
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

// TestOpenMinuteByMinute holds Open against two years of minutes, with the days in them on which clocks change: it is open when the
// minutes say so, and the next opening is the earliest that they have.
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
		window   func(*time.Location, time.Duration) calendar.Window
		plainly  func(time.Time) bool
		duration time.Duration
		late     bool
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
					m := plainly{w.plainly, w.duration, w.late}.look(zone, l, from, until)
					require.Empty(t, m.disagree(window, l))
				}
			})
		}
	}
}

// disagree says where a window is not as the minutes are. The next opening is asked for as things change, and now and then between.
func (m minutes) disagree(w calendar.Window, l calendar.Limits) string {
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
		if !changes && i%1009 != 0 {
			continue
		}
		if next[i] < 0 {
			break // beyond the end of these minutes
		}
		now := m.from.Add(time.Duration(i) * time.Minute)
		open, opens := w.Open(l, now)
		if want := m.from.Add(time.Duration(next[i]) * time.Minute); open != m.open[i] || !opens.Equal(want) {
			return fmt.Sprintf("%s: open is %v and should be %v; next is %s and should be %s", now, open, m.open[i], opens, want)
		}
		// Within a minute nothing changes.
		if open, opens := w.Open(l, now.Add(59*time.Second)); open != m.open[i] || !opens.Equal(m.from.Add(time.Duration(next[i])*time.Minute)) {
			return fmt.Sprintf("%s: it is otherwise a second before the next minute", now)
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

// The days on which clocks change, by name: what the minutes above hold is easier to see here.
func TestWindowsOnTheDaysThatClocksChange(t *testing.T) {
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
		"put forward over the start: as that is done":      {nightly, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		"put forward over a cron: not on that day, as AWS": {scheduled, "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		"put back: the first time":                         {nightly, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"put back with a cron: the first time":             {scheduled, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"put back: not the second time":                    {nightly, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"put back with a cron: not the second time":        {scheduled, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			_, next := c.window.Open(calendar.Limits{}, at(t, c.now))
			require.Equal(t, at(t, c.next), next.UTC())
			open, _ := c.window.Open(calendar.Limits{}, next)
			require.True(t, open)
			open, _ = c.window.Open(calendar.Limits{}, next.Add(4*time.Hour-time.Second))
			require.True(t, open, "four hours pass, whatever clocks show")
			open, _ = c.window.Open(calendar.Limits{}, next.Add(4*time.Hour))
			require.False(t, open)
		})
	}
}

func TestWindowsThatDoNotOpen(t *testing.T) {
	now := at(t, "2026-11-20T12:00:00Z")
	for _, text := range []string{"0 0 30 2 ? *", "0 0 1 1 ? 2020"} {
		cron, err := calendar.ParseCron(text)
		require.NoError(t, err)
		open, next := calendar.OfCron(cron, time.UTC, time.Hour).Open(calendar.Limits{}, now)
		require.False(t, open)
		require.Zero(t, next)
	}
}

func TestNoWindowIsAlwaysOpen(t *testing.T) {
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
