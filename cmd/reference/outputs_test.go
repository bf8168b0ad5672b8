package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/upgrade"
)

// The schema accepts the status of a run in each state, and rejects reasons and fields that do not exist.
func TestStatusSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("../../docs/reference/rollout-status.schema.json")
	require.NoError(t, err)
	now := time.Date(2026, 11, 27, 14, 0, 0, 0, time.UTC)
	p := &rollout.Plan{Rollout: "k", Subject: rollout.Subject{Releases: []rollout.Release{{Name: "1.37-1", KubernetesVersion: "1.37"}}},
		Stages: []rollout.Stage{{Number: 1, Name: "canary", FromStage: "canary", MaxConcurrency: 1, After: []api.Approval{{Count: 1}}}}}
	for _, name := range []string{"a", "b", "c"} {
		p.Stages[0].Members = append(p.Stages[0].Members, rollout.Member{Cluster: name, To: upgrade.Target{Release: "1.37-1"}})
	}
	document := func(change func(*rollout.Run)) map[string]any {
		record := &rollout.Record{Rollout: "k", Revision: 3, Plan: p.Digest(), Planned: now,
			Problems: []rollout.Problem{{File: "f", Message: "m"}}}
		if change != nil {
			run := rollout.Begin(p, 1, map[string]rollout.Answer{"start-1": {Version: "1", Applied: true, Message: "run 1 has started"}}, now)
			change(&run)
			record.Number, record.Run = 1, &run
		}
		body, err := json.Marshal(rollout.StatusOf(record, p, p))
		require.NoError(t, err)
		var v map[string]any
		require.NoError(t, json.Unmarshal(body, &v))
		return v
	}
	require.NoError(t, schema.Validate(document(nil)))
	for _, state := range rollout.States() {
		reasons := append([]rollout.Reason{""}, rollout.Reasons(state)...)
		for _, reason := range reasons {
			require.NoError(t, schema.Validate(document(func(r *rollout.Run) {
				r.Halt = &rollout.Halt{Stage: 1, Cause: rollout.HaltFailures, At: now}
				r.Members[0].State, r.Members[0].Reason, r.Members[0].Until = state, reason, now
			})), "%s %s", state, reason)
		}
	}
	require.ErrorContains(t, schema.Validate(document(func(r *rollout.Run) { r.Members[0].Reason = "Because" })), "reason")
	extra := document(nil)
	extra["more"] = true
	require.ErrorContains(t, schema.Validate(extra), "more")
}
