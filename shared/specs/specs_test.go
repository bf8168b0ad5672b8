package specs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

func example(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile("../../examples/" + path)
	require.NoError(t, err)
	return string(body)
}

func TestReads(t *testing.T) {
	const release = "1.36-1"
	for name, test := range map[string]struct {
		key, valid string
		read       func(*testing.T, *storetest.Bucket) error
	}{
		"a cluster": {names.ClusterSpec("demo"), example(t, "clusters/demo.yaml"), func(t *testing.T, b *storetest.Bucket) error {
			spec, version, err := specs.Cluster(t.Context(), b, "demo")
			if err == nil {
				require.Equal(t, "demo", spec.Metadata.Name)
				object, err := b.Get(t.Context(), names.ClusterSpec("demo"), api.MaxFile)
				require.NoError(t, err)
				require.Equal(t, object.Version, version)
			}
			return err
		}},
		"a release": {names.ReleaseSpec(release), example(t, "releases/1.36-1.yaml"), func(t *testing.T, b *storetest.Bucket) error {
			read, body, err := specs.Release(t.Context(), b, release)
			if err == nil {
				require.Equal(t, release, read.Metadata.Name)
				require.Equal(t, b.Body(names.ReleaseSpec(release)), body)
			}
			return err
		}},
		"the channels": {
			names.ReleaseSpec(api.ChannelsName),
			"apiVersion: drover.run/v1alpha1\nkind: Channels\nmetadata: {name: channels}\nspec: {stable: \"1.36-1\"}\n",
			func(t *testing.T, b *storetest.Bucket) error {
				channels, err := specs.Channels(t.Context(), b)
				if err == nil {
					require.NotNil(t, channels)
				}
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := storetest.NewBucket("specs")
			version := func() string {
				v, err := specs.Version(t.Context(), b, test.key)
				require.NoError(t, err)
				exists, err := specs.Exists(t.Context(), b, test.key)
				require.NoError(t, err)
				require.Equal(t, v != "", exists)
				return v
			}
			unusable := func(reason specs.Reason) *specs.Unusable {
				var unusable *specs.Unusable
				err := test.read(t, b)
				require.ErrorAs(t, err, &unusable)
				require.Equal(t, reason, unusable.Reason)
				require.Equal(t, err.Error(), unusable.Message)
				require.True(t, specs.Missing(err))
				return unusable
			}
			err := test.read(t, b)
			require.ErrorIs(t, err, specs.ErrAbsent)
			require.ErrorIs(t, err, store.ErrNotFound)
			require.True(t, specs.Missing(err))
			require.Empty(t, version())

			valid := b.Upload(test.key, test.valid)
			require.NoError(t, test.read(t, b))
			require.Equal(t, valid, version())

			invalid := b.Upload(test.key, "kind: Other\n")
			require.Equal(t, invalid, unusable(specs.Invalid).Version)
			require.Equal(t, invalid, version())

			large := b.Upload(test.key, strings.Repeat("#", api.MaxFile+1))
			require.Equal(t, large, unusable(specs.TooLarge).Version)
			require.Equal(t, large, version())

			b.Refuse("Get", "AccessDenied")
			err = test.read(t, b)
			require.Equal(t, "AccessDenied", fault.Code(err))
			require.False(t, specs.Missing(err))
			_, err = specs.Version(t.Context(), b, test.key)
			require.Equal(t, "AccessDenied", fault.Code(err))
			exists, err := specs.Exists(t.Context(), b, test.key)
			require.Equal(t, "AccessDenied", fault.Code(err))
			require.False(t, exists)
		})
	}
}

func TestClusterVersion(t *testing.T) {
	b := storetest.NewBucket("specs")
	first := b.Upload(names.ClusterSpec("demo"), "first")
	b.Upload(names.ClusterSpec("demo"), "second")
	object, err := specs.ClusterVersion(t.Context(), b, "demo", first)
	require.NoError(t, err)
	require.Equal(t, "first", string(object.Body))
	_, err = specs.ClusterVersion(t.Context(), b, "demo", "expired")
	require.ErrorIs(t, err, store.ErrNotFound)
	large := b.Upload(names.ClusterSpec("demo"), strings.Repeat("#", api.MaxFile+1))
	_, err = specs.ClusterVersion(t.Context(), b, "demo", large)
	var tooLarge *store.TooLarge
	require.ErrorAs(t, err, &tooLarge)
}

func TestPinnedRelease(t *testing.T) {
	const name = "1.36-1"
	b, body := storetest.NewBucket("state"), example(t, "releases/1.36-1.yaml")
	_, _, err := specs.PinnedRelease(t.Context(), b, name, "sha")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.False(t, specs.Missing(err), "an absent one is a failure of drover")
	b.Upload(names.PinnedRelease("sha"), body)
	release, read, err := specs.PinnedRelease(t.Context(), b, name, "sha")
	require.NoError(t, err)
	require.Equal(t, name, release.Metadata.Name)
	require.Equal(t, body, string(read))
	for content, of := range map[string]string{body: "another name", "kind: Other\n": name} {
		b.Upload(names.PinnedRelease("sha"), content)
		_, _, err = specs.PinnedRelease(t.Context(), b, of, "sha")
		var unusable *specs.Unusable
		require.ErrorAs(t, err, &unusable)
		require.Equal(t, specs.Invalid, unusable.Reason)
		require.Contains(t, unusable.Message, names.ReleaseSpec(of))
	}
}
