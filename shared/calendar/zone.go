// Package calendar knows when times come that people write as clocks on the wall show them: cron expressions and windows, in time
// zones, on the days that clocks change, too. It is pure: it takes what time it is.
package calendar

import (
	"fmt"
	"time"
	_ "time/tzdata" // Lambda's machines have no time zones, and whoever reads a window needs them
)

// Zone returns a time zone of the IANA database, such as Europe/Berlin; "" is UTC. The machine's own zone is none: what a spec means
// must not depend on where it is read.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	return zone, nil
}

// wallOf gives what a clock on the wall shows, as a time in UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// Instant is when the clocks of a zone first show a time, given as if it were UTC, if they do. The zone's offset a day before or a
// day after is in force then: there is one change at most between.
func Instant(wall time.Time, zone *time.Location) (first time.Time, exists bool) {
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(around).In(zone).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second)
		if wallOf(t.In(zone)).Equal(wall) && (!exists || t.Before(first)) {
			first, exists = t, true
		}
	}
	return first, exists
}

// putForward is when the clocks of a zone are put forward over a time that they never show, given as if it were UTC.
func putForward(wall time.Time, zone *time.Location) time.Time {
	_, offset := wall.Add(-24 * time.Hour).In(zone).Zone()
	after, _ := wall.Add(-time.Duration(offset) * time.Second).In(zone).ZoneBounds()
	return after.UTC()
}
