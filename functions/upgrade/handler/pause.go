package handler

import (
	"time"

	"github.com/drover-run/drover/events"
)

// Bounds of a pause between two looks. What is nearly over is seen soon; what takes hours costs a dozen looks an hour.
const (
	shortestPause = time.Minute
	longestPause  = 5 * time.Minute
)

// pause is how long to wait for something that has been under way for a while: three times as long, within the bounds.
func pause(passed time.Duration) time.Duration {
	return min(max(3*passed, shortestPause), longestPause)
}

// busy has the machine look again after a pause.
func busy(why string, after time.Duration) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeBusy, Message: why, Wait: int(after.Seconds())}
}
