// Package wire implements AWS's protocols. It converts HTTP requests to calls of Go functions, and their results and
// errors to responses that the SDKs and the aws command understand.
//
// A service is a table of operations. The protocol of an RPC request is detected from the request itself, because
// clients of different versions use different ones. For CloudWatch the Go SDK uses CBOR and old aws commands use Query.
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

// Protocol is one of AWS's protocols: https://smithy.io/2.0/aws/protocols/index.html.
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

// Error is an AWS error as an API returns it. *wire.Error and *iam.Error are the same type.
type Error = iam.Error

// Errorf returns an error with status 400.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: 400}
}

// UnsupportedCode is the code of Unsupported.
const UnsupportedCode = "UnsupportedByLocalAccount"

// Unsupported returns the error for an operation, parameter or property that the local account does not support.
func Unsupported(service, what string) *Error {
	return Errorf(UnsupportedCode, "the local account's %s does not support %s", service, what)
}

// Operation performs one API operation. A result is a struct (or a pointer to one) whose fields are the members of the
// response, nil if it has none, or a *Response. Errors are *Error. Others become InternalFailure with status 500.
type Operation func(ctx context.Context, c *Call) (any, error)

// Service is the API of one AWS service.
type Service struct {
	// Name is the SigV4 signing name, such as monitoring. Prefix is that of its IAM actions if it differs (cloudwatch).
	Name, Prefix string
	// Protocol of its clients. RPC services also answer the other RPC protocols: see the package comment.
	Protocol Protocol
	// Version of the API, such as 2010-05-15. Without a version the Query protocol is rejected. TargetPrefix is that of
	// X-Amz-Target, such as AmazonSSM (JSON).
	Version, TargetPrefix string
	// Other is another API with the same signing name, selected by its Version: Elastic Load Balancing has two.
	Other *Service
	// Flat maps the name of a Query parameter without an enclosing element (AttributeName.1=…) to the member's name
	// (AttributeNames).
	Flat map[string]string
	// Operations by action name.
	Operations map[string]Operation
	// Routes of RESTJSON: "POST /clusters/{name}" -> action. {name+} matches the rest of the path. Decode gets path values,
	// query parameters and the body's members by name.
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
	// Header, Body and, for REST calls, Path and Query, as received.
	Header http.Header
	Body   []byte
	Path   map[string]string
	Query  url.Values
	// Resource is the last resource that Authorize checked, for the record of calls.
	Resource string

	prefix   string
	protocol Protocol
	params   map[string]any
}

// Response sets status (0: 200) and headers, which a plain result cannot. A Body of []byte or json.RawMessage is sent
// unchanged. Any other is encoded like a result. A Stream writes the body instead, and each write is sent at once.
type Response struct {
	Status int
	Header http.Header
	Body   any
	Stream func(w io.Writer)
}

// Authorize returns an error unless the caller may perform this action on a resource.
func (c *Call) Authorize(resource string) error { return c.AuthorizeContext(resource, nil) }

// AuthorizeContext is Authorize with condition keys.
func (c *Call) AuthorizeContext(resource string, context map[string]string) error {
	c.Resource = resource
	return c.Caller.Authorize(c.IAMAction(), resource, context)
}

// IAMAction returns the action's name in IAM, such as cloudwatch:DescribeAlarms.
func (c *Call) IAMAction() string { return c.prefix + ":" + c.Action }

// Decode fills a struct with the parameters of the call. It matches fields by json tag or name, ignoring case. A
// parameter without a field, or of the wrong type, is an error that names it.
func (c *Call) Decode(into any) error {
	b := binder{service: c.Service, queryProtocol: c.protocol == Query || c.protocol == EC2Query, restProtocol: c.protocol == RESTJSON}
	return b.bindStruct(c.params, into)
}

// Params returns the parameters as received: JSON values, or strings, lists and maps of the Query protocol in which only
// Decode resolves AWS's numbering.
func (c *Call) Params() map[string]any { return c.params }

// maxBody exceeds the limit of every API except S3.
const maxBody = 20 << 20

// Request is a request before it is parsed, with what the endpoint determined.
type Request struct {
	HTTP *http.Request
	// Body, if it was already read.
	Body            []byte
	Caller          iam.Caller
	Region, Account string
	RequestID       string
	// Before, if set, is called before the operation. Its error is sent instead of a result.
	Before func(*Call) error
}

// Serve answers a request. It returns the call, or nil if the request could not be parsed, and the error that it sent.
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

// version returns the API version of a request of the Query protocol.
func version(r Request) string {
	if version := r.HTTP.URL.Query().Get("Version"); version != "" {
		return version
	}
	form, _ := url.ParseQuery(string(r.Body)) // call reports a syntax error later
	return form.Get("Version")
}

// Fail answers a request with an error before it reaches the service, for instance if its signature is wrong.
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
			if value, found := c.params[flat]; found {
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

// route finds the action of a REST request: the matching route with the fewest placeholders.
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

// apiError is the part of smithy.APIError that is sent.
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

// spell returns the code and status of an error as clients of the protocol expect them.
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
