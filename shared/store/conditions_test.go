package store

// The conditions of writes and deletions, against a bucket in memory that keeps them as S3 does.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/upgrade"
)

// memory is a bucket. before is called before each call with its name and key; its error is the answer.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
type memory struct {
	objects map[string][]byte
	etags   map[string]string
	writes  int
	before  func(call, key string) error
	// wild are the keys of writes and deletions that had no condition.
	wild []string
}

func newMemory() *memory {
	return &memory{objects: map[string][]byte{}, etags: map[string]string{}, before: func(string, string) error { return nil }}
}

func refusal(code string) error { return &smithy.GenericAPIError{Code: code, Message: code} }

func (m *memory) set(key string, body []byte) {
	m.writes++
	m.objects[key], m.etags[key] = body, fmt.Sprint("etag-", m.writes)
}

func (m *memory) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if err := m.before("get", *in.Key); err != nil {
		return nil, err
	}
	body, found := m.objects[*in.Key]
	if !found {
		return nil, refusal("NoSuchKey")
	}
	return &s3.GetObjectOutput{
		Body: io.NopCloser(bytes.NewReader(body)), ETag: aws.String(m.etags[*in.Key]), ContentLength: aws.Int64(int64(len(body))),
	}, nil
}

func (m *memory) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if err := m.before("put", *in.Key); err != nil {
		return nil, err
	}
	etag, found := m.etags[*in.Key]
	switch {
	case in.IfMatch == nil && in.IfNoneMatch == nil:
		m.wild = append(m.wild, *in.Key)
	case in.IfMatch != nil && !found:
		return nil, refusal("NoSuchKey")
	case in.IfNoneMatch != nil && found, in.IfMatch != nil && *in.IfMatch != etag:
		return nil, refusal("PreconditionFailed")
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	m.set(*in.Key, body)
	return &s3.PutObjectOutput{ETag: aws.String(m.etags[*in.Key])}, nil
}

func (m *memory) DeleteObject(_ context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	if err := m.before("delete", *in.Key); err != nil {
		return nil, err
	}
	etag, found := m.etags[*in.Key]
	switch {
	case in.IfMatch == nil:
		m.wild = append(m.wild, *in.Key)
	case !found:
		return nil, refusal("NoSuchKey")
	case *in.IfMatch != etag:
		return nil, refusal("PreconditionFailed")
	}
	delete(m.objects, *in.Key)
	delete(m.etags, *in.Key)
	return &s3.DeleteObjectOutput{}, nil
}

func (m *memory) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	if err := m.before("list", *in.Prefix); err != nil {
		return nil, err
	}
	var found []types.Object
	for _, key := range m.keys() {
		if strings.HasPrefix(key, *in.Prefix) {
			found = append(found, types.Object{Key: aws.String(key), ETag: aws.String(m.etags[key]), Size: aws.Int64(int64(len(m.objects[key])))})
		}
	}
	return &s3.ListObjectsV2Output{Contents: found}, nil
}

func (m *memory) keys() (all []string) {
	for key := range m.objects {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// always answers each call of a kind with an S3 error code, and counts them.
func (m *memory) always(call, code string) *int {
	count := 0
	m.before = func(c, _ string) error {
		if c != call {
			return nil
		}
		count++
		return refusal(code)
	}
	return &count
}

func state() (*memory, *State) {
	m := newMemory()
	return m, NewState(NewBucket(m, "state"), func() time.Time { return time.Unix(1000, 0) })
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
			calls := m.always("put", code)
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
	t.Run("is repeated after an undecided race", func(t *testing.T) {
		m, s := state()
		lost := 3
		m.before = func(call, _ string) error {
			if lost--; call == "put" && lost >= 0 {
				return refusal("ConditionalRequestConflict")
			}
			return nil
		}
		require.NoError(t, s.PutOnce(t.Context(), "plans/a", []byte("x")))
		require.Equal(t, []string{"plans/a"}, m.keys())
		require.Empty(t, m.wild)
	})
}

func TestConditionalDeletion(t *testing.T) {
	for code, ok := range map[string]bool{
		"PreconditionFailed": true, "ConditionalRequestConflict": true, "NoSuchKey": true, "NotFound": true, "AccessDenied": false,
		"SlowDown": false,
	} {
		m, s := state()
		m.always("delete", code)
		err := s.DeleteIf(t.Context(), "a", "etag")
		require.Equal(t, ok, err == nil, "%s: %v", code, err)
	}
}

func TestAbsentObject(t *testing.T) {
	for code, absent := range map[string]bool{
		"NoSuchKey": true, "NoSuchVersion": true, "NotFound": true, "MethodNotAllowed": true, "AccessDenied": false, "SlowDown": false,
	} {
		m, s := state()
		m.always("get", code)
		_, err := s.GetVersion(t.Context(), "a", "v1", 10)
		require.Equal(t, absent, errors.Is(err, ErrNotFound), "%s: %v", code, err)
		require.Error(t, err)
	}
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
		require.ErrorIs(t, err, ErrConflict)
		second, err := s.Acquire(t.Context(), "demo", first, "y")
		require.NoError(t, err)
		require.EqualValues(t, 2, second.Fence)
		_, err = s.Acquire(t.Context(), "demo", first, "z")
		require.ErrorIs(t, err, ErrConflict)
		require.Empty(t, m.wild)
	})
	t.Run("keep the number when a lease is given up", func(t *testing.T) {
		_, s := state()
		lease, err := s.Acquire(t.Context(), "demo", Lease{}, "x")
		require.NoError(t, err)
		require.NoError(t, s.Release(t.Context(), "demo", "y"), "it is not theirs")
		require.NoError(t, s.CheckLease(t.Context(), "demo", "x", lease.Fence))
		require.NoError(t, s.Release(t.Context(), "demo", "x"))
		now, err := s.Lease(t.Context(), "demo")
		require.NoError(t, err)
		require.Equal(t, Lease{Fence: 1, etag: now.etag}, now)
		require.True(t, now.GivenUp(1))
		require.False(t, now.GivenUp(2), "by another holder")
		require.False(t, Lease{Execution: "x", Fence: 1}.GivenUp(1), "it is held")
	})
	t.Run("tell a holder from its successors", func(t *testing.T) {
		lease := Lease{Execution: "x", Fence: 3}
		require.NoError(t, lease.Check("demo", "x", 3))
		for _, err := range []error{lease.Check("demo", "x", 2), lease.Check("demo", "y", 3), Lease{Fence: 3}.Check("demo", "x", 3)} {
			require.Equal(t, "LeaseLost", fault.NameOf(err))
			require.ErrorContains(t, err, "the lease of demo (")
		}
	})
	t.Run("do not take a release over another holder", func(t *testing.T) {
		m, s := state()
		_, err := s.Acquire(t.Context(), "demo", Lease{}, "x")
		require.NoError(t, err)
		m.before = func(call, key string) error { // another execution takes the lease between reading and writing
			if call == "put" {
				m.before = func(string, string) error { return nil }
				m.set(key, []byte(`{"execution":"y","fence":2}`))
			}
			return nil
		}
		require.NoError(t, s.Release(t.Context(), "demo", "x"))
		require.NoError(t, s.CheckLease(t.Context(), "demo", "y", 2))
	})
	t.Run("end as Transient when every release loses", func(t *testing.T) {
		m, s := state()
		_, err := s.Acquire(t.Context(), "demo", Lease{}, "x")
		require.NoError(t, err)
		calls := m.always("put", "ConditionalRequestConflict")
		err = s.Release(t.Context(), "demo", "x")
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorIs(t, err, ErrConflict)
		require.Equal(t, 4, *calls)
	})
	t.Run("are unknown when S3 does not answer", func(t *testing.T) {
		m, s := state()
		m.always("get", "SlowDown")
		require.Error(t, s.CheckLease(t.Context(), "demo", "x", 1))
		require.Error(t, s.Release(t.Context(), "demo", "x"))
		_, err := s.Holder(t.Context(), "demo", func(context.Context, string) (bool, error) { return true, nil })
		require.Error(t, err)
	})
}

func TestStatusConditions(t *testing.T) {
	ready := func(s *status.Status) { s.Phase = status.Ready }
	t.Run("notify before the write, and write nothing when that fails", func(t *testing.T) {
		m, s := state()
		failed := errors.New("the topic refused")
		s.Tell = func(context.Context, string, *status.Status, *status.Status, map[string]bool) error { return failed }
		require.ErrorIs(t, s.UpdateStatus(t.Context(), "demo", ready), failed)
		require.Empty(t, m.keys())
	})
	t.Run("notify of the first phase and of what was before", func(t *testing.T) {
		_, s := state()
		var phases []status.Phase
		s.Tell = func(_ context.Context, _ string, before, after *status.Status, _ map[string]bool) error {
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
			m.before = func(call, key string) error {
				if call == "put" {
					m.before = func(string, string) error { return nil }
					m.set(key, []byte(`{"status":{"phase":"Converging","fence":9}}`))
				}
				return nil
			}
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
			require.Empty(t, m.wild)
		})
	})
	t.Run("end at once when S3 refuses", func(t *testing.T) {
		for _, call := range []string{"get", "put"} {
			m, s := state()
			calls := m.always(call, "AccessDenied")
			require.Equal(t, "AccessDenied", fault.Code(s.UpdateStatus(t.Context(), "demo", ready)))
			require.Equal(t, 1, *calls, call)
		}
	})
	t.Run("end as Transient when every write loses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, s := state()
			calls := m.always("put", "PreconditionFailed")
			err := s.UpdateStatus(t.Context(), "demo", ready)
			require.Equal(t, "Transient", fault.NameOf(err))
			require.ErrorContains(t, err, "demo")
			require.Equal(t, 12, *calls)
		})
	})
}

func TestWaiterConditions(t *testing.T) {
	waiter := func(fence int64) Waiter {
		return Waiter{StackName: "drover-demo-network", Fence: fence, Execution: "x", TaskToken: fmt.Sprint(fence)}
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
		require.NoError(t, s.DeleteWaiter(t.Context(), earlier), "it is not there any more")
		now, err := s.Waiter(t.Context(), "drover-demo-network")
		require.NoError(t, err)
		require.EqualValues(t, 4, now.Fence)
		require.Empty(t, m.wild)
	})
	t.Run("end as Transient when every write loses", func(t *testing.T) {
		m, s := state()
		calls := m.always("put", "ConditionalRequestConflict")
		_, err := s.PutWaiter(t.Context(), waiter(3))
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorContains(t, err, "drover-demo-network")
		require.Equal(t, 4, *calls)
	})
	t.Run("are unknown when the other waiter cannot be read", func(t *testing.T) {
		m, s := state()
		m.before = func(call, _ string) error {
			return refusal(map[string]string{"put": "PreconditionFailed", "get": "AccessDenied"}[call])
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
		writes := m.writes
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a"}, at.Add(-time.Hour)))
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a"}, at))
		require.Equal(t, writes, m.writes, "nothing is written again")
		require.NoError(t, s.AddRolls(t.Context(), "demo", []string{"a", "b"}, at.Add(-time.Hour)))
		rolls, err := s.Rolls(t.Context(), "demo")
		require.NoError(t, err)
		require.Equal(t, map[string]time.Time{"a": at, "b": at.Add(-time.Hour)}, rolls)
		require.Empty(t, m.wild)
	})
	t.Run("end at once when S3 refuses, as Transient when every write loses", func(t *testing.T) {
		m, s := state()
		calls := m.always("put", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(s.AddRolls(t.Context(), "demo", []string{"a"}, at)))
		require.Equal(t, 1, *calls)
		calls = m.always("put", "PreconditionFailed")
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
	writes := m.writes
	require.NoError(t, s.AddDue(t.Context(), "demo", now))
	require.Equal(t, writes, m.writes)
	require.NoError(t, s.AddDue(t.Context(), "demo", now.Add(time.Hour)))
	m.set(names.Dues+"neither a time nor a cluster", nil)
	due, err := s.Dues(t.Context(), now)
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.Equal(t, "demo", due[0].Cluster)
	require.Equal(t, now, due[0].At.UTC())
	m.set(due[0].key, []byte("written again"))
	require.NoError(t, s.Done(t.Context(), due[0]))
	require.Contains(t, m.objects, due[0].key, "what was written meanwhile stays")
	due, err = s.Dues(t.Context(), now)
	require.NoError(t, err)
	require.NoError(t, s.Done(t.Context(), due[0]))
	require.NotContains(t, m.objects, due[0].key)
	require.Empty(t, m.wild)
	m.always("get", "AccessDenied")
	require.Equal(t, "AccessDenied", fault.Code(s.AddDue(t.Context(), "demo", now)))
}

func TestForget(t *testing.T) {
	at := time.Unix(5000, 0).UTC()
	fill := func(t *testing.T, of upgrade.State) (*memory, *State) {
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
	others := []string{names.Due(at, "demo2"), names.Rolls("demo2"), names.UpgradeBaseline("demo2", 1), names.Upgrade("demo2")}
	slices.Sort(others)
	t.Run("removes what was to be done for one cluster", func(t *testing.T) {
		m, s := fill(t, upgrade.Done)
		require.NoError(t, s.Forget(t.Context(), "demo"))
		require.Equal(t, others, m.keys())
		require.Empty(t, m.wild)
	})
	t.Run("keeps the record of an upgrade that nobody ended", func(t *testing.T) {
		m, s := fill(t, upgrade.Running)
		require.NoError(t, s.Forget(t.Context(), "demo"))
		require.Contains(t, m.objects, names.Upgrade("demo"))
		require.NotContains(t, m.objects, names.Rolls("demo"))
	})
	t.Run("has nothing to do where nothing was noted", func(t *testing.T) {
		_, s := state()
		require.NoError(t, s.Forget(t.Context(), "demo"))
	})
	t.Run("keeps what is written meanwhile", func(t *testing.T) {
		m, s := fill(t, upgrade.Done)
		m.before = func(call, key string) error {
			if call == "delete" {
				m.set(key, m.objects[key])
			}
			return nil
		}
		require.NoError(t, s.Forget(t.Context(), "demo"))
		require.Len(t, m.keys(), 8)
	})
	for _, call := range []string{"get", "list", "delete"} {
		t.Run("fails with S3: "+call, func(t *testing.T) {
			m, s := fill(t, upgrade.Done)
			m.always(call, "AccessDenied")
			require.Equal(t, "AccessDenied", fault.Code(s.Forget(t.Context(), "demo")))
		})
	}
}

func TestVerdictConditions(t *testing.T) {
	m, s := state()
	told := 0
	s.TellRelease = func(context.Context, string, *status.ReleaseStatus, *status.ReleaseStatus) error { told++; return nil }
	require.NoError(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{}))
	require.Empty(t, m.keys(), "an unknown release that is absent")
	require.NoError(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{Version: "v1"}))
	writes := m.writes
	require.NoError(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{Version: "v1"}))
	require.Equal(t, writes, m.writes, "the same once more")
	require.NoError(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{}), "a known release is gone")
	require.Equal(t, 2, told)
	verdict, err := s.Verdict(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, status.ReleaseStatus{UpdatedAt: time.Unix(1000, 0).UTC()}, verdict.Status)
	m.before = func(call, key string) error {
		if call == "put" {
			m.set(key, []byte(`{"status":{"version":"v3"}}`))
		}
		return nil
	}
	require.ErrorIs(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{Version: "v2"}), ErrConflict)
	m.before = func(string, string) error { return nil }
	s.TellRelease = func(context.Context, string, *status.ReleaseStatus, *status.ReleaseStatus) error {
		return errors.New("the topic refused")
	}
	writes = m.writes
	require.ErrorContains(t, s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{Version: "v2"}), "the topic refused")
	require.Equal(t, writes, m.writes)
	m.always("get", "AccessDenied")
	require.Equal(t, "AccessDenied", fault.Code(s.SetVerdict(t.Context(), "r1", status.ReleaseStatus{Version: "v2"})))
	require.Empty(t, m.wild)
}
