package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// Lister lists the specs bucket.
type Lister interface {
	List(ctx context.Context, prefix string) ([]Entry, error)
}

// UpdateIgnored records the objects of the specs bucket that drover does not read. It reads the document before it lists
// the bucket, and writes only if no other writer was first. So an older listing never replaces a newer one.
func (s *State) UpdateIgnored(ctx context.Context, specs Lister) error {
	const attempts = 8
	for range attempts {
		old := status.IgnoredUploads{}
		etag, err := s.GetJSON(ctx, names.IgnoredUploads, &old)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		entries, err := specs.List(ctx, "")
		if err != nil {
			return err
		}
		var keys []string
		for _, entry := range entries {
			keys = append(keys, entry.Key)
		}
		uploads := status.IgnoredUploads{APIVersion: "drover.run/v1alpha1", Kind: "IgnoredUploads"}
		uploads.Uploads, uploads.More = status.IgnoredOf(keys)
		if slices.Equal(uploads.Uploads, old.Uploads) && uploads.More == old.More {
			return nil
		}
		if err := s.notifier.IgnoredChanging(ctx, old.Uploads, uploads.Uploads); err != nil {
			return fmt.Errorf("notifying of ignored uploads: %w", err)
		}
		uploads.UpdatedAt = s.now().UTC()
		body, err := json.MarshalIndent(uploads, "", "  ")
		if err != nil {
			return err
		}
		if _, err = s.Replace(ctx, names.IgnoredUploads, body, etag); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing %s: conflicted with other writers %d times", names.IgnoredUploads, attempts)}
}

// IgnoredUploads reads which objects of the specs bucket drover does not read.
func (s *State) IgnoredUploads(ctx context.Context) (status.IgnoredUploads, error) {
	var ignored status.IgnoredUploads
	_, err := s.GetJSON(ctx, names.IgnoredUploads, &ignored)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return ignored, err
}
