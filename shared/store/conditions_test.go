package store_test

// The conditions of writes and deletions.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

func state() (*storetest.Bucket, *store.State) {
	b, s, _ := notifyingState()
	return b, s
}

func notifyingState() (*storetest.Bucket, *store.State, *notifier) {
	b, n := storetest.NewBucket("state"), &notifier{}
	return b, store.NewState(b, n, func() time.Time { return time.Unix(1000, 0) }), n
}

// notifier calls the functions that a test sets.
type notifier struct {
	status  func(before, after *status.Status) error
	ignored func(before, after []status.IgnoredUpload) error
	release func() error
}

func (n *notifier) StatusChanging(_ context.Context, _ string, before, after *status.Status, _ map[string]bool) error {
	if n.status == nil {
		return nil
	}
	return n.status(before, after)
}

func (n *notifier) IgnoredChanging(_ context.Context, before, after []status.IgnoredUpload) error {
	if n.ignored == nil {
		return nil
	}
	return n.ignored(before, after)
}

func (n *notifier) ReleaseChanging(context.Context, string, *status.ReleaseStatus, *status.ReleaseStatus) error {
	if n.release == nil {
		return nil
	}
	return n.release()
}

func TestContentAddressedWrite(t *testing.T) {
	for code, want := range map[string]struct {
		calls int
		fault string
	}{
		"PreconditionFailed":         {1, ""}, // the object exists
		"ConditionalRequestConflict": {4, "Transient"},
		"AccessDenied":               {1, "Internal"},
	} {
		t.Run(code, func(t *testing.T) {
			m, s := state()
			calls := m.Refuse("Put", code)
			err := s.PutOnce(t.Context(), "plans/a", []byte("x"))
			require.Equal(t, want.calls, *calls)
			if want.fault == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, want.fault, fault.NameOf(err))
			require.ErrorContains(t, err, "s3://state/plans/a")
		})
	}
	t.Run("keeps an object that exists", func(t *testing.T) {
		m, s := state()
		require.NoError(t, s.PutOnce(t.Context(), "plans/a", []byte("first")))
		require.NoError(t, s.PutOnce(t.Context(), "plans/a", []byte("second")))
		require.Equal(t, "first", string(m.Body("plans/a")))
	})
	t.Run("is repeated after an undecided race", func(t *testing.T) {
		m, s := state()
		lost := 3
		m.OnCall = func(call storetest.Call) error {
			if lost--; call.Operation == "Put" && lost >= 0 {
				return storetest.Refusal("ConditionalRequestConflict")
			}
			return nil
		}
		require.NoError(t, s.PutOnce(t.Context(), "plans/a", []byte("x")))
		require.Equal(t, []string{"plans/a"}, m.Keys())
		require.Empty(t, m.Unconditional())
	})
}

func TestLeaseConditions(t *testing.T) {
	t.Run("are taken only as they were read", func(t *testing.T) {
		m, s := state()
		seen, err := s.Lease(t.Context(), "demo")
		require.NoError(t, err)
		first, err := s.Acquire(t.Context(), "demo", seen, "x")
		require.NoError(t, err)
		require.EqualValues(t, 1, first.Fence)
		_, err = s.Acquire(t.Context(), "demo", seen, "y")
		require.ErrorIs(t, err, store.ErrConflict)
		second, err := s.Acquire(t.Context(), "demo", first, "y")
		require.NoError(t, err)
		require.EqualValues(t, 2, second.Fence)
		_, err = s.Acquire(t.Context(), "demo", first, "z")
		require.ErrorIs(t, err, store.ErrConflict)
		require.Empty(t, m.Unconditional())
	})
	t.Run("keep the number of a released lease", func(t *testing.T) {
		_, s := state()
		lease, err := s.Acquire(t.Context(), "demo", store.Lease{}, "x")
		require.NoError(t, err)
		require.NoError(t, s.Release(t.Context(), "demo", "y"), "it is not theirs")
		require.NoError(t, s.CheckLease(t.Context(), "demo", "x", lease.Fence))
		require.NoError(t, s.Release(t.Context(), "demo", "x"))
		now, err := s.Lease(t.Context(), "demo")
		require.NoError(t, err)
		require.Empty(t, now.Execution)
		require.EqualValues(t, 1, now.Fence)
		require.True(t, now.IsReleased(1))
		require.False(t, now.IsReleased(2), "by another holder")
		require.False(t, store.Lease{Execution: "x", Fence: 1}.IsReleased(1), "it is held")
	})
	t.Run("distinguish a holder from its successors", func(t *testing.T) {
		lease := store.Lease{Execution: "x", Fence: 3}
		require.NoError(t, lease.Check("demo", "x", 3))
		for _, err := range []error{lease.Check("demo", "x", 2), lease.Check("demo", "y", 3), store.Lease{Fence: 3}.Check("demo", "x", 3)} {
			require.Equal(t, "LeaseLost", fault.NameOf(err))
			require.ErrorContains(t, err, "the lease of demo (")
		}
	})
	t.Run("do not take a release over another holder", func(t *testing.T) {
		m, s := state()
		_, err := s.Acquire(t.Context(), "demo", store.Lease{}, "x")
		require.NoError(t, err)
		// Another execution takes the lease between the read and the write.
		m.Once("Put", func(key string) { m.Upload(key, `{"execution":"y","fence":2}`) })
		require.NoError(t, s.Release(t.Context(), "demo", "x"))
		require.NoError(t, s.CheckLease(t.Context(), "demo", "y", 2))
	})
	t.Run("end as Transient when every release loses", func(t *testing.T) {
		m, s := state()
		_, err := s.Acquire(t.Context(), "demo", store.Lease{}, "x")
		require.NoError(t, err)
		calls := m.Refuse("Put", "ConditionalRequestConflict")
		err = s.Release(t.Context(), "demo", "x")
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorIs(t, err, store.ErrConflict)
		require.Equal(t, 4, *calls)
	})
	t.Run("are unknown when S3 does not answer", func(t *testing.T) {
		m, s := state()
		m.Refuse("Get", "SlowDown")
		require.Error(t, s.CheckLease(t.Context(), "demo", "x", 1))
		require.Error(t, s.Release(t.Context(), "demo", "x"))
		_, err := s.Holder(t.Context(), "demo", func(context.Context, string) (bool, error) { return true, nil })
		require.Error(t, err)
	})
}

func TestStatusConditions(t *testing.T) {
	ready := func(s *status.Status) { s.Phase = status.Ready }
	t.Run("notify before the write, and write nothing when that fails", func(t *testing.T) {
		m, s, n := notifyingState()
		failed := errors.New("the topic refused")
		n.status = func(*status.Status, *status.Status) error { return failed }
		require.ErrorIs(t, s.UpdateStatus(t.Context(), "demo", ready), failed)
		require.Empty(t, m.Keys())
	})
	t.Run("notify of the first phase and of what was before", func(t *testing.T) {
		_, s, n := notifyingState()
		var phases []status.Phase
		n.status = func(before, after *status.Status) error {
			phases = append(phases, before.Phase, after.Phase)
			return nil
		}
		require.NoError(t, s.UpdateStatus(t.Context(), "demo", func(*status.Status) {}))
		require.NoError(t, s.UpdateStatus(t.Context(), "demo", ready))
		require.NoError(t, s.UpdateStatus(t.Context(), "demo", ready))
		require.Equal(t, []status.Phase{"", status.Pending, status.Pending, status.Ready}, phases, "the third changed nothing")
		c, err := s.Status(t.Context(), "demo")
		require.NoError(t, err)
		require.Equal(t, time.Unix(1000, 0).UTC(), c.Status.UpdatedAt)
	})
	t.Run("repeat the change on what another writer wrote", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, s := state()
			m.Once("Put", func(key string) { m.Upload(key, `{"status":{"phase":"Converging","fence":9}}`) })
			late := false
			require.NoError(t, s.UpdateStatus(t.Context(), "demo", func(s *status.Status) {
				if late = s.Fence > 3; !late {
					ready(s)
				}
			}))
			require.True(t, late, "the fence of the other writer was seen")
			c, err := s.Status(t.Context(), "demo")
			require.NoError(t, err)
			require.Equal(t, status.Converging, c.Status.Phase)
			require.Empty(t, m.Unconditional())
		})
	})
	t.Run("end at once when S3 refuses", func(t *testing.T) {
		for _, call := range []string{"Get", "Put"} {
			m, s := state()
			calls := m.Refuse(call, "AccessDenied")
			require.Equal(t, "AccessDenied", fault.Code(s.UpdateStatus(t.Context(), "demo", ready)))
			require.Equal(t, 1, *calls, call)
		}
	})
	t.Run("pause before a repetition only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, s := state()
			start := time.Now()
			require.NoError(t, s.UpdateStatus(t.Context(), "demo", ready))
			require.Zero(t, time.Since(start))
			m.Refuse("Put", "PreconditionFailed")
			require.Error(t, s.UpdateStatus(t.Context(), "demo", func(s *status.Status) { s.Message = "x" }))
			require.NotZero(t, time.Since(start))
			require.Less(t, time.Since(start), 11*time.Second)
		})
	})
	t.Run("end with their context during a pause", func(t *testing.T) {
		m, s := state()
		ctx, cancel := context.WithCancel(t.Context())
		m.OnCall = func(call storetest.Call) error {
			if call.Operation != "Put" {
				return nil
			}
			cancel()
			return storetest.Refusal("PreconditionFailed")
		}
		require.ErrorIs(t, s.UpdateStatus(ctx, "demo", ready), context.Canceled)
	})
	t.Run("end as Transient when every write loses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, s := state()
			calls := m.Refuse("Put", "PreconditionFailed")
			err := s.UpdateStatus(t.Context(), "demo", ready)
			require.Equal(t, "Transient", fault.NameOf(err))
			require.ErrorContains(t, err, "demo")
			require.Equal(t, 12, *calls)
		})
	})
}

func TestWaiterConditions(t *testing.T) {
	waiter := func(fence int64) store.Waiter {
		return store.Waiter{StackName: "drover-demo-network", Fence: fence, Execution: "x", TaskToken: fmt.Sprint(fence)}
	}
	t.Run("let a later holder replace an earlier one, never the reverse", func(t *testing.T) {
		m, s := state()
		earlier, err := s.PutWaiter(t.Context(), waiter(3))
		require.NoError(t, err)
		_, err = s.PutWaiter(t.Context(), waiter(4))
		require.NoError(t, err)
		_, err = s.PutWaiter(t.Context(), waiter(3))
		require.Equal(t, "LeaseLost", fault.NameOf(err))
		require.ErrorContains(t, err, "a later holder of the lease than 3")
		require.NoError(t, s.DeleteWaiter(t.Context(), earlier), "it is deleted already")
		now, err := s.Waiter(t.Context(), "drover-demo-network")
		require.NoError(t, err)
		require.EqualValues(t, 4, now.Fence)
		require.Empty(t, m.Unconditional())
	})
	t.Run("end as Transient when every write loses", func(t *testing.T) {
		m, s := state()
		calls := m.Refuse("Put", "ConditionalRequestConflict")
		_, err := s.PutWaiter(t.Context(), waiter(3))
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorContains(t, err, "drover-demo-network")
		require.Equal(t, 4, *calls)
	})
	t.Run("are unknown when the other waiter cannot be read", func(t *testing.T) {
		m, s := state()
		m.OnCall = func(call storetest.Call) error {
			return storetest.Refusal(map[string]string{"Put": "PreconditionFailed", "Get": "AccessDenied"}[call.Operation])
		}
		_, err := s.PutWaiter(t.Context(), waiter(3))
		require.Equal(t, "AccessDenied", fault.Code(err))
	})
}

func TestRollConditions(t *testing.T) {
	at := time.Unix(5000, 0).UTC()
	t.Run("only move forward", func(t *testing.T) {
		m, s := state()
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a"}, at))
		writes := m.Written()
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a"}, at.Add(-time.Hour)))
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a"}, at))
		require.Equal(t, writes, m.Written(), "no second write")
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a", "b"}, at.Add(-time.Hour)))
		rolls, err := s.Rolls(t.Context(), "demo")
		require.NoError(t, err)
		require.Equal(t, map[string]time.Time{"a": at, "b": at.Add(-time.Hour)}, rolls)
		require.Empty(t, m.Unconditional())
	})
	t.Run("end at once when S3 refuses, as Transient when every write loses", func(t *testing.T) {
		m, s := state()
		calls := m.Refuse("Put", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.AddRolls(t.Context(), "demo", []string{"a"}, at)))
		require.Equal(t, 1, *calls)
		calls = m.Refuse("Put", "PreconditionFailed")
		err := s.AddRolls(t.Context(), "demo", []string{"a"}, at)
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorContains(t, err, "demo")
		require.Equal(t, 8, *calls)
	})
}

func TestDueConditions(t *testing.T) {
	m, s := state()
	now := time.Unix(5000, 0).UTC()
	require.NoError(t, s.AddDue(t.Context(), "demo", now))
	writes := m.Written()
	require.NoError(t, s.AddDue(t.Context(), "demo", now))
	require.Equal(t, writes, m.Written())
	require.NoError(t, s.AddDue(t.Context(), "demo", now.Add(time.Hour)))
	m.Upload(names.Dues+"neither a time nor a cluster", "")
	due, err := s.Dues(t.Context(), now)
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.Equal(t, "demo", due[0].Cluster)
	require.Equal(t, now, due[0].At.UTC())
	key := names.Due(due[0].At, "demo")
	m.Upload(key, "written again")
	require.NoError(t, s.Done(t.Context(), due[0]))
	require.Contains(t, m.Keys(), key, "what was written in between stays")
	due, err = s.Dues(t.Context(), now)
	require.NoError(t, err)
	require.NoError(t, s.Done(t.Context(), due[0]))
	require.NotContains(t, m.Keys(), key)
	require.Empty(t, m.Unconditional())
	m.Refuse("Get", "AccessDenied")
	require.Equal(t, "AccessDenied", fault.Code(s.AddDue(t.Context(), "demo", now)))
}

func TestForget(t *testing.T) {
	at := time.Unix(5000, 0).UTC()
	fill := func(t *testing.T, of upgrade.State) (*storetest.Bucket, *store.State) {
		m, s := state()
		for _, cluster := range []string{"demo", "demo2"} {
			require.NoError(t, s.AddRolls(t.Context(), cluster, []string{"a"}, at))
			require.NoError(t, s.AddDue(t.Context(), cluster, at))
			require.NoError(t, s.PutOnce(t.Context(), names.UpgradeBaseline(cluster, 1), []byte("{}")))
			_, err := s.PutUpgrade(t.Context(), cluster, &upgrade.Record{Number: 1, State: of}, "")
			require.NoError(t, err)
		}
		return m, s
	}
	others := []string{names.Due(at, "demo2"), names.RollsOf("demo2"), names.UpgradeBaseline("demo2", 1), names.Upgrade("demo2")}
	slices.Sort(others)
	t.Run("removes the pending work of one cluster", func(t *testing.T) {
		m, s := fill(t, upgrade.Done)
		require.NoError(t, s.DeletePendingWork(t.Context(), "demo"))
		require.Equal(t, others, m.Keys())
		require.Empty(t, m.Unconditional())
	})
	t.Run("keeps the record of an upgrade that has not ended", func(t *testing.T) {
		m, s := fill(t, upgrade.Running)
		require.NoError(t, s.DeletePendingWork(t.Context(), "demo"))
		require.Contains(t, m.Keys(), names.Upgrade("demo"))
		require.NotContains(t, m.Keys(), names.RollsOf("demo"))
	})
	t.Run("succeeds without pending work", func(t *testing.T) {
		_, s := state()
		require.NoError(t, s.DeletePendingWork(t.Context(), "demo"))
	})
	t.Run("keeps what is written in between", func(t *testing.T) {
		m, s := fill(t, upgrade.Done)
		m.OnCall = func(call storetest.Call) error {
			if call.Operation == "Delete" {
				m.Upload(call.Key, string(m.Body(call.Key))+" ")
			}
			return nil
		}
		require.NoError(t, s.DeletePendingWork(t.Context(), "demo"))
		require.Len(t, m.Keys(), 8)
	})
	for _, call := range []string{"Get", "List", "Delete"} {
		t.Run("fails with S3: "+call, func(t *testing.T) {
			m, s := fill(t, upgrade.Done)
			m.Refuse(call, "AccessDenied")
			require.Equal(t, "AccessDenied", fault.Code(s.DeletePendingWork(t.Context(), "demo")))
		})
	}
}

func TestVerdictConditions(t *testing.T) {
	m, s, n := notifyingState()
	notified := 0
	n.release = func() error { notified++; return nil }
	require.NoError(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{}))
	require.Empty(t, m.Keys(), "an unknown release that is absent")
	require.NoError(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{Version: "v1"}))
	writes := m.Written()
	require.NoError(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{Version: "v1"}))
	require.Equal(t, writes, m.Written(), "the same again")
	require.NoError(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{}), "a known release is deleted")
	require.Equal(t, 2, notified)
	verdict, err := s.ReleaseStatus(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, status.ReleaseStatus{UpdatedAt: time.Unix(1000, 0).UTC()}, verdict.Status)
	m.OnCall = func(call storetest.Call) error {
		if call.Operation == "Put" {
			m.Upload(call.Key, `{"status":{"version":"v3"}}`)
		}
		return nil
	}
	require.ErrorIs(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{Version: "v2"}), store.ErrConflict)
	m.OnCall = nil
	n.release = func() error { return errors.New("the topic refused") }
	writes = m.Written()
	require.ErrorContains(t, s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{Version: "v2"}), "the topic refused")
	require.Equal(t, writes, m.Written())
	m.Refuse("Get", "AccessDenied")
	require.Equal(t, "AccessDenied", fault.Code(s.SetReleaseStatus(t.Context(), "r1", status.ReleaseStatus{Version: "v2"})))
	require.Empty(t, m.Unconditional())
}
