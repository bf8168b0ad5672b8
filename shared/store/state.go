package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// stateLimit bounds drover's own documents, in bytes.
const stateLimit = 4 << 20

// State is drover's own bucket.
type State struct {
	*Bucket
	now func() time.Time
}

// NewState returns the state in a bucket.
func NewState(bucket *Bucket, now func() time.Time) *State { return &State{bucket, now} }

// GetJSON reads a document into v and returns its ETag.
func (s *State) GetJSON(ctx context.Context, key string, v any) (etag string, err error) {
	object, err := s.Get(ctx, key, stateLimit)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(object.Body, v); err != nil {
		return "", fmt.Errorf("reading s3://%s/%s: %w", s.name, key, err)
	}
	return object.ETag, nil
}

// Status reads a cluster's status; a cluster nobody has heard of is ErrNotFound.
func (s *State) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	c := status.New(cluster)
	_, err := s.GetJSON(ctx, names.Status(cluster), c)
	return c, err
}

// UpdateStatus changes a cluster's status: read, change, write if nobody else wrote meanwhile, else once more. A change
// that changes nothing writes nothing.
func (s *State) UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	const attempts = 8
	for range attempts {
		c, old := status.New(cluster), status.New(cluster)
		etag, err := s.GetJSON(ctx, names.Status(cluster), c)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err == nil {
			// A second decoding is the simplest deep copy to compare with.
			body, _ := json.Marshal(c)
			_ = json.Unmarshal(body, old)
		}
		change(&c.Status)
		if err == nil && reflect.DeepEqual(normal(c), normal(old)) {
			return nil
		}
		c.Status.UpdatedAt = s.now().UTC()
		body, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the status of %s: %w", cluster, err)
		}
		if _, err = s.Replace(ctx, names.Status(cluster), body, etag); err == nil || !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return &fault.Transient{Cause: fmt.Errorf("writing the status of %s: lost against other writers %d times", cluster, attempts)}
}

// normal is a status as it reads from JSON, so that nil and empty compare equal.
func normal(c *status.Cluster) (v any) {
	body, _ := json.Marshal(c)
	_ = json.Unmarshal(body, &v)
	return v
}
