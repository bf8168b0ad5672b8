package cache

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/rollout"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/upgrade"
)

// Snapshot is drover's own bucket for planning all clusters at once.
//   - Rolls and upgrade records, which few clusters have, are listed once and read only where they exist.
//   - Pinned releases never change. Each is read once and kept while clusters use it.
//   - Every other document is read from the bucket.
type Snapshot struct {
	*store.State
	records *ETagCache

	mu sync.Mutex
	// current and previous are the releases that were read since the last Refresh, and between the last two.
	current, previous map[string]store.Object
	// freezes were read since the last Refresh; nil if they were not.
	freezes *rollout.CellFreezes
}

// NewSnapshot returns a snapshot of a state. Refresh must be called before it is read.
func NewSnapshot(state *store.State, now func() time.Time) *Snapshot {
	return &Snapshot{
		State: state, records: NewETagCache(state.Objects, now, names.Rolls, names.Upgrades, names.Assignments),
		current: map[string]store.Object{},
	}
}

// Refresh lists rolls, upgrade records and assignments, and drops the releases that were not read since the last Refresh.
func (s *Snapshot) Refresh(ctx context.Context) error {
	for _, prefix := range []string{names.Rolls, names.Upgrades, names.Assignments} {
		if _, err := s.records.List(ctx, prefix); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.previous, s.freezes = map[string]store.Object{}, s.current, nil
	return nil
}

// Rolls is store.State.Rolls.
func (s *Snapshot) Rolls(ctx context.Context, cluster string) (map[string]time.Time, error) {
	var rolls map[string]time.Time
	_, err := s.read(ctx, names.RollsOf(cluster), &rolls)
	return rolls, err
}

// Assignment is store.State.Assignment.
func (s *Snapshot) Assignment(ctx context.Context, cluster string) (*rollout.CellAssignment, string, error) {
	var assignment *rollout.CellAssignment
	etag, err := s.read(ctx, names.Assignment(cluster), &assignment)
	return assignment, etag, err
}

// CellFreezes is store.State.CellFreezes, read once after each Refresh.
func (s *Snapshot) CellFreezes(ctx context.Context) (*rollout.CellFreezes, string, error) {
	s.mu.Lock()
	freezes := s.freezes
	s.mu.Unlock()
	if freezes != nil {
		return freezes, "", nil
	}
	freezes, etag, err := s.State.CellFreezes(ctx)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freezes = freezes
	return freezes, etag, nil
}

// Upgrade is store.State.Upgrade.
func (s *Snapshot) Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error) {
	var record *upgrade.Record
	etag, err := s.read(ctx, names.Upgrade(cluster), &record)
	return record, etag, err
}

// read decodes a listed document into v. It leaves v unchanged if the document was not listed.
func (s *Snapshot) read(ctx context.Context, key string, v any) (etag string, err error) {
	if !s.records.isListed(key) {
		return "", nil
	}
	object, err := s.records.Get(ctx, key, store.MaxDocument)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return object.ETag, json.Unmarshal(object.Body, v)
}

// Get reads an object. It reads a pinned release, whose key is its hash, once for all clusters.
func (s *Snapshot) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	if !strings.HasPrefix(key, names.PinnedReleases) {
		return s.State.Get(ctx, key, limit)
	}
	s.mu.Lock()
	object, found := s.current[key]
	if !found {
		object, found = s.previous[key]
	}
	s.mu.Unlock()
	if !found {
		var err error
		if object, err = s.State.Get(ctx, key, limit); err != nil {
			return object, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current[key] = object
	return object, nil
}
