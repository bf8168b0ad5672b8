// Package inprocess reaches an HTTP handler without sockets, streams included: in virtual time (testing/synctest) nobody can wait
// for a network.
package inprocess

import (
	"io"
	"net/http"
	"sync"
)

// Transport has a handler answer every request.
func Transport(handler http.Handler) http.RoundTripper { return transport{handler} }

type transport struct{ handler http.Handler }

// RoundTrip returns as soon as the handler has written its header, flushed, or returned; the body follows as it is written.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	body, w := io.Pipe()
	answer := &response{header: http.Header{}, status: http.StatusOK, body: w, ready: make(chan struct{})}
	go func() {
		t.handler.ServeHTTP(answer, in)
		answer.WriteHeader(http.StatusOK)
		_ = w.Close()
	}()
	select {
	case <-answer.ready:
	case <-r.Context().Done():
		_ = body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// response is an http.ResponseWriter whose body somebody else reads.
type response struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	once         sync.Once
	ready        chan struct{}
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush is http.Flusher's: nothing is held back anyway.
func (w *response) Flush() { w.WriteHeader(http.StatusOK) }
