package runner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/cmd/verify/runner"
)

// world runs steps whose clock moves a minute with each step.
type world struct {
	now             time.Time
	ran, shown      []string
	ctx, cleanup    context.Context
	interrupt, stop context.CancelFunc
	runner.Run
}

func newWorld(t *testing.T) *world {
	w := &world{now: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}
	w.ctx, w.interrupt = context.WithCancel(t.Context())
	w.cleanup, w.stop = context.WithCancel(t.Context())
	w.Run = runner.Run{
		Clock: func() time.Time { return w.now }, Meter: &runner.Meter{}, Show: func(line string) { w.shown = append(w.shown, line) },
	}
	return w
}

// step is a step that ends with an error, or nil.
func (w *world) step(name string, err error, needs ...string) runner.Step {
	return runner.Step{
		Name: name, Title: "title of " + name, Needs: needs, Timeout: time.Hour,
		Run: func(ctx context.Context, log *runner.Log) error {
			w.ran, w.now = append(w.ran, name), w.now.Add(time.Minute)
			log.Found("evidence of %s", name)
			return err
		},
	}
}

func (w *world) outcomes() map[string]runner.Outcome {
	outcomes := map[string]runner.Outcome{}
	for _, r := range w.Results {
		outcomes[r.Step.Name] = r.Outcome
	}
	return outcomes
}

func TestRun(t *testing.T) {
	t.Run("runs the steps in order, and records what each took", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{w.step("a", nil), w.step("b", nil, "a")}))
		require.Equal(t, []string{"a", "b"}, w.ran)
		require.False(t, w.Failed())
		require.Equal(t, time.Minute, w.Results[1].Took)
		require.Equal(t, 2*time.Minute, w.Results[1].Elapsed)
		require.Equal(t, []string{"evidence of b"}, w.Results[1].Evidence)
	})
	t.Run("continues after a failure, without the steps that need what failed", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{
			w.step("a", nil), w.step("b", errors.New("broken")), w.step("c", nil, "a", "b"), w.step("d", nil, "c"), w.step("e", nil, "a"),
		}))
		require.Equal(t, []string{"a", "b", "e"}, w.ran)
		require.Equal(t, map[string]runner.Outcome{
			"a": runner.Passed, "b": runner.Failed, "c": runner.Skipped, "d": runner.Skipped, "e": runner.Passed,
		}, w.outcomes())
		require.Contains(t, w.Results[2].Reason, "b")
		require.NotContains(t, w.Results[2].Reason, "a,")
		require.True(t, w.Failed())
	})
	t.Run("counts a skipped step neither as passed nor as failed", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{w.step("a", runner.Skip("not %s", "here")), w.step("b", nil, "a")}))
		require.Equal(t, map[string]runner.Outcome{"a": runner.Skipped, "b": runner.Skipped}, w.outcomes())
		require.Equal(t, "not here", w.Results[0].Reason)
		require.Zero(t, w.Count(runner.Passed))
		require.False(t, w.Failed())
	})
	t.Run("only cleans up after an interrupt", func(t *testing.T) {
		w := newWorld(t)
		interrupted := w.step("b", nil)
		interrupted.Run = func(ctx context.Context, _ *runner.Log) error {
			w.interrupt()
			return ctx.Err()
		}
		last := w.step("d", nil)
		last.Cleanup = true
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{w.step("a", nil), interrupted, w.step("c", nil), last}))
		require.Equal(t, []string{"a", "d"}, w.ran)
		require.Equal(t, map[string]runner.Outcome{
			"a": runner.Passed, "b": runner.Failed, "c": runner.Skipped, "d": runner.Passed,
		}, w.outcomes())
		require.Contains(t, w.Results[1].Reason, "interrupted")
	})
	t.Run("does not clean up after a second interrupt", func(t *testing.T) {
		w := newWorld(t)
		w.interrupt()
		w.stop()
		last := w.step("a", nil)
		last.Cleanup = true
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{last}))
		require.Empty(t, w.ran)
		require.Equal(t, map[string]runner.Outcome{"a": runner.Skipped}, w.outcomes())
	})
	t.Run("ends a step after its timeout", func(t *testing.T) {
		w := newWorld(t)
		slow := w.step("a", nil)
		slow.Timeout = time.Millisecond
		slow.Run = func(ctx context.Context, _ *runner.Log) error {
			<-ctx.Done()
			return ctx.Err()
		}
		require.NoError(t, w.Do(w.ctx, w.cleanup, []runner.Step{slow}))
		require.Equal(t, runner.Failed, w.Results[0].Outcome)
		require.Contains(t, w.Results[0].Reason, "did not end within 1ms")
	})
}

func TestCheck(t *testing.T) {
	w := newWorld(t)
	endless := w.step("a", nil)
	endless.Timeout = 0
	for want, steps := range map[string][]runner.Step{
		"occurs twice":          {w.step("a", nil), w.step("a", nil)},
		"does not precede":      {w.step("a", nil, "b"), w.step("b", nil)},
		"needs a name":          {w.step("", nil)},
		"step a has no timeout": {endless},
	} {
		require.ErrorContains(t, runner.Check(steps), want)
		require.ErrorContains(t, w.Do(w.ctx, w.cleanup, steps), want)
	}
	require.Empty(t, w.ran)
}
