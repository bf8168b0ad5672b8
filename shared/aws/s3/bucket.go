// Package s3 reads and writes objects in S3. Bucket implements store.Objects. It decides nothing and retries nothing beyond the SDK.
// Functions, the CLI and the local account's tests build it.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/store"
)

// NewClient returns a client that uses paths instead of host names for buckets when the configuration names an endpoint. A local
// endpoint has no host name for each bucket.
func NewClient(cfg aws.Config) *awss3.Client {
	return awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil })
}

// Bucket is one S3 bucket.
type Bucket struct {
	client client
	name   string
}

var _ store.Objects = &Bucket{}

// NewBucket returns the bucket with that name.
func NewBucket(client *awss3.Client, name string) *Bucket { return &Bucket{newClient(client), name} }

// Name returns the bucket's name.
func (b *Bucket) Name() string { return b.name }

// Get implements store.Objects. It checks the size before it reads the content.
func (b *Bucket) Get(ctx context.Context, key string, limit int64) (store.Object, error) {
	return b.get(ctx, &awss3.GetObjectInput{Bucket: &b.name, Key: &key}, limit)
}

// GetUnless implements store.Objects.
func (b *Bucket) GetUnless(ctx context.Context, key, etag string, limit int64) (object store.Object, changed bool, err error) {
	in := &awss3.GetObjectInput{Bucket: &b.name, Key: &key}
	if etag != "" {
		in.IfNoneMatch = &etag
	}
	object, err = b.get(ctx, in, limit)
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotModified {
		return store.Object{}, false, nil
	}
	return object, err == nil, err
}

// GetVersion implements store.Objects.
func (b *Bucket) GetVersion(ctx context.Context, key, version string, limit int64) (store.Object, error) {
	return b.get(ctx, &awss3.GetObjectInput{Bucket: &b.name, Key: &key, VersionId: &version}, limit)
}

func (b *Bucket) get(ctx context.Context, in *awss3.GetObjectInput, limit int64) (store.Object, error) {
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		switch fault.Code(err) {
		case "NoSuchKey", "NoSuchVersion", "NotFound", "MethodNotAllowed": // MethodNotAllowed: the version is a delete marker
			return store.Object{}, fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, store.ErrNotFound)
		}
		return store.Object{}, fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, err)
	}
	defer out.Body.Close()
	version := aws.ToString(out.VersionId)
	size := aws.ToInt64(out.ContentLength)
	if size > limit {
		return store.Object{}, &store.TooLarge{Key: *in.Key, Size: size, Limit: limit, Version: version}
	}
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := body.ReadFrom(out.Body); err != nil {
		return store.Object{}, &fault.Transient{Cause: fmt.Errorf("reading s3://%s/%s: %w", b.name, *in.Key, err)}
	}
	return store.Object{Body: body.Bytes(), Version: version, ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}, nil
}

// Put implements store.Objects.
func (b *Bucket) Put(ctx context.Context, key string, body []byte) (string, error) {
	out, err := b.client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(body)})
	if err != nil {
		return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
	}
	return aws.ToString(out.ETag), nil
}

// Replace implements store.Objects.
func (b *Bucket) Replace(ctx context.Context, key string, body []byte, etag string) (string, error) {
	in := &awss3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(body)}
	if etag == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &etag
	}
	out, err := b.client.PutObject(ctx, in)
	if err != nil {
		switch fault.Code(err) {
		// S3 returns NoSuchKey for If-Match on a deleted object. It returns ConditionalRequestConflict for an undecided race.
		// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
		case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey":
			return "", fmt.Errorf("writing s3://%s/%s: %w (%w)", b.name, key, store.ErrConflict, err)
		}
		return "", fmt.Errorf("writing s3://%s/%s: %w", b.name, key, err)
	}
	return aws.ToString(out.ETag), nil
}

// DeleteIf implements store.Objects.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
func (b *Bucket) DeleteIf(ctx context.Context, key, etag string) error {
	_, err := b.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &b.name, Key: &key, IfMatch: &etag})
	switch fault.Code(err) {
	case "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "NotFound":
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting s3://%s/%s: %w", b.name, key, err)
	}
	return nil
}

// List implements store.Objects.
func (b *Bucket) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	var entries []store.Entry
	// A key may contain characters that XML does not allow. Without URL encoding, one such key makes the whole listing unreadable.
	// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
	pages := awss3.NewListObjectsV2Paginator(b.client.ListObjectsV2, &awss3.ListObjectsV2Input{
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
			entries = append(entries, store.Entry{
				Key: key, Modified: aws.ToTime(object.LastModified), Size: aws.ToInt64(object.Size), ETag: aws.ToString(object.ETag),
			})
		}
	}
	return entries, nil
}
