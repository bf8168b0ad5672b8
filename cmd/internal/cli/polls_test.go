package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

var errReset = errors.New("connection reset")

// failingEvents fails all reads in a period. All other reads return one entry.
type failingEvents struct{ from, to time.Time }

func (f *failingEvents) Drains() bool { return false }

func (f *failingEvents) Read(context.Context) ([]Entry, error) {
	if now := time.Now(); !now.Before(f.from) && now.Before(f.to) {
		return nil, errReset
	}
	return []Entry{{time.Now(), "stack", "network", "CREATE_IN_PROGRESS"}}, nil
}

func TestWatcherPolls(t *testing.T) {
	// watch waits two minutes for a condition. Its event source fails after four seconds, for the time outage.
	watch := func(outage time.Duration) (out string, err error) {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			began := time.Now()
			w := newWatcher(&text, &Cell{}, "demo", began)
			w.history = &failingEvents{began.Add(4 * time.Second), began.Add(4 * time.Second).Add(outage)}
			err = w.until(t.Context(), func(context.Context) (bool, error) {
				return time.Since(began) >= 2*time.Minute, nil
			})
			out = text.String()
		})
		return out, err
	}
	t.Run("survive one failure and report it", func(t *testing.T) {
		out, err := watch(3 * time.Second)
		require.NoError(t, err)
		require.Contains(t, out, "   6.0s  a poll failed; retrying for 1m0s: connection reset\n"+
			"   9.0s  polling works again, after 3s\n")
		require.Contains(t, out, " 120.0s  stack ")
	})
	t.Run("survive failures for less than a minute", func(t *testing.T) {
		out, err := watch(58 * time.Second)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(out, "a poll failed"), out)
	})
	t.Run("end after a minute of failures with advice", func(t *testing.T) {
		_, err := watch(time.Hour)
		require.ErrorIs(t, err, errReset)
		require.EqualError(t, err, "the watch ended: all polls failed for 1m0s: connection reset; nothing was cancelled: "+
			"check the network and your credentials, and run `drover status` for the result")
	})
}

func TestFollowedEventsPolls(t *testing.T) {
	follow := func(after, outage time.Duration) (out string, err error) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var text strings.Builder
			from := time.Now().Add(after)
			err = showEvents(ctx, &text, &failingEvents{from, from.Add(outage)}, true)
			out = text.String()
		})
		return out, err
	}
	out, err := follow(4*time.Second, 3*time.Second)
	require.NoError(t, err)
	require.Contains(t, out, "Z  drover      a poll failed; retrying for 1m0s: connection reset\n")
	require.Contains(t, out, "Z  drover      polling works again, after 3s\n")
	_, err = follow(4*time.Second, time.Hour)
	require.ErrorContains(t, err, "the watch ended: all polls failed for 1m0s")
	_, err = follow(0, time.Second)
	require.Equal(t, errReset, err, "the first read shows whether the command can work")
}

// failingBucket fails all reads while it is failing.
type failingBucket struct {
	*storetest.Bucket
	failing bool
}

func (b *failingBucket) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if b.failing {
		return store.Object{}, errReset
	}
	return b.Bucket.Get(ctx, key, limit)
}

func TestStatusWatchPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := &failingBucket{Bucket: storetest.NewBucket("state")}
		c := &Cell{State: store.NewState(bucket, store.Silent, time.Now)}
		setStatus(t, c, status.Converging, "", "1")
		time.AfterFunc(4*time.Second, func() { bucket.failing = true })
		time.AfterFunc(14*time.Second, func() { bucket.failing = false; setStatus(t, c, status.Ready, "done", "1") })
		var out strings.Builder
		require.NoError(t, watchStatus(t.Context(), &out, c, "demo", AnyUpload))
		require.Contains(t, out.String(), "a poll failed; retrying for 1m0s: ")

		setStatus(t, c, status.Converging, "", "2")
		time.AfterFunc(4*time.Second, func() { bucket.failing = true })
		require.ErrorIs(t, watchStatus(t.Context(), io.Discard, c, "demo", AnyUpload), errReset)
	})
}

// The next read returns an entry that a failed read found.
func TestHistoryAfterAFailedRead(t *testing.T) {
	h := NewHistory(&Cell{}, "demo", time.Time{})
	source := func(id string, err error) func(context.Context) ([]Entry, error) {
		return func(context.Context) (found []Entry, _ error) {
			if h.fresh(id, time.Now()) {
				found = append(found, Entry{Text: id})
			}
			return found, err
		}
	}
	_, err := h.readFrom(t.Context(), source("a", nil), source("b", errReset))
	require.ErrorIs(t, err, errReset)
	read := func() (texts []string) {
		found, err := h.readFrom(t.Context(), source("a", nil), source("b", nil))
		require.NoError(t, err)
		for _, e := range found {
			texts = append(texts, e.Text)
		}
		return texts
	}
	require.Equal(t, []string{"a", "b"}, read())
	require.Empty(t, read())
}
