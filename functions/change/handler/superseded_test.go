package handler

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/plan"
	"github.com/drover-run/drover/shared/store/storetest"
)

func TestSuperseded(t *testing.T) {
	key := names.ClusterSpec("demo")
	for name, test := range map[string]struct {
		given func(*account)
		want  string
	}{
		"changes the stack when the spec is the same": {func(*account) {}, ""},
		"stops when a newer spec arrived":             {func(a *account) { a.specs.Upload(key, spec) }, "Superseded"},
		"stops when the spec was deleted":             {func(a *account) { a.specs.Delete(key) }, "Superseded"},
		"stops when the spec was deleted after a rejected one": {
			func(a *account) { a.plan.Rejected = a.specs.Upload(key, spec); a.specs.Delete(key) }, "Superseded",
		},
		"changes the stack when the newer spec is unusable":       {func(a *account) { a.specs.Upload(key, "kind: Pod") }, ""},
		"changes the stack when planning rejected the newer spec": {func(a *account) { a.plan.Rejected = a.specs.Upload(key, spec) }, ""},
		"stops when another spec arrived after the rejected one": {
			func(a *account) { a.plan.Rejected = a.specs.Upload(key, spec); a.specs.Upload(key, spec) }, "Superseded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := updates(t)
			test.given(a)
			require.Equal(t, test.want, nameOf(a.handle(t)))
			require.Equal(t, test.want == "", len(a.sets) == 1)
		})
	}
	// The plan of a deletion read version-0 of the spec as the last accepted one.
	for name, test := range map[string]struct {
		given func(*account)
		want  string
	}{
		"deletes the stack when no spec was accepted since": {func(*account) {}, ""},
		"stops when a spec returned":                        {func(a *account) { a.specs.Upload(key, spec) }, "Superseded"},
		"stops when a spec returned and was deleted again": {
			func(a *account) { a.accept(t, "version-2") }, "Superseded",
		},
		"stops when an unusable spec followed that spec": {
			func(a *account) { a.accept(t, "version-2"); a.specs.Upload(key, "kind: Pod") }, "Superseded",
		},
		"deletes the stack when the spec is unusable": {func(a *account) { a.specs.Upload(key, "kind: Pod") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := deletes(t, -1)
			a.specs.Delete(key)
			a.plan = plan.Plan{Cluster: "demo", Accepted: "version-0"}
			a.accept(t, "version-0")
			test.given(a)
			require.Equal(t, test.want, nameOf(a.handle(t)))
			require.Equal(t, test.want == "", slices.Contains(a.calls, "delete"))
		})
	}
	t.Run("deletes nothing when the status cannot be read", func(t *testing.T) {
		a := deletes(t, -1)
		a.specs.Delete(key)
		a.plan = plan.Plan{Cluster: "demo"}
		a.failing["read status"] = errThrottled
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Empty(t, a.calls)
	})
	t.Run("fails when the spec cannot be read", func(t *testing.T) {
		a := updates(t)
		a.specs.OnCall = func(storetest.Call) error { return errThrottled }
		require.ErrorIs(t, a.handle(t), errThrottled)
		require.Empty(t, a.sets)
	})
}
