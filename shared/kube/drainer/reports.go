package drainer

// What blocks a drain is written to its node and reported while the drain waits, not at the end of the call. That goes on
// beside the drain, and ends before the call does.

import (
	"context"
	"time"

	"github.com/drover-run/drover/shared/drain"
)

// tellWithin bounds one telling. What is due when less than that is left of the call is left to its end.
const tellWithin = 10 * time.Second

// telling is what was told, and to whom.
type telling struct {
	waits   drain.Waits
	blocked func(context.Context, drain.Report)
	// noted brings what the node says of it once something has been told; nil when nothing is being told.
	noted chan string
}

// tellBlocked has what blocks told if that is due, and returns when to look again though nothing happens; zero is never.
func (d *operation) tellBlocked(ctx context.Context, now time.Time, decision drain.Decision) time.Time {
	due, again := d.tell.waits.Due(now, decision, d.view)
	if !due {
		return again
	}
	d.awaitReports()
	text := d.report.Summary()
	if end, ends := ctx.Deadline(); ends && end.Sub(now) < tellWithin || text == d.held.waits {
		return again
	}
	noted, was, report, holding := make(chan string, 1), d.held.waits, d.report, d.holding()
	d.tell.noted = noted
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
		defer cancel()
		if d.annotate(ctx, map[string]any{annotationWaits: text}) != nil { // the end of the call tries again
			text = was
		}
		report.Pending = d.pending(ctx, holding)
		d.tell.blocked(ctx, report)
		noted <- text
	}()
	return again
}

// awaitReports waits until the report in progress is done.
func (d *operation) awaitReports() {
	if d.tell.noted != nil {
		d.held.waits, d.tell.noted = <-d.tell.noted, nil
	}
}

// sooner of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
