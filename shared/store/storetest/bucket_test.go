package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

func TestBucket(t *testing.T) {
	storetest.Conformance(t, func(*testing.T) store.Objects { return storetest.NewBucket("state") })
	storetest.Refusals(t, func(_ *testing.T, code string) store.Objects {
		b := storetest.NewBucket("state")
		b.OnCall = func(storetest.Call) error { return storetest.Refusal(code) }
		return b
	})
}

func TestBucketForTests(t *testing.T) {
	t.Run("keeps what users upload and delete", func(t *testing.T) {
		b := storetest.NewBucket("specs")
		first, second := b.Upload("a", "one"), b.Upload("a", "two")
		require.Equal(t, "two", string(b.Body("a")))
		b.Delete("a")
		require.Nil(t, b.Body("a"))
		require.Empty(t, b.Keys())
		for versionID, want := range map[string]string{first: "one", second: "two"} {
			object, err := b.GetVersion(t.Context(), "a", versionID, 10)
			require.NoError(t, err)
			require.Equal(t, want, string(object.Body))
		}
		require.Equal(t, 2, b.Written())
		require.Len(t, b.Calls(), 2, "uploads are no calls")
	})
	t.Run("does not share its content", func(t *testing.T) {
		b := storetest.NewBucket("state")
		body := []byte("one")
		_, err := b.Put(t.Context(), "a", body)
		require.NoError(t, err)
		body[0] = 'x'
		object, err := b.Get(t.Context(), "a", 10)
		require.NoError(t, err)
		object.Body[1] = 'x'
		require.Equal(t, "one", string(b.Body("a")))
		require.Equal(t, []string{"a"}, b.Unconditional())
	})
	t.Run("lets another writer come between a read and a write", func(t *testing.T) {
		b := storetest.NewBucket("state")
		b.Once("Put", func(key string) { b.Upload(key, "theirs") })
		_, err := b.Replace(t.Context(), "a", []byte("ours"), "")
		require.ErrorIs(t, err, store.ErrConflict)
		_, err = b.Put(t.Context(), "a", []byte("ours"))
		require.NoError(t, err)
		require.Equal(t, "ours", string(b.Body("a")))
	})
}
