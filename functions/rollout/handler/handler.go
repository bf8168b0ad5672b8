// Package handler plans rollouts and evaluates their runs. shared/rollout decides; this package reads its inputs, and stores its records
// with If-Match. Then it does what follows from the stored record. The next call derives everything that follows again. So no work is lost
// if a call is killed at any point.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// Specs is the specs bucket: a subset of store.Objects.
type Specs interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	List(ctx context.Context, prefix string) ([]store.Entry, error)
}

// Alarms reads the states of alarms: cloudwatch.Alarms.
type Alarms interface {
	States(ctx context.Context, named []string) ([]preflight.Alarm, error)
}

// Functions starts other functions and does not wait for them: lambda.Functions.
type Functions interface {
	Start(ctx context.Context, function string, payload []byte) error
}

// Notifier sends notices: notification.Notifier.
type Notifier interface {
	RolloutChanging(ctx context.Context, changes []events.RolloutEvent) error
	RolloutState(state string) error
}

// Handler plans rollouts and evaluates their runs.
type Handler struct {
	Specs     Specs
	State     *store.State
	Alarms    Alarms
	Functions Functions
	Notifier  Notifier
	// Cell is the only cell: see names.Cell.
	Cell string
	Now  func() time.Time
}

// Input is an S3 event of the specs bucket, or a request of another function.
type Input struct {
	Detail events.Object `json:"detail"`
	events.Rollout
}

// Handle handles one event. It reads only the key from an S3 event, and evaluates what exists now.
func (h *Handler) Handle(ctx context.Context, in Input) (struct{}, error) {
	concerned, err := h.concernedRollouts(ctx, in)
	if err != nil {
		return struct{}{}, err
	}
	var failures []error
	for _, name := range concerned {
		if err := h.evaluate(ctx, name); err != nil {
			failures = append(failures, fmt.Errorf("evaluating rollout %s: %w", name, err))
		}
	}
	return struct{}{}, errors.Join(failures...)
}

// concernedRollouts returns the rollouts that an input concerns.
func (h *Handler) concernedRollouts(ctx context.Context, in Input) ([]string, error) {
	key := in.Detail.Object.Key
	if name, ok := names.RolloutOfKey(key); ok {
		return []string{name}, nil
	}
	if name, _, ok := names.DecisionOfKey(key); ok {
		return []string{name}, nil
	}
	if _, ok := names.FreezeOfKey(key); ok {
		if err := h.publish(ctx, nil, nil); err != nil {
			return nil, err
		}
		return h.active(ctx)
	}
	switch {
	case strings.HasPrefix(key, names.ReleaseSpecs):
		return h.all(ctx)
	case key != "":
		logging.From(ctx).Warn("upload ignored", "key", key)
		return nil, h.State.UpdateIgnored(ctx, h.Specs)
	case in.Rollout.Rollout != "":
		return []string{in.Rollout.Rollout}, nil
	case in.PlanAll:
		if err := h.publish(ctx, nil, nil); err != nil {
			return nil, err
		}
		return h.all(ctx)
	}
	return h.active(ctx)
}

// active returns the rollouts whose runs have not ended.
func (h *Handler) active(ctx context.Context) (list []string, err error) {
	active, _, err := h.State.ActiveRuns(ctx)
	if err != nil {
		return nil, err
	}
	for i := range active.Runs {
		list = append(list, active.Runs[i].Rollout)
	}
	return list, nil
}

// all returns all rollouts: those with a file, those with a status, and those with an active run.
func (h *Handler) all(ctx context.Context) ([]string, error) {
	list, err := h.active(ctx)
	if err != nil {
		return nil, err
	}
	files, err := h.Specs.List(ctx, names.Rollouts)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if name, ok := names.RolloutOfKey(file.Key); ok {
			list = append(list, name)
		}
	}
	statuses, err := h.State.List(ctx, names.RolloutStatuses)
	if err != nil {
		return nil, err
	}
	for _, entry := range statuses {
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.RolloutStatuses), ".json"))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// attempts is how often an evaluation that lost against another writer begins again.
const attempts = 4

// evaluate evaluates a rollout. If its run ended, it evaluates the rollout again: a newer plan may wait.
func (h *Handler) evaluate(ctx context.Context, name string) error {
	for range attempts {
		ended, err := h.attempt(ctx, name)
		if err == nil && ended {
			continue
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing its record: conflicted with other writers %d times", attempts)}
}

// attempt reads the record, then the inputs, and writes the record that follows if it is still the one that was read. So the inputs of
// successive records are in order. It does what follows from the new record afterwards. ended reports whether a run ended.
func (h *Handler) attempt(ctx context.Context, name string) (ended bool, err error) {
	record, etag, err := h.State.RolloutRecord(ctx, name)
	if err != nil {
		return false, err
	}
	e := &evaluation{Handler: h, record: record, before: clone(record), etag: etag, now: h.Now().UTC()}
	if err := e.read(ctx); err != nil {
		return false, err
	}
	if e.file == nil && etag == "" && !e.uploaded {
		return false, nil // it never existed
	}
	if err := e.plan(ctx); err != nil {
		return false, err
	}
	if e.record.Running() == nil {
		if err := e.begin(ctx); err != nil {
			return false, err
		}
	}
	if e.record.Running() != nil {
		if err := e.tick(ctx); err != nil {
			return false, err
		}
		e.ended = e.record.Running() == nil
	}
	if err := e.write(ctx); err != nil {
		return false, err
	}
	return e.ended, e.follow(ctx)
}

// clone copies a record.
func clone(r *rollout.Record) *rollout.Record {
	body, _ := json.Marshal(r) // plain fields
	out := &rollout.Record{}
	_ = json.Unmarshal(body, out)
	return out
}
