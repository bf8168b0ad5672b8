package endpoint

// Answers that are lost: the call is done, and its caller does not hear how it ended.

import (
	"net/http"

	"github.com/drover-run/drover/local/engine/wire"
)

// Lost, returned by Intercept, has the call done and its answer thrown away.
type Lost struct {
	// After is called when the call is done, with its error if it had one. Its own error is sent instead of the result and must
	// not be nil.
	After func(err error) error
}

func (*Lost) Error() string { return "the answer is lost" }

// loseable is a response that can be thrown away before it is written.
type loseable struct {
	http.ResponseWriter
	header http.Header // of what is thrown away; nil until then
}

func (w *loseable) lose() { w.header = http.Header{} }

// Header of the response.
func (w *loseable) Header() http.Header {
	if w.header != nil {
		return w.header
	}
	return w.ResponseWriter.Header()
}

// WriteHeader sends the status.
func (w *loseable) WriteHeader(status int) {
	if w.header == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write sends some of the body.
func (w *loseable) Write(b []byte) (int, error) {
	if w.header != nil {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Take is wire.Taker's, for who is in the same process.
func (w *loseable) Take(result any, format wire.Protocol) bool {
	taker, ok := w.ResponseWriter.(wire.Taker)
	return ok && (w.header != nil || taker.Take(result, format))
}

// named is the stack or group that a call names.
func named(parameters map[string]any) string {
	for _, name := range []string{"StackName", "AutoScalingGroupName"} {
		if text, ok := parameters[name].(string); ok {
			return text
		}
	}
	return ""
}
