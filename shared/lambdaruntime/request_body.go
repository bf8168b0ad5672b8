package lambdaruntime

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// KeepConnections makes the clients of a configuration read each response to its end.
//
// The SDK closes a request's body as soon as the response's headers have arrived. net/http may then still read the end of the body. The
// SDK's closed body returns io.EOF from WriteTo, where an io.WriterTo ends with a nil error. net/http takes io.EOF for a failed write and
// closes the connection while the client reads the response: "use of closed network connection". This happens to large responses on busy
// machines. A body without WriteTo is read to its end by Read, whose io.EOF is correct.
func KeepConnections(cfg *aws.Config) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		plain := middleware.DeserializeMiddlewareFunc("PlainRequestBody", sendPlainBody)
		return stack.Deserialize.Add(plain, middleware.After)
	})
}

// sendPlainBody hides WriteTo of a request's body from net/http. It runs last, on the copy of the request for one attempt.
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

// plainBody keeps Seek, with which the SDK finds a body's length.
func plainBody(body io.Reader) io.Reader {
	if seeker, ok := body.(io.ReadSeeker); ok {
		return struct{ io.ReadSeeker }{seeker}
	}
	return struct{ io.Reader }{body}
}
