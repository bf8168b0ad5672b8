package handler

import (
	"fmt"
	"time"

	"github.com/drover-run/drover/events"
)

// clock formats a time of day.
const clock = "15:04:05Z"

// asOf has the machine call again after a pause. The message says when it was true, and when the next call is.
func asOf(why string, now time.Time, after time.Duration) events.UpgradeResult {
	return busy(fmt.Sprintf("%s (at %s; next check at %s)", why, now.UTC().Format(clock), now.Add(after).UTC().Format(clock)), after)
}

// busy has the machine call again after a pause.
func busy(why string, after time.Duration) events.UpgradeResult {
	return events.UpgradeResult{Outcome: events.UpgradeBusy, Message: why, WaitSeconds: int(after.Seconds())}
}
