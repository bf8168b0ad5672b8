package drain

// A decision as part of a report.

import (
	"time"

	"github.com/drover-run/drover/events"
)

// Describe fills a report from a decision.
func Describe(r *Report, d Decision) {
	r.Left, r.Terminating = len(d.Left), len(d.Terminating)
	r.Pods, r.Stuck = Names(d.Left), Names(d.Stuck)
	r.Blocked, r.Lasting = nil, false
	for _, b := range d.Blocked[:min(len(d.Blocked), events.MaxNamed)] {
		r.Blocked = append(r.Blocked, events.BlockedPod{Pod: b.Pod, Why: b.Why.String(), Budgets: b.Budgets})
		r.Lasting = r.Lasting || !b.Why.Code.passes()
	}
	r.Ending, r.Returned, r.EvictionsFrom, r.EstimateSeconds = Names(d.Terminating), Names(d.Returned), nil, nil
	if !d.EvictionsFrom.IsZero() && len(d.Left) > 0 {
		r.EvictionsFrom = &d.EvictionsFrom
	}
	r.Stalled = d.Stalled
	if d.Estimate >= 0 && len(d.Left) > 0 && !d.Stalled {
		estimate := int64(d.Estimate / time.Second)
		r.EstimateSeconds = &estimate
	}
}

// Names returns the names of pods, at most as many as a report holds.
func Names(pods []*Pod) []string {
	var out []string
	for _, p := range pods[:min(len(pods), events.MaxNamed)] {
		out = append(out, p.ID())
	}
	return out
}
