package lambdaruntime

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// KeepConnections has the clients of a configuration read each response to its end.
//
// The SDK closes a request's body as soon as the response's headers are there. net/http may not have asked the body
// for its end by then, and does so next. The SDK's closed body answers io.EOF from WriteTo, where a nil error is
// the end of an io.WriterTo. net/http takes that for a failed write and closes the connection, while the client
// reads the response: "use of closed network connection". Large responses on busy machines fail so. A body without
// WriteTo is read to its end by Read, whose io.EOF is right.
// https://github.com/aws/smithy-go/blob/main/transport/http/internal/io/safe.go
func KeepConnections(cfg *aws.Config) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		plain := middleware.DeserializeMiddlewareFunc("PlainRequestBody", sendPlainBody)
		return stack.Deserialize.Add(plain, middleware.After)
	})
}

// sendPlainBody hides WriteTo of a request's body from net/http. It runs last, on the copy of the request for one
// attempt.
func sendPlainBody(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return next.HandleDeserialize(ctx, in)
	}
	if _, ok := request.GetStream().(io.WriterTo); ok {
		plain, err := request.SetStream(plainBody(request.GetStream()))
		if err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, err
		}
		in.Request = plain
	}
	return next.HandleDeserialize(ctx, in)
}

// plainBody keeps Seek, by which the SDK knows a body's length.
func plainBody(body io.Reader) io.Reader {
	if seeker, ok := body.(io.ReadSeeker); ok {
		return struct{ io.ReadSeeker }{seeker}
	}
	return struct{ io.Reader }{body}
}
