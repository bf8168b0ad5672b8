package lambda

// The service, its configuration and what it needs from other services.

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/clock"
)

// Roles provides the credentials of functions; a subset of *iam.Service.
type Roles interface {
	AssumeRoleAs(roleARN, sessionName, servicePrincipal string) (iam.Caller, iam.Credentials, error)
}

// Objects reads packages from the account's S3.
type Objects interface {
	// ReadObject returns an object if the caller may read it.
	ReadObject(ctx context.Context, caller iam.Caller, bucket, key string) ([]byte, error)
}

// Logs is CloudWatch Logs.
type Logs interface {
	// EnsureLogGroup creates a group if it does not exist.
	EnsureLogGroup(group string)
	// WriteLog appends one line, and creates the stream if needed. If the group does not exist, the line is lost.
	WriteLog(group, stream, line string)
}

// Queues is SQS.
type Queues interface {
	// Send sends a message if the caller may. Attributes are strings.
	Send(ctx context.Context, caller iam.Caller, queueARN, body string, attributes map[string]string) (messageID string, err error)
}

// Metric records a value, such as 1 of AWS/Lambda Errors.
type Metric func(namespace, name string, dimensions map[string]string, value float64, unit string)

// Config of the service.
type Config struct {
	// Account is the twelve-digit id; Region such as us-east-1; Partition defaults to aws.
	Account, Region, Partition string
	Clock                      *clock.Clock
	Roles                      Roles
	Objects                    Objects
	// Logs, Queues, Metric and Network are optional. Without Network no function can be in a VPC.
	Logs    Logs
	Queues  Queues
	Metric  Metric
	Network Network
	// ReleaseTakes is the simulated work after which a network interface without functions is deleted. The default is 20 minutes.
	ReleaseTakes time.Duration
	// NoStreaming makes this a region without response streaming, which answers with this error: UnknownOperation or UnknownPath.
	NoStreaming string
	// Run, if set, runs functions in this process instead of their bootstrap: see Inside.
	Run func(ctx context.Context, f Inside, payload []byte) (io.Reader, error)
	// Other invokes functions that this service does not have, asynchronously. found is false for a name that it does not have either. It may
	// be nil.
	Other func(ctx context.Context, caller iam.Caller, in Invocation) (found bool, err error)
	// ConcurrencyLimit and Exhausted are those of Concurrency. They are optional.
	ConcurrencyLimit func() int
	Exhausted        func(function string) bool
	// Endpoint returns the account's URL, which functions get as AWS_ENDPOINT_URL. It is called at each cold start.
	Endpoint func() string
	// Resolve replaces the names in an environment variable by their addresses for a function in a VPC, or outside of one without subnets. It
	// may be nil.
	Resolve func(value string, subnets, groups []string) string
	// Dir is the directory for unpacked packages.
	Dir string
	// Environ has variables that every function gets in addition to its own, such as SSL_CERT_FILE.
	Environ []string
}

// Service is Lambda in one region of one account.
type Service struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	// Concurrency of the account.
	Concurrency *Concurrency
	// Observe, if set before the first call, receives the report of each invocation that ended.
	Observe func(Report)

	mu          sync.Mutex
	closed      bool
	changes     *clock.Changes
	functions   map[string]*function
	attachments map[slot]*attachment
}

// New returns a Lambda without functions. Close stops it.
func New(config Config) *Service {
	if config.Partition == "" {
		config.Partition = "aws"
	}
	if config.Clock == nil {
		config.Clock = &clock.Clock{}
	}
	if config.ReleaseTakes == 0 {
		config.ReleaseTakes = releaseWork
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{
		config: config, ctx: ctx, stop: stop, functions: map[string]*function{},
		attachments: map[slot]*attachment{},
		Concurrency: &Concurrency{Limit: config.ConcurrencyLimit, Exhausted: config.Exhausted, Metric: config.Metric},
	}
	s.changes = clock.NewChanges(&s.mu)
	return s
}

// Close kills all environments and drops queued asynchronous events.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	functions := s.functions
	s.functions = map[string]*function{}
	s.mu.Unlock()
	s.stop()
	for _, f := range functions {
		f.retire()
	}
	s.work.Wait()
}

// background runs work that Close waits for. It returns false if the service is closed.
func (s *Service) background(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.laterLocked(func(context.Context) { work() })
}

// laterLocked is background for a caller that holds s.mu.
func (s *Service) laterLocked(work func(ctx context.Context)) bool {
	if s.closed {
		return false
	}
	turn := s.config.Clock.Ticket("lambda: in the background")
	s.work.Go(func() {
		turn()
		work(s.ctx)
	})
	return true
}

// wait returns when done returns true or an error. done is called with s.mu held.
func (s *Service) wait(ctx context.Context, done func() (bool, error)) error {
	return s.changes.Await(ctx, s.ctx, s.config.Clock, "lambda: a change", done)
}

// Kill kills the environment that holds an access key, as if its process crashed. It reports whether it found one. A
// test that takes the key from a signed request can kill a function at its n-th call.
func (s *Service) Kill(accessKeyID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.functions {
		if e := f.holder(accessKeyID); e != nil {
			e.kill()
			return true
		}
	}
	return false
}

// Running returns the function whose environment holds an access key, and the ID of its current invocation. Both are
// empty if no environment holds the key.
func (s *Service) Running(accessKeyID string) (function, requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.functions {
		if e := f.holder(accessKeyID); e != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.current != nil {
				requestID = e.current.id
			}
			return name, requestID
		}
	}
	return "", ""
}

// metric: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
func (s *Service) metric(function, name string, value float64, unit string) {
	if s.config.Metric != nil {
		s.config.Metric("AWS/Lambda", name, map[string]string{"FunctionName": function}, value, unit)
	}
}

func (s *Service) arn(name string) string {
	return fmt.Sprintf("arn:%s:lambda:%s:%s:function:%s", s.config.Partition, s.config.Region, s.config.Account, name)
}

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)

// name parses a function's name, ARN or partial ARN. Only unqualified functions and $LATEST exist.
func (s *Service) name(reference string) (string, error) {
	name, qualifier := reference, ""
	parts := strings.Split(reference, ":")
	if len(parts) >= 7 && parts[0] == "arn" {
		if parts[2] != "lambda" || parts[3] != s.config.Region || parts[4] != s.config.Account || parts[5] != "function" {
			return "", notFound(reference)
		}
		parts = parts[6:]
	} else if len(parts) >= 3 && parts[1] == "function" {
		parts = parts[2:]
	}
	name = parts[0]
	if len(parts) > 1 {
		qualifier = parts[1]
	}
	if !nameForm.MatchString(name) || len(parts) > 2 {
		return "", invalid("%s is no function name", reference)
	}
	if qualifier != "" && qualifier != "$LATEST" {
		return "", notFound(s.arn(name) + ":" + qualifier)
	}
	return name, nil
}

// find returns a function by name or ARN.
func (s *Service) find(reference string) (*function, error) {
	name, err := s.name(reference)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.functions[name]
	if f == nil {
		return nil, notFound(s.arn(name))
	}
	return f, nil
}

func notFound(arn string) error {
	return &iam.Error{Code: "ResourceNotFoundException", Message: "Function not found: " + arn, Status: http.StatusNotFound}
}

func invalid(format string, args ...any) error {
	return &iam.Error{Code: "InvalidParameterValueException", Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

func conflict(format string, args ...any) error {
	return &iam.Error{Code: "ResourceConflictException", Message: fmt.Sprintf(format, args...), Status: http.StatusConflict}
}

func warn(function, what string, err error) {
	slog.Warn("lambda: "+what, "function", function, "error", err)
}
