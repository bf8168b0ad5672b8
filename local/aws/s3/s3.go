package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/aws/tagging"
	"github.com/drover-run/drover/local/engine/clock"
	"github.com/drover-run/drover/local/engine/wire"
)

// Emit sends an event of source aws.s3 to EventBridge.
type Emit func(ctx context.Context, detailType string, detail any, resources []string)

// Service is S3 in one account.
type Service struct {
	identities *iam.Service
	clock      *clock.Clock
	emit       Emit
	sequence   atomic.Int64
	always     map[string]string // condition keys of every request

	gateway   *s3api.S3ApiServer
	socket    string
	transport http.RoundTripper
	// client calls the gateway as its root user and bypasses the front: authorize the caller first.
	client *awss3.Client

	mu      sync.Mutex
	buckets map[string]*bucket
}

// bucket is the configuration that versitygw does not store.
type bucket struct {
	created     time.Time
	tags        map[string]string
	policy      *iam.Policy
	policyText  string
	eventBridge bool
	encryption  *encryption
	lifecycle   *lifecycle
	publicBlock *publicAccessBlock
	ownership   string
}

// New starts S3 with its data in dir, which must be absolute. It changes the working directory of the process. It can be
// called once in a process until Close. emit may be nil.
func New(identities *iam.Service, c *clock.Clock, dir string, emit Emit) (*Service, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("starting S3: the data directory %q is not absolute", dir)
	}
	if emit == nil {
		emit = func(context.Context, string, any, []string) {}
	}
	s := &Service{identities: identities, clock: c, emit: emit, buckets: map[string]*bucket{}, always: always(identities)}
	if err := s.start(dir); err != nil {
		return nil, fmt.Errorf("starting S3: %w", err)
	}
	return s, nil
}

// NewInMemory returns an S3 that keeps its objects in memory and opens no sockets. It supports the operations that
// drover uses: see memory.go. A process can have many. emit may be nil.
func NewInMemory(identities *iam.Service, c *clock.Clock, emit Emit) *Service {
	if emit == nil {
		emit = func(context.Context, string, any, []string) {}
	}
	s := &Service{identities: identities, clock: c, emit: emit, buckets: map[string]*bucket{}, always: always(identities)}
	s.transport = &memory{s: s, buckets: map[string]*memoryBucket{}}
	s.client = s.gatewayClient("root", "secret")
	return s
}

func always(identities *iam.Service) map[string]string {
	return map[string]string{"aws:ResourceAccount": identities.Account, "s3:ResourceAccount": identities.Account, "s3:TlsVersion": "1.3"}
}

// gatewayClient returns a client of the store behind the front.
func (s *Service) gatewayClient(access, secret string) *awss3.Client {
	return awss3.New(awss3.Options{
		Region: s.identities.Region, BaseEndpoint: aws.String("http://gateway"), UsePathStyle: true,
		HTTPClient:  &http.Client{Transport: s.transport},
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""), RetryMaxAttempts: 1,
	})
}

func (s *Service) start(dir string) error {
	data, versions, sidecar := filepath.Join(dir, "data"), filepath.Join(dir, "versions"), filepath.Join(dir, "metadata")
	for _, d := range []string{data, versions, sidecar} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	options := posix.PosixOpts{VersioningDir: versions, Concurrency: 256, CopyObjectThreshold: 5 << 30, ForceNoObjLockFile: true}
	var metadata meta.MetadataStorer = meta.XattrMeta{}
	if err := (meta.XattrMeta{}).Test(data); err != nil { // the file system has no extended attributes
		storer, err := meta.NewSideCar(sidecar)
		if err != nil {
			return err
		}
		metadata, options.SideCarDir = storer, sidecar
	}
	files, err := quietly(func() (*posix.Posix, error) { return posix.New(data, metadata, options) })
	if err != nil {
		return err
	}
	root := middlewares.RootUserConfig{Access: "root", Secret: randomSecret()}
	listening := make(chan struct{})
	s.gateway, err = s3api.New(&store{Posix: files, s: s}, root, s.identities.Region, accounts{s.identities}, nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithConcurrencyLimiter(1024, 1024), s3api.WithMpMaxParts(10000),
		s3api.WithHostStyle("localhost"), s3api.WithOnListen(func() { close(listening) }))
	if err != nil {
		return err
	}
	// The socket is in a private directory: only this process can bypass the front.
	private, err := os.MkdirTemp("", "s3-")
	if err != nil {
		return err
	}
	s.socket = filepath.Join(private, "gateway.sock")
	s.transport = &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", s.socket)
		},
	}
	s.client = s.gatewayClient(root.Access, root.Secret)
	failed := make(chan error, 1)
	go func() { failed <- s.gateway.ServeMultiPort([]string{s.socket}) }()
	select {
	case <-listening:
		return nil
	case err := <-failed:
		return fmt.Errorf("the gateway ended: %w", err)
	}
}

// quietly discards versitygw's messages on standard output while do runs.
func quietly[T any](do func() (T, error)) (T, error) {
	stdout := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		os.Stdout = null
		defer func() { os.Stdout = stdout; _ = null.Close() }()
	}
	return do()
}

// Close stops the gateway. The data remains on disk.
func (s *Service) Close() error {
	if s.gateway == nil {
		return nil
	}
	s.transport.(*http.Transport).CloseIdleConnections()
	err := s.gateway.ShutDown()
	return errors.Join(err, os.RemoveAll(filepath.Dir(s.socket)))
}

// Object is one version of an object.
type Object struct {
	Body []byte
	// ETag includes its quotes. VersionID is empty in buckets without versions.
	ETag, VersionID string
}

// Tagged returns the buckets with their tags.
func (s *Service) Tagged(context.Context) []tagging.Tagged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []tagging.Tagged
	for name, b := range s.buckets {
		list = append(list, tagging.Tagged{ARN: s.arn(name, ""), Tags: b.tags})
	}
	return list
}

func (s *Service) arn(bucket, key string) string {
	if key != "" {
		bucket += "/" + key
	}
	return "arn:" + s.identities.Partition + ":s3:::" + bucket
}

// config returns a bucket's configuration. Buckets created by the API get one at their first use.
func (s *Service) config(name string) *bucket {
	b, ok := s.buckets[name]
	if !ok {
		b = &bucket{created: s.clock.Now()}
		s.buckets[name] = b
	}
	return b
}

func (s *Service) policyOf(name string) *iam.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.buckets[name]; ok {
		return b.policy
	}
	return nil
}

func (s *Service) sendsEvents(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.buckets[name]
	return ok && b.eventBridge
}

// authorize evaluates identity policies and the bucket policy. action has no prefix.
func (s *Service) authorize(caller iam.Caller, action, bucket, key string, context map[string]string) error {
	full := s.always
	if len(context) > 0 {
		full = maps.Clone(s.always)
		maps.Copy(full, context)
	}
	resource := s.arn(bucket, key)
	if bucket == "" {
		resource = "*"
	}
	return caller.AuthorizeWith("s3:"+action, resource, full, s.policyOf(bucket))
}

// Fail answers a request with an error in S3's format.
func (s *Service) Fail(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	e := translate(err)
	var body strings.Builder
	// Strings can always be encoded.
	_ = xml.NewEncoder(&body).Encode(struct {
		XMLName                                    xml.Name `xml:"Error"`
		Code, Message, Resource, RequestId, HostId string
	}{Code: e.Code, Message: e.Message, Resource: r.URL.Path, RequestId: requestID, HostId: "local"})
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", requestID)
	w.WriteHeader(e.HTTPStatus())
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(xml.Header + body.String())) // fails only if the client disconnected
	}
}

// translate replaces the codes of authentication errors by those of S3.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList
func translate(err error) *wire.Error {
	var e *wire.Error
	if !errors.As(err, &e) {
		var known smithy.APIError
		if errors.As(err, &known) {
			return &wire.Error{Code: known.ErrorCode(), Message: known.ErrorMessage(), Status: 400}
		}
		return &wire.Error{Code: "InternalError", Message: err.Error(), Status: 500}
	}
	t := *e
	switch e.Code {
	case "InvalidClientTokenId":
		t.Code, t.Message, t.Status = "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403
	case "ExpiredToken":
		t.Message, t.Status = "The provided token has expired.", 400
	case "SignatureDoesNotMatch":
		switch {
		case strings.HasPrefix(e.Message, "Signature expired") || strings.HasPrefix(e.Message, "Signature not yet current"):
			t.Code, t.Message = "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
		}
	case "IncompleteSignature":
		t.Code, t.Status = "AuthorizationHeaderMalformed", 400
	}
	return &t
}

// ParseURL returns bucket, key and version of an object's URL in path style or host style, as in CloudFormation's
// TemplateURL.
func ParseURL(text string) (bucket, key, versionID string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", "", "", wire.Errorf("ValidationError", "S3 error: %q is not the URL of an object", text)
	}
	path := strings.TrimPrefix(u.Path, "/")
	host := u.Hostname()
	first, rest, dotted := strings.Cut(host, ".")
	pathStyle := net.ParseIP(host) != nil || !dotted || first == "s3" || strings.HasPrefix(first, "s3-")
	if pathStyle {
		bucket, key, _ = strings.Cut(path, "/")
	} else if i := strings.Index(host, ".s3"); i > 0 {
		bucket, key = host[:i], path
	} else if rest == "localhost" {
		bucket, key = first, path
	}
	if bucket == "" || key == "" {
		return "", "", "", wire.Errorf("ValidationError", "S3 error: %q is not the URL of an object", text)
	}
	return bucket, key, u.Query().Get("versionId"), nil
}
