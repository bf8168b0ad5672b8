package handler

// Fakes that fail or change at one call. Reports over a whole state are in handler_test.go.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// reportFixture is a cluster with its spec v1. done is what was done to its state, in order.
type reportFixture struct {
	lease   store.Lease
	status  status.Status
	record  *upgrade.Record
	failing map[string]error
	done    []string
	// conflicts is how many writes of the record lose against another writer, who writes other; nil if S3 only reports a conflict.
	conflicts int
	other     *upgrade.Record
}

func (r *reportFixture) note(what string) error {
	r.done = append(r.done, what)
	return r.failing[what]
}

func (r *reportFixture) Get(context.Context, string, int64) (store.Object, error) {
	return store.Object{Version: "v1"}, r.failing["spec"]
}

func (r *reportFixture) Status(context.Context, string) (*status.Cluster, error) {
	c := status.New("demo")
	c.Status = r.status
	return c, nil
}

func (r *reportFixture) UpdateStatus(_ context.Context, _ string, change func(*status.Status)) error {
	change(&r.status)
	return r.note("status")
}

func (r *reportFixture) AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	return r.UpdateStatus(ctx, cluster, change)
}

func (r *reportFixture) Lease(context.Context, string) (store.Lease, error) {
	return r.lease, r.failing["lease"]
}

func (r *reportFixture) Release(_ context.Context, _, execution string) error {
	return r.note("release " + execution)
}

func (r *reportFixture) DeletePendingWork(context.Context, string) error { return r.note("forget") }

func (r *reportFixture) Upgrade(context.Context, string) (*upgrade.Record, string, error) {
	return r.record, "etag", r.failing["record"]
}

func (r *reportFixture) PutUpgrade(_ context.Context, _ string, record *upgrade.Record, etag string) (string, error) {
	if err := r.note(fmt.Sprintf("record %q %s", record.Overridden, etag)); err != nil || len(r.done) > r.conflicts {
		return "", err
	}
	r.record = cmp.Or(r.other, r.record)
	return "", store.ErrConflict
}

func (r *reportFixture) report(t *testing.T, plan *events.PlanResult) (events.ReportResult, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	h := &Handler{Specs: r, State: r, Now: func() time.Time { return time.Unix(1000, 0) }}
	return h.Handle(t.Context(), events.ReportRequest{Cluster: "demo", Execution: "mine", Plan: plan})
}

var errThrottled = errors.New("throttled")

// noon is now.
var noon = time.Unix(1000, 0).UTC()

// round is a cluster whose execution, mine, reports.
type round struct {
	*reportFixture
	// version of its spec; "" when there is none.
	version string
	specErr error
	// missing: there is no status.
	missing   bool
	statusErr error
	// tries are the statuses that the tries of a write find.
	tries []status.Status
	// restored: the spec has version v1 again once it was read.
	restored bool
}

func (r *round) Get(context.Context, string, int64) (store.Object, error) {
	if r.version == "" && r.specErr == nil {
		return store.Object{}, store.ErrNotFound
	}
	version := r.version
	if r.restored {
		r.version = "v1"
	}
	return store.Object{Version: version}, r.specErr
}

func (r *round) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	if r.missing {
		return nil, store.ErrNotFound
	}
	if r.statusErr != nil {
		return nil, r.statusErr
	}
	return r.reportFixture.Status(ctx, cluster)
}

func (r *round) UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	for _, s := range r.tries {
		change(&s)
	}
	return r.reportFixture.UpdateStatus(ctx, cluster, change)
}

func (r *round) AmendStatus(_ context.Context, _ string, change func(*status.Status)) error {
	if r.missing {
		return store.ErrNotFound
	}
	change(&r.status)
	return r.note("amend")
}

func (r *round) handler() *Handler {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return &Handler{Specs: r, State: r, Now: func() time.Time { return noon }}
}

func in(plan *events.PlanResult) events.ReportRequest {
	return events.ReportRequest{Cluster: "demo", Execution: "mine", Plan: plan}
}

// reject has a status reject a spec.
func (r *round) reject(version, reason string) {
	r.status.PlannedVersion = version
	r.status.Set(status.Condition{Type: status.SpecAccepted, Status: "False", Reason: reason}, noon)
}
