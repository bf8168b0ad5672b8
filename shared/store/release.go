package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// ReleaseStatus reads the verdict on a release. Without one it returns ErrNotFound.
func (s *State) ReleaseStatus(ctx context.Context, name string) (*status.Release, error) {
	r := status.NewRelease(name)
	_, err := s.GetJSON(ctx, names.ReleaseStatus(name), r)
	return r, err
}

// SetReleaseStatus writes a verdict on a release. It writes nothing if the verdict is the same, or if it reports the absence of
// a release that has none. If another writer was first, it returns ErrConflict.
func (s *State) SetReleaseStatus(ctx context.Context, name string, verdict status.ReleaseStatus) error {
	r, old := status.NewRelease(name), status.NewRelease(name)
	etag, err := s.GetJSON(ctx, names.ReleaseStatus(name), old)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	known := err == nil
	verdict.UpdatedAt = old.Status.UpdatedAt
	if !known && verdict.Version == "" || known && reflect.DeepEqual(verdict, old.Status) {
		return nil
	}
	if err := s.notifier.ReleaseChanging(ctx, name, &old.Status, &verdict); err != nil {
		return fmt.Errorf("notifying of release %s: %w", name, err)
	}
	verdict.UpdatedAt = s.now().UTC()
	r.Status = verdict
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the status of release %s: %w", name, err)
	}
	_, err = s.Replace(ctx, names.ReleaseStatus(name), body, etag)
	return err
}
