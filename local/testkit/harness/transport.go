package harness

// The network: requests call the endpoint's handler without sockets.

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/drover-run/drover/local/engine/inprocess"
	"github.com/drover-run/drover/local/engine/wire"
)

// address of the account. Nothing listens there.
const (
	addressHost = "aws.local"
	address     = "http://" + addressHost
)

// streamedPath ends the paths of calls whose answer arrives in parts.
const streamedPath = "/response-streaming-invocations"

// inProcess is the transport of all callers. It returns when the answer is complete, unless the call streams it.
type inProcess struct{ handler http.Handler }

// RoundTrip lets the endpoint answer.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	copied := *r
	in := &copied
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	if r.Host != "" {
		in.Host = r.Host
	}
	if r.ContentLength > 0 && r.Header.Get("Authorization") != "" { // a server sees it among the headers, where signatures cover it
		in.Header = r.Header.Clone()
		in.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	if strings.HasSuffix(in.URL.Path, streamedPath) {
		return inprocess.Transport(p.handler).RoundTrip(in)
	}
	as, _ := r.Context().Value(asKey{}).(reflect.Type)
	w := &response{header: http.Header{}, status: http.StatusOK, as: as}
	p.handler.ServeHTTP(w, in)
	_ = in.Body.Close()
	body := w.body.Bytes()
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: &read{bytes.NewReader(body), body, w.taken}, ContentLength: int64(len(body)), Request: r,
	}, nil
}

// asKey is the context key of the type to which a result may be converted, instead of an encoded body.
type asKey struct{}

// read is the complete body of an answer, or the converted result in its place.
type read struct {
	*bytes.Reader
	all   []byte
	taken any
}

func (*read) Close() error { return nil }

// client is http.Client without redirects and cookies.
type client struct{ http.RoundTripper }

// Do makes a call. Its errors are those of http.Client.
func (c client) Do(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTrip(r)
	if err != nil {
		return nil, &url.Error{Op: r.Method[:1] + strings.ToLower(r.Method[1:]), URL: r.URL.String(), Err: err}
	}
	return response, nil
}

// response is an http.ResponseWriter that stores the answer.
type response struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
	as     reflect.Type
	taken  any
}

// Accept implements wire.ResultSink.
func (w *response) Accept(result any, format wire.Protocol) (taken bool) {
	if w.as != nil {
		w.taken, taken = wire.ResultAs(result, format, w.as)
	}
	return taken
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if !w.wrote && status >= 200 {
		w.status, w.wrote = status, true // http.ResponseWriter would send headers that are set later; no handler sets any
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

var _ http.RoundTripper = inProcess{}
