package handler

// What an evaluation reads, after the record.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// evaluation is one attempt to evaluate a rollout.
type evaluation struct {
	*Handler
	now time.Time
	// record is changed in memory. before is what was read, with its ETag.
	record, before *rollout.Record
	etag           string
	// ended reports whether the run that was active when the record was read has ended.
	ended bool

	// file is the rollout with stages of its own; nil if it is absent or invalid. uploaded reports whether there is a file.
	file     *api.Rollout
	uploaded bool
	// releases of the subject, with the bytes of their files.
	releases map[string]rollout.Content
	contents map[string][]byte
	subject  rollout.Subject
	problems []rollout.Problem
	// decisions are those without an answer.
	decisions []rollout.UploadedDecision
	freezes   []api.Freeze
	report    *rollout.Report
	// plans that were read or computed, by digest.
	plans map[string]*rollout.Plan
}

// read reads the file, its releases, the decisions without an answer, the freezes, and what the cell reported.
func (e *evaluation) read(ctx context.Context) error {
	e.plans = map[string]*rollout.Plan{}
	for _, read := range []func(context.Context) error{e.readFile, e.readReleases, e.readDecisions} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	freezes, problems, err := e.readFreezes(ctx)
	if err != nil {
		return err
	}
	e.freezes, e.problems = freezes, append(e.problems, problems...)
	e.report, _, err = e.State.CellReport(ctx, e.Cell)
	return err
}

// problem records why a file cannot be used.
func (e *evaluation) problem(key string, format string, args ...any) {
	e.problems = append(e.problems, rollout.Problem{File: key, Message: fmt.Sprintf(format, args...)})
}

// upload reads a file of the specs bucket. found is false if it is absent, or if its problem was recorded.
func (e *evaluation) upload(ctx context.Context, key string) (object store.Object, found bool, err error) {
	object, err = specs.Upload(ctx, e.Specs, key)
	var unusable *specs.Unusable
	switch {
	case errors.Is(err, specs.ErrAbsent):
		return object, false, nil
	case errors.As(err, &unusable):
		e.problem(key, "%s", unusable.Message)
		return object, false, nil
	}
	return object, err == nil, err
}

// readRollout reads a rollout; nil if it is absent or invalid.
func (e *evaluation) readRollout(ctx context.Context, name string) (*api.Rollout, error) {
	key := names.Rollout(name)
	object, found, err := e.upload(ctx, key)
	if err != nil || !found {
		return nil, err
	}
	r, errs := api.ReadRollout(key, object.Body, api.Options{Name: name})
	if errs != nil {
		e.problem(key, "%s", errs.Error())
		return nil, nil
	}
	return r, nil
}

// readFile reads the file of the rollout, and the one whose stages it uses.
func (e *evaluation) readFile(ctx context.Context) error {
	name := e.record.Rollout
	r, err := e.readRollout(ctx, name)
	if err != nil {
		return err
	}
	if e.uploaded = r != nil || len(e.problems) > 0; r == nil {
		return nil
	}
	others := map[string]*api.Rollout{}
	if like := r.Spec.Like; like != "" {
		other, err := e.readRollout(ctx, like)
		if err != nil {
			return err
		}
		if other != nil {
			others[like] = other
		}
	}
	full, errs := rollout.WithStages(r, others)
	if errs != nil {
		e.problem(names.Rollout(name), "%s", errs.Error())
		return nil
	}
	e.file = full
	return nil
}

// readReleases reads the releases of the subject.
func (e *evaluation) readReleases(ctx context.Context) error {
	e.releases, e.contents = map[string]rollout.Content{}, map[string][]byte{}
	if e.file == nil {
		return nil
	}
	for _, name := range e.file.Spec.Subject.Names() {
		release, body, err := specs.Release(ctx, e.Specs, name)
		var unusable *specs.Unusable
		switch {
		case errors.As(err, &unusable):
			e.problem(names.ReleaseSpec(name), "%s", unusable.Message)
		case errors.Is(err, specs.ErrAbsent): // SubjectOf reports it
		case err != nil:
			return err
		default:
			content := rollout.ContentOf(release, body)
			e.releases[name], e.contents[content.SHA256] = content, body
		}
	}
	subject, errs := rollout.SubjectOf(e.file, e.releases)
	if errs != nil {
		e.problem(names.Rollout(e.record.Rollout), "%s", errs.Error())
		e.file = nil
		return nil
	}
	e.subject = subject
	return nil
}

// readDecisions reads the decisions without an answer, in the order of their uploads.
func (e *evaluation) readDecisions(ctx context.Context) error {
	name, answers := e.record.Rollout, e.record.AllAnswers()
	entries, err := e.Specs.List(ctx, names.Decisions+name+"/")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		_, decision, ok := names.DecisionOfKey(entry.Key)
		if _, answered := answers[decision]; !ok || answered {
			continue
		}
		object, found, err := e.upload(ctx, entry.Key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		d, errs := api.ReadDecision(entry.Key, object.Body, api.Options{Name: decision})
		switch {
		case errs != nil:
			e.problem(entry.Key, "%s", errs.Error())
		case d.Spec.Rollout != name:
			e.problem(entry.Key, "it is for the rollout %s: upload it as %s", d.Spec.Rollout, names.Decision(d.Spec.Rollout, decision))
		default:
			e.decisions = append(e.decisions, rollout.UploadedDecision{
				Name: decision, Version: object.Version, At: object.Modified, Spec: d.Spec,
			})
		}
	}
	slices.SortStableFunc(e.decisions, rollout.CompareDecisions)
	return nil
}

// readFreezes reads all freezes. A file that cannot be read holds every cluster until it is corrected: its author wanted to stop work.
func (h *Handler) readFreezes(ctx context.Context) (freezes []api.Freeze, problems []rollout.Problem, err error) {
	entries, err := h.Specs.List(ctx, names.Freezes)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		name, ok := names.FreezeOfKey(entry.Key)
		if !ok {
			continue
		}
		object, err := specs.Upload(ctx, h.Specs, entry.Key)
		var unusable *specs.Unusable
		message := ""
		switch {
		case errors.Is(err, specs.ErrAbsent):
			continue
		case errors.As(err, &unusable):
			message = unusable.Message
		case err != nil:
			return nil, nil, err
		default:
			freeze, errs := api.ReadFreeze(entry.Key, object.Body, api.Options{Name: name})
			if errs == nil {
				freezes = append(freezes, *freeze)
				continue
			}
			message = errs.Error()
		}
		problems = append(problems, rollout.Problem{
			File: entry.Key, Message: "no cluster starts until it is corrected or deleted: " + message,
		})
		freezes = append(freezes, api.Freeze{
			Metadata: api.Metadata{Name: name},
			Spec:     api.FreezeSpec{From: "1970-01-01T00:00:00Z", Until: "9999-12-31T00:00:00Z", Reason: "the file of the freeze is invalid"},
		})
	}
	return freezes, problems, nil
}

// planOf returns a plan by its digest.
func (e *evaluation) planOf(ctx context.Context, digest string) (*rollout.Plan, error) {
	if p := e.plans[digest]; p != nil {
		return p, nil
	}
	p, err := e.State.RolloutPlan(ctx, digest)
	if err == nil {
		e.plans[digest] = p
	}
	return p, err
}

// facts of the cell; none if it has not reported.
func (e *evaluation) facts() []rollout.Fact {
	if e.report == nil {
		return nil
	}
	return e.report.Facts
}

// inputs are what a tick knows in addition to its record.
func (e *evaluation) inputs(ctx context.Context, p *rollout.Plan, run *rollout.Run) (rollout.Inputs, error) {
	in := rollout.Inputs{
		Facts: map[string]rollout.Fact{}, FactsAt: map[string]time.Time{}, Decisions: e.decisions, Freezes: e.freezes,
		Alarms: map[string]rollout.Alarm{}, Cells: map[string]rollout.Cell{}, Deleted: e.record.Deleted,
	}
	cell := rollout.Cell{}
	usable := map[string]bool{}
	if e.report != nil {
		for _, f := range e.report.Facts {
			in.Facts[f.Cluster] = f
		}
		in.FactsAt[e.Cell] = e.report.At
		cell.Limit = e.report.Limit
		own := map[string]bool{}
		for i := range run.Members {
			own[run.Members[i].Cluster] = true
		}
		for cluster := range e.report.Open {
			if !own[cluster] {
				cell.Others++
			}
		}
		for _, sha := range e.report.Usable {
			usable[sha] = true
		}
	}
	for _, r := range p.Subject.Releases {
		if !usable[r.SHA256] {
			cell.Unusable = append(cell.Unusable, r.SHA256)
		}
	}
	in.Cells[e.Cell] = cell
	if newest := e.plans[e.record.Plan]; newest != nil && differs(newest, p) {
		in.Newer = e.record.Plan
	}
	alarms := map[string]bool{}
	for i := range p.Stages {
		if run.Stages[i].Passed.IsZero() {
			for _, name := range p.Stages[i].Alarms {
				alarms[name] = true
			}
		}
	}
	if len(alarms) == 0 {
		return in, nil
	}
	found, err := e.Alarms.States(ctx, slices.Sorted(maps.Keys(alarms)))
	if err != nil {
		return in, err
	}
	for _, a := range found {
		in.Alarms[a.Name] = rollout.Alarm{InAlarm: a.State == "ALARM", Since: a.Since}
	}
	return in, nil
}

// differs reports whether two plans are of different files or subjects. A plan that differs only in the state of clusters is not newer.
func differs(a, b *rollout.Plan) bool {
	return a.Spec != b.Spec || !slices.Equal(a.Subject.Releases, b.Subject.Releases)
}

// same reports whether two records are equal except for their revision.
func same(a, b *rollout.Record) bool {
	one, other := *a, *b
	one.Revision, other.Revision = 0, 0
	first, _ := json.Marshal(one) // plain fields
	second, _ := json.Marshal(other)
	return slices.Equal(first, second)
}
