// Package store keeps drover's documents in a bucket: statuses, leases, waiters, upgrade records, rolls and due work. Every write
// is conditional or content-addressed, so concurrent executions cannot overwrite each other. Functions and the CLI use it. It reaches
// the bucket only through Objects, which shared/aws/s3 implements.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound reports that an object does not exist.
var ErrNotFound = errors.New("no such object")

// ErrConflict reports that a conditional write lost against another writer.
var ErrConflict = errors.New("another writer changed the object")

// Objects is a versioned bucket. Errors keep the code of S3, which fault.Code returns.
type Objects interface {
	// Name of the bucket.
	Name() string
	// Get reads the newest version of an object. It returns ErrNotFound, or *TooLarge for an object of more than limit bytes.
	Get(ctx context.Context, key string, limit int64) (Object, error)
	// GetUnless is Get, except that it reads nothing and changed is false if the object still has the ETag. An empty ETag matches no object.
	GetUnless(ctx context.Context, key, etag string, limit int64) (object Object, changed bool, err error)
	// GetVersion is Get for one version of an object.
	GetVersion(ctx context.Context, key, version string, limit int64) (Object, error)
	// Put writes an object unconditionally and returns its ETag.
	Put(ctx context.Context, key string, body []byte) (etag string, err error)
	// Replace writes an object only if it has the ETag. With an empty ETag it writes only an object that does not exist. Otherwise it
	// returns ErrConflict. If S3 did not decide a race between two writers, it returns ErrConflict with the code
	// ConditionalRequestConflict. Then the object may not exist.
	Replace(ctx context.Context, key string, body []byte, etag string) (newETag string, err error)
	// DeleteIf deletes an object only if it has the ETag. A changed or absent object is no error.
	DeleteIf(ctx context.Context, key, etag string) error
	// List returns the objects with a prefix, ordered by key.
	List(ctx context.Context, prefix string) ([]Entry, error)
}

// Object is the content and the identity of an object.
type Object struct {
	Body []byte
	// Version is the version ID in S3.
	Version string
	// ETag is what conditional writes compare.
	ETag string
	// Modified is when this version was written, in whole seconds. S3 sets it, so it orders the versions of an object.
	Modified time.Time
}

// Entry is an object in a listing.
type Entry struct {
	Key string
	// Modified is when the newest version was written, in whole seconds.
	Modified time.Time
	// Size in bytes.
	Size int64
	// ETag is what conditional writes compare.
	ETag string
}

// TooLarge reports that an object exceeds the limit of its reader.
type TooLarge struct {
	Key         string
	Size, Limit int64
	// Version is the version ID of the object.
	Version string
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s has %d bytes: at most %d are allowed", e.Key, e.Size, e.Limit)
}
