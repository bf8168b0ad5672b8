package harness

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/wire"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/names"
)

// Turns go by what is called: a call that is written here is called what one of the SDK's is.
func TestCallsAboutObjectsAreWrittenAsTheSDKDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var turns []string
		a := StartWith(t, Options{Bubble: true, Turns: func(what string) func() {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(what, "plan ") {
				turns = append(turns, what)
			}
			return func() {}
		}})
		defer a.Close()
		cfg := a.Functions.config("plan")
		bucket, key := aws.String(StateBucket), aws.String("status/clusters/a-1_2~.json")
		ctx, i := a.Functions.begin(context.Background(), "plan", nil)
		defer a.Functions.end(i, nil)
		asked := func(c interface {
			GetObject(context.Context, *awss3.GetObjectInput, ...func(*awss3.Options)) (*awss3.GetObjectOutput, error)
			PutObject(context.Context, *awss3.PutObjectInput, ...func(*awss3.Options)) (*awss3.PutObjectOutput, error)
			ListObjectsV2(context.Context, *awss3.ListObjectsV2Input, ...func(*awss3.Options)) (*awss3.ListObjectsV2Output, error)
		}) []string {
			turns = nil // whatever is answered
			_, _ = c.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader([]byte("1"))})
			_, _ = c.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
			_, _ = c.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key, VersionId: aws.String("a b+c")})
			_, _ = c.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
				Bucket: bucket, Prefix: aws.String("status/"), ContinuationToken: aws.String("status/a b"),
			})
			_, _ = c.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: bucket})
			return turns
		}
		whole := cfg
		whole.APIOptions = nil
		want, lean := asked(lambdaruntime.S3(whole)), a.clientsOf(cfg).s3
		asked(lean) // by the SDK
		require.Len(t, want, 5)
		require.Equal(t, want, asked(lean))
	})
}

// A first attempt that fails is the SDK's to try again, and nothing is asked once more than it would.
func TestCallsAboutObjectsAreTriedAgain(t *testing.T) {
	bubble(t, func(a *Account) {
		client, bucket, key := a.clientsOf(a.Functions.config("plan")).s3, aws.String(StateBucket), aws.String(names.Status("x"))
		ctx := context.Background()
		put := func() (*awss3.PutObjectOutput, error) {
			return client.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader([]byte("all of it"))})
		}
		get := func() (*awss3.GetObjectOutput, error) {
			return client.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
		}
		for range 2 { // the first time by the SDK
			for failures, succeeds := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
				left := 0
				a.OnCall(func(endpoint.Call) error {
					if left--; left >= 0 {
						return &wire.Error{Code: "SlowDown", Message: "slower", Status: http.StatusServiceUnavailable}
					}
					return nil
				})
				for _, call := range []func() error{
					func() error { _, err := put(); return err },
					func() error {
						out, err := get()
						if err == nil {
							read, _ := io.ReadAll(out.Body)
							require.Equal(t, "all of it", string(read))
						}
						return err
					},
				} {
					left = failures
					mark, began := a.Calls.Mark(), time.Now()
					err := call()
					require.Len(t, a.Calls.Since(mark), min(failures+1, 3))
					require.Equal(t, failures > 0, time.Since(began) > 0, "it waits before it tries again")
					if require.Equal(t, succeeds, err == nil, "%d failures: %v", failures, err); err != nil {
						require.Equal(t, "SlowDown", fault.Code(err))
					}
				}
			}
		}
	})
}
