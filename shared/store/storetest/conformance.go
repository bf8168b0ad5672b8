package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/store"
)

// Conformance tests that objects behave as S3 does. open returns an empty bucket with versioning.
func Conformance(t *testing.T, open func(t *testing.T) store.Objects) {
	for name, test := range map[string]func(*testing.T, store.Objects){
		"reads no absent object":                            readsNoAbsentObject,
		"reads older versions of a deleted object":          readsOlderVersions,
		"does not read an object over the limit":            limitsReads,
		"reads only what changed":                           readsOnlyChanges,
		"replaces only what was read":                       replacesOnlyWhatWasRead,
		"deletes only what was read":                        deletesOnlyWhatWasRead,
		"gives equal content equal ETags, but two versions": tellsVersionsApart,
		"lists in the order of keys":                        listsInOrder,
		"lets one of many concurrent writers win":           letsOneWriterWin,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func readsNoAbsentObject(t *testing.T, b store.Objects) {
	_, err := b.Get(t.Context(), "absent", 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "s3://"+b.Name()+"/absent")
	_, err = b.GetVersion(t.Context(), "absent", "01M7WZGJRZZDQ4QXEVTR07RWPZ", 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, changed, err := b.GetUnless(t.Context(), "absent", `"0123456789abcdef0123456789abcdef"`, 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.False(t, changed)
}

func readsOlderVersions(t *testing.T, b store.Objects) {
	_, err := b.Put(t.Context(), "deleted", []byte("one"))
	require.NoError(t, err)
	one, err := b.Get(t.Context(), "deleted", 10)
	require.NoError(t, err)
	require.Equal(t, "one", string(one.Body))
	require.NoError(t, b.DeleteIf(t.Context(), "deleted", one.ETag))
	_, err = b.Get(t.Context(), "deleted", 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	again, err := b.GetVersion(t.Context(), "deleted", one.Version, 10)
	require.NoError(t, err)
	require.Equal(t, one, again)
	entries, err := b.List(t.Context(), "deleted")
	require.NoError(t, err)
	require.Empty(t, entries)
}

func limitsReads(t *testing.T, b store.Objects) {
	_, err := b.Put(t.Context(), "large", []byte(strings.Repeat("x", 11)))
	require.NoError(t, err)
	_, err = b.Get(t.Context(), "large", 10)
	var large *store.TooLarge
	require.ErrorAs(t, err, &large)
	object, err := b.Get(t.Context(), "large", 11)
	require.NoError(t, err)
	require.Equal(t, &store.TooLarge{Key: "large", Size: 11, Limit: 10, Version: object.Version}, large)
	_, err = b.GetVersion(t.Context(), "large", object.Version, 10)
	require.ErrorAs(t, err, &large)
}

func readsOnlyChanges(t *testing.T, b store.Objects) {
	etag, err := b.Put(t.Context(), "a", []byte("one"))
	require.NoError(t, err)
	object, changed, err := b.GetUnless(t.Context(), "a", etag, 1)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, store.Object{}, object)
	object, changed, err = b.GetUnless(t.Context(), "a", "", 10)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, etag, object.ETag)
	_, err = b.Put(t.Context(), "a", []byte("two"))
	require.NoError(t, err)
	object, changed, err = b.GetUnless(t.Context(), "a", etag, 10)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "two", string(object.Body))
}

func replacesOnlyWhatWasRead(t *testing.T, b store.Objects) {
	first, err := b.Replace(t.Context(), "a", []byte("1"), "")
	require.NoError(t, err)
	_, err = b.Replace(t.Context(), "a", []byte("2"), "")
	require.ErrorIs(t, err, store.ErrConflict, "the object exists")
	require.Equal(t, "PreconditionFailed", fault.Code(err))
	second, err := b.Replace(t.Context(), "a", []byte("2"), first)
	require.NoError(t, err)
	_, err = b.Replace(t.Context(), "a", []byte("3"), first)
	require.ErrorIs(t, err, store.ErrConflict, "the object changed")
	require.Equal(t, "PreconditionFailed", fault.Code(err))
	object, err := b.Get(t.Context(), "a", 10)
	require.NoError(t, err)
	require.Equal(t, "2", string(object.Body))
	require.Equal(t, second, object.ETag)
	require.NoError(t, b.DeleteIf(t.Context(), "a", second))
	_, err = b.Replace(t.Context(), "a", []byte("3"), second)
	require.ErrorIs(t, err, store.ErrConflict, "the object was deleted")
	require.Equal(t, "NoSuchKey", fault.Code(err))
	_, err = b.Replace(t.Context(), "a", []byte("3"), "")
	require.NoError(t, err, "a deleted object is absent")
}

func deletesOnlyWhatWasRead(t *testing.T, b store.Objects) {
	first, err := b.Put(t.Context(), "a", []byte("1"))
	require.NoError(t, err)
	second, err := b.Put(t.Context(), "a", []byte("2"))
	require.NoError(t, err)
	require.NoError(t, b.DeleteIf(t.Context(), "a", first))
	_, err = b.Get(t.Context(), "a", 10)
	require.NoError(t, err, "a changed object remains")
	require.NoError(t, b.DeleteIf(t.Context(), "a", second))
	require.NoError(t, b.DeleteIf(t.Context(), "a", second), "a second deletion is no error")
	require.NoError(t, b.DeleteIf(t.Context(), "never", second))
	_, err = b.Get(t.Context(), "a", 10)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func tellsVersionsApart(t *testing.T, b store.Objects) {
	first, err := b.Put(t.Context(), "a", []byte("same"))
	require.NoError(t, err)
	one, err := b.Get(t.Context(), "a", 10)
	require.NoError(t, err)
	second, err := b.Put(t.Context(), "a", []byte("same"))
	require.NoError(t, err)
	two, err := b.Get(t.Context(), "a", 10)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.NotEqual(t, one.Version, two.Version)
}

func listsInOrder(t *testing.T, b store.Objects) {
	want := []string{"list/a b+c%2f&<ü>", "list/b"}
	for _, key := range []string{"list/b", "other", "list/a b+c%2f&<ü>"} {
		_, err := b.Put(t.Context(), key, []byte("12345"))
		require.NoError(t, err)
	}
	entries, err := b.List(t.Context(), "list/")
	require.NoError(t, err)
	require.Len(t, entries, len(want))
	for i, entry := range entries {
		object, err := b.Get(t.Context(), want[i], 10)
		require.NoError(t, err)
		require.Equal(t, store.Entry{Key: want[i], Modified: entry.Modified, Size: 5, ETag: object.ETag}, entry)
		require.Equal(t, object.Modified.UTC(), entry.Modified.UTC().Truncate(time.Second)) // the local account lists milliseconds
		require.WithinDuration(t, time.Now(), entry.Modified, time.Minute)
	}
	entries, err = b.List(t.Context(), "nothing/")
	require.NoError(t, err)
	require.Empty(t, entries)
}

func letsOneWriterWin(t *testing.T, b store.Objects) {
	etag, err := b.Put(t.Context(), "a", []byte("0"))
	require.NoError(t, err)
	var all sync.WaitGroup
	var won atomic.Int32
	for i := range 8 {
		all.Go(func() {
			if _, err := b.Replace(t.Context(), "a", fmt.Append(nil, "writer ", i), etag); err == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
}

// Refusals tests how errors of S3 are returned. open returns a bucket whose calls all fail with the code.
func Refusals(t *testing.T, open func(t *testing.T, code string) store.Objects) {
	for code, want := range map[string]struct{ absent, conflict, deleted bool }{
		"NoSuchKey":                  {absent: true, conflict: true, deleted: true},
		"NoSuchVersion":              {absent: true},
		"NotFound":                   {absent: true, deleted: true},
		"MethodNotAllowed":           {absent: true},
		"PreconditionFailed":         {conflict: true, deleted: true},
		"ConditionalRequestConflict": {conflict: true, deleted: true},
		"AccessDenied":               {},
		"SlowDown":                   {},
	} {
		t.Run(code, func(t *testing.T) {
			b, ctx := open(t, code), t.Context()
			_, err := b.Get(ctx, "a", 10)
			require.Error(t, err)
			require.Equal(t, want.absent, errors.Is(err, store.ErrNotFound), "%v", err)
			_, err = b.GetVersion(ctx, "a", "v1", 10)
			require.Error(t, err)
			require.Equal(t, want.absent, errors.Is(err, store.ErrNotFound), "%v", err)
			_, err = b.Replace(ctx, "a", nil, "etag")
			require.ErrorContains(t, err, "s3://"+b.Name()+"/a")
			require.Equal(t, want.conflict, errors.Is(err, store.ErrConflict), "%v", err)
			require.Equal(t, code, fault.Code(err))
			require.Equal(t, want.deleted, b.DeleteIf(ctx, "a", "etag") == nil)
			_, err = b.Put(ctx, "a", nil)
			require.Equal(t, code, fault.Code(err))
			_, err = b.List(ctx, "a")
			require.Equal(t, code, fault.Code(err))
		})
	}
}
