package handler

// How the upgrade of a run of a rollout begins, and how that competes with a withdrawal.

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// ofRollout is a cluster of a rollout. assignment is the cell's copy.
type ofRollout struct {
	*fixture
	assignment *rollout.CellAssignment
	// wants is the decision of planning; nil if drover does not plan the cluster.
	wants *upgrade.Decision
	// between changes the copy between the read and the write of the function.
	between func(*rollout.CellAssignment)
}

func (o *ofRollout) Assignment(context.Context, string) (*rollout.CellAssignment, string, error) {
	if o.assignment == nil {
		return nil, "", o.failing["assignment"]
	}
	a := *o.assignment
	return &a, "etag", o.failing["assignment"]
}

func (o *ofRollout) PutAssignment(_ context.Context, a *rollout.CellAssignment, _ string) (string, error) {
	if o.between != nil {
		o.between(o.assignment)
		o.between = nil
		return "", store.ErrConflict
	}
	o.assignment = a
	return "", o.did("assignment begun %t check %q", a.Begun, a.Check)
}

func (o *ofRollout) NextUpgrade(context.Context, string, *upgrade.Record) (*upgrade.Decision, error) {
	return o.wants, nil
}

// check runs the check of the attempt.
func (o *ofRollout) check(t *testing.T) (events.UpgradeResult, error) {
	t.Helper()
	o.done = nil
	h := o.handler()
	h.State, h.Planner, h.Checker.State = o, o, o
	facts := &preflight.Facts{ControlPlane: preflight.ControlPlane{Version: "1.35", Status: "ACTIVE"}, Forbidden: true}
	h.Facts = factsOf{facts: facts}
	in := events.UpgradeRequest{Action: events.UpgradeCheck, Execution: "mine", Started: noon}
	in.Cluster, in.Release, in.Origin, in.Key = "demo", "r2", string(upgrade.OriginRollout), o.key()
	return h.Handle(t.Context(), in)
}

func (o *ofRollout) key() string {
	a := rollout.Assignment{Rollout: "next", Run: 3, Attempt: 1, Plan: "0123456789abcdef0123"}
	return a.Key()
}

func newOfRollout() *ofRollout {
	o := &ofRollout{fixture: waiting()}
	o.holder, o.record = "", nil
	o.assignment = &rollout.CellAssignment{Assignment: rollout.Assignment{
		Cluster: "demo", Rollout: "next", Run: 3, Attempt: 1, Plan: "0123456789abcdef0123",
	}}
	o.wants = &upgrade.Decision{Start: &upgrade.Start{Key: o.key()}}
	return o
}

func TestAssignedUpgrade(t *testing.T) {
	const begun = `assignment begun true check ""`
	for name, test := range map[string]struct {
		given   func(*ofRollout)
		outcome events.UpgradeOutcome
		message string
		writes  int
	}{
		"begins, then claims its record": {func(*ofRollout) {}, events.UpgradeBlocked, "nothing was changed", 1},
		"continues after it began":       {func(o *ofRollout) { o.assignment.Begun = true }, events.UpgradeBlocked, "nothing was changed", 0},
		"does not begin once withdrawn":  {func(o *ofRollout) { o.assignment.Withdrawn = true }, events.UpgradeNothing, "withdrew", 0},
		"continues when the withdrawal came too late": {
			func(o *ofRollout) { o.assignment.Begun, o.assignment.Withdrawn = true, true }, events.UpgradeBlocked, "nothing was changed", 0,
		},
		"does not begin without its assignment": {
			func(o *ofRollout) { o.assignment = nil }, events.UpgradeNothing, "no longer assigns", 0,
		},
		"does not begin for another attempt": {
			func(o *ofRollout) { o.assignment.Attempt = 2 }, events.UpgradeNothing, "no longer assigns", 0,
		},
		"does not begin while planning is impossible": {func(o *ofRollout) { o.wants = nil }, events.UpgradeNothing, "nothing requests", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOfRollout()
			test.given(o)
			result, err := o.check(t)
			require.NoError(t, err)
			require.Equal(t, test.outcome, result.Outcome, result.Message)
			require.Contains(t, result.Message, test.message)
			claim := slices.IndexFunc(o.done, func(call string) bool { return strings.HasPrefix(call, "write ") })
			require.Equal(t, test.outcome == events.UpgradeBlocked, claim >= 0, "%q", o.done)
			require.Equal(t, test.writes, count(o.done, begun))
			if test.writes > 0 {
				require.Less(t, slices.Index(o.done, begun), claim)
				require.Equal(t, upgrade.OriginRollout, o.written.Origin)
			}
		})
	}
	t.Run("loses against a withdrawal at the same time", func(t *testing.T) {
		o := newOfRollout()
		o.between = func(a *rollout.CellAssignment) { a.Withdrawn = true }
		_, err := o.check(t)
		var transient *fault.Transient
		require.ErrorAs(t, err, &transient, "the machine calls it again")
		require.Empty(t, count(o.done, "write Checking 0 0"))
		result, err := o.check(t)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeNothing, result.Outcome)
		require.False(t, o.assignment.Begun)
	})
	t.Run("is blocked when it is impossible", func(t *testing.T) {
		o := newOfRollout()
		o.spec = ""
		result, err := o.check(t)
		require.NoError(t, err)
		require.Equal(t, events.UpgradeStopped, result.Outcome)
		require.Equal(t, preflight.UpgradePossible, o.assignment.Check)
		require.Equal(t, result.Message, o.assignment.Message)
	})
}

func count(all []string, want string) (n int) {
	for _, s := range all {
		if s == want {
			n++
		}
	}
	return n
}
