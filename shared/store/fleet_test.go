package store_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
)

var fleetTime = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func fleetPlan(clusters ...string) *rollout.Plan {
	stage := rollout.Stage{Number: 1, Name: "canary", FromStage: "canary", MaxConcurrency: 1}
	for _, cluster := range clusters {
		stage.Members = append(stage.Members, rollout.Member{Cluster: cluster, Cell: "1-eu"})
	}
	return &rollout.Plan{Rollout: "next", Stages: []rollout.Stage{stage}}
}

// TestFleetDocuments writes each document with an ETag, and requires that a second writer with the same ETag gets a conflict.
func TestFleetDocuments(t *testing.T) {
	run := rollout.Begin(fleetPlan("a"), 3, map[string]rollout.Answer{"go": {Version: "v", Applied: true, Message: "m"}}, fleetTime)
	active := &rollout.Active{Runs: []rollout.ActiveRun{{Rollout: "next", Number: 3, Plan: "p", Since: fleetTime}}}
	record := &rollout.Record{Rollout: "next", Plan: "p", Planned: fleetTime, Number: 3, Run: &run}
	desired := &rollout.DesiredState{
		Sections: map[string]rollout.Section{"next": {Run: 3, Sequence: 1, Assignments: []rollout.Assignment{{Cluster: "a"}}}},
		Freezes:  []api.Freeze{{Spec: api.FreezeSpec{From: "2026-01-01T00:00:00Z", Until: "2027-01-01T00:00:00Z"}}},
	}
	report := &rollout.Report{
		At: fleetTime, Facts: []rollout.Fact{{Cluster: "a", Observed: fleetTime}}, Open: map[string]int64{"a": 1}, Limit: 3, Reservations: 1,
	}
	assignment := &rollout.CellAssignment{Assignment: rollout.Assignment{Cluster: "a", Run: 3}, Taken: fleetTime, Begun: true}
	freezes := &rollout.CellFreezes{Freezes: desired.Freezes}

	for name, test := range map[string]struct {
		empty, written any
		read           func(*store.State) (any, string, error)
		write          func(*store.State, string) error
	}{
		"active runs": {
			&rollout.Active{}, active,
			func(s *store.State) (any, string, error) { return dropType(s.ActiveRuns(t.Context())) },
			func(s *store.State, etag string) error { return s.PutActiveRuns(t.Context(), active, etag) },
		},
		"a record": {
			&rollout.Record{Rollout: "next"}, record,
			func(s *store.State) (any, string, error) { return dropType(s.RolloutRecord(t.Context(), "next")) },
			func(s *store.State, etag string) error {
				_, err := s.PutRolloutRecord(t.Context(), record, etag)
				return err
			},
		},
		"assigned": {
			&rollout.DesiredState{Sections: map[string]rollout.Section{}}, desired,
			func(s *store.State) (any, string, error) { return dropType(s.DesiredState(t.Context(), "1-eu")) },
			func(s *store.State, etag string) error { return s.PutDesiredState(t.Context(), "1-eu", desired, etag) },
		},
		"a report": {
			(*rollout.Report)(nil), report,
			func(s *store.State) (any, string, error) { return dropType(s.CellReport(t.Context(), "1-eu")) },
			func(s *store.State, etag string) error { return s.PutCellReport(t.Context(), "1-eu", report, etag) },
		},
		"an assignment": {
			(*rollout.CellAssignment)(nil), assignment,
			func(s *store.State) (any, string, error) { return dropType(s.Assignment(t.Context(), "a")) },
			func(s *store.State, etag string) error {
				_, err := s.PutAssignment(t.Context(), assignment, etag)
				return err
			},
		},
		"freezes": {
			&rollout.CellFreezes{}, freezes,
			func(s *store.State) (any, string, error) { return dropType(s.CellFreezes(t.Context())) },
			func(s *store.State, etag string) error { return s.PutCellFreezes(t.Context(), freezes, etag) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, s := state()
			read, etag, err := test.read(s)
			require.NoError(t, err)
			require.Empty(t, etag)
			require.Equal(t, test.empty, read)
			require.NoError(t, test.write(s, ""))
			require.ErrorIs(t, test.write(s, ""), store.ErrConflict)
			read, etag, err = test.read(s)
			require.NoError(t, err)
			require.Equal(t, test.written, read)
			require.NoError(t, test.write(s, etag))
			require.ErrorIs(t, test.write(s, `"0123456789abcdef0123456789abcdef"`), store.ErrConflict)
			require.Empty(t, bucket.Unconditional())
		})
	}
}

func dropType[T any](v T, etag string, err error) (any, string, error) { return v, etag, err }

func TestRolloutPlans(t *testing.T) {
	bucket, s := state()
	ctx, plan := t.Context(), fleetPlan("a", "b")
	_, err := s.RolloutPlan(ctx, plan.Digest())
	require.ErrorIs(t, err, store.ErrNotFound)
	digest, err := s.PutRolloutPlan(ctx, plan)
	require.NoError(t, err)
	require.Equal(t, plan.Digest(), digest)
	read, err := s.RolloutPlan(ctx, digest)
	require.NoError(t, err)
	require.Equal(t, plan, read)

	t.Run("are written once", func(t *testing.T) {
		written := bucket.Written()
		_, err := s.PutRolloutPlan(ctx, plan)
		require.NoError(t, err)
		require.Equal(t, written, bucket.Written())
	})
	t.Run("are compressed", func(t *testing.T) {
		r, err := gzip.NewReader(bytes.NewReader(bucket.Body(names.RolloutPlan(digest))))
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(r).Decode(&rollout.Plan{}))
	})
	t.Run("are refused after an edit", func(t *testing.T) {
		body, err := json.Marshal(fleetPlan("a", "c"))
		require.NoError(t, err)
		bucket.Upload(names.RolloutPlan(digest), string(body))
		_, err = s.RolloutPlan(ctx, digest)
		require.ErrorContains(t, err, "the object was edited")
	})
	t.Run("are limited after decompression", func(t *testing.T) {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(bytes.Repeat([]byte(" "), 65<<20))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		bucket.Upload(names.RolloutPlan(digest), out.String())
		_, err = s.RolloutPlan(ctx, digest)
		require.ErrorContains(t, err, "bytes uncompressed")
	})
}

func TestDocumentsWrittenOnce(t *testing.T) {
	_, s := state()
	ctx := t.Context()
	_, err := s.DecisionAnswer(ctx, "next", "go")
	require.ErrorIs(t, err, store.ErrNotFound)
	answer := rollout.DecisionAnswer{Rollout: "next", Decision: "go", Answer: rollout.Answer{Version: "1", Applied: true, Message: "m"}}
	require.NoError(t, s.PutDecisionAnswer(ctx, answer))
	other := answer
	other.Message = "other"
	require.NoError(t, s.PutDecisionAnswer(ctx, other))
	read, err := s.DecisionAnswer(ctx, "next", "go")
	require.NoError(t, err)
	require.Equal(t, &answer, read)

	_, err = s.EndedRun(ctx, "next", 3)
	require.ErrorIs(t, err, store.ErrNotFound)
	run := rollout.Begin(fleetPlan("a"), 3, nil, fleetTime)
	require.NoError(t, s.PutEndedRun(ctx, &run))
	ended, err := s.EndedRun(ctx, "next", 3)
	require.NoError(t, err)
	require.Equal(t, &run, ended)
}

func TestFleetDocumentByHand(t *testing.T) {
	bucket, s := state()
	bucket.Upload(names.ActiveRuns, `{"runs":[{"rollout":"next","number":1,"plan":"p","subject":{"releases":null}}]}`)
	active, _, err := s.ActiveRuns(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, active.Of("next").Number)
	require.Nil(t, active.Of("other"))
	bucket.Upload(names.ActiveRuns, "{")
	_, _, err = s.ActiveRuns(t.Context())
	require.ErrorContains(t, err, names.ActiveRuns)
	require.False(t, strings.Contains(err.Error(), "no such object"))
}
