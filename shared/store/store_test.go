package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

func TestStatus(t *testing.T) {
	m, s := state()
	ctx := t.Context()

	t.Run("of an unknown cluster", func(t *testing.T) {
		c, err := s.Status(ctx, "unknown")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, status.Pending, c.Status.Phase)
	})
	t.Run("an empty change writes nothing", func(t *testing.T) {
		same := func(s *status.Status) { s.Message = "x" }
		require.NoError(t, s.UpdateStatus(ctx, "same", same))
		before, err := s.Status(ctx, "same")
		require.NoError(t, err)
		written := m.Written()
		require.NoError(t, s.UpdateStatus(ctx, "same", same))
		require.NoError(t, s.UpdateStatus(ctx, "same", func(s *status.Status) { s.Stacks = []status.Stack{} }), "empty is nil")
		require.Equal(t, written, m.Written())
		after, err := s.Status(ctx, "same")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	t.Run("concurrent writers all succeed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const writers = 32 // drains of a whole pool
			_, s := state()
			var all sync.WaitGroup
			var failed atomic.Int32
			for i := range writers {
				all.Go(func() {
					err := s.UpdateStatus(t.Context(), "shared", func(s *status.Status) {
						s.SetStack(status.Stack{Name: fmt.Sprint(i), Status: "CREATE_COMPLETE"}, time.Now())
					})
					if err != nil {
						failed.Add(1)
					}
				})
			}
			all.Wait()
			require.Zero(t, failed.Load())
			c, err := s.Status(t.Context(), "shared")
			require.NoError(t, err)
			require.Len(t, c.Status.Stacks, writers)
		})
	})
	t.Run("a writer that never succeeds returns Transient", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, s := state()
			other := 0
			err := s.UpdateStatus(t.Context(), "contended", func(mine *status.Status) {
				mine.Message = "mine"
				other++
				require.NoError(t, s.UpdateStatus(t.Context(), "contended", func(s *status.Status) { s.Message = fmt.Sprint(other) }))
			})
			require.Equal(t, "Transient", fault.NameOf(err))
			require.Equal(t, 12, other)
		})
	})
	t.Run("an invalid document is an error with its key", func(t *testing.T) {
		_, err := s.Put(ctx, "status/clusters/odd.json", []byte("{"))
		require.NoError(t, err)
		require.ErrorContains(t, s.UpdateStatus(ctx, "odd", func(*status.Status) {}), "status/clusters/odd.json")
	})
}

func TestLease(t *testing.T) {
	m, s := state()
	ctx := t.Context()
	const one, two = "arn:aws:states:x:1:execution:drover-converge:one-with-a-name-as-long-as-they-are",
		"arn:aws:states:x:1:execution:drover-converge:two-with-a-name-as-long-as-they-are"

	free, err := s.Lease(ctx, "demo")
	require.NoError(t, err)
	require.Zero(t, free)
	held, err := s.Acquire(ctx, "demo", free, one)
	require.NoError(t, err)
	require.EqualValues(t, 1, held.Fence)
	_, err = s.Acquire(ctx, "demo", free, two)
	require.ErrorIs(t, err, store.ErrConflict, "only one of two takes a free lease")
	calls := len(m.Calls())
	again, err := s.Acquire(ctx, "demo", held, one)
	require.NoError(t, err)
	require.Equal(t, held, again)
	require.Len(t, m.Calls(), calls, "the holder writes nothing")

	require.NoError(t, s.CheckLease(ctx, "demo", one, 1))
	for _, wrong := range []error{s.CheckLease(ctx, "demo", two, 1), s.CheckLease(ctx, "demo", one, 2), s.CheckLease(ctx, "other", one, 1)} {
		require.Equal(t, "LeaseLost", fault.NameOf(wrong))
	}
	clusters, err := s.Held(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"demo"}, clusters)
	for name, c := range map[string]struct {
		cluster string
		runs    bool
		asked   error
		holder  string
	}{
		"it runs":              {"demo", true, nil, one},
		"it has ended":         {"demo", false, nil, ""},
		"Step Functions fails": {"demo", true, errors.New("throttled"), ""},
		"the lease is free":    {"other", true, errors.New("the lease is free"), ""},
	} {
		holder, err := s.Holder(ctx, c.cluster, func(_ context.Context, execution string) (bool, error) {
			require.Equal(t, one, execution)
			return c.runs, c.asked
		})
		require.Equal(t, c.holder, holder, name)
		require.Equal(t, c.asked != nil && c.cluster == "demo", err != nil, name)
	}
	require.NoError(t, s.Release(ctx, "demo", two), "only the holder can release it")
	require.NoError(t, s.CheckLease(ctx, "demo", one, 1))

	require.NoError(t, s.Release(ctx, "demo", one))
	require.NoError(t, s.Release(ctx, "demo", one), "a repeated release changes nothing")
	require.Error(t, s.CheckLease(ctx, "demo", one, 1))
	clusters, err = s.Held(ctx)
	require.NoError(t, err)
	require.Empty(t, clusters)
	free, err = s.Lease(ctx, "demo")
	require.NoError(t, err)
	next, err := s.Acquire(ctx, "demo", free, two)
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Fence, "numbers never repeat")
	_, err = s.Acquire(ctx, "demo", free, one)
	require.ErrorIs(t, err, store.ErrConflict)

	// Another execution takes the lease between the read and the write of the release.
	m.Once("Put", func(string) {
		_, err := s.Acquire(ctx, "demo", next, one)
		require.NoError(t, err)
	})
	require.NoError(t, s.Release(ctx, "demo", two))
	require.NoError(t, s.CheckLease(ctx, "demo", one, 3))
}

func TestConcurrentAcquire(t *testing.T) {
	_, s := state()
	var all sync.WaitGroup
	var got atomic.Int32
	for i := range 8 {
		all.Go(func() {
			seen, err := s.Lease(context.Background(), "demo")
			if err != nil {
				return
			}
			if _, err = s.Acquire(context.Background(), "demo", seen, fmt.Sprint("execution-", i)); err == nil && seen.Execution == "" {
				got.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, got.Load())
}

func TestWaiters(t *testing.T) {
	m, s := state()
	ctx := t.Context()
	first, err := s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "first"})
	require.NoError(t, err)
	_, err = s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "second"})
	require.NoError(t, err)
	require.NoError(t, s.DeleteWaiter(ctx, first), "a later one stays")
	second, err := s.Waiter(ctx, "drover-demo-network")
	require.NoError(t, err)
	require.Equal(t, "second", second.TaskToken)
	require.NoError(t, s.DeleteWaiter(ctx, second))
	require.NoError(t, s.DeleteWaiter(ctx, second))
	_, err = s.Waiter(ctx, "drover-demo-network")
	require.ErrorIs(t, err, store.ErrNotFound)
	calls := len(m.Calls())
	require.NoError(t, s.DeleteWaiter(ctx, store.Waiter{StackName: "never-written"}))
	require.Len(t, m.Calls(), calls)
}

// A step that lost its lease must not replace the waiter of the next holder, whose step would never resume.
func TestEarlierHolderDoesNotReplaceWaiter(t *testing.T) {
	_, s := state()
	ctx := t.Context()
	_, err := s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "late", Fence: 7})
	require.NoError(t, err)
	_, err = s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "early", Fence: 6})
	var lost *fault.LeaseLost
	require.ErrorAs(t, err, &lost)
	kept, err := s.Waiter(ctx, "drover-demo-network")
	require.NoError(t, err)
	require.Equal(t, "late", kept.TaskToken)
}
