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

// UpdateUnread records the objects of the specs bucket that drover does not read. It reads the document before it lists
// the bucket, and writes only if no other writer was first. So an older listing never replaces a newer one.
func (s *State) UpdateUnread(ctx context.Context, specs Lister) error {
	const attempts = 8
	for range attempts {
		old := status.UnreadUploads{}
		etag, err := s.GetJSON(ctx, names.UnreadUploads, &old)
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
		uploads := status.UnreadUploads{APIVersion: "drover.run/v1alpha1", Kind: "UnreadUploads"}
		uploads.Uploads, uploads.More = status.UnreadOf(keys)
		if slices.Equal(uploads.Uploads, old.Uploads) && uploads.More == old.More {
			return nil
		}
		if err := s.notifier.UnreadChanging(ctx, old.Uploads, uploads.Uploads); err != nil {
			return fmt.Errorf("notifying of unread uploads: %w", err)
		}
		uploads.UpdatedAt = s.now().UTC()
		body, err := json.MarshalIndent(uploads, "", "  ")
		if err != nil {
			return err
		}
		if _, err = s.Replace(ctx, names.UnreadUploads, body, etag); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing %s: conflicted with other writers %d times", names.UnreadUploads, attempts)}
}

// Unread reads which objects of the specs bucket drover does not read.
func (s *State) Unread(ctx context.Context) (status.UnreadUploads, error) {
	var unread status.UnreadUploads
	_, err := s.GetJSON(ctx, names.UnreadUploads, &unread)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return unread, err
}
