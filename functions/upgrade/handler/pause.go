package handler

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
)

// Bounds of a pause between two looks. What is nearly over is seen soon; what takes hours costs a dozen looks an hour.
const (
	shortestPause = 5 * time.Second
	longestPause  = 5 * time.Minute
)

// pause is how long to wait for something that has been under way for a while, after a step that took so long: three
// times as long as it has been, and an eighth of the step at first, within the bounds. What is left after nodes were
// replaced are the drains of the last few and the end of their instances: after ten minutes of a roll a minute or
// two, and one look finds them gone. Each look is three transitions.
func pause(passed, took time.Duration) time.Duration {
	return min(max(3*passed, took/8, shortestPause), longestPause)
}

// clock is a time of a day, for what is looked at again within minutes.
const clock = "15:04:05Z"

// asOf has the machine look again after a pause, and tells when that is: until then nobody knows whether it is still so.
func asOf(why string, now time.Time, after time.Duration) events.UpgradeResult {
	return busy(fmt.Sprintf("%s (at %s; looked at again at %s)", why, now.UTC().Format(clock), now.Add(after).UTC().Format(clock)), after)
}

// busy has the machine look again after a pause.
func busy(why string, after time.Duration) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeBusy, Message: why, Wait: int(after.Seconds())}
}
