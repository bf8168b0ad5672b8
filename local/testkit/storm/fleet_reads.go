package storm

// What the function rollout reads: the inputs of each tick, as the checks need them.

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	rolling "github.com/drover-run/drover/functions/rollout/handler"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

// fleetReads is what one call of the function rollout has read since it last read a record.
type fleetReads struct {
	// at is the time of that read, turn its turn. record is what it read; nil if there was none.
	at     time.Time
	turn   int
	record *rollout.Record
	// ticked reports whether the result of the tick is known: the function wrote a record, or it published what follows from the old one.
	ticked    bool
	decisions []rollout.UploadedDecision
	// keys are those of the decisions and freezes that it found, with those that it could not use.
	keys    map[string]bool
	freezes []api.Freeze
	report  *rollout.Report
	alarms  map[string]rollout.Alarm
}

type fleetReadsKey struct{}

// sabotage changes what the function rollout reads and writes. Tests break invariants with it.
type sabotage struct {
	// hides reports whether the function does not find an upload, or finds a document empty.
	hides func(key string) bool
	// report changes a report that it reads.
	report func(*rollout.Report)
	// record and desired change what it writes.
	record  func(before, after *rollout.Record)
	desired func(*rollout.DesiredState)
}

// handler is a function as an awslambda.Handler.
type handler func(context.Context, []byte) ([]byte, error)

func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return h(ctx, payload) }

// followRollouts records what the function rollout reads.
func (w *world) followRollouts() {
	h := w.Functions.Rollout
	h.Specs = &readSpecs{h.Specs, w}
	h.State.Objects = &readState{h.State.Objects, w}
	h.Alarms = &readAlarms{h.Alarms}
	w.Functions.Around("rollout", func(_ aws.Config, next awslambda.Handler) awslambda.Handler {
		return harness.HandlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
			return next.Invoke(context.WithValue(ctx, fleetReadsKey{}, &fleetReads{}), payload)
		})
	})
}

func readsOf(ctx context.Context) *fleetReads {
	reads, _ := ctx.Value(fleetReadsKey{}).(*fleetReads)
	return reads
}

// readSpecs is the specs bucket.
type readSpecs struct {
	rolling.Specs
	w *world
}

func (s *readSpecs) hidden(key string) bool {
	hides := s.w.plot.fleet.sabotage.hides
	return hides != nil && hides(key)
}

func (s *readSpecs) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	entries, err := s.Specs.List(ctx, prefix)
	if reads := readsOf(ctx); prefix == names.Freezes && err == nil {
		reads.freezes = nil
	}
	visible := entries[:0:0]
	for _, entry := range entries {
		if !s.hidden(entry.Key) {
			visible = append(visible, entry)
		}
	}
	return visible, err
}

func (s *readSpecs) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	object, err := s.Specs.Get(ctx, key, limit)
	reads := readsOf(ctx)
	if err != nil || reads.keys == nil {
		return object, err
	}
	if _, name, ok := names.DecisionOfKey(key); ok {
		reads.keys[key] = true
		d, errs := api.ReadDecision(key, object.Body, api.Options{Name: name})
		if errs == nil && strings.HasPrefix(key, names.Decisions+d.Spec.Rollout+"/") {
			reads.decisions = append(reads.decisions, rollout.UploadedDecision{
				Name: name, Version: object.Version, At: object.Modified, Spec: d.Spec,
			})
		}
	}
	if name, ok := names.FreezeOfKey(key); ok {
		reads.keys[key] = true
		freeze, errs := api.ReadFreeze(key, object.Body, api.Options{Name: name})
		if errs != nil { // it holds every cluster
			freeze = &api.Freeze{
				Metadata: api.Metadata{Name: name}, Spec: api.FreezeSpec{From: "1970-01-01T00:00:00Z", Until: "9999-12-31T00:00:00Z"},
			}
		}
		reads.freezes = append(reads.freezes, *freeze)
	}
	return object, err
}

// readState is the state bucket.
type readState struct {
	store.Objects
	w *world
}

func (s *readState) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	object, err := s.Objects.Get(ctx, key, limit)
	if hides := s.w.plot.fleet.sabotage.hides; err == nil && hides != nil && hides(key) {
		object.Body = []byte("{}")
	}
	reads := readsOf(ctx)
	switch {
	case strings.HasPrefix(key, names.RolloutRecords) && (err == nil || errors.Is(err, store.ErrNotFound)):
		*reads = fleetReads{at: s.w.now(), turn: s.w.turns.count, keys: map[string]bool{}, alarms: map[string]rollout.Alarm{}}
		if err == nil {
			reads.record = decoded[rollout.Record](s.w, object.Body)
		}
	case key == names.DesiredState(cell) && reads.keys != nil && !reads.ticked: // it follows the record that it read
		s.w.fleet.unchanged = append(s.w.fleet.unchanged, reads.copy())
		reads.ticked = true
	case key == names.CellReport(cell) && err == nil:
		reads.report = decoded[rollout.Report](s.w, object.Body)
		if change := s.w.plot.fleet.sabotage.report; change != nil {
			changed := decoded[rollout.Report](s.w, object.Body)
			change(changed)
			object.Body = encoded(changed)
		}
	}
	return object, err
}

func (s *readState) Replace(ctx context.Context, key string, body []byte, etag string) (string, error) {
	broken := s.w.plot.fleet.sabotage
	name, isRecord := recordOfKey(key)
	switch {
	case isRecord:
		record := decoded[rollout.Record](s.w, body)
		if broken.record != nil {
			broken.record(s.w.fleet.records[name], record)
			body = encoded(record)
		}
		reads := readsOf(ctx)
		s.w.fleet.attempts[name+string(body)] = reads.copy()
		reads.ticked = true
	case key == names.DesiredState(cell) && broken.desired != nil:
		desired := decoded[rollout.DesiredState](s.w, body)
		broken.desired(desired)
		body = encoded(desired)
	}
	return s.Objects.Replace(ctx, key, body, etag)
}

// copy returns what the call has read up to now.
func (r *fleetReads) copy() *fleetReads {
	now := *r
	now.keys, now.alarms = maps.Clone(r.keys), maps.Clone(r.alarms)
	return &now
}

// recordOfKey returns the rollout whose record has a key.
func recordOfKey(key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, names.RolloutRecords)
	if name, isJSON := strings.CutSuffix(name, ".json"); ok && isJSON && !strings.Contains(name, "/") {
		return name, true
	}
	return "", false
}

// readAlarms are the alarms of CloudWatch.
type readAlarms struct{ rolling.Alarms }

func (a *readAlarms) States(ctx context.Context, named []string) ([]preflight.Alarm, error) {
	found, err := a.Alarms.States(ctx, named)
	for _, alarm := range found {
		readsOf(ctx).alarms[alarm.Name] = rollout.Alarm{InAlarm: alarm.State == "ALARM", Since: alarm.Since}
	}
	return found, err
}

// decoded is a document of a fleet, which may be compressed.
func decoded[T any](w *world, body []byte) *T {
	v := new(T)
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(r)
		}
		must(err)
	}
	must(json.Unmarshal(body, v))
	return v
}

// encoded is a document that drover reads like its own.
func encoded(v any) []byte {
	body, _ := json.Marshal(v) // plain fields
	return body
}

// inputs are those of the tick of a run, from what its call read.
func (r *fleetReads) inputs(p *rollout.Plan) rollout.Inputs {
	in := rollout.Inputs{
		Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{}, Decisions: r.decisions, Freezes: r.freezes, Alarms: r.alarms,
	}
	c := rollout.Cell{}
	members, usable := map[string]bool{}, map[string]bool{}
	for i := range p.Stages {
		for j := range p.Stages[i].Members {
			members[p.Stages[i].Members[j].Cluster] = true
		}
	}
	if r.report != nil {
		for _, f := range r.report.Facts {
			in.Facts[f.Cluster] = f
		}
		for _, sha := range r.report.Usable {
			usable[sha] = true
		}
		for cluster := range r.report.Open {
			if !members[cluster] {
				c.Others++
			}
		}
		in.FactsAt[cell], c.Limit = r.report.At, r.report.Limit
	}
	for _, release := range p.Subject.Releases {
		if !usable[release.SHA256] {
			c.Unusable = append(c.Unusable, release.SHA256)
		}
	}
	in.Cells = map[string]rollout.Cell{cell: c}
	return in
}
