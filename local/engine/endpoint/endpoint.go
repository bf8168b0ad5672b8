// Package endpoint is the one HTTP address of the local account: it verifies who signed a request, hands it to the
// service that its signature is scoped to, and records the call. Calls from within the process of a test may name their access key in
// place of a signature; nothing that comes over a network can.
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
	// Describe says which action (as IAM names it, without s3:) on which resource a request is.
	Describe(r *http.Request) (action, resource string)
	// Serve answers a request whose signature (of the headers, not yet of the body) is verified. It returns the error that
	// it sent, if any.
	Serve(w http.ResponseWriter, r *http.Request, caller iam.Caller, requestID string) error
	// Fail answers with an error.
	Fail(w http.ResponseWriter, r *http.Request, requestID string, err error)
}

// Endpoint is an http.Handler. Register services before it serves.
type Endpoint struct {
	// Intercept, when set, sees each call before it runs, for faults on demand: its error is sent instead of a result (see
	// Lost too), and it may wait. The call's Time, Caller, Service and Action are set; Resource is that of S3, of other calls the
	// stack or group that they name, if any.
	Intercept func(r *http.Request, call Call) error

	identities *iam.Service
	recorder   *Recorder
	services   map[string]*wire.Service
	s3         S3
}

// New makes an endpoint without services. recorder may be nil.
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
	// maxBody is more than any API but S3 takes.
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
	if !signature.Known() {
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
	answer := &loseable{ResponseWriter: w}
	var lost *Lost
	c, err := service.Serve(answer, wire.Request{
		HTTP: r, Body: body, Caller: caller, Region: e.identities.Region, Account: e.identities.Account, RequestID: call.RequestID,
		Before: func(c *wire.Call) error {
			call.Action, call.Resource = c.Action, named(c.Params())
			if e.Intercept == nil {
				return nil
			}
			err := e.Intercept(r, *call)
			if errors.As(err, &lost) {
				answer.lose()
				return nil
			}
			return err
		},
	})
	if c != nil {
		call.Action, call.Resource = c.Action, c.Resource
	}
	if lost != nil {
		return fail(lost.After(err))
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
		hash = unsignedPayload // of presigned URLs; the gateway behind refuses others without the header
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
		var lost *Lost
		if errors.As(err, &lost) {
			answer := &loseable{ResponseWriter: w}
			answer.lose()
			err = lost.After(e.s3.Serve(answer, r, caller, call.RequestID))
		}
		if err != nil {
			e.s3.Fail(w, r, call.RequestID, err)
			return err
		}
	}
	return e.s3.Serve(w, r, caller, call.RequestID)
}

// payloadHash is what the client must have signed; a hash header that does not fit the body is an error.
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

// checkRegion holds regional services to the account's region. IAM is global and STS has a global endpoint: both are
// signed for us-east-1 too.
func (e *Endpoint) checkRegion(s *iam.Signature) error {
	if s.Region == e.identities.Region || s.Service == "iam" || s.Service == "sts" && s.Region == "us-east-1" {
		return nil
	}
	return &wire.Error{
		Code: "SignatureDoesNotMatch", Message: "Credential should be scoped to a valid Region, not '" + s.Region + "'.", Status: 403,
	}
}

// failUnsigned answers requests of which only their form tells what they speak.
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
			err = &wire.Error{Code: "AccessDenied", Message: "Access Denied", Status: 403} // S3's word for anonymous callers
		}
		e.s3.Fail(w, r, requestID, err)
	default:
		(&wire.Service{Protocol: wire.RESTJSON}).Fail(w, r, requestID, err)
	}
}
