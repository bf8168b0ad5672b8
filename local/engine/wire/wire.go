// Package wire speaks AWS's protocols: it turns HTTP requests into calls of Go functions and their results and errors
// into what the SDKs and the aws command read.
//
// A service is a table of operations. Which of the RPC protocols a request speaks is read off the request itself, since
// clients of different ages choose differently (CloudWatch: CBOR from the Go SDK, Query from old aws commands).
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-run/drover/local/aws/iam"
)

// Protocol is one of AWS's: https://smithy.io/2.0/aws/protocols/index.html.
type Protocol int

// The protocols. CBOR is smithy-rpc-v2-cbor.
const (
	Query Protocol = iota
	EC2Query
	JSON10
	JSON11
	RESTJSON
	CBOR
)

// Error is an AWS error as an API returns it: *wire.Error and *iam.Error are one type.
type Error = iam.Error

// Errorf makes an error of status 400.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: 400}
}

// UnsupportedCode is the code of Unsupported.
const UnsupportedCode = "UnsupportedByLocalAccount"

// Unsupported is the error for an operation, parameter or property that the local account does not have.
func Unsupported(service, what string) *Error {
	return Errorf(UnsupportedCode, "the local account's %s does not support %s", service, what)
}

// Operation of a service. A result is a struct (or pointer to one) whose fields are the members of the response, nil when
// there are none, or a *Response. Errors are *Error; others become InternalFailure with status 500.
type Operation func(ctx context.Context, c *Call) (any, error)

// Service is what one AWS service answers.
type Service struct {
	// Name is the SigV4 signing name, such as monitoring. Prefix is that of its IAM actions where it differs (cloudwatch).
	Name, Prefix string
	// Protocol that its clients speak. RPC services also answer the others: see the package comment.
	Protocol Protocol
	// Version of the API, such as 2010-05-15: without one the Query protocol is refused. TargetPrefix of X-Amz-Target,
	// such as AmazonSSM (JSON).
	Version, TargetPrefix string
	// Other is another API under the same signing name, told by its Version: Elastic Load Balancing has two.
	Other *Service
	// Flat are the names under which the Query protocol has lists and maps that it writes without an element around them: that
	// of the parameter (AttributeName.1=…) to the member's (AttributeNames).
	Flat map[string]string
	// Operations by action name.
	Operations map[string]Operation
	// Routes of RESTJSON: "POST /clusters/{name}" -> action. {name+} takes the rest of the path. Path values, query
	// parameters and the body's members all reach Decode by name.
	Routes map[string]string
}

// Call is one request.
type Call struct {
	Service, Action string
	Caller          iam.Caller
	Region, Account string
	RequestID       string
	// SourceIP of the caller.
	SourceIP string
	// Header, Body and, of REST calls, Path and Query as they came.
	Header http.Header
	Body   []byte
	Path   map[string]string
	Query  url.Values
	// Resource is the last resource that Authorize was asked about, for those who record calls.
	Resource string

	prefix   string
	protocol Protocol
	params   map[string]any
}

// Response sets what a plain result cannot: the status (0: 200) and headers. A Body of []byte or json.RawMessage is sent
// as it is, any other is encoded as a result.
type Response struct {
	Status int
	Header http.Header
	Body   any
}

// Authorize asks whether the caller may perform this very action on a resource.
func (c *Call) Authorize(resource string) error { return c.AuthorizeContext(resource, nil) }

// AuthorizeContext is Authorize with condition keys.
func (c *Call) AuthorizeContext(resource string, context map[string]string) error {
	c.Resource = resource
	return c.Caller.Authorize(c.IAMAction(), resource, context)
}

// IAMAction such as cloudwatch:DescribeAlarms.
func (c *Call) IAMAction() string { return c.prefix + ":" + c.Action }

// Decode fills a struct with the parameters of the call. Fields are matched by their json tag's name or their own, without
// regard to case. A parameter that no field takes, or of the wrong type, is an error that names it.
func (c *Call) Decode(into any) error {
	b := binder{service: c.Service, text: c.protocol == Query || c.protocol == EC2Query, rest: c.protocol == RESTJSON}
	return b.bindStruct(c.params, into)
}

// Params are the parameters as they came: JSON values, or for Query strings, lists and maps with AWS's numbering undone
// only by Decode.
func (c *Call) Params() map[string]any { return c.params }

// maxBody is more than any API but S3 takes.
const maxBody = 20 << 20

// Request is what the endpoint knows about a request before it is parsed.
type Request struct {
	HTTP *http.Request
	// Body, when it was read already.
	Body            []byte
	Caller          iam.Caller
	Region, Account string
	RequestID       string
	// Before, when set, sees the call before its operation runs; its error is sent instead of a result.
	Before func(*Call) error
}

// Serve answers a request. It returns the call (nil if the request was not understood) and the error that was sent.
func (s *Service) Serve(w http.ResponseWriter, r Request) (*Call, error) {
	format := s.format(r.HTTP)
	if r.Body == nil && r.HTTP.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.HTTP.Body, maxBody))
		if err != nil {
			return nil, s.fail(w, format, r.RequestID, Errorf("RequestTimeout", "the body ended early: %v", err))
		}
		r.Body = body
	}
	if s.Other != nil && format == Query && version(r) == s.Other.Version {
		return s.Other.Serve(w, r)
	}
	c, err := s.call(format, r)
	if err != nil {
		return nil, s.fail(w, format, r.RequestID, err)
	}
	op, ok := s.Operations[c.Action]
	if !ok {
		return c, s.fail(w, format, r.RequestID, Unsupported(s.iamPrefix(), "the operation "+c.Action))
	}
	if r.Before != nil {
		if err := r.Before(c); err != nil {
			return c, s.fail(w, format, r.RequestID, err)
		}
	}
	result, err := op(r.HTTP.Context(), c)
	if err != nil {
		return c, s.fail(w, format, r.RequestID, err)
	}
	if err := s.send(w, format, c, result); err != nil {
		return c, s.fail(w, format, r.RequestID, err)
	}
	return c, nil
}

// version that a request of the Query protocol asks for.
func version(r Request) string {
	if version := r.HTTP.URL.Query().Get("Version"); version != "" {
		return version
	}
	form, _ := url.ParseQuery(string(r.Body)) // what is wrong with it is told later
	return form.Get("Version")
}

// Fail answers a request with an error before it reached the service, as when its signature is wrong.
func (s *Service) Fail(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	_ = s.fail(w, s.format(r), requestID, err)
}

func (s *Service) iamPrefix() string {
	if s.Prefix != "" {
		return s.Prefix
	}
	return s.Name
}

func (s *Service) format(r *http.Request) Protocol {
	switch {
	case s.Protocol == RESTJSON || s.Protocol == EC2Query:
		return s.Protocol
	case r.Header.Get("Smithy-Protocol") == "rpc-v2-cbor":
		return CBOR
	case r.Header.Get("X-Amz-Target") != "":
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json-1.1") {
			return JSON11
		}
		return JSON10
	case r.URL.Query().Has("Action") || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		return Query
	}
	return s.Protocol
}

// call parses a request without its signature.
func (s *Service) call(format Protocol, r Request) (*Call, error) {
	c := &Call{
		Service: s.Name, Caller: r.Caller, Region: r.Region, Account: r.Account, RequestID: r.RequestID,
		Header: r.HTTP.Header, Body: r.Body, prefix: s.iamPrefix(), protocol: format,
	}
	c.SourceIP, _, _ = strings.Cut(r.HTTP.RemoteAddr, ":")
	var err error
	switch format {
	case Query, EC2Query:
		if s.Version == "" {
			return nil, Unsupported(s.iamPrefix(), "the Query protocol, which old clients speak")
		}
		c.Action, c.params, err = parseQuery(r.HTTP.URL.Query(), r.Body)
		for flat, member := range s.Flat {
			if value, there := c.params[flat]; there {
				delete(c.params, flat)
				c.params[member] = value
			}
		}
	case JSON10, JSON11:
		prefix, action, ok := strings.Cut(r.HTTP.Header.Get("X-Amz-Target"), ".")
		if !ok || s.TargetPrefix != "" && prefix != s.TargetPrefix {
			return nil, Errorf("UnknownOperationException", "X-Amz-Target %q is none of this service's", r.HTTP.Header.Get("X-Amz-Target"))
		}
		c.Action = action
		c.params, err = parseJSON(r.Body)
	case CBOR:
		_, c.Action, _ = strings.Cut(r.HTTP.URL.Path, "/operation/")
		c.params, err = parseCBOR(r.Body)
	case RESTJSON:
		err = s.route(c, r)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// route finds the action of a REST request: the route with the fewest placeholders that fits.
func (s *Service) route(c *Call, r Request) error {
	segments := strings.Split(strings.Trim(r.HTTP.URL.EscapedPath(), "/"), "/")
	best := -1
	for route, action := range s.Routes {
		method, pattern, _ := strings.Cut(route, " ")
		if method != r.HTTP.Method {
			continue
		}
		values, ok := matchRoute(strings.Split(strings.Trim(pattern, "/"), "/"), segments)
		if ok && (best < 0 || len(values) < best) {
			best, c.Action, c.Path = len(values), action, values
		}
	}
	if best < 0 {
		return Unsupported(s.iamPrefix(), "the request "+r.HTTP.Method+" "+r.HTTP.URL.Path)
	}
	c.Query = r.HTTP.URL.Query()
	c.params = map[string]any{}
	if len(r.Body) > 0 && strings.Contains(c.Header.Get("Content-Type"), "json") || len(r.Body) > 0 && c.Header.Get("Content-Type") == "" {
		params, err := parseJSON(r.Body)
		if err != nil && c.Header.Get("Content-Type") != "" {
			return err
		}
		if err == nil {
			c.params = params
		}
	}
	for k, v := range c.Query {
		if strings.HasPrefix(k, "X-Amz-") {
			continue
		}
		if len(v) == 1 {
			c.params[k] = v[0]
		} else {
			list := make([]any, len(v))
			for i := range v {
				list[i] = v[i]
			}
			c.params[k] = list
		}
	}
	for k, v := range c.Path {
		c.params[k] = v
	}
	return nil
}

func matchRoute(pattern, segments []string) (map[string]string, bool) {
	values := map[string]string{}
	for i, p := range pattern {
		name, placeholder := strings.CutPrefix(p, "{")
		if !placeholder {
			if i >= len(segments) || segments[i] != p {
				return nil, false
			}
			continue
		}
		if i >= len(segments) || segments[i] == "" {
			return nil, false
		}
		name = strings.TrimSuffix(name, "}")
		text := segments[i]
		greedy := strings.HasSuffix(name, "+")
		if greedy {
			text, name = strings.Join(segments[i:], "/"), strings.TrimSuffix(name, "+")
		}
		value, err := url.PathUnescape(text)
		if err != nil {
			return nil, false
		}
		values[name] = value
		if greedy {
			return values, i == len(pattern)-1
		}
	}
	return values, len(pattern) == len(segments)
}

// apiError is what the errors of AWS tell; smithy.APIError without the fault.
type apiError interface {
	ErrorCode() string
	ErrorMessage() string
}

// fail sends err and returns it.
func (s *Service) fail(w http.ResponseWriter, format Protocol, requestID string, err error) error {
	e := &Error{Code: "InternalFailure", Message: err.Error(), Status: 500}
	var known apiError
	var exact *Error
	switch {
	case errors.As(err, &exact):
		copied := *exact
		e = &copied
	case errors.As(err, &known):
		e = &Error{Code: known.ErrorCode(), Message: known.ErrorMessage(), Status: 400}
	case errors.Is(err, context.Canceled):
		e.Code = "RequestCanceled"
	default:
		slog.Error("a call failed inside the local account", "service", s.Name, "error", err)
	}
	e.Code, e.Status = spell(format, s.Name, e)
	s.sendError(w, format, requestID, e)
	return err
}

// spell gives the error codes that differ by protocol in the spelling that clients of the protocol know.
func spell(format Protocol, service string, e *Error) (code string, status int) {
	code, status = e.Code, e.HTTPStatus()
	switch format {
	case EC2Query:
		switch code {
		case "AccessDenied":
			return "UnauthorizedOperation", 403
		case "InvalidClientTokenId", "SignatureDoesNotMatch":
			return "AuthFailure", 401
		case "ExpiredToken":
			return "RequestExpired", 400
		}
	case JSON10, JSON11, RESTJSON, CBOR:
		if format != RESTJSON && slices.Contains([]string{
			"AccessDenied", "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "MissingAuthenticationToken", "IncompleteSignature",
		}, code) {
			status = 400
		}
		switch code {
		case "AccessDenied":
			if service == "monitoring" {
				return code, status
			}
			return "AccessDeniedException", status
		case "InvalidClientTokenId":
			return "UnrecognizedClientException", status
		case "ExpiredToken":
			return "ExpiredTokenException", status
		case "SignatureDoesNotMatch":
			return "InvalidSignatureException", status
		case "MissingAuthenticationToken":
			return "MissingAuthenticationTokenException", status
		case "IncompleteSignature":
			return "IncompleteSignatureException", status
		case "Throttling":
			return "ThrottlingException", status
		}
	}
	return code, status
}
