package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/status"
)

// MaxDocument is the largest document that drover reads from its own bucket, in bytes.
const MaxDocument = 4 << 20

// State is drover's own bucket.
type State struct {
	Objects
	now      func() time.Time
	notifier Notifier
}

// NewState returns the state in a bucket. The notifier learns of each change before it is written.
func NewState(bucket Objects, notifier Notifier, now func() time.Time) *State {
	return &State{Objects: bucket, notifier: notifier, now: now}
}

// PutOnce writes a content-addressed object. An object that exists is not written again.
func (s *State) PutOnce(ctx context.Context, key string, body []byte) error {
	const attempts = 4
	var err error
	for range attempts {
		_, err = s.Replace(ctx, key, body, "")
		// PreconditionFailed means that the object exists. After another conflict it may not exist.
		if !errors.Is(err, ErrConflict) || fault.Code(err) == "PreconditionFailed" {
			break
		}
	}
	switch {
	case fault.Code(err) == "PreconditionFailed":
		return nil
	case errors.Is(err, ErrConflict):
		return &fault.Transient{Cause: err}
	}
	return err
}

// GetJSON reads a document into v and returns its ETag.
func (s *State) GetJSON(ctx context.Context, key string, v any) (etag string, err error) {
	object, err := s.Get(ctx, key, MaxDocument)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(object.Body, v); err != nil {
		return "", fmt.Errorf("reading s3://%s/%s: %w", s.Name(), key, err)
	}
	return object.ETag, nil
}

// Status reads a cluster's status. Without one it returns ErrNotFound.
func (s *State) Status(ctx context.Context, cluster string) (*status.Cluster, error) {
	c := status.New(cluster)
	_, err := s.GetJSON(ctx, names.Status(cluster), c)
	return c, err
}

// UpdateStatus reads a cluster's status, changes it and writes it, and repeats that if another writer was first. It writes
// nothing if the change changes nothing. Many writers may run at once, such as the drains of a pool. The pauses between
// attempts are random, so that one writer succeeds each time.
func (s *State) UpdateStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	return s.updateStatus(ctx, cluster, change, true)
}

// AmendStatus is UpdateStatus for a cluster that has a status. Otherwise it returns ErrNotFound.
func (s *State) AmendStatus(ctx context.Context, cluster string, change func(*status.Status)) error {
	return s.updateStatus(ctx, cluster, change, false)
}

func (s *State) updateStatus(ctx context.Context, cluster string, change func(*status.Status), create bool) error {
	const attempts = 12
	sent := map[string]bool{} // in all attempts: a repeated attempt must not repeat a notification
	for attempt := range attempts {
		if attempt > 0 {
			select {
			case <-time.After(upTo(min(time.Second, 20*time.Millisecond<<attempt))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := status.New(cluster)
		etag, err := s.GetJSON(ctx, names.Status(cluster), c)
		if err != nil && (!create || !errors.Is(err, ErrNotFound)) {
			return err
		}
		known := err == nil
		before, _ := json.Marshal(c)
		change(&c.Status)
		if after, err := json.Marshal(c); known && err == nil && bytes.Equal(before, after) {
			return nil
		}
		old := status.New(cluster)
		if known {
			_ = json.Unmarshal(before, old)
		} else {
			old.Status = status.Status{} // so that the first phase is a change
		}
		if err := s.notifier.StatusChanging(ctx, cluster, &old.Status, &c.Status, sent); err != nil {
			return fmt.Errorf("notifying of the status of %s: %w", cluster, err)
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
	return &fault.Transient{Cause: fmt.Errorf("writing the status of %s: conflicted with other writers %d times", cluster, attempts)}
}

// upTo returns a random duration below d. It uses crypto/rand, which tests can seed.
func upTo(d time.Duration) time.Duration {
	n, _ := rand.Int(rand.Reader, big.NewInt(int64(d))) // never fails
	return time.Duration(n.Int64())
}
