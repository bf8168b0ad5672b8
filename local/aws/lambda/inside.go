package lambda

// Functions in this process, for accounts in virtual time.

import (
	"context"
	"errors"
	"io"
	"maps"
	"reflect"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/drover-run/drover/local/aws/iam"
)

// Inside describes an invocation to Config.Run. The context ends with the function's timeout, and Run must heed it. It returns a response,
// which a streaming caller receives while Lambda reads it.
type Inside struct {
	Name, RequestID string
	// Variables of the function's environment.
	Variables   map[string]string
	Credentials iam.Credentials
	// SubnetIDs and SecurityGroupIDs of the VPC from which the function connects. They are empty outside of a VPC.
	SubnetIDs, SecurityGroupIDs []string
}

// runInside is run for Config.Run.
func (f *function) runInside(i *invocation) (response, Report, error) {
	s := f.service
	f.mu.Lock()
	if err := s.ctx.Err(); err != nil {
		f.mu.Unlock()
		return response{}, Report{}, err
	}
	c := Inside{Name: f.settings.FunctionName, RequestID: i.id, Variables: maps.Clone(f.settings.variables())}
	role, timeout := f.settings.Role, time.Duration(f.settings.Timeout)*time.Second
	c.SubnetIDs, c.SecurityGroupIDs = f.vpc.subnets(), f.vpc.groups()
	f.mu.Unlock()
	_, credentials, err := s.config.Roles.AssumeRoleAs(role, sessionName(c.Name), "lambda.amazonaws.com")
	if err != nil {
		return response{}, Report{}, mayNotAssume()
	}
	c.Credentials = credentials
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	begin := s.config.Clock.Now()
	a := i.perform(func() (io.Reader, error) { return s.config.Run(ctx, c, i.payload) })
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a = timedOut(i.id, timeout)
	}
	return a, Report{Function: c.Name, RequestID: i.id, Duration: s.config.Clock.Now().Sub(begin), Failed: a.failed}, nil
}

// perform runs a function and passes its response on.
func (i *invocation) perform(run func() (io.Reader, error)) response {
	out, err := run()
	if err != nil {
		return errorResponse(err)
	}
	if closer, ok := out.(io.Closer); ok {
		defer closer.Close()
	}
	if i.stream != nil {
		_, err := io.Copy(i.stream, out)
		switch {
		case i.stream.size > maxStream:
			return oversize(maxStream)
		case err != nil:
			return errorResponse(err)
		}
		return response{}
	}
	body, err := io.ReadAll(io.LimitReader(out, maxResponse+1))
	switch {
	case err != nil:
		return errorResponse(err)
	case len(body) > maxResponse:
		return oversize(maxResponse)
	}
	return response{payload: body}
}

// errorResponse returns the error of a handler as aws-lambda-go reports it: by the name of its type.
func errorResponse(err error) response {
	if named, ok := errors.AsType[messages.InvokeResponse_Error](err); ok {
		return failure(named.Type, named.Message)
	}
	kind := reflect.TypeOf(err)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return failure(kind.Name(), err.Error())
}
