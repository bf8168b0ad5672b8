package endpoint

// Dropped answers: the call is performed, but its caller gets no result.

import (
	"net/http"

	"github.com/drover-run/drover/local/engine/wire"
)

// Dropped, returned by Intercept, performs the call and drops its answer.
type Dropped struct {
	// After is called after the call with its error, or nil. Its own error is sent instead of the result and must not be
	// nil.
	After func(err error) error
}

func (*Dropped) Error() string { return "the answer is lost" }

// droppable is a response that can be dropped before it is written.
type droppable struct {
	http.ResponseWriter
	header http.Header // headers of a dropped response; nil until then
}

func (w *droppable) drop() { w.header = http.Header{} }

// Header implements http.ResponseWriter.
func (w *droppable) Header() http.Header {
	if w.header != nil {
		return w.header
	}
	return w.ResponseWriter.Header()
}

// WriteHeader implements http.ResponseWriter.
func (w *droppable) WriteHeader(status int) {
	if w.header == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *droppable) Write(b []byte) (int, error) {
	if w.header != nil {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// FlushError implements the interface of http.ResponseController.
func (w *droppable) FlushError() error {
	if w.header != nil {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Accept implements wire.ResultSink, for clients in this process.
func (w *droppable) Accept(result any, format wire.Protocol) bool {
	taker, ok := w.ResponseWriter.(wire.ResultSink)
	return ok && (w.header != nil || taker.Accept(result, format))
}

// resourceOf returns the stack, group or function in a call's parameters.
func resourceOf(parameters map[string]any) string {
	for _, name := range []string{"StackName", "AutoScalingGroupName", "FunctionName"} {
		if text, ok := parameters[name].(string); ok {
			return text
		}
	}
	return ""
}
