package harness

// First attempts: written, and their successes read, as the SDK does it, without all that the SDK has around that.
// Any other end of one is the SDK's to read, as that of its own first attempt, and to try again.

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/drover-run/drover/local/aws/iam"
)

// attempt that was made, of which the SDK has not heard yet.
type attempt struct {
	response *http.Response
	err      error
	told     bool
}

func (m *attempt) ok() bool { return m.err == nil && m.response.StatusCode == http.StatusOK }

// taken is the result that was handed over; nil when none was.
func (m *attempt) taken() any {
	if m.ok() {
		if body, here := m.response.Body.(*read); here {
			return body.taken
		}
	}
	return nil
}

type attemptKey struct{}

// attemptOf a call, nil when the SDK makes its first itself.
func attemptOf(ctx context.Context) *attempt {
	made, _ := ctx.Value(attemptKey{}).(*attempt)
	return made
}

// invocationID is drawn for each call, though nobody reads it: what is drawn after it is what it would be with the SDK's own.
type invocationID struct{}

func (invocationID) ID() string { return "InvocationID" }

func (invocationID) HandleBuild(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (
	middleware.BuildOutput, middleware.Metadata, error,
) {
	if attemptOf(ctx) == nil {
		drawID()
	}
	return next.HandleBuild(ctx, in)
}

func drawID() {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
}

// attempt to call with a request that has its path; nil when the first attempt is the SDK's.
func (p *prepared) attempt(ctx context.Context, r *http.Request) *attempt {
	if p.retryer == nil || ctx.Err() != nil {
		return nil
	}
	drawID()
	credentials, err := p.credentials.Retrieve(ctx)
	if err != nil {
		return nil
	}
	release, err := p.retryer.GetAttemptToken(ctx)
	if err != nil {
		return nil
	}
	r.URL.Scheme, r.URL.Host = "http", addressHost
	made := &attempt{}
	if made.response, made.err = p.http.Do(r.WithContext(iam.WithAccessKey(ctx, credentials.AccessKeyID, Region,
		signingNames[p.service]))); made.ok() {
		_ = release(nil) // as many tokens as there may be, at most
	}
	return made
}

// writing is an operation's serializer, which is the SDK's and keeps nothing of a call: ask makes such a call, of
// which no more than that comes.
func writing(ask func(aws.Config) error) (writer middleware.SerializeMiddleware) {
	enough := errors.New("it is prepared")
	_ = ask(aws.Config{Region: Region, APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		writer, _ = stack.Serialize.Get("OperationSerializer")
		return enough
	}}})
	return writer
}

// try makes the first attempt of a call whose answer can be handed over; nil when that is the SDK's.
func (p *prepared) try(ctx context.Context, operation string, writer middleware.SerializeMiddleware, in any) *attempt {
	as := learnt.result(p.service + " " + operation)
	if as == nil || writer == nil {
		return nil
	}
	request, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if !ok {
		return nil
	}
	kept := &keptRequest{}
	if _, _, err := writer.HandleSerialize(ctx, middleware.SerializeInput{Parameters: in, Request: request}, kept); err != nil ||
		kept.request == nil {
		return nil
	}
	r := kept.request.Request
	if body := kept.request.GetStream(); body == nil {
		r.ContentLength = 0
	} else {
		length, known, err := kept.request.StreamLength()
		if err != nil || !known {
			return nil
		}
		r.Body, r.ContentLength = io.NopCloser(body), length
	}
	return p.attempt(context.WithValue(ctx, asKey{}, as), r)
}

// keptRequest is behind a serializer.
type keptRequest struct{ request *smithyhttp.Request }

func (k *keptRequest) HandleSerialize(_ context.Context, in middleware.SerializeInput) (out middleware.SerializeOutput,
	metadata middleware.Metadata, err error) {
	k.request, _ = in.Request.(*smithyhttp.Request)
	return out, metadata, nil
}
