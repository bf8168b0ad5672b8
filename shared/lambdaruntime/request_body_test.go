package lambdaruntime

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// lateConn returns from a write after the response has arrived, as on a machine without a free processor.
type lateConn struct{ net.Conn }

func (c lateConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	time.Sleep(50 * time.Millisecond)
	return n, err
}

// largeResponses is an endpoint that responds with more than the client's buffers hold. It responds slowly, so that the client is still
// reading when its write returns.
func largeResponses(t *testing.T, received *atomic.Int64) aws.Config {
	part := strings.Repeat("<member><StackName>"+strings.Repeat("x", 1000)+"</StackName></member>", 300)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Store(n)
		_, _ = w.Write([]byte(`<R><DescribeStackEventsResult><StackEvents>`))
		for range 2 {
			_, _ = w.Write([]byte(part))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
		_, _ = w.Write([]byte(`</StackEvents></DescribeStackEventsResult></R>`))
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return lateConn{conn}, err
			}
		}),
	}
}

func TestKeepConnections(t *testing.T) {
	var received atomic.Int64
	cfg := largeResponses(t, &received)
	KeepConnections(&cfg)
	t.Run("reads a large response that begins before the write returns", func(t *testing.T) {
		client, in := cloudformation.NewFromConfig(cfg), &cloudformation.DescribeStackEventsInput{StackName: aws.String("s")}
		read, err := client.DescribeStackEvents(t.Context(), in)
		require.NoError(t, err)
		require.Len(t, read.StackEvents, 600)
	})
	t.Run("sends whole bodies", func(t *testing.T) {
		client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		for _, size := range []int{0, 1, 100_000} {
			body := strings.NewReader(strings.Repeat("b", size))
			in := &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: body}
			_, err := client.PutObject(t.Context(), in)
			require.NoError(t, err)
			require.EqualValues(t, size, received.Load())
		}
	})
}
