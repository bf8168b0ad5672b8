package cache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/cache"
	"github.com/drover-run/drover/shared/store/storetest"
	"github.com/drover-run/drover/shared/upgrade"
)

// reads returns the keys that do reads, in order.
func reads(b *storetest.Bucket, do func()) (keys []string) {
	earlier := len(b.Calls())
	do()
	for _, call := range b.Calls()[earlier:] {
		if call.Operation == "Get" {
			keys = append(keys, call.Key)
		}
	}
	return keys
}

func TestETagCache(t *testing.T) {
	b, ctx := storetest.NewBucket("state"), t.Context()
	write := func(key, body string) {
		_, err := b.Put(ctx, key, []byte(body))
		require.NoError(t, err)
	}
	write("x/1", "one")
	write("x/2", "two")
	write("x/large", strings.Repeat("x", 65<<10))
	now := func() time.Time { return time.Now().Add(time.Hour) }
	r := cache.NewETagCache(b, func() time.Time { return now() }, "x/")
	list := func() {
		_, err := r.List(ctx, "x/")
		require.NoError(t, err)
	}
	expect := func(key, want string) {
		t.Helper()
		object, err := r.Get(ctx, key, 1<<20)
		require.NoError(t, err)
		require.Equal(t, want, string(object.Body))
		require.NotEmpty(t, object.Version)
	}
	require.Len(t, reads(b, func() { expect("x/1", "one"); expect("x/1", "one") }), 2, "nothing was listed yet")
	list()
	require.Equal(t, []string{"x/1"}, reads(b, func() { expect("x/1", "one"); expect("x/1", "one") }))
	require.Len(t, reads(b, func() {
		for range 2 {
			_, err := r.Get(ctx, "x/large", 1<<20)
			require.NoError(t, err)
		}
	}), 2, "what is large is not kept")

	write("x/1", "other")
	require.Empty(t, reads(b, func() { expect("x/1", "one") }), "the content of the listing")
	list()
	require.Equal(t, []string{"x/1"}, reads(b, func() { expect("x/1", "other"); expect("x/1", "other") }))
	list()
	require.Empty(t, reads(b, func() { expect("x/1", "other") }))
	_, err := r.Get(ctx, "x/1", 2)
	var large *store.TooLarge
	require.ErrorAs(t, err, &large, "whatever is remembered")

	// The object is written after the listing. The new version is read, and read again after the next listing.
	list()
	write("x/2", "newer")
	require.Equal(t, []string{"x/2", "x/2"}, reads(b, func() { expect("x/2", "newer"); expect("x/2", "newer") }))
	list()
	require.Equal(t, []string{"x/2"}, reads(b, func() { expect("x/2", "newer"); expect("x/2", "newer") }))

	object, err := b.Get(ctx, "x/2", 100)
	require.NoError(t, err)
	require.NoError(t, b.DeleteIf(ctx, "x/2", object.ETag))
	list()
	_, err = r.Get(ctx, "x/2", 100)
	require.ErrorIs(t, err, store.ErrNotFound, "it is deleted, and forgotten")

	list()
	require.Empty(t, reads(b, func() { expect("x/1", "other") }))
	b.Refuse("List", "AccessDenied")
	_, err = r.List(ctx, "x/")
	require.Error(t, err)
	require.Equal(t, []string{"x/1"}, reads(b, func() { expect("x/1", "other") }), "it may have changed")
	b.OnCall = nil

	// A new object may be replaced within the same second by a version with the same bytes.
	now = time.Now
	write("x/3", "one")
	list()
	require.Equal(t, []string{"x/3", "x/3"}, reads(b, func() { expect("x/3", "one"); expect("x/3", "one") }))
	now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	require.Equal(t, []string{"x/3"}, reads(b, func() { expect("x/3", "one"); expect("x/3", "one") }))

	write("y/1", "one")
	_, err = r.List(ctx, "y/")
	require.NoError(t, err)
	require.Len(t, reads(b, func() { expect("y/1", "one"); expect("y/1", "one") }), 2, "of another prefix")
}

func TestETagCacheLimits(t *testing.T) {
	const longest, minAge = 64 << 10, time.Minute
	written := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		size int
		age  time.Duration
		kept bool
	}{
		"keeps an object of the longest size and the youngest age": {longest, minAge, true},
		"does not keep a longer object":                            {longest + 1, minAge, false},
		"does not keep a younger object":                           {longest, minAge - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := storetest.NewBucket("state")
			b.Now = func() time.Time { return written }
			b.Upload("x/1", strings.Repeat("x", test.size))
			c := cache.NewETagCache(b, func() time.Time { return written.Add(test.age) }, "x/")
			_, err := c.List(t.Context(), "x/")
			require.NoError(t, err)
			get := func(limit int) {
				_, err := c.Get(t.Context(), "x/1", int64(limit))
				require.NoError(t, err)
			}
			get(test.size)
			require.Equal(t, test.kept, len(reads(b, func() { get(test.size) })) == 0)
		})
	}
}

func TestSnapshot(t *testing.T) {
	b, ctx := storetest.NewBucket("state"), t.Context()
	state := store.NewState(b, store.Silent, time.Now)
	o := cache.NewSnapshot(state, func() time.Time { return time.Now().Add(time.Hour) })
	require.NoError(t, o.Refresh(ctx))
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	rolls := func(cluster string) map[string]time.Time {
		got, err := o.Rolls(ctx, cluster)
		require.NoError(t, err)
		return got
	}
	record := func(cluster string) (*upgrade.Record, string) {
		got, etag, err := o.Upgrade(ctx, cluster)
		require.NoError(t, err)
		return got, etag
	}
	require.Empty(t, reads(b, func() {
		require.Empty(t, rolls("demo"))
		got, etag := record("demo")
		require.Nil(t, got)
		require.Empty(t, etag)
	}))
	require.NoError(t, state.AddRolls(ctx, "demo", []string{"a"}, at))
	written, err := state.PutUpgrade(ctx, "demo", &upgrade.Record{Number: 3}, "")
	require.NoError(t, err)
	require.NoError(t, o.Refresh(ctx))
	require.Equal(t, []string{names.RollsOf("demo"), names.Upgrade("demo")}, reads(b, func() {
		for range 2 {
			require.Equal(t, map[string]time.Time{"a": at}, rolls("demo"))
			got, etag := record("demo")
			require.EqualValues(t, 3, got.Number)
			require.Equal(t, written, etag)
			require.Empty(t, rolls("shop"))
		}
	}))
	require.NoError(t, o.Refresh(ctx))
	require.Empty(t, reads(b, func() { rolls("demo"); record("demo") }), "it is unchanged")

	// The key of a release is its hash.
	key := names.PinnedRelease(names.SHA256([]byte("release")))
	require.NoError(t, state.PutOnce(ctx, key, []byte("release")))
	read := func() {
		object, err := o.Get(ctx, key, 100)
		require.NoError(t, err)
		require.Equal(t, "release", string(object.Body))
	}
	require.Equal(t, []string{key}, reads(b, func() { read(); read() }))
	require.NoError(t, o.Refresh(ctx))
	require.Empty(t, reads(b, read), "used the last time")
	require.NoError(t, o.Refresh(ctx))
	require.NoError(t, o.Refresh(ctx))
	require.Len(t, reads(b, read), 1, "not used now, so not kept")
	require.Len(t, reads(b, func() {
		for range 2 {
			_, err := o.Get(ctx, names.Status("demo"), 100)
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}), 2, "other documents are read each time")
}
