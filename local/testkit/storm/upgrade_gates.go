package storm

// Gates of upgrades: windows, exclusions and notBefore, computed independently of drover.

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/upgrade"
)

const day = 24 * time.Hour

// quarter of an hour: the offsets of zones and the opening times of windows are multiples of it.
const quarter = 15 * time.Minute

// gate restricts when upgrades begin.
type gate struct {
	// opens is when a window opens each day on the clocks of a zone (UTC if empty), and lasts its duration. Without a
	// window the gate is always open. cron writes the window as a schedule.
	opens, lasts time.Duration
	zone         string
	cron         bool
	// from and until are an exclusion, notBefore is the earliest time, all since the beginning of the world.
	from, until, notBefore time.Duration
}

func someGate(r *rand.Rand, c clocks) (g gate) {
	if r.IntN(2) == 0 || c.zone != "" {
		g.opens, g.lasts = time.Duration(r.IntN(24))*quarter, time.Duration(1+r.IntN(6))*30*time.Minute
		g.cron = r.IntN(3) == 0
	}
	if g.zone = c.zone; c.zone != "" {
		g.opens = c.around(r)
	}
	if r.IntN(2) == 0 {
		g.from = time.Duration(r.IntN(120)) * time.Minute
		g.until = g.from + time.Duration(1+r.IntN(180))*time.Minute
	}
	if r.IntN(3) == 0 {
		g.notBefore = time.Duration(r.IntN(240)) * time.Minute
	}
	return g
}

// excludes reports whether the exclusion includes a time.
func (g gate) excludes(at time.Duration) bool { return g.from <= at && at < g.until }

// open reports whether an upgrade may begin at a time, in a world that began at another. It follows the clocks of the zone
// and shares no code with shared/calendar.
func (g gate) open(began time.Time, at time.Duration) bool {
	if at < g.notBefore || g.excludes(at) {
		return false
	}
	now := began.Add(at)
	for daysAgo := 0; g.lasts > 0 && daysAgo < 2; daysAgo++ {
		opened, opens := g.opening(now, daysAgo)
		if opens && !now.Before(opened) && now.Before(opened.Add(g.lasts)) {
			return true
		}
	}
	return g.lasts == 0
}

// opening returns when the window opens on a day before that of a time: when the clocks first show its opening time or a
// later one. A schedule does not run at a time that the clocks skip.
func (g gate) opening(now time.Time, daysAgo int) (at time.Time, opens bool) {
	zone := zoneOf(g.zone)
	local := now.In(zone)
	noon := time.Date(local.Year(), local.Month(), local.Day()-daysAgo, 12, 0, 0, 0, zone) // every day has one noon
	for at = noon.Add(-14 * time.Hour); at.Before(noon.Add(14 * time.Hour)); at = at.Add(quarter) {
		clock := at.In(zone)
		shows := time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute
		if clock.Day() == noon.Day() && shows >= g.opens {
			return at, shows == g.opens || !g.cron
		}
	}
	return at, false // the clocks skip midnight
}

// letting returns a gate that is open at a time that the spec names.
func (g gate) letting(at time.Duration) gate {
	if g.excludes(at) {
		g.from, g.until = 0, 0
	}
	g.notBefore = min(g.notBefore, at)
	return g
}

// fields returns the fields of spec.upgrade, in a world that began at a time.
func (g gate) fields(began time.Time) (all []string) {
	if g.lasts > 0 {
		all = append(all, "window: "+g.window())
	}
	if g.until > 0 {
		all = append(all, fmt.Sprintf("exclusions: [{from: %q, until: %q, reason: the ball}]", g.textAt(began, g.from),
			g.textAt(began, g.until)))
	}
	if g.notBefore > 0 {
		all = append(all, fmt.Sprintf("notBefore: %q", g.textAt(began, g.notBefore)))
	}
	return all
}

func (g gate) window() string {
	hour, minute, zone := int(g.opens.Hours()), int(g.opens.Minutes())%60, ""
	if g.zone != "" {
		zone = ", timeZone: " + g.zone
	}
	if g.cron {
		return fmt.Sprintf("{cron: \"%d %d * * ? *\", duration: %s%s}", minute, hour, g.lasts, zone)
	}
	return fmt.Sprintf("{start: \"%02d:%02d\", duration: %s%s}", hour, minute, g.lasts, zone)
}

// textAt formats a time since the beginning of a world with the zone's offset at that time.
func (g gate) textAt(began time.Time, at time.Duration) string {
	return began.Add(at).In(zoneOf(g.zone)).Format(time.RFC3339)
}

// upload is a spec, with the time since which it was the newest.
type upload struct {
	at      time.Duration
	wish    *wish
	version string
}

// maxUpgradeDelay is how long after its decision an upgrade may begin. The decision is notified first, and both may be retried.
const maxUpgradeDelay = 30 * time.Minute

// seeUpgrade observes the begin of upgrades. Windows restrict the begin: an upgrade that waits for its cluster has
// begun, and so has one that a removal of drover interrupted.
func (w *world) seeUpgrade(in events.UpgradeRequest) {
	if in.Action != events.UpgradeCheck || in.CheckOnly || in.Ended != "" || in.Continues != "" || w.observed.seenUpgrades[in.Execution] {
		return
	}
	w.observed.seenUpgrades[in.Execution] = true
	began := in.Started.Sub(w.began)
	var may func(*wish, time.Duration) bool
	switch upgrade.Origin(in.Origin) {
	case upgrade.OriginSpec, upgrade.OriginChannel:
		may = func(spec *wish, at time.Duration) bool { return spec.gate.open(w.began, at) }
	case upgrade.OriginAt:
		may = func(spec *wish, at time.Duration) bool { return at >= spec.at && !spec.gate.excludes(at) }
	default: // operators may start one at any time
		return
	}
	w.check(2, w.wished(in.Cluster, began-maxUpgradeDelay, began, may), "the upgrade of %s to %s (%s) began at %s: no spec let it", in.Cluster,
		in.Release, in.Origin, began)
}

// wished reports whether a condition held for the newest spec at a time between from and until.
func (w *world) wished(cluster string, from, until time.Duration, holds func(*wish, time.Duration) bool) bool {
	uploads := w.uploads[cluster]
	for i, u := range uploads {
		end := until
		if i+1 < len(uploads) {
			end = min(until, uploads[i+1].at)
		}
		for at := max(from, u.at); u.wish != nil && at <= end; at += time.Minute {
			if holds(u.wish, at) || holds(u.wish, end) {
				return true
			}
		}
	}
	return false
}
