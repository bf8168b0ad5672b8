package harness

// Direct calls. In virtual time a life makes hundreds of thousands of calls, and most of the SDK's work is the same for
// each of them: endpoint rules, checksums, signatures and metrics. Direct calls keep only the request on the wire, errors,
// retries and the caller. Responses are on the wire the first time, and if the result cannot be passed as a Go value (see
// wire.ResultAs). Accounts in real time make complete calls.

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithytime "github.com/aws/smithy-go/time"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/drover-run/drover/local/aws/iam"
)

// direct configures clients to make direct calls with their credentials.
func (a *Account) direct(cfg *aws.Config) {
	credentials, client := cfg.Credentials, cfg.HTTPClient
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		retries, calls := stack.Finalize.Get("Retry")
		if !calls { // it only presigns, which needs the signature
			return nil
		}
		if isSigned(stack) {
			_, err := stack.Build.Remove("ClientRequestID") // a random number that no service reads
			return err
		}
		c := &directCall{credentials: credentials}
		keep[middleware.InitializeMiddleware](stack.Initialize, "RegisterServiceMetadata", "OperationIdempotencyTokenAutoFill",
			"OperationInputValidation")
		keep[middleware.SerializeMiddleware](stack.Serialize, "OperationSerializer")
		keep[middleware.BuildMiddleware](stack.Build, "ComputeContentLength")
		stack.Finalize.Clear()
		deserialize, _ := stack.Deserialize.Get("OperationDeserializer")
		answers := &remembering{DeserializeMiddleware: deserialize, operation: stack.ID(), answers: &a.answers, client: client}
		keep[middleware.DeserializeMiddleware](stack.Deserialize, "ResponseErrorWrapper", "S3MetadataRetriever", "RequestIDRetriever")
		for _, err := range []error{
			stack.Initialize.Add(c, middleware.Before), stack.Build.Add(invocationID{}, middleware.Before),
			stack.Finalize.Add(retries, middleware.After), stack.Finalize.Add(c, middleware.After),
			stack.Deserialize.Add(answers, middleware.After),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// signedClients are the clients whose calls keep their signature: shared/aws/leftovers signs some with the session of a cluster, and a
// streamed answer needs the client's own middlewares.
var signedClients = []string{"ec2", "elasticloadbalancing", "elasticloadbalancingv2", "iam", "lambda"}

// isSigned reports whether a stack belongs to one of these clients. Its serializer is a type of the client's package.
func isSigned(stack *middleware.Stack) bool {
	serializer, found := stack.Serialize.Get("OperationSerializer")
	return found && slices.Contains(signedClients, path.Base(reflect.TypeOf(serializer).Elem().PkgPath()))
}

// step is a step of a middleware stack.
type step[M any] interface {
	Get(id string) (M, bool)
	Clear()
	Add(m M, pos middleware.RelativePosition) error
}

// keep removes all middlewares of a step except these, in this order.
func keep[M any](s step[M], names ...string) {
	kept := make([]M, 0, len(names))
	for _, name := range names {
		if m, ok := s.Get(name); ok {
			kept = append(kept, m)
		}
	}
	s.Clear()
	for _, m := range kept {
		_ = s.Add(m, middleware.After) // the names are distinct
	}
}

// directCall is the middleware of direct calls.
type directCall struct{ credentials aws.CredentialsProvider }

// invocationID reads the random bytes that the SDK reads for each call, so later random values are the same without direct calls.
type invocationID struct{}

func (invocationID) ID() string { return "InvocationID" }

func (invocationID) HandleBuild(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (
	middleware.BuildOutput, middleware.Metadata, error,
) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return next.HandleBuild(ctx, in)
}

// bucketKey is the context key of the bucket of an S3 call.
type bucketKey struct{}

// ID implements middleware.
func (c *directCall) ID() string { return "DirectCall" }

// HandleInitialize records the bucket, which is part of the address.
func (c *directCall) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	if awsmiddleware.GetServiceID(ctx) == "S3" {
		if bucket, ok := reflect.ValueOf(in.Parameters).Elem().FieldByName("Bucket").Interface().(*string); ok {
			ctx = middleware.WithStackValue(ctx, bucketKey{}, "/"+aws.ToString(bucket))
		}
	}
	return next.HandleInitialize(ctx, in)
}

// signingNames are the signing names of services, by the SDK's service IDs.
var signingNames = map[string]string{
	"S3": "s3", "Auto Scaling": "autoscaling", "CloudFormation": "cloudformation", "CloudWatch": "monitoring", "EKS": "eks", "SFN": "states",
	"STS": "sts",
	"SNS": "sns", "EventBridge": "events", "CloudWatch Logs": "logs", "KMS": "kms", "Service Quotas": "servicequotas",
	"Resource Groups Tagging API": "tagging",
}

// HandleFinalize sets the address and the caller of an attempt.
func (c *directCall) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	r, ok := in.Request.(*smithyhttp.Request)
	service, found := signingNames[awsmiddleware.GetServiceID(ctx)]
	if !ok || !found {
		return out, metadata, fmt.Errorf("no direct call of %q with a %T", awsmiddleware.GetServiceID(ctx), in.Request)
	}
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return out, metadata, err
	}
	r.URL.Scheme, r.URL.Host = "http", addressHost
	if bucket, ok := middleware.GetStackValue(ctx, bucketKey{}).(string); ok {
		if r.URL.RawPath != "" {
			r.URL.RawPath = smithyhttp.JoinPath(bucket, r.URL.RawPath)
		}
		r.URL.Path = smithyhttp.JoinPath(bucket, r.URL.Path)
	}
	return next.HandleFinalize(iam.WithAccessKey(ctx, credentials.AccessKeyID, Region, service), in)
}

// answers caches decoded responses. Sweeps read the same responses repeatedly, and decoding is most of their cost.
type answers struct {
	mu   sync.Mutex
	read map[string]map[string]any // by operation and body
}

// operations has the result types of operations, for all accounts.
type operations struct {
	mu sync.Mutex
	as map[string]reflect.Type // known after the SDK has decoded one result
}

var learnt = &operations{as: map[string]reflect.Type{}}

// result returns the result type of an operation, or nil before the first result.
func (o *operations) result(operation string) reflect.Type {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.as[operation]
}

func (o *operations) reads(operation string, into any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.as[operation] = reflect.TypeOf(into)
}

// cachedCopy returns a copy of the decoded result of an equal body, or nil.
func (a *answers) cachedCopy(operation string, body io.Reader) any {
	here, ok := body.(*read)
	if !ok {
		return nil
	}
	a.mu.Lock()
	known, ok := a.read[operation][string(here.all)]
	a.mu.Unlock()
	if !ok {
		return nil
	}
	return copyResult(reflect.ValueOf(known)).Interface()
}

// maxAnswers limits the cached responses of an operation.
const maxAnswers = 100

// bodies are the content types of responses without further data in headers, as other responses of S3 have.
var bodies = map[string]bool{
	"text/xml": true, "application/x-amz-json-1.0": true, "application/x-amz-json-1.1": true, "application/json": true,
}

// remembering is an operation's deserializer that decodes equal responses once.
type remembering struct {
	middleware.DeserializeMiddleware
	operation string
	answers   *answers
	client    aws.HTTPClient
}

// HandleDeserialize returns the passed Go value, or a copy of the decoded result of an equal body.
func (m *remembering) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, _ middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	operation, asked := awsmiddleware.GetServiceID(ctx)+" "+m.operation, ctx
	if as := learnt.result(operation); as != nil {
		asked = context.WithValue(ctx, asKey{}, as)
	}
	out, metadata, err := m.ask(asked, in)
	decode := func() (middleware.DeserializeOutput, middleware.Metadata, error) {
		return m.DeserializeMiddleware.HandleDeserialize(ctx, in, answerHandler{out, metadata, err})
	}
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if ok && err == nil {
		if body, here := response.Body.(*read); here && body.taken != nil {
			out.Result = body.taken
			return out, metadata, nil
		}
	}
	if m.operation == "GetObject" && err == nil {
		if out.Result = object(response); out.Result != (*awss3.GetObjectOutput)(nil) {
			return out, metadata, nil
		}
		return decode()
	}
	if err != nil || !ok || response.StatusCode != http.StatusOK || m.operation != "ListObjectsV2" &&
		!bodies[response.Header.Get("Content-Type")] {
		return decode()
	}
	body, ok := response.Body.(*read)
	if !ok {
		return decode()
	}
	if id := []byte(response.Header.Get("X-Amzn-Requestid")); len(id) > 0 { // the request ID differs each time, and is read elsewhere
		if i := bytes.LastIndex(body.all, id); i >= 0 {
			copy(body.all[i:], bytes.Repeat([]byte{'0'}, len(id)))
		}
	}
	if known := m.answers.cachedCopy(operation, body); known != nil {
		out.Result = known
		return out, metadata, nil
	}
	if out, metadata, err = decode(); err == nil {
		learnt.reads(operation, out.Result)
		m.answers.mu.Lock()
		defer m.answers.mu.Unlock()
		if m.answers.read == nil {
			m.answers.read = map[string]map[string]any{}
		}
		if of := m.answers.read[operation]; of == nil || len(of) == maxAnswers {
			m.answers.read[operation] = map[string]any{}
		}
		m.answers.read[operation][string(body.all)] = copyResult(reflect.ValueOf(out.Result)).Interface()
	}
	return out, metadata, err
}

// ask makes the call, like the SDK's last handler, with a request of this attempt.
func (m *remembering) ask(ctx context.Context, in middleware.DeserializeInput) (out middleware.DeserializeOutput,
	metadata middleware.Metadata, err error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, metadata, fmt.Errorf("no direct call with a %T", in.Request)
	}
	r := request.Request.WithContext(ctx)
	if body := request.GetStream(); body == nil && r.ContentLength == -1 {
		r.ContentLength = 0
	} else if body != nil && r.ContentLength != 0 {
		r.Body = io.NopCloser(body)
	}
	response, err := m.client.Do(r)
	if response == nil {
		response = &http.Response{Header: http.Header{}, Body: http.NoBody}
	}
	if err != nil {
		err = &smithyhttp.RequestSendError{Err: err}
		if ctx.Err() != nil {
			err = &smithy.CanceledError{Err: ctx.Err()}
		}
	}
	out.RawResponse = &smithyhttp.Response{Response: response}
	return out, metadata, err
}

// object decodes the result of GetObject, for which the SDK would read three dozen headers. It returns nil for other responses.
func object(response *smithyhttp.Response) *awss3.GetObjectOutput {
	if response.StatusCode != http.StatusOK {
		return nil
	}
	out := &awss3.GetObjectOutput{Body: response.Body}
	for name, values := range response.Header {
		var err error
		switch value := values[0]; name {
		case "Content-Type":
			out.ContentType = &value
		case "Content-Length":
			out.ContentLength, err = number(value)
		case "Etag":
			out.ETag = &value
		case "Last-Modified":
			out.LastModified, err = date(value)
		case "X-Amz-Version-Id":
			out.VersionId = &value
		default:
			return nil
		}
		if err != nil {
			return nil
		}
	}
	return out
}

func number(text string) (*int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return &n, err
}

func date(text string) (*time.Time, error) {
	t, err := smithytime.ParseHTTPDate(text)
	return &t, err
}

// answerHandler is a handler that returns a result.
type answerHandler struct {
	out      middleware.DeserializeOutput
	metadata middleware.Metadata
	err      error
}

func (a answerHandler) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata,
	error) {
	return a.out, a.metadata, a.err
}

// copyResult copies a decoded result: structs, lists, maps, and pointers to values that never change.
func copyResult(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type() == reflect.TypeFor[*time.Time]() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		copyFields(c.Elem())
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		copyFields(c)
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			copyInto(c.Index(i))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			c.SetMapIndex(entries.Key(), copyResult(entries.Value()))
		}
		return c
	}
	return v
}

func copyFields(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.CanSet() {
			copyInto(f)
		}
	}
}

// copyInto replaces what a copied value still shares.
func copyInto(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() && v.Type() != reflect.TypeFor[middleware.Metadata]() {
			copyFields(v)
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if !v.IsNil() {
			v.Set(copyResult(v))
		}
	}
}
