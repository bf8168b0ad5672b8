// Package calendar computes when cron expressions and windows open, in IANA time zones. It handles days on which clocks change.
// It is pure: callers pass the current time.
package calendar

import (
	"fmt"
	"time"
	_ "time/tzdata" // the Lambda runtime has no time zone database
)

// Zone returns a time zone of the IANA database, such as Europe/Berlin. "" is UTC. The machine's own zone, "Local", is rejected: a
// spec must mean the same wherever it is read.
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

// wallOf returns the wall clock time of t as a time in UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// Instant returns the first time at which the clocks of a zone show a wall clock time, given as if it were UTC. exists is false if
// the clocks skip it. The offset in force is that of a day before or of a day after: at most one change lies between.
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

// putForward returns when the clocks of a zone skip a wall clock time, given as if it were UTC.
func putForward(wall time.Time, zone *time.Location) time.Time {
	_, offset := wall.Add(-24 * time.Hour).In(zone).Zone()
	after, _ := wall.Add(-time.Duration(offset) * time.Second).In(zone).ZoneBounds()
	return after.UTC()
}
