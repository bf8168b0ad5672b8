package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/upgrade"
)

// Upgrade reads the record of a cluster's upgrade and its ETag. If the cluster was never upgraded, it returns nil and an
// empty ETag.
func (s *State) Upgrade(ctx context.Context, cluster string) (*upgrade.Record, string, error) {
	record := &upgrade.Record{}
	etag, err := s.GetJSON(ctx, names.Upgrade(cluster), record)
	if errors.Is(err, ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return record, etag, nil
}

// PutUpgrade writes the record of a cluster's upgrade if it still has that ETag. With an empty ETag it writes only if
// there is no record. If another writer was first, it returns ErrConflict. It returns the new ETag.
func (s *State) PutUpgrade(ctx context.Context, cluster string, record *upgrade.Record, etag string) (string, error) {
	body, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing the record of the upgrade of %s: %w", cluster, err)
	}
	return s.Replace(ctx, names.Upgrade(cluster), body, etag)
}
