package handler

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
)

// Bounds of the pause between two calls. A short wait ends soon; a wait of hours costs twelve calls an hour.
const (
	minPause = 5 * time.Second
	maxPause = 5 * time.Minute
)

// pause returns how long to wait for something that has lasted for passed, after a step that took so long. It is three times passed, and at
// least an eighth of the step. After a step that replaced nodes, the last drains and terminations remain. After a step of ten minutes they
// take one or two minutes, so that one call suffices. Each call costs three state transitions.
func pause(passed, took time.Duration) time.Duration {
	return min(max(3*passed, took/8, minPause), maxPause)
}

// clock formats a time of day.
const clock = "15:04:05Z"

// asOf has the machine call again after a pause. The message says when it was true, and when the next call is.
func asOf(why string, now time.Time, after time.Duration) events.UpgradeResult {
	return busy(fmt.Sprintf("%s (at %s; looked at again at %s)", why, now.UTC().Format(clock), now.Add(after).UTC().Format(clock)), after)
}

// busy has the machine call again after a pause.
func busy(why string, after time.Duration) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeBusy, Message: why, Wait: int(after.Seconds())}
}
