// Package store keeps drover's state in S3: objects, content-addressed objects, the lease and the status, all by
// conditional writes. There is no other database.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/drover-run/drover/shared/fault"
)

// ErrNotFound says that there is no such object.
var ErrNotFound = errors.New("no such object")

// ErrConflict says that somebody else wrote the object first.
var ErrConflict = errors.New("the object was changed by somebody else")

// Client is the subset of *s3.Client that buckets need.
type Client interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, options ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Bucket is one S3 bucket.
type Bucket struct {
	client Client
	name   string
}

// NewBucket returns the bucket of that name.
func NewBucket(client Client, name string) *Bucket { return &Bucket{client, name} }

// Name of the bucket.
func (b *Bucket) Name() string { return b.name }

// Object is an object's content and identity.
type Object struct {
	Body []byte
	// Version is S3's version id.
	Version string
	// ETag is what conditional writes compare.
	ETag string
}

// Get reads the newest version of an object of at most limit bytes; larger ones are a *TooLarge error, before they are
// read. An absent object is ErrNotFound.
func (b *Bucket) Get(ctx context.Context, key string, limit int64) (Object, error) {
	return b.get(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key}, limit)
}

// GetUnless is Get of an object that has not that ETag, or any with an empty one: changed is false, and nothing is read, when it has.
func (b *Bucket) GetUnless(ctx context.Context, key, etag string, limit int64) (object Object, changed bool, err error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if etag != "" {
		in.IfNoneMatch = &etag
	}
	object, err = b.get(ctx, in, limit)
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotModified {
		return Object{}, false, nil
	}
	return object, err == nil, err
}

// GetVersion reads one version of an object.
func (b *Bucket) GetVersion(ctx context.Context, key, version string, limit int64) (Object, error) {
	return b.get(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key, VersionId: &version}, limit)
}

// TooLarge says that an object is larger than it may be.
type TooLarge struct {
	Key         string
	Size, Limit int64
	// Version is S3's version id of the object.
	Version string
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s has %d bytes: at most %d are allowed", e.Key, e.Size, e.Limit)
}

func (b *Bucket) get(ctx context.Context, in *s3.GetObjectInput, limit int64) (Object, error) {
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		switch fault.Code(err) {
		case "NoSuchKey", "NoSuchVersion", "NotFound", "MethodNotAllowed": // the last: the version is a delete marker
			return Object{}, fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, ErrNotFound)
		}
		return Object{}, fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, err)
	}
	defer out.Body.Close()
	version := aws.ToString(out.VersionId)
	size := aws.ToInt64(out.ContentLength)
	if size > limit {
		return Object{}, &TooLarge{*in.Key, size, limit, version}
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := body.ReadFrom(out.Body); err != nil {
		return Object{}, &fault.Transient{Cause: fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, err)}
	}
	return Object{Body: body.Bytes(), Version: version, ETag: aws.ToString(out.ETag)}, nil
}

// PutOnce writes a content-addressed object unless it is there already.
func (b *Bucket) PutOnce(ctx context.Context, key string, body []byte) error {
	const attempts = 4
	var err error
	for range attempts {
		_, err = b.put(ctx, key, body, "")
		// Only the first says that it is there. A race that S3 did not decide leaves it absent, for all we know.
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

// Replace writes an object only if it still has that ETag, or, with an empty one, only if it is absent. Otherwise it
// returns ErrConflict. It returns the new ETag.
func (b *Bucket) Replace(ctx context.Context, key string, body []byte, etag string) (string, error) {
	return b.put(ctx, key, body, etag)
}

func (b *Bucket) put(ctx context.Context, key string, body []byte, etag string) (string, error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(body)}
	if etag == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &etag
	}
	out, err := b.client.PutObject(ctx, in)
	if err != nil {
		switch fault.Code(err) {
		// 404 answers If-Match on an object that was deleted meanwhile; 409 a race with another conditional write.
		// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
		case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey":
			return "", fmt.Errorf("writing s3://%s/%s: %w (%w)", b.name, key, ErrConflict, err)
		}
		return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
	}
	return aws.ToString(out.ETag), nil
}

// Put writes an object whatever is there and returns its ETag.
func (b *Bucket) Put(ctx context.Context, key string, body []byte) (string, error) {
	out, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(body)})
	if err != nil {
		return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
	}
	return aws.ToString(out.ETag), nil
}

// DeleteIf removes an object if it still has that ETag; one that is absent or was changed meanwhile is no error.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
func (b *Bucket) DeleteIf(ctx context.Context, key, etag string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key, IfMatch: &etag})
	switch fault.Code(err) {
	case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "NotFound":
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting s3://%s/%s: %w", b.name, key, err)
	}
	return nil
}

// Entry is an object in a listing.
type Entry struct {
	Key string
	// Modified is when the object's newest version was written.
	Modified time.Time
	// Size in bytes.
	Size int64
	// ETag is what conditional writes compare.
	ETag string
}

// List returns the objects with a prefix, in the order of their keys.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Entry, error) {
	var entries []Entry
	// A key may hold what XML cannot, and then its listing could not be read, nor any other key's: encoded, it can.
	// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
		Bucket: &b.name, Prefix: &prefix, EncodingType: types.EncodingTypeUrl,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing s3://%s/%s: %w", b.name, prefix, err)
		}
		for _, object := range page.Contents {
			key := aws.ToString(object.Key)
			if page.EncodingType == types.EncodingTypeUrl {
				if key, err = url.QueryUnescape(key); err != nil {
					return nil, fmt.Errorf("listing s3://%s/%s: %w", b.name, prefix, err)
				}
			}
			entries = append(entries, Entry{key, aws.ToTime(object.LastModified), aws.ToInt64(object.Size), aws.ToString(object.ETag)})
		}
	}
	return entries, nil
}
