// Package cache avoids repeated reads of many clusters' objects. A listing costs one call for a thousand objects, and its ETags show which
// objects changed since they were read. The package has two caches, ETagCache and Snapshot. The sweep function keeps both between its
// invocations. The package reads only through store.Objects.
package cache

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/store"
)

// Objects is what the caches read: a subset of store.Objects.
type Objects interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error)
	GetVersion(ctx context.Context, key, version string, limit int64) (store.Object, error)
}

// ETagCache returns an object from memory while the last listing shows the ETag with which it was read. Results are therefore as old as
// the last listing: only a caller that has just listed a prefix may read it here.
type ETagCache struct {
	Objects
	now      func() time.Time
	prefixes []string

	mu     sync.Mutex
	listed map[string]store.Entry
	cached map[string]cachedObject
}

type cachedObject struct {
	store.Object
	modified time.Time
}

// maxBytes is the largest object that is cached. A thousand of them fit into the memory of a function.
const maxBytes = 64 << 10

// minAge is the age from which an object is cached. S3 reports times in seconds. Within one second, another version with the same bytes
// has the same ETag and the same time, so a listing does not show it.
const minAge = time.Minute

// NewETagCache returns an empty cache for objects with these prefixes.
func NewETagCache(objects Objects, now func() time.Time, prefixes ...string) *ETagCache {
	return &ETagCache{
		Objects: objects, now: now, prefixes: prefixes, listed: map[string]store.Entry{}, cached: map[string]cachedObject{},
	}
}

// List lists objects and drops those from the cache that no longer exist. After an error no object with the prefix counts as listed.
func (c *ETagCache) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	entries, err := c.Objects.List(ctx, prefix)
	if !slices.Contains(c.prefixes, prefix) {
		return entries, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.listed, func(key string, _ store.Entry) bool { return strings.HasPrefix(key, prefix) })
	if err != nil {
		return entries, err
	}
	for _, entry := range entries {
		c.listed[entry.Key] = entry
	}
	maps.DeleteFunc(c.cached, func(key string, _ cachedObject) bool {
		_, found := c.listed[key]
		return !found && strings.HasPrefix(key, prefix)
	})
	return entries, nil
}

// Get reads an object, from memory if the last listing shows that it did not change.
func (c *ETagCache) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	c.mu.Lock()
	entry := c.listed[key] // without an ETag if it was not listed
	object, found := c.cached[key]
	c.mu.Unlock()
	if found && object.ETag == entry.ETag && object.modified.Equal(entry.Modified) && int64(len(object.Body)) <= limit {
		return object.Object, nil
	}
	started := c.now()
	read, err := c.Objects.Get(ctx, key, limit)
	// An object that was written after the listing is cached after the next listing.
	if read.ETag != "" && read.ETag == entry.ETag && len(read.Body) <= maxBytes &&
		started.Sub(entry.Modified) >= minAge {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cached[key] = cachedObject{read, entry.Modified}
	}
	return read, err
}

func (c *ETagCache) isListed(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, listed := c.listed[key]
	return listed
}
