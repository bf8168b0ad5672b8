package lambda

// The API operations. https://docs.aws.amazon.com/lambda/latest/api/API_Operations.html

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/local/engine/wire"
)

// Wire returns the service's API for the endpoint.
func (s *Service) Wire() *wire.Service {
	const functions, function = "/2015-03-31/functions", "/2015-03-31/functions/{FunctionName}"
	const events, concurrency = "/2019-09-25/functions/{FunctionName}/event-invoke-config", "/2017-10-31/functions/{FunctionName}/concurrency"
	const streaming, tags = "/2021-11-15/functions/{FunctionName}/response-streaming-invocations", "/2017-03-31/tags/{Resource}"
	return &wire.Service{
		Name: "lambda", Protocol: wire.RESTJSON,
		Operations: map[string]wire.Operation{
			"CreateFunction": s.createFunction, "GetFunction": s.getFunction, "GetFunctionConfiguration": s.getFunctionConfiguration,
			"UpdateFunctionConfiguration": s.updateFunctionConfiguration, "UpdateFunctionCode": s.updateFunctionCode,
			"DeleteFunction": s.deleteFunction, "ListFunctions": s.listFunctions, "Invoke": s.invoke,
			"InvokeWithResponseStream": s.invokeWithResponseStream, "ListTags": s.listTags, "TagResource": s.tagResource,
			"UntagResource": s.untagResource,
			"AddPermission": s.addPermission, "RemovePermission": s.removePermission, "GetPolicy": s.getPolicy,
			"PutFunctionEventInvokeConfig": s.putEventConfig, "GetFunctionEventInvokeConfig": s.getEventConfig,
			"DeleteFunctionEventInvokeConfig": s.deleteEventConfig, "PutFunctionConcurrency": s.putConcurrency,
			"DeleteFunctionConcurrency": s.deleteConcurrency, "GetFunctionConcurrency": s.getConcurrency,
			"GetAccountSettings": s.getAccountSettings,
		},
		Routes: map[string]string{
			"POST " + functions: "CreateFunction", "GET " + functions: "ListFunctions",
			"GET " + function: "GetFunction", "DELETE " + function: "DeleteFunction",
			"GET " + function + "/configuration": "GetFunctionConfiguration", "PUT " + function + "/configuration": "UpdateFunctionConfiguration",
			"PUT " + function + "/code": "UpdateFunctionCode", "POST " + function + "/invocations": "Invoke",
			"POST " + streaming: "InvokeWithResponseStream", "GET " + tags: "ListTags", "POST " + tags: "TagResource",
			"DELETE " + tags:               "UntagResource",
			"POST " + function + "/policy": "AddPermission", "GET " + function + "/policy": "GetPolicy",
			"DELETE " + function + "/policy/{StatementId}": "RemovePermission",
			"PUT " + events: "PutFunctionEventInvokeConfig", "GET " + events: "GetFunctionEventInvokeConfig",
			"DELETE " + events:   "DeleteFunctionEventInvokeConfig",
			"PUT " + concurrency: "PutFunctionConcurrency", "DELETE " + concurrency: "DeleteFunctionConcurrency",
			"GET /2019-09-30/functions/{FunctionName}/concurrency": "GetFunctionConcurrency",
			"GET /2016-08-19/account-settings":                     "GetAccountSettings",
		},
	}
}

func (s *Service) createFunction(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		settings
		Code code
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	c.Resource = s.arn(in.FunctionName)
	f, err := s.create(ctx, c.Caller, in.settings, in.Code)
	if err != nil {
		return nil, err
	}
	return &wire.Response{Status: http.StatusCreated, Body: f.configuration()}, nil
}

// authorizedFunction decodes a request whose only parameter is a function, authorizes the caller and finds the function.
func (s *Service) authorizedFunction(c *wire.Call, action string) (*function, error) {
	var in struct{ FunctionName, Qualifier string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return s.allowedFunction(c, action, qualifiedName(in.FunctionName, in.Qualifier))
}

func (s *Service) allowedFunction(c *wire.Call, action, reference string) (*function, error) {
	name, err := s.name(reference)
	if err != nil {
		return nil, err
	}
	c.Resource = s.arn(name)
	return s.mayManage(c.Caller, action, name)
}

func qualifiedName(name, qualifier string) string {
	if qualifier == "" {
		return name
	}
	if !strings.Contains(name, ":") {
		name = "function:" + name
		return "0:" + name + ":" + qualifier // a partial ARN; name ignores its account
	}
	return name + ":" + qualifier
}

func (s *Service) getFunction(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:GetFunction")
	if err != nil {
		return nil, err
	}
	type concurrency struct{ ReservedConcurrentExecutions int }
	out := struct {
		Configuration configuration
		Code          struct{ RepositoryType string }
		Tags          map[string]string
		Concurrency   *concurrency
	}{Configuration: f.configuration()}
	out.Code.RepositoryType = "S3"
	f.mu.Lock()
	out.Tags = f.settings.Tags
	f.mu.Unlock()
	if n := out.Configuration.ReservedInstances; n != nil {
		out.Concurrency = &concurrency{*n}
	}
	return out, nil
}

func (s *Service) getFunctionConfiguration(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:GetFunctionConfiguration")
	if err != nil {
		return nil, err
	}
	return f.configuration(), nil
}

func (s *Service) updateFunctionConfiguration(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		FunctionName                        string
		Description, Role, Runtime, Handler *string
		KMSKeyArn                           *string
		MemorySize, Timeout                 *int
		Environment                         *variables
		DeadLetterConfig                    *deadLetter
		TracingConfig                       *tracing
		LoggingConfig                       *logging
		EphemeralStorage                    *storage
		VPCConfig                           *vpcConfig `json:"VpcConfig"`
		RevisionID                          string     `json:"RevisionId"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:UpdateFunctionConfiguration", in.FunctionName)
	if err != nil {
		return nil, err
	}
	name := f.configuration().FunctionName
	f, err = s.updateSettings(c.Caller, name, func(to *settings) error {
		set(&to.Description, in.Description)
		set(&to.Role, in.Role)
		set(&to.Runtime, in.Runtime)
		set(&to.Handler, in.Handler)
		set(&to.KMSKeyArn, in.KMSKeyArn)
		set(&to.MemorySize, in.MemorySize)
		set(&to.Timeout, in.Timeout)
		replace(&to.Environment, in.Environment)
		replace(&to.DeadLetterConfig, in.DeadLetterConfig)
		replace(&to.TracingConfig, in.TracingConfig)
		replace(&to.LoggingConfig, in.LoggingConfig)
		replace(&to.EphemeralStorage, in.EphemeralStorage)
		replace(&to.VPCConfig, in.VPCConfig)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f.configuration(), nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func replace[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

func (s *Service) updateFunctionCode(ctx context.Context, c *wire.Call) (any, error) {
	var in struct {
		code
		FunctionName  string
		Architectures []string
		Publish       bool
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Publish {
		return nil, wire.Unsupported("lambda", "Publish: there are no versions")
	}
	f, err := s.allowedFunction(c, "lambda:UpdateFunctionCode", in.FunctionName)
	if err != nil {
		return nil, err
	}
	have := f.configuration()
	if in.Architectures != nil && !slices.Equal(in.Architectures, have.Architectures) {
		return nil, wire.Unsupported("lambda", "changing Architectures")
	}
	if f, err = s.updateCode(ctx, c.Caller, have.FunctionName, in.code); err != nil {
		return nil, err
	}
	return f.configuration(), nil
}

func (s *Service) deleteFunction(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:DeleteFunction")
	if err != nil {
		return nil, err
	}
	return &wire.Response{Status: http.StatusNoContent}, s.remove(c.Caller, f.configuration().FunctionName)
}

func (s *Service) listFunctions(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ MaxItems int }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Authorize("*"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	all := make([]*function, 0, len(s.functions))
	for _, f := range s.functions {
		all = append(all, f)
	}
	s.mu.Unlock()
	out := struct{ Functions []configuration }{Functions: []configuration{}}
	for _, f := range all {
		out.Functions = append(out.Functions, f.configuration())
	}
	slices.SortFunc(out.Functions, func(a, b configuration) int { return strings.Compare(a.FunctionName, b.FunctionName) })
	return out, nil
}

// invocationOf returns the invocation that a call requests.
func (s *Service) invocationOf(c *wire.Call) (Invocation, error) {
	for name := range c.Query {
		if name != "Qualifier" {
			return Invocation{}, wire.Unsupported("lambda", "the parameter "+name)
		}
	}
	reference := qualifiedName(c.Path["FunctionName"], c.Query.Get("Qualifier"))
	if name, err := s.name(reference); err == nil {
		c.Resource = s.arn(name)
	}
	return Invocation{Function: reference, Payload: c.Body}, nil
}

// https://docs.aws.amazon.com/lambda/latest/api/API_InvokeWithResponseStream.html
func (s *Service) invokeWithResponseStream(ctx context.Context, c *wire.Call) (any, error) {
	if s.config.NoStreaming != "" {
		return nil, noStreaming(s.config.NoStreaming)
	}
	in, err := s.invocationOf(c)
	if err != nil {
		return nil, err
	}
	switch kind := or(c.Header.Get("X-Amz-Invocation-Type"), "RequestResponse"); kind {
	case "DryRun":
		_, _, err := s.admit(c.Caller, in, maxPayload)
		return &wire.Response{Status: http.StatusNoContent}, err
	case "RequestResponse":
	default:
		return nil, invalid("InvocationType %s: one of RequestResponse and DryRun", kind)
	}
	b, err := s.InvokeStreaming(ctx, c.Caller, in)
	if err != nil {
		return nil, err
	}
	return &wire.Response{
		Header: http.Header{"X-Amz-Executed-Version": {"$LATEST"}, "Content-Type": {"application/vnd.amazon.eventstream"}},
		Stream: func(w io.Writer) {
			out := events{w}
			failed, log, err := b.Copy(ctx, out)
			if err != nil {
				return // the caller has left
			}
			if c.Header.Get("X-Amz-Log-Type") != "Tail" {
				log = ""
			}
			_ = out.complete(failed, base64.StdEncoding.EncodeToString([]byte(log))) // fails only if the caller has left
		},
	}, nil
}

func (s *Service) invoke(ctx context.Context, c *wire.Call) (any, error) {
	in, err := s.invocationOf(c)
	if err != nil {
		return nil, err
	}
	switch kind := or(c.Header.Get("X-Amz-Invocation-Type"), "RequestResponse"); kind {
	case "Event":
		if s.config.Other != nil {
			if found, err := s.config.Other(ctx, c.Caller, in); found {
				return &wire.Response{Status: http.StatusAccepted}, err
			}
		}
		_, err := s.InvokeAsync(ctx, c.Caller, in)
		return &wire.Response{Status: http.StatusAccepted}, err
	case "DryRun":
		_, _, err := s.admit(c.Caller, in, maxPayload)
		return &wire.Response{Status: http.StatusNoContent}, err
	case "RequestResponse":
	default:
		return nil, invalid("InvocationType %s: one of Event, RequestResponse and DryRun", kind)
	}
	r, err := s.Invoke(ctx, c.Caller, in)
	if err != nil {
		return nil, err
	}
	h := http.Header{"X-Amz-Executed-Version": {"$LATEST"}, "Content-Type": {"application/json"}}
	if r.FunctionError != "" {
		h.Set("X-Amz-Function-Error", r.FunctionError)
	}
	if c.Header.Get("X-Amz-Log-Type") == "Tail" {
		h.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(r.Log)))
	}
	return &wire.Response{Header: h, Body: r.Payload}, nil
}

func (s *Service) addPermission(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ FunctionName, StatementID, Action, Principal, SourceArn, SourceAccount string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:AddPermission", in.FunctionName)
	if err != nil {
		return nil, err
	}
	added, err := f.addPermission(permission(in))
	if err != nil {
		return nil, err
	}
	return &wire.Response{Status: http.StatusCreated, Body: struct{ Statement string }{asText(added)}}, nil
}

func (s *Service) removePermission(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ FunctionName, StatementID string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:RemovePermission", in.FunctionName)
	if err != nil {
		return nil, err
	}
	if !f.removePermission(in.StatementID) {
		return nil, noPolicy()
	}
	return &wire.Response{Status: http.StatusNoContent}, nil
}

func (s *Service) getPolicy(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:GetPolicy")
	if err != nil {
		return nil, err
	}
	text := f.policyText()
	if text == "" {
		return nil, noPolicy()
	}
	return struct{ Policy string }{text}, nil
}

func (s *Service) putEventConfig(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		eventConfig
		FunctionName string
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:PutFunctionEventInvokeConfig", in.FunctionName)
	if err != nil {
		return nil, err
	}
	if err := s.setEventConfig(c.Caller, f.configuration().FunctionName, &in.eventConfig); err != nil {
		return nil, err
	}
	return eventConfigResult(f)
}

func eventConfigResult(f *function) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retries == nil {
		return nil, notFound(f.arn + ":$LATEST doesn't have an EventInvokeConfig")
	}
	return struct {
		eventConfig
		FunctionArn  string
		LastModified time.Time
	}{*f.retries, f.arn + ":$LATEST", f.retries.modified}, nil
}

func (s *Service) getEventConfig(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:GetFunctionEventInvokeConfig")
	if err != nil {
		return nil, err
	}
	return eventConfigResult(f)
}

func (s *Service) deleteEventConfig(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:DeleteFunctionEventInvokeConfig")
	if err != nil {
		return nil, err
	}
	return &wire.Response{Status: http.StatusNoContent}, s.setEventConfig(c.Caller, f.configuration().FunctionName, nil)
}

func (s *Service) putConcurrency(_ context.Context, c *wire.Call) (any, error) {
	var in struct {
		FunctionName                 string
		ReservedConcurrentExecutions int
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	f, err := s.allowedFunction(c, "lambda:PutFunctionConcurrency", in.FunctionName)
	if err != nil {
		return nil, err
	}
	return struct{ ReservedConcurrentExecutions int }{in.ReservedConcurrentExecutions},
		s.setConcurrency(c.Caller, f.configuration().FunctionName, &in.ReservedConcurrentExecutions)
}

func (s *Service) deleteConcurrency(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:DeleteFunctionConcurrency")
	if err != nil {
		return nil, err
	}
	return &wire.Response{Status: http.StatusNoContent}, s.setConcurrency(c.Caller, f.configuration().FunctionName, nil)
}

func (s *Service) getConcurrency(_ context.Context, c *wire.Call) (any, error) {
	f, err := s.authorizedFunction(c, "lambda:GetFunctionConcurrency")
	if err != nil {
		return nil, err
	}
	return struct{ ReservedConcurrentExecutions *int }{f.configuration().ReservedInstances}, nil
}
