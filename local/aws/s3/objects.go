package s3

// Objects for other services in this process. Calls are authorized for the caller exactly as over HTTP.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// Get reads an object as the caller, or one version of it if versionID is not empty. Errors are *wire.Error with S3's
// codes: AccessDenied, NoSuchBucket, NoSuchKey, NoSuchVersion.
func (s *Service) Get(ctx context.Context, caller iam.Caller, bucket, key, versionID string) (Object, error) {
	action, context := "GetObject", map[string]string(nil)
	if versionID != "" {
		action, context = "GetObjectVersion", map[string]string{"s3:VersionId": versionID}
	}
	if err := s.authorize(caller, action, bucket, key, context); err != nil {
		return Object{}, err
	}
	in := &awss3.GetObjectInput{Bucket: &bucket, Key: &key}
	if versionID != "" {
		in.VersionId = &versionID
	}
	out, err := s.client.GetObject(ctx, in)
	if err != nil {
		err = s.fromGateway(err)
		var e *wire.Error
		if errors.As(err, &e) && e.Code == "NoSuchKey" {
			if denied := s.authorize(caller, "ListBucket", bucket, "", nil); denied != nil {
				return Object{}, denied
			}
		}
		return Object{}, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return Object{}, err
	}
	return Object{Body: body, ETag: aws.ToString(out.ETag), VersionID: aws.ToString(out.VersionId)}, nil
}

// ReadObject returns the body that Get reads.
func (s *Service) ReadObject(ctx context.Context, caller iam.Caller, bucket, key, versionID string) ([]byte, error) {
	object, err := s.Get(ctx, caller, bucket, key, versionID)
	return object.Body, err
}

// Peek returns the newest version of an object without a caller, for tests and displays that observe the account. It
// finds nothing in a store on disk.
func (s *Service) Peek(bucket, key string) (body []byte, found bool) {
	m, ok := s.transport.(*memory)
	if !ok {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.buckets[bucket]
	if b == nil || len(b.objects[key]) == 0 || b.objects[key][0].marker {
		return nil, false
	}
	return b.objects[key][0].body, true
}

// Put writes an object as the caller.
func (s *Service) Put(ctx context.Context, caller iam.Caller, bucket, key string, body []byte) (Object, error) {
	if err := s.authorize(caller, "PutObject", bucket, key, nil); err != nil {
		return Object{}, err
	}
	out, err := s.client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(body)})
	if err != nil {
		return Object{}, s.fromGateway(err)
	}
	return Object{Body: body, ETag: aws.ToString(out.ETag), VersionID: aws.ToString(out.VersionId)}, nil
}

// fromGateway converts an error of the SDK to *wire.Error.
func (s *Service) fromGateway(err error) error {
	var known smithy.APIError
	if !errors.As(err, &known) {
		return err
	}
	e := &wire.Error{Code: known.ErrorCode(), Message: known.ErrorMessage(), Status: 400}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		e.Status = response.HTTPStatusCode()
	}
	return e
}

func randomSecret() string { return rand.Text() + rand.Text() }
