package releases_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/api"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

var errThrottled = errors.New("throttled")

// checkNamed returns the check of a name.
func checkNamed(t *testing.T, verdict status.ReleaseStatus, name string) status.Check {
	t.Helper()
	i := slices.IndexFunc(verdict.Checks, func(c status.Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s in %v", name, verdict.Checks)
	return verdict.Checks[i]
}

func TestCheckRelease(t *testing.T) {
	t.Run("finds a whole one usable", func(t *testing.T) {
		f := newFixture()
		version := f.upload("r1", release)
		verdict := f.check(t, "r1")
		require.Equal(t, status.ReleaseStatus{
			Version: version, SHA256: names.SHA256([]byte(release)), Usable: true, Checks: verdict.Checks, UpdatedAt: noon,
		}, verdict)
		require.False(t, preflight.Blocks(verdict.Checks))
		require.Equal(t, []string{"coredns", "ami-0000000000000000a"}, f.described)
	})
	for name, test := range map[string]struct{ body, check, message string }{
		"another Kubernetes version": {editedRelease(`"1.36"`, `"1.38"`), preflight.VersionOffered, "EKS does not offer Kubernetes 1.38"},
		"an unknown add-on":          {editedRelease("coredns", "corednsx"), preflight.AddonsCompatible, "corednsx"},
		"an absent image":            {editedRelease("000a}", "000c}"), preflight.Images, "ami-0000000000000000c for amd64 does not exist"},
		"another architecture":       {editedRelease("000a}", "000b}"), preflight.Images, "is for arm64, not for amd64"},
		"another name":               {editedRelease("r1", "r2"), preflight.FileValid, "metadata.name"},
		"an unknown template":        {editedRelease("v1\n", "v9\n"), preflight.FileValid, "v9"},
		"no YAML":                    {"{", preflight.FileValid, "releases/r1.yaml"},
		"too many bytes":             {release + strings.Repeat("#", api.MaxFile), preflight.FileValid, ""},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			f := newFixture()
			version := f.upload("r1", test.body)
			verdict := f.check(t, "r1")
			require.Equal(t, version, verdict.Version)
			require.False(t, verdict.Usable)
			check := checkNamed(t, verdict, test.check)
			require.True(t, check.Blocks)
			require.Contains(t, check.Message, test.message)
			require.NotEmpty(t, check.Next)
		})
	}
	t.Run("warns of an image that is deprecated now", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", editedRelease("{amd64: ami-0000000000000000a}", "{arm64: ami-0000000000000000b}"))
		verdict := f.check(t, "r1")
		require.True(t, verdict.Usable)
		require.Contains(t, checkNamed(t, verdict, preflight.Images).Message, "is deprecated since 2026-11-26")
	})
	t.Run("limits the message about an invalid file", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", "kind: Release\nspec:\n"+strings.Repeat("  x"+strings.Repeat("y", 99)+": {}\n", 400))
		message := checkNamed(t, f.check(t, "r1"), preflight.FileValid).Message
		require.Len(t, message, 16<<10+len("\n…"))
		require.True(t, strings.HasSuffix(message, "\n…"))
	})
	t.Run("records that it was deleted", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		require.True(t, f.check(t, "r1").Usable)
		f.specs.Delete(names.ReleaseSpec("r1"))
		verdict := f.check(t, "r1")
		require.Empty(t, verdict.Version)
		require.Empty(t, verdict.Checks)
		require.False(t, verdict.Usable)
		require.Contains(t, verdict.Message, "it was deleted")
	})
	t.Run("ignores one that never existed", func(t *testing.T) {
		f := newFixture()
		require.NoError(t, f.checker.Check(t.Context(), "r1"))
		require.Empty(t, f.objects.Keys())
	})
	for _, method := range []string{"catalog", "compat", "images"} {
		t.Run("records nothing when this fails: "+method, func(t *testing.T) {
			f := newFixture()
			f.upload("r1", release)
			f.failing[method] = errThrottled
			require.ErrorIs(t, f.checker.Check(t.Context(), "r1"), errThrottled)
			require.Empty(t, f.objects.Keys())
		})
	}
}

func TestCheckChannels(t *testing.T) {
	t.Run("finds them usable if their releases exist", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		version := f.upload(api.ChannelsName, channels)
		verdict := f.check(t, api.ChannelsName)
		require.True(t, verdict.Usable)
		require.Equal(t, version, verdict.Version)
		require.Empty(t, verdict.Checks)
		require.Empty(t, f.described)
	})
	t.Run("names the field of each wrong release", func(t *testing.T) {
		f := newFixture()
		f.upload("r2", editedRelease("r1", "r2", `"1.36"`, `"1.35"`))
		f.upload("r3", "{")
		f.upload(api.ChannelsName, strings.Replace(channels, `stable: r1, nodes: {"1.36": r1}`,
			`stable: r1, rapid: r3, nodes: {"1.35": r2, "1.36": r2}`, 1))
		check := checkNamed(t, f.check(t, api.ChannelsName), preflight.ReleasesExist)
		require.True(t, check.Blocks)
		require.Equal(t, "spec.nodes[1.36]: releases/r2.yaml is for Kubernetes 1.35\nspec.rapid: releases/r3.yaml cannot be used\n"+
			"spec.stable: there is no releases/r1.yaml", check.Message)
		require.NotEmpty(t, check.Next)
	})
	t.Run("accepts any version outside the nodes channel", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", editedRelease(`"1.36"`, `"1.35"`))
		f.upload(api.ChannelsName, strings.Replace(channels, `, nodes: {"1.36": r1}`, "", 1))
		require.True(t, f.check(t, api.ChannelsName).Usable)
	})
	t.Run("rejects an invalid file", func(t *testing.T) {
		f := newFixture()
		f.upload(api.ChannelsName, strings.Replace(channels, "stable", "steady", 1))
		verdict := f.check(t, api.ChannelsName)
		require.False(t, verdict.Usable)
		require.Contains(t, checkNamed(t, verdict, preflight.FileValid).Message, "spec.steady")
	})
	t.Run("records nothing when a release cannot be read", func(t *testing.T) {
		f := newFixture()
		f.upload(api.ChannelsName, channels)
		f.specs.OnCall = func(call storetest.Call) error {
			if call.Key == names.ReleaseSpec("r1") {
				return storetest.Refusal("AccessDenied")
			}
			return nil
		}
		require.Equal(t, "AccessDenied", fault.Code(f.checker.Check(t.Context(), api.ChannelsName)))
		require.Empty(t, f.objects.Keys())
	})
}

func TestCheckReleaseOfAChannel(t *testing.T) {
	// judged reports whether the channels are checked after r1.
	judged := func(t *testing.T, f *fixture) bool {
		t.Helper()
		f.upload("r1", release)
		require.True(t, f.check(t, "r1").Usable)
		_, err := f.state.ReleaseStatus(t.Context(), api.ChannelsName)
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		return err == nil
	}
	t.Run("checks the channels again that name it", func(t *testing.T) {
		f := newFixture()
		f.upload(api.ChannelsName, channels)
		require.False(t, f.check(t, api.ChannelsName).Usable)
		require.True(t, judged(t, f))
		require.True(t, f.verdict(t, api.ChannelsName).Usable)
	})
	t.Run("checks invalid channels, which may name it", func(t *testing.T) {
		f := newFixture()
		f.upload(api.ChannelsName, "{")
		require.True(t, judged(t, f))
	})
	t.Run("leaves channels alone that name others", func(t *testing.T) {
		f := newFixture()
		f.upload(api.ChannelsName, strings.ReplaceAll(channels, "r1", "r2"))
		require.False(t, judged(t, f))
	})
	t.Run("needs no channels", func(t *testing.T) {
		require.False(t, judged(t, newFixture()))
	})

	// refuse refuses reads of the channels.
	refuse := func(call storetest.Call) error {
		if call.Key == names.ReleaseSpec(api.ChannelsName) {
			return storetest.Refusal("AccessDenied")
		}
		return nil
	}
	t.Run("records its verdict when the channels cannot be read", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.specs.OnCall = refuse
		require.Equal(t, "AccessDenied", fault.Code(f.checker.Check(t.Context(), "r1")))
		require.True(t, f.verdict(t, "r1").Usable)
	})
	t.Run("checks the channels although it cannot be checked", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.upload(api.ChannelsName, channels)
		f.failing["catalog"] = errThrottled
		require.ErrorIs(t, f.checker.Check(t.Context(), "r1"), errThrottled)
		require.True(t, f.verdict(t, api.ChannelsName).Usable)
	})
	t.Run("returns the errors of both", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.failing["catalog"] = errThrottled
		f.specs.OnCall = refuse
		err := f.checker.Check(t.Context(), "r1")
		require.ErrorIs(t, err, errThrottled)
		require.ErrorContains(t, err, "AccessDenied")
	})
}

func TestCheckRepeats(t *testing.T) {
	t.Run("when the file changes at the same time", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", "{")
		f.objects.Once("Put", func(string) { f.upload("r1", release) })
		verdict := f.check(t, "r1")
		require.Equal(t, "version-2", verdict.Version)
		require.True(t, verdict.Usable)
	})
	t.Run("when the file is deleted at the same time", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.objects.Once("Put", func(string) { f.specs.Delete(names.ReleaseSpec("r1")) })
		require.Contains(t, f.check(t, "r1").Message, "it was deleted")
	})
	t.Run("when another copy wrote a verdict", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.objects.Once("Put", func(key string) { f.objects.Upload(key, "{}") })
		require.True(t, f.check(t, "r1").Usable)
	})
	for name, interfere := range map[string]func(f *fixture, key string){
		"the file changes": func(f *fixture, _ string) { f.upload("r1", release) },
		"others write its verdict": func(f *fixture, key string) {
			f.objects.Upload(key, fmt.Sprintf(`{"status":{"message":"%d"}}`, f.objects.Written()))
		},
	} {
		t.Run("at most five times while "+name, func(t *testing.T) {
			f := newFixture()
			f.upload("r1", release)
			writes := 0
			f.objects.OnCall = func(call storetest.Call) error {
				if call.Operation == "Put" {
					writes++
					interfere(f, call.Key)
				}
				return nil
			}
			err := f.checker.Check(t.Context(), "r1")
			var transient *fault.Transient
			require.ErrorAs(t, err, &transient)
			require.ErrorContains(t, err, "releases/r1.yaml changed 5 times")
			require.Equal(t, 5, writes)
		})
	}
	t.Run("not when the verdict cannot be written", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		count := f.objects.Refuse("Put", "AccessDenied")
		require.Equal(t, "AccessDenied", fault.Code(f.checker.Check(t.Context(), "r1")))
		require.Equal(t, 1, *count)
	})
	t.Run("not when the file cannot be read again", func(t *testing.T) {
		f := newFixture()
		f.upload("r1", release)
		f.objects.Once("Put", func(string) { f.refuseOnce() })
		require.Equal(t, "AccessDenied", fault.Code(f.checker.Check(t.Context(), "r1")))
		require.Equal(t, 1, f.objects.Written())
	})
}
