package storm

// Days on which clocks change. Some worlds begin shortly before, with windows in that time zone.

import (
	"math/rand/v2"
	"time"

	"github.com/drover-run/drover/shared/calendar"
)

// zones whose clocks change in the year 2000: by an hour at night, by an hour at midnight, and by half an hour.
var zones = []string{"Europe/Berlin", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe"}

// clocks of a world. The zero value is for worlds that begin when all bubbles do, in UTC.
type clocks struct {
	zone string
	// begin is the start of the world. change is when the zone's clocks change.
	begin, change time.Time
}

// someClocks returns clocks of a world that begins a few hours before they change.
func someClocks(r *rand.Rand) (c clocks) {
	c.zone = zones[r.IntN(len(zones))]
	_, c.change = time.Date(2000, 1, 1, 0, 0, 0, 0, zoneOf(c.zone)).ZoneBounds()
	if r.IntN(2) == 0 { // the other change of that year
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

// around returns a time of day on the zone's clocks, from two hours before the change until three after.
func (c clocks) around(r *rand.Rand) time.Duration {
	_, before := c.change.Add(-time.Hour).In(zoneOf(c.zone)).Zone()
	shows := c.change.Add(time.Duration(before)*time.Second + time.Duration(r.IntN(20)-8)*quarter).UTC()
	return time.Duration(shows.Hour())*time.Hour + time.Duration(shows.Minute())*time.Minute
}
