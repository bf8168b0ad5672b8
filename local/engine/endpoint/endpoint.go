// Package endpoint is the local account's HTTP address. It verifies the signature of a request, passes it to the service
// in the signature's scope, and records the call. A call from the same process may have an access key in its context
// instead of a signature. A call from the network cannot.
package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/local/engine/wire"
)

// S3 answers requests of the S3 protocol.
type S3 interface {
	// Describe returns the action (in IAM's spelling, without s3:) and the resource of a request.
	Describe(r *http.Request) (action, resource string)
	// Serve answers a request whose signature of the headers is verified, but not yet of the body. It returns the error
	// that it sent, if any.
	Serve(w http.ResponseWriter, r *http.Request, caller iam.Caller, requestID string) error
	// Fail answers with an error.
	Fail(w http.ResponseWriter, r *http.Request, requestID string, err error)
}

// Endpoint is an http.Handler. Register services before it serves.
type Endpoint struct {
	// Intercept, if set, is called before each call, to inject faults. It may wait. Its error is sent instead of a result:
	// see also Dropped. The call's Time, Caller, Service and Action are set. Resource is set for S3, and for other calls if
	// they name a stack, a group or a function.
	Intercept func(r *http.Request, call Call) error

	identities *iam.Service
	recorder   *Recorder
	services   map[string]*wire.Service
	s3         S3
}

// New returns an endpoint without services. recorder may be nil.
func New(identities *iam.Service, recorder *Recorder) *Endpoint {
	if recorder == nil {
		recorder = &Recorder{}
	}
	return &Endpoint{identities: identities, recorder: recorder, services: map[string]*wire.Service{}}
}

// Handle registers services by their signing names.
func (e *Endpoint) Handle(services ...*wire.Service) {
	for _, s := range services {
		e.services[s.Name] = s
	}
}

// HandleS3 registers the S3 service.
func (e *Endpoint) HandleS3(s S3) { e.s3 = s }

const (
	unsignedPayload = "UNSIGNED-PAYLOAD"
	// maxBody exceeds the limit of every API except S3.
	maxBody = 20 << 20
)

// ServeHTTP answers one AWS API call.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := Call{Time: time.Now().UTC(), RequestID: uuid.NewString()}
	err := e.serve(w, r, &call)
	if err != nil {
		call.Error = err.Error()
		var known interface{ ErrorCode() string }
		if errors.As(err, &known) {
			call.ErrorCode = known.ErrorCode()
		}
	}
	call.Mutating = mutating(call.Action)
	call.Took = time.Since(call.Time)
	e.recorder.add(call)
}

func (e *Endpoint) serve(w http.ResponseWriter, r *http.Request, call *Call) error {
	signature, err := iam.ParseSignature(r)
	if err != nil {
		e.failUnsigned(w, r, call.RequestID, err)
		return err
	}
	call.Service = signature.Service
	if signature.Service == "s3" {
		return e.serveS3(w, r, signature, call)
	}
	service, ok := e.services[signature.Service]
	if !ok {
		err := wire.Unsupported("endpoint", "the service "+signature.Service)
		e.failUnsigned(w, r, call.RequestID, err)
		return err
	}
	fail := func(err error) error {
		service.Fail(w, r, call.RequestID, err)
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return fail(&wire.Error{Code: "RequestEntityTooLarge", Message: err.Error(), Status: 413})
	}
	hash := ""
	if !signature.Trusted() {
		if hash, err = payloadHash(r, body); err != nil {
			return fail(err)
		}
	}
	caller, err := e.identities.Verify(r, signature, hash)
	if err != nil {
		return fail(err)
	}
	call.Caller = caller.ARN()
	if err := e.checkRegion(signature); err != nil {
		return fail(err)
	}
	answer := &droppable{ResponseWriter: w}
	var dropped *Dropped
	c, err := service.Serve(answer, wire.Request{
		HTTP: r, Body: body, Caller: caller, Region: e.region(signature), Account: e.identities.Account, RequestID: call.RequestID,
		Before: func(c *wire.Call) error {
			call.Action, call.Resource = c.Action, resourceOf(c.Params())
			if e.Intercept == nil {
				return nil
			}
			err := e.Intercept(r, *call)
			if errors.As(err, &dropped) {
				answer.drop()
				return nil
			}
			return err
		},
	})
	if c != nil {
		call.Action, call.Resource = c.Action, c.Resource
	}
	if dropped != nil {
		return fail(dropped.After(err))
	}
	return err
}

func (e *Endpoint) serveS3(w http.ResponseWriter, r *http.Request, signature *iam.Signature, call *Call) error {
	if e.s3 == nil {
		err := wire.Unsupported("endpoint", "the service s3")
		e.failUnsigned(w, r, call.RequestID, err)
		return err
	}
	hash := r.Header.Get("X-Amz-Content-Sha256")
	if hash == "" {
		hash = unsignedPayload // in presigned URLs; the gateway rejects other requests without the header
	}
	caller, err := e.identities.Verify(r, signature, hash)
	if err != nil {
		e.s3.Fail(w, r, call.RequestID, err)
		return err
	}
	call.Caller = caller.ARN()
	call.Action, call.Resource = e.s3.Describe(r)
	if e.Intercept != nil {
		err := e.Intercept(r, *call)
		var dropped *Dropped
		if errors.As(err, &dropped) {
			answer := &droppable{ResponseWriter: w}
			answer.drop()
			err = dropped.After(e.s3.Serve(answer, r, caller, call.RequestID))
		}
		if err != nil {
			e.s3.Fail(w, r, call.RequestID, err)
			return err
		}
	}
	return e.s3.Serve(w, r, caller, call.RequestID)
}

// payloadHash returns the hash that the client must have signed. A hash header that does not match the body is an error.
func payloadHash(r *http.Request, body []byte) (string, error) {
	sum := sha256.Sum256(body)
	actual := hex.EncodeToString(sum[:])
	switch claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed {
	case "", actual:
		return actual, nil
	case unsignedPayload:
		return unsignedPayload, nil
	default:
		return "", &wire.Error{
			Code: "SignatureDoesNotMatch", Message: "The value passed in as x-amz-content-sha256 does not match the computed payload hash. " +
				"Computed digest: " + actual + " expected hash: " + claimed, Status: 403,
		}
	}
}

// globalRegion is the region of global services.
const globalRegion = "us-east-1"

// checkRegion rejects signatures for another region. IAM is global and STS has a global endpoint: both accept us-east-1
// too. Service Quotas has the quotas of global services there.
func (e *Endpoint) checkRegion(s *iam.Signature) error {
	switch {
	case s.Region == e.identities.Region, s.Service == "iam", s.Region == globalRegion && (s.Service == "sts" || s.Service == "servicequotas"):
		return nil
	}
	return &wire.Error{
		Code: "SignatureDoesNotMatch", Message: "Credential should be scoped to a valid Region, not '" + s.Region + "'.", Status: 403,
	}
}

// region returns the region that a request is for.
func (e *Endpoint) region(s *iam.Signature) string {
	if s.Service == "servicequotas" {
		return s.Region
	}
	return e.identities.Region
}

// failUnsigned answers a request without a signature. Only its form identifies the protocol.
func (e *Endpoint) failUnsigned(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	target, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	query := r.URL.Query().Has("Action") || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	switch {
	case target != "" || r.Header.Get("Smithy-Protocol") != "":
		(&wire.Service{Protocol: wire.JSON11}).Fail(w, r, requestID, err)
	case query:
		(&wire.Service{Protocol: wire.Query}).Fail(w, r, requestID, err)
	case e.s3 != nil && (r.Header.Get("X-Amz-Content-Sha256") != "" || r.Header.Get("Authorization") == ""):
		if code := wire.Errorf("", ""); errors.As(err, &code) && code.Code == "MissingAuthenticationToken" {
			err = &wire.Error{Code: "AccessDenied", Message: "Access Denied", Status: 403} // S3's code for anonymous callers
		}
		e.s3.Fail(w, r, requestID, err)
	default:
		(&wire.Service{Protocol: wire.RESTJSON}).Fail(w, r, requestID, err)
	}
}
