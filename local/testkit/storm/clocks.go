package storm

// Days on which clocks are put forward or back: some worlds begin shortly before, and their windows are in that zone.

import (
	"math/rand/v2"
	"time"

	"github.com/drover-run/drover/shared/calendar"
)

// zones that change their clocks in the year 2000: by an hour at night, by an hour at midnight, and by half an hour.
var zones = []string{"Europe/Berlin", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe"}

// clocks of a world. The zero value are those of worlds that begin when all bubbles do, in UTC.
type clocks struct {
	zone string
	// begin is when the world begins; change is when the clocks of the zone are put forward or back.
	begin, change time.Time
}

// someClocks of a world that begins a few hours before they are changed.
func someClocks(r *rand.Rand) (c clocks) {
	c.zone = zones[r.IntN(len(zones))]
	_, c.change = time.Date(2000, 1, 1, 0, 0, 0, 0, zoneOf(c.zone)).ZoneBounds()
	if r.IntN(2) == 0 { // the other one of that year
		_, c.change = c.change.ZoneBounds()
	}
	c.begin = c.change.Add(-time.Duration(15+r.IntN(225)) * time.Minute).UTC()
	return c
}

func zoneOf(name string) *time.Location {
	zone, err := calendar.Zone(name)
	if err != nil {
		panic(err) // the zones are those above
	}
	return zone
}

// around is a time of the day as clocks show it, from two hours before they are changed until three after.
func (c clocks) around(r *rand.Rand) time.Duration {
	_, before := c.change.Add(-time.Hour).In(zoneOf(c.zone)).Zone()
	shows := c.change.Add(time.Duration(before)*time.Second + time.Duration(r.IntN(20)-8)*quarter).UTC()
	return time.Duration(shows.Hour())*time.Hour + time.Duration(shows.Minute())*time.Minute
}
