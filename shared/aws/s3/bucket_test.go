package s3_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/store"
	"github.com/drover-run/drover/shared/store/storetest"
)

// serve returns the bucket "specs" of a server.
func serve(t *testing.T, answer http.HandlerFunc) *s3.Bucket {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := s3.NewClient(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}})
	return s3.NewBucket(awss3.New(client.Options(), func(o *awss3.Options) { o.RetryMaxAttempts, o.Retryer = 1, aws.NopRetryer{} }), "specs")
}

// TestBucketRefusals tests the codes of S3. The local account tests the rest of the table, over its S3: see local/aws/s3.
func TestBucketRefusals(t *testing.T) {
	status := map[string]int{
		"AccessDenied": http.StatusForbidden, "SlowDown": http.StatusServiceUnavailable, "PreconditionFailed": http.StatusPreconditionFailed,
		"ConditionalRequestConflict": http.StatusConflict, "MethodNotAllowed": http.StatusMethodNotAllowed,
	}
	storetest.Refusals(t, func(t *testing.T, code string) store.Objects {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(cmp.Or(status[code], http.StatusNotFound))
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
		})
	})
}

func TestNewClient(t *testing.T) {
	require.False(t, s3.NewClient(aws.Config{Region: "eu-central-1"}).Options().UsePathStyle)
	require.True(t, s3.NewClient(aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String("http://127.0.0.1:1")}).Options().UsePathStyle)
}

func TestBucketReads(t *testing.T) {
	t.Run("report an unchanged object without its content", func(t *testing.T) {
		b := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
			}
		})
		object, changed, err := b.GetUnless(t.Context(), "a", `"1"`, 10)
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, store.Object{}, object)
	})
	t.Run("may be retried when the content is cut off", func(t *testing.T) {
		b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			fmt.Fprint(w, "cut")
		})
		_, err := b.Get(t.Context(), "a", 10)
		require.Equal(t, "Transient", fault.NameOf(err))
		require.ErrorContains(t, err, "s3://specs/a")
	})
	t.Run("do not read the content over the limit", func(t *testing.T) {
		b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Version-Id", "v1")
			fmt.Fprint(w, "12345")
		})
		_, err := b.Get(t.Context(), "a", 4)
		require.Equal(t, &store.TooLarge{Key: "a", Size: 5, Limit: 4, Version: "v1"}, err)
	})
}

// TestAnyKeyCanBeListed tests a key with a character that XML does not allow. S3 returns it unchanged unless the request wants encoded
// keys. https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
func TestAnyKeyCanBeListed(t *testing.T) {
	keys := []string{"clusters/\x1b[31mdemo.yaml", "clusters/a b+c%2f&<ü>.yaml", "clusters/demo.yaml"}
	b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		encode, encoding := func(key string) string {
			return strings.NewReplacer("&", "&amp;", "<", "&lt;", "\x1b", "&#x1b;").Replace(key)
		}, ""
		if r.URL.Query().Get("encoding-type") == "url" {
			encode = func(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/") }
			encoding = "<EncodingType>url</EncodingType>"
		}
		fmt.Fprintf(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s`, encoding)
		for _, key := range keys {
			fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents>", encode(key))
		}
		fmt.Fprint(w, "</ListBucketResult>")
	})
	entries, err := b.List(t.Context(), "clusters/")
	require.NoError(t, err)
	listed := []string{}
	for _, entry := range entries {
		listed = append(listed, entry.Key)
	}
	require.Equal(t, keys, listed)
}
