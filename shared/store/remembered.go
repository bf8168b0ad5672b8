package store

// Reading for many clusters at once, again and again: a listing costs one call for a thousand objects, and says which of them are as they
// were when they were read last.

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// Objects are those of a Bucket.
type Objects interface {
	List(ctx context.Context, prefix string) ([]Entry, error)
	Get(ctx context.Context, key string, limit int64) (Object, error)
	GetUnless(ctx context.Context, key, etag string, limit int64) (object Object, changed bool, err error)
	GetVersion(ctx context.Context, key, version string, limit int64) (Object, error)
}

// Remembered are objects of which those with some prefixes are not read again while listings of them say that they are what they were.
// Nobody but who has just listed them may read them so: what comes is as old as the last listing.
type Remembered struct {
	Objects
	now      func() time.Time
	prefixes []string

	mu     sync.Mutex
	listed map[string]Entry
	kept   map[string]kept
}

// kept is an object as it was when it was listed so.
type kept struct {
	Object
	modified time.Time
}

// mostKept is the size of an object up to which it is remembered: those of a thousand clusters have to fit in a function's memory.
const mostKept = 64 << 10

// young is what was written less than that ago. S3 tells the time in seconds: it may be followed by another of the
// same bytes, and so of the same ETag, that a listing does not tell from it.
const young = time.Minute

// NewRemembered remembers nothing yet.
func NewRemembered(objects Objects, now func() time.Time, prefixes ...string) *Remembered {
	return &Remembered{Objects: objects, now: now, prefixes: prefixes, listed: map[string]Entry{}, kept: map[string]kept{}}
}

// List lists what is there now, and forgets what is not. When it fails nothing is known to be as it was.
func (r *Remembered) List(ctx context.Context, prefix string) ([]Entry, error) {
	entries, err := r.Objects.List(ctx, prefix)
	if !slices.Contains(r.prefixes, prefix) {
		return entries, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.listed, func(key string, _ Entry) bool { return strings.HasPrefix(key, prefix) })
	if err != nil {
		return entries, err
	}
	for _, entry := range entries {
		r.listed[entry.Key] = entry
	}
	maps.DeleteFunc(r.kept, func(key string, _ kept) bool {
		_, there := r.listed[key]
		return !there && strings.HasPrefix(key, prefix)
	})
	return entries, nil
}

// Get reads an object unless it was read since it was written, by the last listing.
func (r *Remembered) Get(ctx context.Context, key string, limit int64) (Object, error) {
	r.mu.Lock()
	entry, listed := r.listed[key]
	known, is := r.kept[key]
	r.mu.Unlock()
	if listed && is && known.ETag == entry.ETag && known.modified.Equal(entry.Modified) && int64(len(known.Body)) <= limit {
		return known.Object, nil
	}
	asked := r.now()
	object, err := r.Objects.Get(ctx, key, limit)
	// One that was written since is remembered from the next listing on.
	if err == nil && listed && entry.ETag != "" && object.ETag == entry.ETag && len(object.Body) <= mostKept &&
		asked.Sub(entry.Modified) >= young {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kept[key] = kept{object, entry.Modified}
	}
	return object, err
}

// there says whether an object was listed.
func (r *Remembered) there(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, there := r.listed[key]
	return there
}

// Overview is drover's own bucket for who looks at all clusters: what few clusters have is listed for all of them, and read of those
// that have it; releases, which never change, are read once. The rest is read as ever.
type Overview struct {
	*State
	remembered *Remembered

	mu sync.Mutex
	// now and before are the releases that were read since the last Look, and in the time before that.
	now, before map[string]Object
}

// NewOverview of a bucket. Look must be called before it is read.
func NewOverview(state *State) *Overview {
	return &Overview{
		State: state, remembered: NewRemembered(state.Bucket, state.now, names.AllRolls, names.Upgrades), now: map[string]Object{},
	}
}

// Look lists what few clusters have: pools that somebody asked to be rolled, and upgrades.
func (o *Overview) Look(ctx context.Context) error {
	for _, prefix := range []string{names.AllRolls, names.Upgrades} {
		if _, err := o.remembered.List(ctx, prefix); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now, o.before = map[string]Object{}, o.now
	return nil
}

// Rolls is State's.
func (o *Overview) Rolls(ctx context.Context, cluster string) (map[string]time.Time, error) {
	var rolls map[string]time.Time
	_, err := o.read(ctx, names.Rolls(cluster), &rolls)
	return rolls, err
}

// Upgrade is State's.
func (o *Overview) Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error) {
	var record *upgrade.Record
	etag, err := o.read(ctx, names.Upgrade(cluster), &record)
	return record, etag, err
}

// read a document that few clusters have; one that was not listed leaves v as it is.
func (o *Overview) read(ctx context.Context, key string, v any) (etag string, err error) {
	if !o.remembered.there(key) {
		return "", nil
	}
	object, err := o.remembered.Get(ctx, key, stateLimit)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return object.ETag, json.Unmarshal(object.Body, v)
}

// Get reads an object: a release, which is called by its content, once for all clusters that are pinned to it.
func (o *Overview) Get(ctx context.Context, key string, limit int64) (Object, error) {
	if !strings.HasPrefix(key, names.PinnedReleases) {
		return o.State.Get(ctx, key, limit)
	}
	o.mu.Lock()
	object, known := o.now[key]
	if !known {
		object, known = o.before[key]
	}
	o.mu.Unlock()
	if !known {
		var err error
		if object, err = o.State.Get(ctx, key, limit); err != nil {
			return object, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now[key] = object
	return object, nil
}
