package store

// Due work: what the sweep starts for a cluster at a stored time.

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-run/drover/shared/names"
)

// AddDue makes the sweep converge a cluster at a time. It writes nothing if that is recorded already.
func (s *State) AddDue(ctx context.Context, cluster string, at time.Time) error {
	key := names.Due(at, cluster)
	if _, err := s.Get(ctx, key, MaxDocument); !errors.Is(err, ErrNotFound) {
		return err
	}
	return s.PutOnce(ctx, key, []byte("{}"))
}

// RequestInspection makes the next sweep audit a cluster. A later request replaces an earlier one, so Done of the earlier
// one keeps it.
func (s *State) RequestInspection(ctx context.Context, cluster, why string) error {
	body, err := json.Marshal(map[string]string{"why": why, "at": s.now().UTC().Format(time.RFC3339Nano)}) // an ETag of its own
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, names.Inspection(cluster), body)
	return err
}

// Due is work for a cluster at a time.
type Due struct {
	Cluster string
	At      time.Time
	// Inspect requests an audit of the cluster, as soon as possible. Otherwise the cluster is converged.
	Inspect bool

	key, etag string
}

// Dues lists due work, oldest first, and then the inspections.
func (s *State) Dues(ctx context.Context, now time.Time) ([]Due, error) {
	entries, err := s.List(ctx, names.Dues)
	if err != nil {
		return nil, err
	}
	var due []Due
	for _, entry := range entries {
		at, cluster, ok := names.ParseDue(entry.Key)
		if ok && !at.After(now) {
			due = append(due, Due{Cluster: cluster, At: at, key: entry.Key, etag: entry.ETag})
		}
		if cluster, ok := names.ParseInspection(entry.Key); ok {
			due = append(due, Due{Cluster: cluster, Inspect: true, key: entry.Key, etag: entry.ETag})
		}
	}
	return due, nil
}

// Done removes due work.
func (s *State) Done(ctx context.Context, due Due) error { return s.DeleteIf(ctx, due.key, due.etag) }
