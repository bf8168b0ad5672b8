package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r1   = Target{"r1", "sha1", "1.36"}
	r2   = Target{"r2", "sha2", "1.37"}
)

func TestBegin(t *testing.T) {
	hand := Start{Origin: OriginHand, Key: "hand 1", Release: "r2"}
	first := Begin(nil, hand, spec("r1"), r1, r2, "x1", noon)
	require.Equal(t, &Record{
		Number: 1, Execution: "x1", Origin: OriginHand, Key: "hand 1", Over: "r1", From: r1, Target: r2, State: Checking, Started: noon,
		Answered: map[Origin]string{OriginHand: "hand 1"},
	}, first)

	t.Run("what was answered stays so, each by its origin", func(t *testing.T) {
		next := Begin(first, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r3"), r2, r1, "x2", noon)
		require.Equal(t, map[Origin]string{OriginHand: "hand 1", OriginSpec: "spec v2"}, next.Answered)
		require.EqualValues(t, 2, next.Number)
		require.Empty(t, next.Over, "the spec itself says so")
		require.Len(t, first.Answered, 1)
	})
	t.Run("one that was stopped goes on", func(t *testing.T) {
		stopped := *first
		stopped.State, stopped.Steps, stopped.Step = Stopped, []Step{{Kind: StepAddons}, {Kind: StepNodes}}, 1
		next := Begin(&stopped, Start{Origin: OriginSpec, Key: "spec v2"}, spec("r2"), r2, r2, "x2", noon)
		require.Equal(t, r1, next.From, "to go back to")
		require.Equal(t, stopped.Steps, next.Steps)
		require.Equal(t, 1, next.Step)
		back := Begin(&stopped, Start{Origin: OriginRollback, Key: "rollback"}, spec("r2"), r2, r1, "x2", noon)
		require.Empty(t, back.Steps, "but not to another target")
		require.Equal(t, r2, back.From)
	})
}

func TestWhatCountsOverTheSpec(t *testing.T) {
	done := Record{State: Done, Over: "r1"}
	require.True(t, done.counts(spec("r1")))
	require.False(t, done.counts(spec("r3")), "the spec names another")
	stated := spec("r1")
	stated.Spec.KubernetesVersion = "1.37"
	require.False(t, done.counts(stated), "or another version")
	require.False(t, (*Record)(nil).counts(spec("r1")))
	blocked := Begin(&done, Start{Origin: OriginChannel, Key: "channel Stable r4"}, spec("r1"), r2, r1, "x", noon)
	blocked.State = Blocked
	require.True(t, blocked.counts(spec("r1")), "what counted before still does")
	first := Begin(nil, Start{Origin: OriginHand, Key: "hand"}, spec("r5"), r2, r1, "x", noon)
	first.State = Blocked
	require.False(t, first.counts(spec("r5")), "nothing did, and the spec's own release is still to come")
}

func TestSuperseded(t *testing.T) {
	bySpec := &Record{Origin: OriginSpec, Target: r2}
	byHand := &Record{Origin: OriginHand, Target: r2, Over: "r1"}
	require.Empty(t, bySpec.Superseded(spec("r2")))
	require.Empty(t, byHand.Superseded(spec("r1")))
	require.Contains(t, bySpec.Superseded(spec("r3")), "names release r3 by now, and no longer release r2 (Kubernetes 1.37)")
	require.Contains(t, byHand.Superseded(spec("r2")), "names release r2 by now, and no longer r1")
	stated := spec("r2")
	stated.Spec.KubernetesVersion = "1.38"
	require.Contains(t, bySpec.Superseded(stated), "r2 (Kubernetes 1.38)")
	stated.Spec.KubernetesVersion = "1.37"
	require.Empty(t, bySpec.Superseded(stated))
	require.Contains(t, bySpec.Superseded(nil), "deleted")
	paused := spec("r2")
	paused.Spec.Paused = true
	require.Contains(t, bySpec.Superseded(paused), "paused")
}
