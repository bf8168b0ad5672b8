package handler

// One sweep as a whole.

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/events"
	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/shared/pool"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var errThrottled = errors.New("throttled")

// handlerOf returns the handler of a sweep over an account.
func handlerOf(a *sweeptest.Account) *Handler {
	sweeptest.Quiet()
	machine := sweeptest.Machine{Account: a}
	return &Handler{
		State: sweeptest.State{Account: a}, Executions: sweeptest.Executions{Account: a}, Stacks: sweeptest.Stacks{Account: a}, Resumer: a,
		Instances: sweeptest.EC2{Account: a}, DrainNode: machine, JoinNode: machine, Upgrade: machine, Now: func() time.Time { return noon },
	}
}

func TestSweepDoesTheRestWhateverFails(t *testing.T) {
	for _, failing := range []string{
		"groups", "list", "held", "broken", "list specs", "list status/", "list upgrades",
		"list waiters", "channels", "dues", "",
	} {
		t.Run(failing, func(t *testing.T) {
			s := &sweeptest.Account{Failing: map[string]error{}}
			if failing != "" {
				s.Failing[failing] = errThrottled
			}
			h := handlerOf(s)
			h.State, h.Specs, h.Groups = sweeptest.RecordingState{
				State: sweeptest.State{Account: s},
			}, sweeptest.RecordingSpecs{Account: s}, sweeptest.Groups{Account: s}
			_, err := h.Handle(t.Context(), events.Sweep{})
			require.Equal(t, failing != "", errors.Is(err, errThrottled))
			want := []string{"list waiters/", "list specs", "list status/clusters/", "list upgrades/", "channels", "dues"}
			if failing == "list specs" || failing == "list" {
				want = []string{"list waiters/", "list specs", "list upgrades/", "channels", "dues"}
			}
			require.Equal(t, want, s.Calls)
		})
	}
}

func TestSweepFailsWithAHook(t *testing.T) {
	s := &sweeptest.Account{Failing: map[string]error{"hook g": errThrottled}}
	h := handlerOf(s)
	group := pool.Group{Name: "g", Instances: []pool.Instance{{ID: "i-1", State: pool.TerminatingWait}}}
	h.State, h.Specs = sweeptest.RecordingState{State: sweeptest.State{Account: s}}, sweeptest.RecordingSpecs{Account: s}
	h.Groups = sweeptest.Groups{Account: s, Existing: []pool.Group{group}}
	_, err := h.Handle(t.Context(), events.Sweep{})
	require.ErrorIs(t, err, errThrottled)
	require.Contains(t, s.Calls, "dues")
}

func TestSweepHandlesOnlyAnEndedExecution(t *testing.T) {
	s := &sweeptest.Account{Failing: map[string]error{}}
	ended := events.ExecutionStatus{
		ExecutionARN: "x", Status: events.ExecutionAborted, Input: `{"cluster":"demo"}`, StopDate: noon.UnixMilli(),
	}
	_, err := handlerOf(s).Handle(t.Context(), events.Sweep{Ended: &ended})
	require.NoError(t, err)
	require.Equal(t, []string{"read demo", "due demo 12:01"}, s.Calls)
}
