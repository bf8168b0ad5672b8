package handler

// What follows from a stored record. Each part is derived from the record and compared with what is there, so that a later call completes
// what an earlier one did not.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/notification"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// follow does what follows from the record. The entry of rollouts/active.json is removed last: while it is there, every tick repeats this.
func (e *evaluation) follow(ctx context.Context) error {
	plan, err := e.lastPlan(ctx)
	if err != nil {
		return err
	}
	if plan != nil {
		if err := e.publish(ctx, plan, e.record.Run); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{e.answer, e.send} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if err := e.publishStatus(ctx, plan); err != nil {
		return err
	}
	if e.ended {
		return nil // the next evaluation plans again. The entry stays until then: if this call is killed, a tick plans again.
	}
	return e.settle(ctx)
}

// lastPlan returns the plan of the newest run; nil if there is none. The plan of a run that ended long ago has expired.
func (e *evaluation) lastPlan(ctx context.Context) (*rollout.Plan, error) {
	if e.record.Run == nil {
		return nil, nil
	}
	p, err := e.planOf(ctx, e.record.Run.Plan)
	if errors.Is(err, store.ErrNotFound) && e.record.Running() == nil {
		return nil, nil
	}
	return p, err
}

// publish writes the section of a run for the cell, and the freezes. It reads the freezes after the document, so that an older list never
// replaces a newer one. Without a run it writes the freezes only. If anything changed, it starts the function fleet.
func (h *Handler) publish(ctx context.Context, p *rollout.Plan, run *rollout.Run) error {
	for range attempts {
		desired, etag, err := h.State.DesiredState(ctx, h.Cell)
		if err != nil {
			return err
		}
		freezes, _, err := h.readFreezes(ctx)
		if err != nil {
			return err
		}
		changed := !reflect.DeepEqual(desired.Freezes, freezes)
		desired.Freezes = freezes
		if run != nil {
			section, old := rollout.SectionOf(p, run, h.Cell, h.Now()), desired.Sections[run.Rollout]
			if !old.Newer(&section) && !covers(&old, &section, h.Now()) {
				desired.Sections[run.Rollout], changed = section, true
			}
		}
		if !changed {
			return nil
		}
		err = h.State.PutDesiredState(ctx, h.Cell, desired, etag)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		payload, _ := json.Marshal(events.Fleet{})
		return h.Functions.Start(ctx, names.Function("fleet"), payload)
	}
	return &fault.Transient{Cause: fmt.Errorf("writing %s: conflicted with other writers %d times", names.DesiredState(h.Cell), attempts)}
}

// covers reports whether a published section is of the same record as another, and its watch lasts for five minutes more.
func covers(old, section *rollout.Section, now time.Time) bool {
	if old.Run != section.Run || old.Sequence != section.Sequence || len(old.Watches) != len(section.Watches) {
		return false
	}
	return !slices.ContainsFunc(old.Watches, func(w rollout.Watch) bool { return w.Until.Before(now.Add(5 * time.Minute)) })
}

// answer writes the answers to decisions that are not written yet.
func (e *evaluation) answer(ctx context.Context) error {
	answers := e.record.AllAnswers()
	if len(answers) == 0 {
		return nil
	}
	prefix := names.DecisionAnswers + e.record.Rollout + "/"
	entries, err := e.State.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		delete(answers, strings.TrimSuffix(strings.TrimPrefix(entry.Key, prefix), ".json"))
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		document := rollout.DecisionAnswer{Rollout: e.record.Rollout, Decision: name, Answer: answers[name]}
		if err := e.State.PutDecisionAnswer(ctx, document); err != nil {
			return err
		}
	}
	return nil
}

// send sends the notices of the record and removes them from it. If another writer was first, the notices may be sent again.
func (e *evaluation) send(ctx context.Context) error {
	if run := e.record.Running(); run != nil {
		if err := e.Notifier.RolloutState(string(run.State)); err != nil {
			return err
		}
	}
	if len(e.record.Notices) == 0 {
		return nil
	}
	var changes []events.RolloutEvent
	for _, n := range e.record.Notices {
		changes = append(changes, notification.DescribeRollout(e.record.Rollout, n))
	}
	if err := e.Notifier.RolloutChanging(ctx, changes); err != nil {
		return err
	}
	e.record.Notices = nil
	if err := e.write(ctx); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}

// publishStatus writes the status, unless the stored one is of a later record.
func (e *evaluation) publishStatus(ctx context.Context, last *rollout.Plan) error {
	status := rollout.StatusOf(e.record, e.plans[e.record.Plan], last)
	for range attempts {
		old, etag, err := e.State.RolloutStatus(ctx, e.record.Rollout)
		if err != nil {
			return err
		}
		if old != nil {
			status.UpdatedAt = old.UpdatedAt
			if old.Revision > status.Revision || equalJSON(old, &status) {
				return nil
			}
		}
		status.UpdatedAt = e.now.Truncate(time.Second)
		if err := e.State.PutRolloutStatus(ctx, &status, etag); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing its status: conflicted with other writers %d times", attempts)}
}

func equalJSON(a, b any) bool {
	one, _ := json.Marshal(a) // plain fields
	other, _ := json.Marshal(b)
	return slices.Equal(one, other)
}

// settle makes rollouts/active.json agree with the record: an active run is in it, an ended one is stored under its number and removed. A
// claim without a run is removed after a while.
func (e *evaluation) settle(ctx context.Context) error {
	r := e.record
	for range attempts {
		active, etag, err := e.State.ActiveRuns(ctx)
		if err != nil {
			return err
		}
		own, run := active.Of(r.Rollout), r.Running()
		switch {
		case run != nil && own != nil && own.Number == run.Number, run == nil && own == nil:
			return nil
		case run == nil && own.Number > r.Number && e.now.Sub(own.Since) < claimLifetime:
			return nil // another call is about to begin the run
		case run == nil:
			if r.Run != nil {
				if err := e.State.PutEndedRun(ctx, r.Run); err != nil {
					return err
				}
			}
			active.Runs = slices.DeleteFunc(active.Runs, func(a rollout.ActiveRun) bool { return a.Rollout == r.Rollout })
		default:
			entry := rollout.ActiveRun{Rollout: r.Rollout, Number: run.Number, Plan: run.Plan, Since: e.now.Truncate(time.Second)}
			if p := e.plans[run.Plan]; p != nil {
				entry.Subject = p.Subject
			}
			if own != nil {
				*own = entry
			} else {
				active.Runs = append(active.Runs, entry)
			}
		}
		if err := e.State.PutActiveRuns(ctx, active, etag); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing %s: conflicted with other writers %d times", names.ActiveRuns, attempts)}
}
