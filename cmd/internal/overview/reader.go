package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// concurrency bounds the requests of a Reader that are in flight.
const concurrency = 32

// Objects is the state bucket: a subset of store.Objects.
type Objects interface {
	Get(ctx context.Context, key string, limit int64) (store.Object, error)
	List(ctx context.Context, prefix string) ([]store.Entry, error)
}

// Reader reads the statuses of all clusters. One listing of 1,000 statuses is one request, and each status one more. A later read gets only
// the statuses whose ETag changed. A Reader is safe for concurrent use.
type Reader struct {
	Objects Objects

	mu   sync.Mutex
	read map[string]cachedRow
}

// cachedRow is the row of a status with its ETag.
type cachedRow struct {
	etag string
	row  Row
}

// Read returns a row for each cluster, ordered by name. A document that is invalid or too large hides no other cluster: its row says so.
func (r *Reader) Read(ctx context.Context) ([]Row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, err := r.Objects.List(ctx, names.Statuses)
	if err != nil {
		return nil, fmt.Errorf("listing the statuses of clusters: %w", err)
	}
	read := make([]*cachedRow, len(entries))
	var changed []int
	for i, entry := range entries {
		if old, ok := r.read[entry.Key]; ok && entry.ETag != "" && old.etag == entry.ETag {
			read[i] = &old
		} else {
			changed = append(changed, i)
		}
	}
	if err := r.readChanged(ctx, entries, changed, read); err != nil {
		return nil, err
	}
	r.read = map[string]cachedRow{}
	rows := []Row{}
	for i, c := range read {
		if c != nil {
			r.read[entries[i].Key] = *c
			rows = append(rows, c.row)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return rows, nil
}

// readChanged reads some of the entries. Entries that no longer exist stay nil.
func (r *Reader) readChanged(ctx context.Context, entries []store.Entry, changed []int, read []*cachedRow) error {
	return Each(ctx, len(changed), func(ctx context.Context, n int) (err error) {
		i := changed[n]
		read[i], err = r.one(ctx, entries[i].Key)
		return err
	})
}

// Each calls a function for 0 to count-1, with a bounded number of calls in flight. The first error cancels the others and is returned.
func Each(ctx context.Context, count int, call func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(concurrency, count) {
		workers.Go(func() {
			for i := range next {
				if err := call(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for i := range count {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// one reads one status; nil if it no longer exists.
func (r *Reader) one(ctx context.Context, key string) (*cachedRow, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, names.Statuses), ".json")
	object, err := r.Objects.Get(ctx, key, store.MaxDocument)
	var large *store.TooLarge
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case errors.As(err, &large):
		return &cachedRow{row: Unreadable(name, err)}, nil
	case err != nil:
		return nil, fmt.Errorf("reading the status of cluster %s: %w", name, err)
	}
	document := status.New(name)
	if err := json.Unmarshal(object.Body, document); err != nil {
		return &cachedRow{object.ETag, Unreadable(name, err)}, nil
	}
	document.Metadata.Name = name
	return &cachedRow{object.ETag, Summarize(document)}, nil
}
