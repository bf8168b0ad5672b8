package cli

// How the commands that follow something survive failed polls.

import (
	"context"
	"fmt"
	"time"
)

// maxOutage is how long all polls may fail until a watch ends.
const maxOutage = time.Minute

// polls decides after each poll whether a watch continues. A failed poll is reported.
type polls struct {
	// report prints a line.
	report func(text string)
	// strict ends the watch if its first poll fails: a cluster or a permission may be missing.
	strict bool
	// failing is the time of the first failure since the last poll that succeeded.
	failing time.Time
}

// next takes the error of a poll, or nil, and returns the error that ends the watch, or nil to poll again.
func (p *polls) next(ctx context.Context, err error) error {
	switch {
	case err == nil:
		if !p.failing.IsZero() {
			p.report(fmt.Sprintf("polling works again, after %s", time.Since(p.failing).Round(time.Second)))
		}
		p.failing, p.strict = time.Time{}, false
		return nil
	case ctx.Err() != nil:
		return errUnwatched
	case p.strict:
		return err
	case p.failing.IsZero():
		p.failing = time.Now()
		p.report(fmt.Sprintf("a poll failed; retrying for %s: %v", maxOutage, err))
		return nil
	case time.Since(p.failing) >= maxOutage:
		return fmt.Errorf("the watch ended: all polls failed for %s: %w; nothing was cancelled: "+
			"check the network and your credentials, and run `drover status` for the result", time.Since(p.failing).Round(time.Second), err)
	}
	return nil
}
