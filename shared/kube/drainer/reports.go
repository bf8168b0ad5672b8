package drainer

// What blocks a drain is written to its node and reported during the call. A goroutine does that, and ends before the
// call.

import (
	"context"
	"time"

	"github.com/drover-run/drover/shared/drain"
)

// reportTimeout limits one report. If less time is left of the call, the report at its end includes the blockers.
const reportTimeout = 10 * time.Second

// blockedReports reports what blocks the drain.
type blockedReports struct {
	waits drain.Waits
	send  func(context.Context, drain.Report)
	// noted receives annotationWaits at the end of a report; it is nil if no report is in progress.
	noted chan string
}

// reportBlocked starts a report of what blocks, if one is due. It returns when to decide again without a change; zero is
// never.
func (c *drainRun) reportBlocked(ctx context.Context, now time.Time, decision drain.Decision) time.Time {
	due, again := c.blocked.waits.Due(now, decision, c.view)
	if !due {
		return again
	}
	c.awaitReports()
	text := c.report.Summary()
	if end, ends := ctx.Deadline(); ends && end.Sub(now) < reportTimeout || text == c.cordon.waits {
		return again
	}
	noted, was, report, holding := make(chan string, 1), c.cordon.waits, c.report, c.blockingBudgets()
	c.blocked.noted = noted
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		if c.annotate(ctx, map[string]any{annotationWaits: text}) != nil { // the end of the call tries again
			text = was
		}
		report.Pending = c.pending(ctx, holding)
		c.blocked.send(ctx, report)
		noted <- text
	}()
	return again
}

// awaitReports waits for the end of the report in progress.
func (c *drainRun) awaitReports() {
	if c.blocked.noted != nil {
		c.cordon.waits, c.blocked.noted = <-c.blocked.noted, nil
	}
}

// sooner returns the earlier of two times. Zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
