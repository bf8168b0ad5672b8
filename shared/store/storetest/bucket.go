// Package storetest provides store.Objects in memory for tests. Bucket keeps versions, delete markers and ETags and decides conditional
// writes as S3 does. Conformance runs the same tests against Bucket and shared/aws/s3.
package storetest

import (
	"context"
	"crypto/md5" // S3 uses it for ETags
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/store"
)

// Bucket is a versioned bucket in memory. It is safe for concurrent use.
type Bucket struct {
	// OnCall is called before each call, without a lock. The call returns its error as if S3 had returned it. OnCall may call the bucket's
	// methods, for example to write an object between a read and a write.
	OnCall func(Call) error
	// Now is the time of writes.
	Now func() time.Time

	name string

	mu       sync.Mutex
	written  int
	versions map[string][]version // by key, oldest first
	calls    []Call
}

// Call is a call of a method of store.Objects.
type Call struct {
	// Operation is Get, Put, Delete or List.
	Operation string
	// Key of the object, or the prefix of a listing.
	Key string
	// Conditional reports whether a write or deletion had a condition.
	Conditional bool
}

type version struct {
	store.Object
	deleted bool
}

var _ store.Objects = &Bucket{}

// NewBucket returns an empty bucket.
func NewBucket(name string) *Bucket {
	return &Bucket{name: name, Now: time.Now, versions: map[string][]version{}}
}

// Refusal is an error of S3 with its code.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// ErrorCode returns the code. fault.Code reads it.
func (r Refusal) ErrorCode() string { return string(r) }

// Refuse lets every call of an operation fail with a code. It returns the number of these calls.
func (b *Bucket) Refuse(operation, code string) (count *int) {
	count = new(int)
	b.OnCall = func(call Call) error {
		if call.Operation != operation {
			return nil
		}
		*count++
		return Refusal(code)
	}
	return count
}

// Once calls do before the next call of an operation only.
func (b *Bucket) Once(operation string, do func(key string)) {
	b.OnCall = func(call Call) error {
		if call.Operation == operation {
			b.OnCall = nil
			do(call.Key)
		}
		return nil
	}
}

// Upload writes an object as a user does and returns its version. It is not among the calls.
func (b *Bucket) Upload(key, body string) (versionID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(key, []byte(body)).Version
}

// Delete deletes an object as a user does: it adds a delete marker. It is not among the calls.
func (b *Bucket) Delete(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delete(key)
}

// Keys returns the keys of all objects, ordered.
func (b *Bucket) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys("")
}

// Clone returns a bucket with the same objects and versions. It has no hooks.
func (b *Bucket) Clone() *Bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := NewBucket(b.name)
	out.written = b.written
	for key, all := range b.versions {
		out.versions[key] = slices.Clone(all)
	}
	return out
}

// Body returns the content of an object, nil if it does not exist.
func (b *Bucket) Body(key string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest, _ := b.newest(key)
	return newest.Body
}

// Written returns the number of versions, without delete markers, that were written.
func (b *Bucket) Written() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.written
}

// Calls returns the calls so far.
func (b *Bucket) Calls() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// Unconditional returns the keys of the writes and deletions without a condition.
func (b *Bucket) Unconditional() (keys []string) {
	for _, call := range b.Calls() {
		if !call.Conditional && (call.Operation == "Put" || call.Operation == "Delete") {
			keys = append(keys, call.Key)
		}
	}
	return keys
}

// Name implements store.Objects.
func (b *Bucket) Name() string { return b.name }

// Get implements store.Objects.
func (b *Bucket) Get(_ context.Context, key string, limit int64) (store.Object, error) {
	return b.get(key, limit, func() (version, bool) { return b.newest(key) })
}

// GetUnless implements store.Objects.
func (b *Bucket) GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error) {
	same := false
	object, err = b.get(key, limit, func() (version, bool) {
		newest, found := b.newest(key)
		if same = found && newest.ETag == etag; same {
			newest.Body = nil
		}
		return newest, found
	})
	if same || err != nil {
		return store.Object{}, false, err
	}
	return object, true, nil
}

// GetVersion implements store.Objects.
func (b *Bucket) GetVersion(_ context.Context, key, versionID string, limit int64) (store.Object, error) {
	return b.get(key, limit, func() (version, bool) {
		i := slices.IndexFunc(b.versions[key], func(v version) bool { return v.Version == versionID })
		if i < 0 {
			return version{}, false
		}
		return b.versions[key][i], !b.versions[key][i].deleted
	})
}

func (b *Bucket) get(key string, limit int64, find func() (version, bool)) (store.Object, error) {
	err := b.begin(Call{Operation: "Get", Key: key})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		v, found := find()
		size := int64(len(v.Body))
		switch {
		case found && size > limit:
			return store.Object{}, &store.TooLarge{Key: key, Size: size, Limit: limit, Version: v.Version}
		case found:
			v.Body = append(make([]byte, 0, size), v.Body...)
			return v.Object, nil
		}
		err = Refusal("NoSuchKey")
	}
	switch fault.Code(err) {
	case "NoSuchKey", "NoSuchVersion", "NotFound", "MethodNotAllowed":
		err = store.ErrNotFound
	}
	return store.Object{}, fmt.Errorf("reading s3://%s/%s: %w", b.name, key, err)
}

// Put implements store.Objects.
func (b *Bucket) Put(_ context.Context, key string, body []byte) (string, error) {
	if err := b.begin(Call{Operation: "Put", Key: key}); err != nil {
		return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(key, body).ETag, nil
}

// Replace implements store.Objects.
func (b *Bucket) Replace(_ context.Context, key string, body []byte, etag string) (string, error) {
	err := b.begin(Call{Operation: "Put", Key: key, Conditional: true})
	b.mu.Lock()
	defer b.mu.Unlock()
	newest, found := b.newest(key)
	switch {
	case err != nil:
	case etag != "" && !found:
		err = Refusal("NoSuchKey")
	case newest.ETag != etag:
		err = Refusal("PreconditionFailed")
	default:
		return b.write(key, body).ETag, nil
	}
	switch fault.Code(err) {
	case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey":
		err = fmt.Errorf("%w (%w)", store.ErrConflict, err)
	}
	return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
}

// DeleteIf implements store.Objects.
func (b *Bucket) DeleteIf(_ context.Context, key, etag string) error {
	err := b.begin(Call{Operation: "Delete", Key: key, Conditional: true})
	b.mu.Lock()
	defer b.mu.Unlock()
	switch fault.Code(err) {
	case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "NotFound":
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting s3://%s/%s: %w", b.name, key, err)
	}
	if newest, found := b.newest(key); found && newest.ETag == etag {
		b.delete(key)
	}
	return nil
}

// List implements store.Objects.
func (b *Bucket) List(_ context.Context, prefix string) ([]store.Entry, error) {
	if err := b.begin(Call{Operation: "List", Key: prefix}); err != nil {
		return nil, fmt.Errorf("listing s3://%s/%s: %w", b.name, prefix, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var entries []store.Entry
	for _, key := range b.keys(prefix) {
		newest, _ := b.newest(key)
		entries = append(entries, store.Entry{Key: key, Modified: newest.Modified, Size: int64(len(newest.Body)), ETag: newest.ETag})
	}
	return entries, nil
}

func (b *Bucket) begin(call Call) error {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	b.mu.Unlock()
	if b.OnCall == nil {
		return nil
	}
	return b.OnCall(call)
}

func (b *Bucket) newest(key string) (newest version, found bool) {
	all := b.versions[key]
	if len(all) == 0 || all[len(all)-1].deleted {
		return version{}, false
	}
	return all[len(all)-1], true
}

func (b *Bucket) keys(prefix string) (keys []string) {
	for key := range b.versions {
		if _, found := b.newest(key); found && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (b *Bucket) write(key string, body []byte) version {
	b.written++
	v := version{
		Object: store.Object{
			Body: slices.Clone(body), Version: fmt.Sprintf("version-%d", b.written), ETag: fmt.Sprintf(`"%x"`, md5.Sum(body)),
			Modified: b.Now().UTC().Truncate(time.Second),
		},
	}
	b.versions[key] = append(b.versions[key], v)
	return v
}

func (b *Bucket) delete(key string) {
	if _, found := b.newest(key); found {
		b.versions[key] = append(b.versions[key], version{deleted: true})
	}
}
