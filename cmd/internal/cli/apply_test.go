package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// failingReads fails all reads in a period.
type failingReads struct {
	uploads
	verdicts
	from, to time.Time
}

func (f *failingReads) fails() bool { return !time.Now().Before(f.from) && time.Now().Before(f.to) }

func (f *failingReads) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if f.fails() {
		return store.Object{}, errReset
	}
	return f.uploads.Get(ctx, key, limit)
}

func (f *failingReads) ReleaseStatus(ctx context.Context, release string) (*status.Release, error) {
	if f.fails() {
		return nil, errReset
	}
	return f.verdicts.ReleaseStatus(ctx, release)
}

func TestAwaitVerdict(t *testing.T) {
	m := manifest{name: "1.36-1", key: names.ReleaseSpec("1.36-1"), data: []byte("of the user")}
	// await waits a minute and a half. Reads fail in a period, and the verdict is written after 70 seconds.
	await := func(t *testing.T, content string, strict bool, after, outage time.Duration) (verdict *status.ReleaseStatus, lines []string,
		err error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			specs := storetest.NewBucket("specs")
			version := specs.Upload(m.key, content)
			state := store.NewState(storetest.NewBucket("state"), store.Silent, time.Now)
			time.AfterFunc(70*time.Second, func() {
				require.NoError(t, state.SetReleaseStatus(t.Context(), m.name, status.ReleaseStatus{Version: version, Usable: true}))
			})
			from := time.Now().Add(after)
			reads := &failingReads{specs, state, from, from.Add(outage)}
			polls := polls{report: func(text string) { lines = append(lines, text) }, strict: strict}
			verdict, err = awaitVerdict(t.Context(), &polls, reads, reads, m, 90*time.Second)
			time.Sleep(time.Minute) // until the verdict is written
		})
		return verdict, lines, err
	}
	for name, c := range map[string]struct {
		content       string
		strict        bool
		after, outage time.Duration
		lines         []string
		err           string
	}{
		"returns the verdict": {content: "of the user"},
		"survives failed polls": {
			content: "of the user", after: 4500 * time.Millisecond, outage: 3 * time.Second,
			lines: []string{"a poll failed; retrying for 1m0s: connection reset", "polling works again, after 3s"},
		},
		"survives a first poll that fails": {
			content: "of the user", outage: 3 * time.Second,
			lines: []string{"a poll failed; retrying for 1m0s: connection reset", "polling works again, after 3s"},
		},
		"ends after a minute of failed polls": {
			content: "of the user", outage: time.Hour, lines: []string{"a poll failed; retrying for 1m0s: connection reset"},
			err: "the watch ended: all polls failed for 1m0s: connection reset",
		},
		"ends at once without --watch": {content: "of the user", strict: true, outage: 3 * time.Second, err: "connection reset"},
		"ends when another upload replaced it": {
			content: "of another", err: "releases/1.36-1.yaml was replaced by another upload: yours gets no verdict",
		},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, lines, err := await(t, c.content, c.strict, c.after, c.outage)
			require.Equal(t, c.lines, lines)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, verdict)
			require.True(t, verdict.Usable)
		})
	}
}
