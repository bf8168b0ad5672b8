package audit

// Which releases the audit checks because their events were lost.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/functions/sweep/sweeptest"
	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// releaseFixture are releases: their versions by name, and the versions that verdicts are about.
type releaseFixture struct {
	*sweeptest.Account
	sweeptest.Listed
	versions map[string]string
}

type publishedSpecs struct {
	work.SpecLister
	releaseFixture
}

func (p publishedSpecs) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return p.Listed[prefix], p.Failing["list specs"]
}

func (p publishedSpecs) Get(_ context.Context, key string, _ int64) (store.Object, error) {
	if err := p.Failing["spec "+key]; err != nil {
		return store.Object{}, err
	}
	version, found := p.versions[key]
	if !found {
		return store.Object{}, store.ErrNotFound
	}
	return store.Object{Version: version}, nil
}

type publishedState struct {
	ReleaseStatuses
	releaseFixture
}

func (p publishedState) List(_ context.Context, prefix string) ([]store.Entry, error) {
	return p.Listed[prefix], p.Failing["list verdicts"]
}

func (p publishedState) ReleaseStatus(_ context.Context, release string) (*status.Release, error) {
	if err := p.Did("read %s", release); err != nil {
		return &status.Release{}, err
	}
	version, found := p.versions[names.ReleaseStatus(release)]
	if !found {
		return &status.Release{}, store.ErrNotFound
	}
	return &status.Release{Status: status.ReleaseStatus{Version: version}}, nil
}

// publisher checks releases.
type publisher struct{ *sweeptest.Account }

func (p publisher) Check(_ context.Context, release string) error { return p.Did("check %s", release) }

func TestAuditChecksReleases(t *testing.T) {
	hour := noon.Add(-time.Hour)
	spec := func(release string, at time.Time) store.Entry {
		return store.Entry{Key: names.ReleaseSpec(release), ETag: "e", Modified: at}
	}
	verdict := func(release string, at time.Time) store.Entry {
		return store.Entry{Key: names.ReleaseStatus(release), ETag: "v", Modified: at}
	}
	entries := func(all ...store.Entry) []store.Entry { return all }
	specOf, verdictOf := names.ReleaseSpec("a"), names.ReleaseStatus("a")
	for name, test := range map[string]struct {
		specs, verdicts []store.Entry
		versions        map[string]string
		failing         map[string]error
		want, again     []string
	}{
		"without a verdict": {
			specs: entries(spec("a", hour)), versions: map[string]string{specOf: "1"}, want: []string{"read a", "check a"},
			again: []string{"read a", "check a"},
		},
		"not while they are new": {specs: entries(spec("a", noon.Add(-4*time.Minute))), versions: map[string]string{specOf: "1"}},
		"not when a verdict is newer": {
			specs: entries(spec("a", hour)), verdicts: entries(verdict("a", noon)), versions: map[string]string{specOf: "1"},
		},
		"when the verdict of that second is about another upload": {
			specs: entries(spec("a", hour)), verdicts: entries(verdict("a", hour)), versions: map[string]string{specOf: "2", verdictOf: "1"},
			want: []string{"read a", "check a"}, again: []string{"read a", "check a"},
		},
		"not when the verdict of that second is about it, which is read once": {
			specs: entries(spec("a", hour)), verdicts: entries(verdict("a", hour)), versions: map[string]string{specOf: "1", verdictOf: "1"},
			want: []string{"read a"},
		},
		"that were deleted": {
			verdicts: entries(verdict("a", hour)), versions: map[string]string{verdictOf: "1"}, want: []string{"read a", "check a"},
			again: []string{"read a", "check a"},
		},
		"not those whose deletion is recorded": {
			verdicts: entries(verdict("a", hour)), versions: map[string]string{verdictOf: ""}, want: []string{"read a"},
		},
		"not what is no release": {
			specs: entries(store.Entry{Key: names.ReleaseSpecs + "notes.txt", Modified: hour}),
		},
		"that are too large": {
			specs: entries(spec("a", hour)), verdicts: entries(verdict("a", hour)), versions: map[string]string{verdictOf: "1"},
			failing: map[string]error{"spec " + specOf: &store.TooLarge{Version: "2"}}, want: []string{"read a", "check a"},
			again: []string{"read a", "check a"},
		},
		"not too large ones whose verdict is about them": {
			specs: entries(spec("a", hour)), verdicts: entries(verdict("a", hour)), versions: map[string]string{verdictOf: "2"},
			failing: map[string]error{"spec " + specOf: &store.TooLarge{Version: "2"}}, want: []string{"read a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweeptest.Account{Failing: test.failing}
			h := releasesOf(s, test.specs, test.verdicts, test.versions)
			require.NoError(t, h.Run(t.Context()))
			require.Equal(t, test.want, s.Calls)
			s.Calls = nil
			require.NoError(t, h.Run(t.Context()))
			require.Equal(t, test.again, s.Calls)
		})
	}
	for failing, want := range map[string][]string{
		"list specs": nil, "list verdicts": nil, "read a": {"read a", "read b", "check b"}, "check a": {"read a", "check a", "read b", "check b"},
		"spec " + specOf: {"read a", "read b", "check b"},
	} {
		t.Run("each, whatever fails for another: "+failing, func(t *testing.T) {
			s := &sweeptest.Account{Failing: map[string]error{failing: errThrottled}}
			h := releasesOf(s, entries(spec("a", hour), spec("b", hour)), nil, map[string]string{specOf: "1", names.ReleaseSpec("b"): "1"})
			require.ErrorIs(t, h.Run(t.Context()), errThrottled)
			require.Equal(t, want, s.Calls)
		})
	}
	t.Run("again while another upload of the same second may come, or either is written", func(t *testing.T) {
		s := &sweeptest.Account{}
		at := noon.Add(-time.Minute)
		specs, verdicts := entries(spec("a", at)), entries(verdict("a", at))
		h := releasesOf(s, specs, verdicts, map[string]string{specOf: "1", verdictOf: "1"})
		h.EventGrace = 0
		reads := func() int {
			s.Calls = nil
			require.NoError(t, h.Run(t.Context()))
			return len(s.Calls)
		}
		require.Equal(t, 1, reads())
		require.Equal(t, 1, reads())
		h.Now = func() time.Time { return noon.Add(time.Second) }
		require.Equal(t, 1, reads())
		require.Zero(t, reads())
		verdicts[0].ETag = "w"
		require.Equal(t, 1, reads())
		specs[0].ETag = "f"
		require.Equal(t, 1, reads())
		specs[0].Modified, verdicts[0].Modified = at.Add(-time.Second), at.Add(-time.Second)
		require.Equal(t, 1, reads())
		require.Zero(t, reads())
	})
}

func releasesOf(s *sweeptest.Account, specs, verdicts []store.Entry, versions map[string]string) Releases {
	p := releaseFixture{s, sweeptest.Listed{names.ReleaseSpecs: specs, names.ReleaseStatuses: verdicts}, versions}
	return Releases{
		Specs: publishedSpecs{releaseFixture: p}, State: publishedState{releaseFixture: p}, Checker: publisher{s}, Cache: &ReleaseCache{},
		EventGrace: 5 * time.Minute, Now: func() time.Time { return noon },
	}
}
