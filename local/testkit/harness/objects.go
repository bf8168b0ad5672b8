package harness

// Calls about objects, which are half of all calls of lives. The first attempt of one is written, and its success
// read, as the SDK does it, without all that the SDK has around that. Any other end of it is the SDK's to read, as
// that of its own first attempt, and to try again.

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// objectCalls are a client's calls about objects.
type objectCalls struct {
	*awss3.Client
	*prepared
	answers *answers
}

func (a *Account) objectCalls(client *awss3.Client, p *prepared) objectCalls {
	return objectCalls{client, p, &a.answers}
}

// try makes the first attempt of a call; it is nil when that is the SDK's. rest is what of its input is not written into the request.
func (c objectCalls) try(ctx context.Context, operation string, rest any, bucket, key *string, r *http.Request) *attempt {
	if !learnt.wrote(operation) || bucket == nil || !reflect.ValueOf(rest).Elem().IsZero() {
		return nil
	}
	path := "/" + *bucket
	if key != nil {
		path += "/" + *key
	}
	if *bucket == "" || !plainPath(path) {
		return nil
	}
	r.URL.Path = path
	return c.attempt(ctx, r)
}

// plainPath says that a path is written as it is.
func plainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}

// escaped is a value of a query.
func escaped(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func (c objectCalls) GetObject(ctx context.Context, in *awss3.GetObjectInput, o ...func(*awss3.Options)) (*awss3.GetObjectOutput, error) {
	rest, query, header := *in, "x-id=GetObject", http.Header{}
	rest.Bucket, rest.Key, rest.IfNoneMatch, rest.VersionId = nil, nil, nil, nil
	if in.VersionId != nil {
		query = "versionId=" + escaped(*in.VersionId) + "&" + query
	}
	if in.IfNoneMatch != nil {
		header["If-None-Match"] = []string{*in.IfNoneMatch}
	}
	made := (*attempt)(nil)
	if aws.ToString(in.Key) != "" {
		made = c.try(ctx, "GetObject", &rest, in.Bucket, in.Key, &http.Request{
			Method: http.MethodGet, URL: &url.URL{RawQuery: query}, Header: header,
		})
	}
	if made != nil && made.ok() {
		if out := object(&smithyhttp.Response{Response: made.response}); out != nil {
			return out, nil
		}
	}
	return goOn(ctx, c.prepared, "GetObject", in, made, func(ctx context.Context) (*awss3.GetObjectOutput, error) {
		return c.Client.GetObject(ctx, in, o...)
	})
}

func (c objectCalls) ListObjectsV2(ctx context.Context, in *awss3.ListObjectsV2Input,
	o ...func(*awss3.Options)) (*awss3.ListObjectsV2Output, error) {
	rest, query := *in, "list-type=2"
	rest.Bucket, rest.Prefix, rest.ContinuationToken, rest.EncodingType = nil, nil, nil, ""
	if in.EncodingType != "" {
		query = "encoding-type=" + string(in.EncodingType) + "&" + query
	}
	if in.ContinuationToken != nil {
		query = "continuation-token=" + escaped(*in.ContinuationToken) + "&" + query
	}
	if in.Prefix != nil {
		query += "&prefix=" + escaped(*in.Prefix)
	}
	made := c.try(ctx, "ListObjectsV2", &rest, in.Bucket, nil, &http.Request{
		Method: http.MethodGet, URL: &url.URL{RawQuery: query}, Header: http.Header{},
	})
	if made != nil && made.ok() {
		if known := c.answers.known("S3 ListObjectsV2", made.response.Body); known != nil {
			return known.(*awss3.ListObjectsV2Output), nil
		}
	}
	return goOn(ctx, c.prepared, "ListObjectsV2", in, made, func(ctx context.Context) (*awss3.ListObjectsV2Output, error) {
		return c.Client.ListObjectsV2(ctx, in, o...)
	})
}

func (c objectCalls) PutObject(ctx context.Context, in *awss3.PutObjectInput, o ...func(*awss3.Options)) (*awss3.PutObjectOutput, error) {
	rest, header := *in, http.Header{"Content-Type": {"application/octet-stream"}}
	rest.Bucket, rest.Key, rest.IfMatch, rest.IfNoneMatch, rest.Body = nil, nil, nil, nil, nil
	if in.IfMatch != nil {
		header["If-Match"] = []string{*in.IfMatch}
	}
	if in.IfNoneMatch != nil {
		header["If-None-Match"] = []string{*in.IfNoneMatch}
	}
	made := (*attempt)(nil)
	if body, inMemory := in.Body.(interface {
		io.ReadSeeker
		Len() int
	}); inMemory && body.Len() > 0 && aws.ToString(in.Key) != "" {
		from, _ := body.Seek(0, io.SeekCurrent)
		made = c.try(ctx, "PutObject", &rest, in.Bucket, in.Key, &http.Request{
			Method: http.MethodPut, URL: &url.URL{RawQuery: "x-id=PutObject"}, Header: header, Body: io.NopCloser(body),
			ContentLength: int64(body.Len()),
		})
		_, _ = body.Seek(from, io.SeekStart) // in memory
	}
	if made != nil && made.ok() {
		if out := written(made.response.Header); out != nil {
			return out, nil
		}
	}
	return goOn(ctx, c.prepared, "PutObject", in, made, func(ctx context.Context) (*awss3.PutObjectOutput, error) {
		return c.Client.PutObject(ctx, in, o...)
	})
}

// written is the answer of an object's write; nil when it says anything else.
func written(header http.Header) *awss3.PutObjectOutput {
	out := &awss3.PutObjectOutput{}
	for name, values := range header {
		switch value := values[0]; name {
		case "Etag":
			out.ETag = &value
		case "X-Amz-Version-Id":
			out.VersionId = &value
		case "Last-Modified", "Content-Length": // which the SDK does not read
		default:
			return nil
		}
	}
	return out
}

func (c objectCalls) DeleteObject(ctx context.Context, in *awss3.DeleteObjectInput, o ...func(*awss3.Options)) (*awss3.DeleteObjectOutput,
	error) {
	return goOn(ctx, c.prepared, "DeleteObject", in, nil, func(ctx context.Context) (*awss3.DeleteObjectOutput, error) {
		return c.Client.DeleteObject(ctx, in, o...)
	})
}
